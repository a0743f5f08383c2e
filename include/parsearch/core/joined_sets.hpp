#pragma once
/// Disjoint sets: union by smallest member, find by path halving.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <parsearch/core/compiler.hpp>

namespace parsearch {

/// Sets of the numbers below `size`, each alone until pairs join them.
class joined_sets {
  public:
    explicit joined_sets(std::size_t size) : above_(size) { std::iota(above_.begin(), above_.end(), std::uint32_t{0}); }
    [[nodiscard]] std::size_t size() const noexcept { return above_.size(); }
    /// The smallest member of the set of `v`.
    [[nodiscard]] std::uint32_t root(std::uint32_t v) {
        while (above_[v] != v) v = above_[v] = above_[above_[v]];
        return v;
    }
    /// False where they are in one set already.
    bool join(std::uint32_t a, std::uint32_t b) {
        a = root(a), b = root(b);
        above_[std::max(a, b)] = std::min(a, b);
        return a != b;
    }

  private:
    std::vector<std::uint32_t> above_;
};

} // namespace parsearch
