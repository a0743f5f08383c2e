#include <parsearch/io/instances/instance.ipp>
#include <parsearch/io/instances/judgement.ipp>
#include <parsearch/io/instances/rewritings.ipp>
