#pragma once
/// How much memory a sequence of launches gets, decided before any is taken: as many sets of its arrays as push one another out of the last cache.

#include <algorithm>
#include <cstddef>
#include <string>

#include <parsearch/core/error.hpp>

#include "profiler/device.hpp"

namespace parsearch::profiler {

/// Bytes of the arrays of one set.
struct array_bytes {
    std::size_t own = 0;     ///< of arrays of which a run touches all
    std::size_t common = 0;  ///< of arrays of which a run touches a part (tables that few rows are looked up in): sets may have them in common
    std::size_t touched = 0; ///< what one run touches of both
};

struct buffer_plan {
    std::size_t set = 0; ///< bytes of one set, without what sets have in common
    std::size_t sets = 1;
    std::size_t common = 0; ///< bytes of one copy of what sets have in common; set k has copy k % copies
    std::size_t copies = 1;
    std::size_t workspace = 0; ///< bytes, shared by all
    [[nodiscard]] std::size_t total() const noexcept { return set * sets + common * copies + workspace; }
};

/// Sets of arrays at most: what is smaller than a 512th of twice the last cache stays in it.
inline constexpr std::size_t most_sets = 512;
/// Tables together are so many times the last cache: at most about one in so many of the rows that a run finds by chance is still there.
inline constexpr std::size_t table_caches = 16;
/// Bytes that are left to the libraries.
inline constexpr std::size_t memory_reserve = std::size_t{256} << 20;

/// What the runs of all sets touch together is twice the last cache, or as much of that as half of the free memory holds. Throws `launch_failure`
/// where not one set fits.
[[nodiscard]] inline buffer_plan plan_buffers(array_bytes const& one, std::size_t workspace, std::size_t l2, std::size_t free,
                                              std::string const& what) {
    std::size_t const available = free > memory_reserve ? free - memory_reserve : 0, arrays = one.own + one.common;
    if (arrays > available || workspace > available - arrays)
        throw launch_failure(text(what, ": needs ", arrays + workspace, " bytes of device memory, of which ", available, " are available"));
    buffer_plan p{.set = one.own, .common = one.common, .workspace = workspace};
    if (one.touched == 0) return p;
    auto const quotient = [](std::size_t a, std::size_t b) { return a / b + (a % b != 0 ? 1 : 0); };
    p.sets = std::clamp<std::size_t>(quotient(2 * l2, one.touched), 1, most_sets);
    std::size_t left = available - workspace;
    if (one.common > 0) {
        std::size_t const hold = std::max<std::size_t>((left - one.own) / 2 / one.common, 1);
        p.copies = std::clamp<std::size_t>(quotient(table_caches * l2, one.common), 1, std::min(hold, p.sets));
        left -= p.copies * one.common;
    }
    if (one.own > 0) p.sets = std::min(p.sets, std::max<std::size_t>(left / 2 / one.own, 1));
    p.copies = std::min(p.copies, p.sets);
    return p;
}

/// Where each use of a ring of memory begins: one after another, from the start again where the rest is too short. Pieces are at most `capacity`.
class ring {
  public:
    explicit ring(std::size_t capacity) : capacity_(capacity) {}
    [[nodiscard]] std::size_t take(std::size_t bytes) noexcept {
        if (at_ + bytes > capacity_) at_ = 0;
        std::size_t const begin = at_;
        at_ += bytes;
        return begin;
    }

  private:
    std::size_t capacity_, at_ = 0;
};

} // namespace parsearch::profiler
