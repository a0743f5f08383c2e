#pragma once
/// The processes that measure together, each on a core of its own: those that `mpirun` starts, or this one alone.

#include <memory>
#include <span>
#include <string>

#include "profiler/device.hpp"

namespace parsearch::profiler {

/// Process 0 runs the program. The others wait, and do what its groups ask of them.
class ranks {
  public:
    /// Starts MPI, where the program is built with it, and ties this process to one of the cores that it may run on.
    ranks(int& argc, char**& argv);
    ranks(ranks const&) = delete;
    ranks& operator=(ranks const&) = delete;
    /// Of process 0: the others end.
    ~ranks();

    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] int size() const noexcept { return size_; }
    /// Of MPI, as its library says it: "Open MPI v4.1.4"; empty without.
    [[nodiscard]] static std::string version();

    /// Of the other processes: does what process 0 asks, until that ends.
    void serve();
    /// Of process 0: a group of processes 0, 1, ..., two or more. Throws `no_device` where there are fewer, or other numbers are given.
    [[nodiscard]] std::unique_ptr<device_group> open_group(std::span<int const> ordinals);
    /// Of process 0: the time of `times` messages of `bytes` to process `other`, one after another. Throws `launch_failure` where there is none.
    [[nodiscard]] picoseconds send(byte_count bytes, std::int64_t times, int other);

  private:
    int number_ = 0, size_ = 1;
};

/// Ties the calling process to core number `number`, counted around, of those that it may run on.
void tie_to_core(int number);

} // namespace parsearch::profiler
