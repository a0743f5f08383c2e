#pragma once
/// Clocks, temperature, power and the driver's version, by NVML: loaded while the program runs, so that it is needed neither to build nor to start.

#include <string>
#include <vector>

#include "profiler/device.hpp"

namespace parsearch::profiler {

/// NVML of one device; without the library, or a device in it, all answers are empty.
class nvml {
  public:
    /// `bus` is the device's PCI address, as CUDA writes it ("0000:3b:00.0").
    explicit nvml(std::string const& bus);
    nvml(nvml const&) = delete;
    nvml& operator=(nvml const&) = delete;
    ~nvml();
    [[nodiscard]] environment_reading read() const;
    [[nodiscard]] std::vector<std::string> throttled_by() const; ///< see `device`
    [[nodiscard]] std::string driver() const;                    ///< "550.54.15"

  private:
    template <class F> [[nodiscard]] F* find(char const* name) const;
    void* library_ = nullptr;
    void* device_ = nullptr;
    bool started_ = false;
};

} // namespace parsearch::profiler
