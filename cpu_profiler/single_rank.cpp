/// This process alone: the program is built without MPI.

#include "cpu_profiler/ranks.hpp"

namespace parsearch::profiler {

ranks::ranks(int&, char**&) { tie_to_core(0); }
ranks::~ranks() = default;
std::string ranks::version() { return {}; }
void ranks::serve() {}
std::unique_ptr<device_group> ranks::open_group(std::span<int const>) { throw no_device("this program was built without MPI: no collectives"); }
picoseconds ranks::send(byte_count, std::int64_t, int) { throw launch_failure("this program was built without MPI: no messages"); }

} // namespace parsearch::profiler
