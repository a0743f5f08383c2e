#pragma once
/// The order that a stable sort would bring things into, for few and large things of many types: compiled once, whatever they are.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <vector>

#include <parsearch/core/compiler.hpp>

namespace parsearch {

/// The numbers below `n` in ascending order, of equal ones the lower first; `less(a, b)` compares two things by their numbers. O(n log n)
/// comparisons.
[[nodiscard]] inline std::vector<std::size_t> stable_order(std::size_t n, std::function<bool(std::size_t, std::size_t)> const& less) {
    std::vector<std::size_t> out(n);
    std::iota(out.begin(), out.end(), std::size_t{0});
    std::stable_sort(out.begin(), out.end(), [&less](std::size_t a, std::size_t b) { return less(a, b); });
    return out;
}

} // namespace parsearch
