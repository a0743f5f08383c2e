#pragma once
// Finds links by their ends.

#include <parsearch/fabric/network/link_index.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE std::span<link_index::entry const> link_index::all_between(std::uint32_t from, std::uint32_t to) const {
    auto const all = out_of(from);
    auto const first = std::lower_bound(all.begin(), all.end(), entry{from, to, 0});
    auto last = first;
    while (last != all.end() && last->to == to) ++last;
    return {first, last};
}

} // namespace parsearch::fabric
