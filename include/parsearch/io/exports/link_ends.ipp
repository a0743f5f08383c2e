#pragma once
// Which devices use given links of a topology, by its routes.

#include <algorithm>
#include <set>

#include <parsearch/io/exports/link_ends.hpp>

namespace parsearch::io {

PARSEARCH_IO_INLINE link_ends::link_ends(topology::dense_topology const& t) {
    for (std::size_t a = 0; a < t.size(); ++a)
        for (std::size_t b = 0; b < t.size(); ++b)
            if (auto const route = t.route(a, b); a != b && !route.empty())
                ends_.emplace(std::vector<std::uint32_t>(route.begin(), route.end()),
                              std::pair{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)});
}

PARSEARCH_IO_INLINE std::vector<std::uint32_t> const& link_ends::devices(std::vector<std::uint32_t> links) {
    std::ranges::sort(links);
    auto const [at, fresh] = devices_.try_emplace(links);
    if (!fresh) return at->second;
    std::set<std::uint32_t> found;
    for (auto const& [route, ends] : ends_)
        if (std::ranges::all_of(route, [&](auto l) { return std::ranges::binary_search(links, l); })) found.insert({ends.first, ends.second});
    at->second.assign(found.begin(), found.end());
    return at->second;
}

} // namespace parsearch::io
