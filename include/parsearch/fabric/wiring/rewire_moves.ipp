#pragma once
// Moves in the space of networks: small changes of the wiring between servers that keep every server's number of interfaces.

#include <parsearch/fabric/wiring/rewire_moves.hpp>

namespace parsearch::fabric::detail {

PARSEARCH_INLINE std::vector<std::size_t> server_links(network const& n) {
    std::vector<std::size_t> out;
    for (std::size_t l = 0; l < n.links.size(); ++l)
        if (n.links[l].a < n.servers && n.links[l].b < n.servers) out.push_back(l);
    return out;
}

PARSEARCH_INLINE bool same_cycle(std::vector<std::uint32_t> const& x, std::vector<std::uint32_t> const& y) {
    if (x.size() != y.size()) return false;
    auto const begin = std::find(y.begin(), y.end(), x.front());
    if (begin == y.end()) return false;
    auto at = static_cast<std::size_t>(begin - y.begin());
    for (auto const s : x) {
        if (y[at] != s) return false;
        at = at + 1 < y.size() ? at + 1 : 0;
    }
    return true;
}

} // namespace parsearch::fabric::detail
