// parsearch-profile on a fake device, for check_on_gpu.py. Environment: FAKE_GPU=none there is no device; FAKE_SLEEP_US the microseconds that a run
// takes; FAKE_REFUSE=softmax what fails; FAKE_BREAK=pooling what breaks the device.
#include <cstdlib>
#include <string>

#include <unistd.h>

#include "profiler/fake_device.hpp"

namespace {
std::string environment(char const* name) {
    auto const* const value = std::getenv(name);
    return value != nullptr ? value : "";
}
} // namespace

int main(int argc, char** argv) {
    using namespace parsearch::profiler;
    auto const script = std::make_shared<support::fake_script>();
    if (environment("FAKE_GPU") == "none") script->devices = 0;
    if (auto const sleep = environment("FAKE_SLEEP_US"); !sleep.empty())
        script->on_run = [span = static_cast<unsigned>(std::stoul(sleep))] { ::usleep(span); };
    if (environment("FAKE_REFUSE") == "softmax")
        script->on_prepare = [](std::span<launch const> sequence) {
            for (auto const& l : sequence)
                if (std::holds_alternative<softmax>(l)) throw launch_failure("no engine");
        };
    if (environment("FAKE_BREAK") == "pooling")
        script->on_prepare = [](std::span<launch const> sequence) {
            for (auto const& l : sequence)
                if (auto const* const p = std::get_if<pooling>(&l); p != nullptr && p->backward && p->type == dtype::bf16)
                    throw device_failure("an illegal address");
        };
    return run_program(argc, argv, support::fake_devices(script));
}
