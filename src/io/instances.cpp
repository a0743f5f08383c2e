#include <parsearch/io/instances/instance.ipp>
#include <parsearch/io/instances/judgement.ipp>
