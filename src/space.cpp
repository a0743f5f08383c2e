#include <parsearch/sim/memory/strategy_memory.ipp>
#include <parsearch/space/operator_space.ipp>
#include <parsearch/space/strategy_space.ipp>
