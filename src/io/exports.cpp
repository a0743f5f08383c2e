#include <parsearch/io/exports/chakra_trace.ipp>
#include <parsearch/io/exports/device_mesh.ipp>
#include <parsearch/io/exports/exported_plan.ipp>
#include <parsearch/io/exports/jax_export.ipp>
#include <parsearch/io/exports/link_ends.ipp>
#include <parsearch/io/exports/pytorch_export.ipp>
#include <parsearch/io/exports/textbook_plan.ipp>
#include <parsearch/io/exports/training_flags.ipp>
