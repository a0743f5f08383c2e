#pragma once
/// Parts of a dim that are as large as the devices are fast that have them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::ops {

/// Positions [begin, end).
struct interval {
    std::int64_t begin = 0, end = 0;
    [[nodiscard]] constexpr std::int64_t size() const noexcept { return std::max<std::int64_t>(0, end - begin); }
    friend constexpr bool operator==(interval const&, interval const&) = default;
};

/// Which share of a dim each device of a topology is to have. A dim in as many parts as divide the devices is cut by them: part i is for run i of
/// neighbours, and has their shares together, rounded.
class device_shares {
  public:
    /// `share[d]`, positive, of device d, in any unit. Complexity: O(n log n).
    explicit device_shares(std::span<double const> share);

    /// Whether a dim of `extent`, at most 2^40, in `parts` parts is cut by shares: not where some part would be empty.
    [[nodiscard]] bool cut(std::int64_t extent, std::int64_t parts) const noexcept {
        auto const at = runs_.find(parts);
        return at != runs_.end() && extent * at->second.least >= all_;
    }
    /// Part `i` of one that is. Complexity: O(log n).
    [[nodiscard]] interval part(std::int64_t extent, std::int64_t parts, std::int64_t i) const noexcept {
        auto const& before = runs_.find(parts)->second.before;
        auto const end_of = [&](std::int64_t n) { return (2 * extent * before[static_cast<std::size_t>(n)] + all_) / (2 * all_); };
        return {end_of(i), end_of(i + 1)};
    }

  private:
    static constexpr double unit = 1 << 19; // times 2^41 within 64 bits
    struct run_shares {
        std::vector<std::int64_t> before; ///< of each run, and of all
        std::int64_t least = 0;
    };
    std::map<std::int64_t, run_shares> runs_; ///< by number of parts
    std::int64_t all_ = 0;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/device_shares.ipp>
#endif
