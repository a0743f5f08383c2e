/// Runs the tests. Those of the suite "device" need a GPU: where that suite alone is asked for and there is none, the exit code is 77 (skipped).
/// With PARSEARCH_ONE_SET in the environment, launches have one set of arrays each, which is less for tools that check every access.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "devices.hpp"
#include "support.hpp"

namespace parsearch::profiler::testing {

std::unique_ptr<cuda_session> const& session() {
    static std::unique_ptr<cuda_session> const s = [] {
        std::unique_ptr<cuda_session> made;
        if (cuda_device_count() > 0)
            made = std::getenv("PARSEARCH_ONE_SET") != nullptr ? std::make_unique<cuda_session>(0, 0) : std::make_unique<cuda_session>(0);
        return made;
    }();
    return s;
}

} // namespace parsearch::profiler::testing

int main(int argc, char** argv) {
    bool device_alone = false;
    for (int i = 1; i < argc; ++i) device_alone = device_alone || std::string_view(argv[i]) == "--test-suite=device";
    if (device_alone && parsearch::profiler::cuda_device_count() == 0) {
        try {
            (void)parsearch::profiler::open_cuda_device(0);
        } catch (parsearch::profiler::no_device const& e) {
            std::cout << "skipped: " << e.what() << '\n';
            return 77;
        }
    }
    return doctest::Context(argc, argv).run();
}
