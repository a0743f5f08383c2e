#pragma once
/// Counts allocations. Replaces the program's `operator new`: for one source of a test program. Nothing is here under sanitizers.

#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/cases.hpp"

#ifndef PARSEARCH_TEST_SANITIZED
namespace support {
inline std::size_t allocations = 0;

inline void* counted(std::size_t bytes) {
    ++allocations;
    if (void* const p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
    throw std::bad_alloc();
}
} // namespace support

// Inlined into one another they are taken for a mismatched pair by g++.
void* operator new(std::size_t bytes) { return support::counted(bytes); }
void* operator new[](std::size_t bytes) { return support::counted(bytes); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
#endif
