// parsearch-profile: measures on cores of a CPU. `parsearch-profile --help` says all of it.

#include "cpu_profiler/cpu_device.hpp"
#include "cpu_profiler/ranks.hpp"
#include "profiler/program/program.hpp"

int main(int argc, char** argv) {
    using namespace parsearch::profiler;
    ranks all(argc, argv);
    if (all.number() > 0) {
        all.serve();
        return ok;
    }
    return run_program(argc, argv,
                       {.kind = "cpu",
                        .count = [&] { return all.size(); },
                        .open = [&](int ordinal) { return open_cpu_device(ordinal, all); },
                        .open_group = [&](std::span<int const> ordinals) { return all.open_group(ordinals); }});
}
