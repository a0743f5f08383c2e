#pragma once
/// How many random cases a test runs: all at night, a third by day, an eighth under sanitizers, which have allocators of their own and take ten times
/// as long.

#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PARSEARCH_TEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PARSEARCH_TEST_SANITIZED
#endif
#endif

namespace support {

#ifdef PARSEARCH_TEST_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Whether this is the run of a night, without sanitizers: PARSEARCH_NIGHTLY is set.
[[nodiscard]] inline bool nightly() {
    static bool const set = !sanitized && std::getenv("PARSEARCH_NIGHTLY");
    return set;
}

/// How many of `n` random cases to run, and to expect.
template <class T> [[nodiscard]] T cases(T n) {
    if (sanitized) return (n + 7) / 8;
    return nightly() ? n : (n + 2) / 3;
}

} // namespace support
