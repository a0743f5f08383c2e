#pragma once
// Limits of a program: a time after which a stop token asks for an end, and memory.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

namespace tools {

// Stops with another token, or once a time has passed, if one is given; if `held`, not before `release`.
class deadline {
  public:
    deadline(std::stop_token const& other, std::optional<std::chrono::nanoseconds> after, bool held = false);
    deadline(deadline const&) = delete;
    deadline& operator=(deadline const&) = delete;

    [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
    void release();

  private:
    std::mutex mutex_;
    std::condition_variable_any released_;
    bool held_;
    std::stop_source source_;
    std::stop_callback<std::function<void()>> other_;
    std::jthread waits_; // where there is a time
};

// Bytes of "8GiB", "500MB" and so on, or nothing.
[[nodiscard]] std::optional<std::uint64_t> read_memory(std::string_view text);

// Half of the machine's memory; nothing where that is not known.
[[nodiscard]] std::optional<std::uint64_t> half_of_memory();

// The least of the limits that the process has on its memory, those of `limit_memory` and of a shell's ulimit; nothing where it has none.
[[nodiscard]] std::optional<std::uint64_t> memory_limit();

// From now on an allocation fails (std::bad_alloc) that would take the program past so many bytes. Does nothing under a sanitizer, which takes more
// addresses than there is memory.
void limit_memory(std::uint64_t bytes);

} // namespace tools
