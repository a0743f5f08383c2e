#include "nvml.hpp"

#include <array>
#include <cstring>

#include <dlfcn.h>

namespace parsearch::profiler {

namespace {
// Of nvml.h: every function answers 0 for success; a device is a pointer; clocks are 1 (multiprocessors) and 2 (memory), sensor 0 is the GPU's.
using initialise = int();
using find_device = int(char const*, void**);
using read_clock = int(void*, int, unsigned*);
using read_temperature = int(void*, int, unsigned*);
using read_power = int(void*, unsigned*);
using read_reasons = int(void*, unsigned long long*);
using read_version = int(char*, unsigned);
constexpr int multiprocessor_clock = 1, memory_clock = 2, gpu_sensor = 0;

/// Why a clock is below its most, as bits (nvmlClocksEventReasons; throttle reasons before driver 535).
struct reason_bit {
    unsigned long long bit;
    char const* words;
};
constexpr std::array<reason_bit, 6> reason_bits{
    {{0x2, "application clocks"}, {0x4, "power cap"}, {0x8, "hardware slowdown"}, {0x20, "heat"}, {0x40, "heat (hardware)"}, {0x80, "power brake"}}};
} // namespace

template <class F> F* nvml::find(char const* name) const {
    F* f = nullptr;
    if (library_ == nullptr) return f;
    void* const symbol = dlsym(library_, name);
    static_assert(sizeof f == sizeof symbol);
    std::memcpy(&f, &symbol, sizeof f);
    return f;
}

nvml::nvml(std::string const& bus) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    auto* const start = find<initialise>("nvmlInit_v2");
    auto* const device = find<find_device>("nvmlDeviceGetHandleByPciBusId_v2");
    started_ = start != nullptr && start() == 0;
    if (started_ && device != nullptr && device(bus.c_str(), &device_) != 0) device_ = nullptr;
}

nvml::~nvml() {
    if (auto* const stop = find<initialise>("nvmlShutdown"); stop != nullptr && started_) (void)stop();
    if (library_ != nullptr) (void)dlclose(library_);
}

environment_reading nvml::read() const {
    environment_reading r;
    if (device_ == nullptr) return r;
    unsigned v = 0;
    if (auto* const clock = find<read_clock>("nvmlDeviceGetClockInfo"); clock != nullptr) {
        if (clock(device_, multiprocessor_clock, &v) == 0) r.sm_mhz = v;
        if (clock(device_, memory_clock, &v) == 0) r.memory_mhz = v;
    }
    if (auto* const heat = find<read_temperature>("nvmlDeviceGetTemperature"); heat != nullptr && heat(device_, gpu_sensor, &v) == 0) r.celsius = v;
    if (auto* const power = find<read_power>("nvmlDeviceGetPowerUsage"); power != nullptr && power(device_, &v) == 0) r.milliwatts = v;
    return r;
}

std::vector<std::string> nvml::throttled_by() const {
    std::vector<std::string> all;
    if (device_ == nullptr) return all;
    auto* reasons = find<read_reasons>("nvmlDeviceGetCurrentClocksEventReasons");
    if (reasons == nullptr) reasons = find<read_reasons>("nvmlDeviceGetCurrentClocksThrottleReasons");
    if (unsigned long long bits = 0; reasons != nullptr && reasons(device_, &bits) == 0)
        for (auto const& [bit, words] : reason_bits)
            if ((bits & bit) != 0) all.emplace_back(words);
    return all;
}

std::string nvml::driver() const {
    std::array<char, 96> text{};
    auto* const version = find<read_version>("nvmlSystemGetDriverVersion");
    if (!started_ || version == nullptr || version(text.data(), static_cast<unsigned>(text.size())) != 0) return {};
    text.back() = '\0';
    return text.data();
}

} // namespace parsearch::profiler
