#include "limits.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

namespace tools {
namespace {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer);
#else
constexpr bool sanitized = false;
#endif
} // namespace

deadline::deadline(std::stop_token const& other, std::optional<std::chrono::nanoseconds> after, bool held)
    : held_(held), other_(other, [this] { source_.request_stop(); }) {
    if (!after) return;
    // A time that the clock cannot count up to does not limit.
    auto const now = std::chrono::steady_clock::now();
    if (*after > std::chrono::steady_clock::time_point::max() - now) return;
    waits_ = std::jthread([this, end = now + *after](std::stop_token const& done) {
        std::unique_lock lock(mutex_);
        released_.wait_until(lock, done, end, [] { return false; });
        released_.wait(lock, done, [this] { return !held_; });
        if (!done.stop_requested()) source_.request_stop();
    });
}

void deadline::release() {
    std::scoped_lock const lock(mutex_);
    held_ = false;
    released_.notify_all();
}

std::optional<std::uint64_t> read_memory(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, std::uint64_t>, 7> units{{{"MB", 1'000'000},
                                                                               {"GB", 1'000'000'000},
                                                                               {"TB", 1'000'000'000'000},
                                                                               {"MiB", std::uint64_t{1} << 20},
                                                                               {"GiB", std::uint64_t{1} << 30},
                                                                               {"TiB", std::uint64_t{1} << 40},
                                                                               {"B", 1}}};
    std::uint64_t number = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return {};
    auto const unit = text.substr(static_cast<std::size_t>(end - text.data()));
    for (auto const& [name, bytes] : units)
        if (unit == name && number > 0 && number <= std::numeric_limits<std::int64_t>::max() / bytes) return number * bytes;
    return {};
}

std::optional<std::uint64_t> half_of_memory() {
    auto const pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || size <= 0) return {};
    return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) / 2;
}

std::optional<std::uint64_t> memory_limit() {
    std::optional<std::uint64_t> least;
    for (auto const kind : {RLIMIT_DATA, RLIMIT_AS}) {
        rlimit limit{};
        if (getrlimit(kind, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
            least = std::min<std::uint64_t>(least.value_or(limit.rlim_cur), limit.rlim_cur);
    }
    return least;
}

void limit_memory(std::uint64_t bytes) {
    rlimit limit{};
    if (sanitized || getrlimit(RLIMIT_DATA, &limit) != 0) return;
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= bytes) return; // the user's is lower
    limit.rlim_cur = bytes;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < limit.rlim_cur) limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_DATA, &limit);
}

} // namespace tools
