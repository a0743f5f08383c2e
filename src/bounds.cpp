#include <parsearch/problem/surrogate.ipp>
#include <parsearch/sim/strategy_bounds.ipp>
