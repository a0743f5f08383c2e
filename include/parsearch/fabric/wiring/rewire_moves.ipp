#pragma once
// Moves in the space of networks: small changes of the wiring between servers that keep every server's number of interfaces.

#include <cstddef>
#include <functional>

#include <parsearch/fabric/wiring/rewire_moves.hpp>

namespace parsearch::fabric::detail {

PARSEARCH_INLINE std::vector<std::size_t> links_of_wires(network const& n) {
    std::vector<std::size_t> out;
    for (std::size_t l = 0; l < n.links.size(); ++l)
        if (n.links[l].a < n.servers && n.links[l].b < n.servers) out.insert(out.end(), n.links[l].wires, l);
    return out;
}

PARSEARCH_INLINE std::optional<network> with_exchanged(network const& n, std::size_t first, std::size_t second, bool crosswise) {
    auto const joins = [](network_link const& l) -> std::pair<std::uint32_t, std::uint32_t> { return std::minmax(l.a, l.b); };
    auto x = one_wire_of(n.links[first]), y = one_wire_of(n.links[second]); // as they will be
    std::swap(x.b, crosswise ? y.b : y.a);
    if (x.a == x.b || y.a == y.b || x.each != y.each) return std::nullopt;
    if (joins(x) == joins(n.links[first]) || joins(x) == joins(n.links[second])) return std::nullopt;

    auto out = n;
    std::vector<std::size_t> gone;
    auto const move = [&](network_link const& wire, std::size_t from) {
        auto const left = out.links[from].wires - 1;
        if (left > 0) out.links[from] = bundle_of(out.links[from], left);
        auto const like = [&](network_link const& l) { return joins(l) == joins(wire) && one_wire_of(l).each == wire.each; };
        if (auto const bonded = std::ranges::find_if(out.links, like); bonded != out.links.end()) {
            *bonded = bundle_of(*bonded, bonded->wires + 1);
            if (left == 0) gone.push_back(from);
        } else if (left == 0) {
            out.links[from] = wire;
        } else {
            out.links.push_back(wire);
        }
    };
    move(x, first);
    move(y, second);
    std::ranges::sort(gone, std::greater{});
    for (auto const l : gone) out.links.erase(out.links.begin() + static_cast<std::ptrdiff_t>(l));
    if (!connected(out)) return std::nullopt;
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
