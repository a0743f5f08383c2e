#pragma once
// Moves in the space of networks: small changes of the wiring between servers that keep every server's number of interfaces.

#include <cstddef>
#include <functional>

#include <parsearch/fabric/wiring/rewire_moves.hpp>

namespace parsearch::fabric::detail {

PARSEARCH_INLINE std::vector<std::size_t> links_of_wires(network const& n, link_description const& wire) {
    std::vector<std::size_t> out;
    for (std::size_t l = 0; l < n.links.size(); ++l)
        if (n.links[l].a < n.servers && n.links[l].b < n.servers) out.insert(out.end(), wires_in(n.links[l].each, wire), l);
    return out;
}

PARSEARCH_INLINE std::optional<network> with_exchanged(network const& n, link_description const& wire, std::size_t first, std::size_t second,
                                                       bool crosswise) {
    auto x = n.links[first], y = n.links[second]; // as they will be, one wire of each
    auto const joins = [](network_link const& l) -> std::pair<std::uint32_t, std::uint32_t> { return std::minmax(l.a, l.b); };
    auto const x_was = joins(x), y_was = joins(y);
    auto const x_wires = wires_in(x.each, wire), y_wires = wires_in(y.each, wire);
    if (x_wires > 1) x.each = wire;
    if (y_wires > 1) y.each = wire;
    std::swap(x.b, crosswise ? y.b : y.a);
    if (x.a == x.b || y.a == y.b || x.each != y.each) return std::nullopt;
    if (joins(x) == x_was || joins(x) == y_was) return std::nullopt;

    auto out = n;
    std::vector<std::size_t> gone;
    auto const move = [&](network_link const& to, std::size_t from, std::uint64_t wires) {
        if (wires > 1) out.links[from].each = bundle_of(wire, wires_in(out.links[from].each, wire) - 1);
        auto const bonded = std::ranges::find_if(out.links, [&](network_link const& l) {
            return to.each == wire && joins(l) == joins(to) && l.each == bundle_of(wire, wires_in(l.each, wire));
        });
        if (bonded != out.links.end()) {
            bonded->each = bundle_of(wire, wires_in(bonded->each, wire) + 1);
            if (wires == 1) gone.push_back(from);
        } else if (wires == 1) {
            out.links[from] = to;
        } else {
            out.links.push_back(to);
        }
    };
    move(x, first, x_wires);
    move(y, second, y_wires);
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
