#include <parsearch/problem/surrogate.ipp>
#include <parsearch/sim/bounds/strategy_bounds.ipp>
