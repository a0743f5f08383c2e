#pragma once
/// Whether the tests run under sanitizers, which have allocators of their own and take ten times as long.

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

/// How many of `n` random cases to run, and to expect: an eighth under sanitizers.
template <class T> [[nodiscard]] constexpr T cases(T n) { return sanitized ? (n + 7) / 8 : n; }

/// Whether more than `least` of the cases were of a rare kind: not asked of the few that run under sanitizers.
[[nodiscard]] constexpr bool often(unsigned seen, unsigned least) { return sanitized || seen > least; }

} // namespace support
