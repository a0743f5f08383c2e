#pragma once
/// Sequences of launches with their arrays, ready to run on a core and to be timed.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cpu_profiler/kernel.hpp"
#include "profiler/device.hpp"

namespace parsearch::profiler {

/// The time that runs took, and which part of it the thread had its core.
class core_use {
  public:
    struct moment {
        std::chrono::steady_clock::time_point wall{};
        std::chrono::nanoseconds own{};
    };
    [[nodiscard]] static moment begin();
    /// The time since `m`.
    [[nodiscard]] picoseconds end(moment const& m);
    /// Whether the thread waited for its core for more than a twentieth of the time since this was last asked.
    [[nodiscard]] bool disturbed();

  private:
    std::chrono::nanoseconds wall_{}, own_{};
};

/// Sets of arrays at most: what is smaller than a 512th of twice the last cache stays in it.
inline constexpr std::size_t most_sets = 512;

class cpu_sequence final : public prepared_sequence {
  public:
    /// Sets of arrays fill twice the last cache; at most `sets`, and half of the free memory. Throws `launch_failure`.
    cpu_sequence(std::span<launch const> sequence, std::shared_ptr<core_use> use, std::size_t sets = most_sets);
    [[nodiscard]] picoseconds run(std::int64_t times) override;
    [[nodiscard]] byte_count memory() const override { return static_cast<byte_count>(bytes_); }
    [[nodiscard]] std::string choices() const override;

    // What numerical checks look at: array `array` of launch number `number`, in the first set.
    [[nodiscard]] kernel const& of(std::size_t number) const { return kernels_.at(number); }
    [[nodiscard]] std::byte* array(std::size_t number, std::size_t array) const { return places_.at(number).at(array); }
    [[nodiscard]] std::size_t sets() const noexcept { return actions_.size(); }

  private:
    struct freed {
        void operator()(std::byte* p) const;
    };
    std::shared_ptr<core_use> use_;
    std::vector<kernel> kernels_{};
    std::size_t bytes_ = 0;
    std::unique_ptr<std::byte[], freed> buffers_{};
    std::vector<std::vector<std::byte*>> places_{};             ///< of the first set, by launch
    std::vector<std::vector<std::function<void()>>> actions_{}; ///< by set
    std::size_t next_ = 0;
};

} // namespace parsearch::profiler
