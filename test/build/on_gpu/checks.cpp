// The checks of a device, of a fake one, for check_on_gpu.py: what test_cuda is on a GPU. Environment: FAKE_GPU=none there is no device;
// FAKE_BROKEN=check one check fails, FAKE_BROKEN=crash one ends the program.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "profiler/fake_device.hpp"

using namespace parsearch::profiler;

namespace {
bool is(char const* name, std::string_view value) {
    auto const* const given = std::getenv(name);
    return given != nullptr && given == value;
}
} // namespace

TEST_SUITE("device") {
    TEST_CASE("a matmul") {
        launch const l = matmul{.m = 64, .n = 64, .k = 64};
        auto const one = support::fake_device(std::make_shared<support::fake_script>()).prepare({&l, 1});
        CHECK(one->run(3) == 3 * one->run(1));
    }
    TEST_CASE("streaming") {
        if (is("FAKE_BROKEN", "crash")) std::abort();
        CHECK_FALSE(is("FAKE_BROKEN", "check"));
    }
    TEST_CASE("a device: facts, copies, an iteration") {
        support::fake_device d(std::make_shared<support::fake_script>());
        CHECK(d.facts().name == "NVIDIA H100 80GB HBM3");
        CHECK(d.copy(copy_kind::host_to_device, 4096, 3, 0).time.count() > 0);
    }
}

int main(int argc, char** argv) {
    if (is("FAKE_GPU", "none")) {
        std::cout << "skipped: no device\n";
        return 77;
    }
    return doctest::Context(argc, argv).run();
}
