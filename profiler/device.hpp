#pragma once
/// What the profiler needs of a device, without a word of CUDA: facts, sequences of launches made ready and timed, copies and collectives.
/// `cuda_profiler/cuda/` and `cpu_profiler/` implement it; tests implement it with a fake clock.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/units.hpp>

#include "launch.hpp"

namespace parsearch::profiler {

/// There is no device to measure on: no driver, no GPU, no such ordinal. `what()` is one line that says which.
class no_device : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A sequence cannot be run on this device: out of memory, no engine, a type that it has not, a status that a library answers. `what()` is one line,
/// which goes into the table. The device can be used further.
class launch_failure : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The device can be used no more (a sticky error: an illegal access, a lost GPU). The program keeps what it has measured and ends.
class device_failure : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What does not change while a program runs.
struct device_facts {
    std::string name;               ///< as the driver says it: "NVIDIA H100 80GB HBM3"
    byte_count memory = 0;          ///< in all
    std::string compute_capability; ///< "9.0"
    std::int64_t multiprocessors = 0;
    byte_count l2 = 0;                              ///< size of the last cache
    std::string driver;                             ///< version: "550.54.15"; of the CUDA driver interface ("12.4") where no other is known
    std::map<std::string, std::string> libraries{}; ///< versions by name: {"cuda", "12.4"}, {"cudnn", "9.1.0"}, {"cublas", ...}, {"nccl", ...}
    friend bool operator==(device_facts const&, device_facts const&) = default;
};

/// Clocks and temperature, read and never set; empty where the device does not say.
struct environment_reading {
    std::optional<std::int64_t> sm_mhz{}, memory_mhz{}, celsius{}, milliwatts{};
    friend bool operator==(environment_reading const&, environment_reading const&) = default;
};

/// A sequence of launches with its buffers, ready to run. Buffers hold random, non-zero data of the launches' types, and indices within their
/// tables; there are so many sets of them that runs one after another find nothing of theirs in the last cache. Destroying it frees all.
class prepared_sequence {
  public:
    prepared_sequence() = default;
    prepared_sequence(prepared_sequence const&) = delete;
    prepared_sequence& operator=(prepared_sequence const&) = delete;
    virtual ~prepared_sequence() = default;

    /// Runs the whole sequence `times` >= 1 times, back to back on one stream, each on the next set of buffers; waits for the end, and answers the
    /// device's time between an event before the first and one after the last. Throws `launch_failure` or `device_failure`.
    [[nodiscard]] virtual picoseconds run(std::int64_t times) = 0;

    /// Bytes of device memory that it holds: buffers and work spaces.
    [[nodiscard]] virtual byte_count memory() const = 0;

    /// What runs each launch, for people: "cudnn engine 38 nhwc; cublasLt algorithm 21". May be empty.
    [[nodiscard]] virtual std::string choices() const { return {}; }
};

/// Copies that a device measures. `peer` is to another device of the same host.
enum class copy_kind : std::uint8_t { host_to_device, device_to_host, device_to_device, peer };
[[nodiscard]] constexpr std::string_view name_of(copy_kind k) noexcept {
    switch (k) {
    case copy_kind::host_to_device: return "host_to_device";
    case copy_kind::device_to_host: return "device_to_host";
    case copy_kind::device_to_device: return "device_to_device";
    case copy_kind::peer: break;
    }
    return "peer";
}

/// The time of a series of copies or of collectives.
struct series_time {
    picoseconds time{};
    /// The series was recorded before: the host submits it as a whole. Else it submits one after the other, which may take longer than running it.
    bool replayed = false;
    friend bool operator==(series_time const&, series_time const&) = default;
};

/// One device. Not thread safe: one thread uses it.
class device {
  public:
    device() = default;
    device(device const&) = delete;
    device& operator=(device const&) = delete;
    virtual ~device() = default;

    [[nodiscard]] virtual device_facts facts() const = 0;
    [[nodiscard]] virtual environment_reading read_environment() const = 0;
    /// What holds its clock down now: "power cap", "heat"; not that it idles. Quick, as it is asked after every kernel.
    [[nodiscard]] virtual std::vector<std::string> throttled_by() const = 0;

    /// Says which launches will be prepared next, in any order: what takes the host long may be done now, on all processors, until `stop`, which
    /// several threads call. No failure is thrown: `prepare` meets it again.
    virtual void foresee(std::span<launch const> launches, std::function<bool()> const& stop) { (void)launches, (void)stop; }

    /// Makes `sequence` ready: descriptors, a bounded autotune among what the libraries propose, buffers. Throws `launch_failure` where it cannot run
    /// here, `device_failure` where nothing can any more. `sequence` need not live on.
    [[nodiscard]] virtual std::unique_ptr<prepared_sequence> prepare(std::span<launch const> sequence) = 0;

    /// The times of `times` >= 1 whole iterations: all `kernels` (each a sequence of launches), every one once, in order on one stream, between an
    /// event before the first and one after the last. Their arrays share memory where they do not all fit. Throws as `prepare` does.
    [[nodiscard]] virtual std::vector<picoseconds> run_in_order(std::span<std::vector<launch> const> kernels, std::int64_t times) {
        (void)kernels, (void)times;
        throw launch_failure("this device runs no whole iterations");
    }

    /// The time of `times` copies of `bytes` >= 1, one after another; `other` is the ordinal of the peer (only for `copy_kind::peer`). Host
    /// memory is pinned. Throws `launch_failure` where there is no way.
    [[nodiscard]] virtual series_time copy(copy_kind kind, byte_count bytes, std::int64_t times, int other) = 0;
};

/// What every device of a group does next in an iteration: launches, then an all-reduce of so many bytes of f32, for which it waits.
struct group_step {
    std::vector<launch> launches{};
    byte_count all_reduce = 0; ///< 0: none
    friend bool operator==(group_step const&, group_step const&) = default;
};

/// Devices of one host that run collectives together.
class device_group {
  public:
    device_group() = default;
    device_group(device_group const&) = delete;
    device_group& operator=(device_group const&) = delete;
    virtual ~device_group() = default;

    [[nodiscard]] virtual std::size_t size() const = 0;
    /// The time of `times` collectives of f32, one after another. `bytes` >= 1 are those of the whole tensor, as `collective_kind` counts them: the
    /// result of an all-reduce or all-gather, the input of a reduce-scatter, what all devices together hold at one side of an all-to-all.
    /// Rounded up to what divides evenly. Throws `launch_failure`.
    [[nodiscard]] virtual series_time run(collective_kind kind, byte_count bytes, std::int64_t times) = 0;

    /// The times of `times` >= 1 iterations: every device does all `steps` in order; the longest device's time counts. Throws as `device::prepare`.
    [[nodiscard]] virtual std::vector<picoseconds> run_in_order(std::span<group_step const> steps, std::int64_t times) {
        (void)steps, (void)times;
        throw launch_failure("this group runs no whole iterations");
    }
};

} // namespace parsearch::profiler
