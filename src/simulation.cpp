#include <parsearch/sim/delta_simulator.ipp>
#include <parsearch/sim/report.ipp>
#include <parsearch/sim/simulator.ipp>
#include <parsearch/sim/task/payload.ipp>
