#pragma once
// What the parts of a network cost.

#include <limits>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/network_price.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE rate_price price_list::at(bandwidth rate) const {
    check();
    if (!(rate.bytes_per_second >= by_rate.front().rate.bytes_per_second && rate.bytes_per_second <= by_rate.back().rate.bytes_per_second))
        throw invalid_input("price of a link of ", rate.bytes_per_second, " B/s: the list has prices from ", by_rate.front().rate.bytes_per_second,
                            " to ", by_rate.back().rate.bytes_per_second, " B/s");
    std::size_t i = 0;
    while (by_rate[i].rate.bytes_per_second < rate.bytes_per_second) ++i;
    if (by_rate[i].rate == rate) return by_rate[i];
    auto const &low = by_rate[i - 1], &high = by_rate[i];
    auto const part = (rate.bytes_per_second - low.rate.bytes_per_second) / (high.rate.bytes_per_second - low.rate.bytes_per_second);
    auto const between = [&](double x, double y) { return x + part * (y - x); };
    return {rate, between(low.interface, high.interface), between(low.transceiver, high.transceiver), between(low.switch_port, high.switch_port)};
}

PARSEARCH_INLINE void price_list::check() const {
    auto const good = [](double price) { return price >= 0 && price <= std::numeric_limits<double>::max(); };
    if (by_rate.empty()) throw invalid_input("price list without rates: needs at least one");
    for (std::size_t i = 0; i < by_rate.size(); ++i) {
        auto const& p = by_rate[i];
        if (!good(p.rate.bytes_per_second) || (i > 0 && !(p.rate.bytes_per_second > by_rate[i - 1].rate.bytes_per_second)))
            throw invalid_input("price list, entry ", i, ": a rate of ", p.rate.bytes_per_second, " B/s: must ascend");
        for (auto const price : {p.interface, p.transceiver, p.switch_port})
            if (!good(price)) throw invalid_input("price list, entry ", i, ": a price of ", price, ": must be finite and not negative");
    }
    for (auto const price : {patch_panel_port, optical_switch_port, cable})
        if (!good(price)) throw invalid_input("price list: a price of ", price, ": must be finite and not negative");
}

PARSEARCH_INLINE network_price price_of(network const& n, cabling through, price_list const& prices) {
    network_price out;
    for (auto const& l : n.links) {
        auto const p = prices.at(one_wire_of(l).each.rate);
        for (auto const v : {l.a, l.b})
            (v < n.servers ? out.interfaces : out.switch_ports) += l.wires * (v < n.servers ? p.interface : p.switch_port);
        out.transceivers += 2 * l.wires * p.transceiver;
        bool const optical = through != cabling::fixed && l.a < n.servers && l.b < n.servers;
        out.cables += (optical ? 2 : 1) * l.wires * prices.cable;
        if (optical) out.optical_ports += 2 * l.wires * (through == cabling::patch_panel ? prices.patch_panel_port : prices.optical_switch_port);
    }
    return out;
}

PARSEARCH_INLINE bandwidth fat_tree_rate_of_similar_price(network const& direct, cabling through, price_list const& prices) {
    auto const wanted = price_of(direct, through, prices).total();
    auto const tree = [&](bandwidth rate) { return price_of(fat_tree(direct.servers, {rate, {}}), cabling::fixed, prices).total(); };
    auto const& list = prices.by_rate;
    if (list.empty() || direct.links.empty()) throw invalid_input("fat tree of the price of a network without links: must have some");
    auto below = tree(list.front().rate);
    if (wanted < below)
        throw invalid_input("fat tree of the price of network ", direct.name, ", ", wanted, " $: one of ", list.front().rate.bytes_per_second,
                            " B/s costs ", below);
    for (std::size_t i = 0;; ++i) {
        if (wanted == below) return list[i].rate;
        if (i + 1 == list.size())
            throw invalid_input("fat tree of the price of network ", direct.name, ", ", wanted, " $: one of ", list[i].rate.bytes_per_second,
                                " B/s costs ", below);
        auto const above = tree(list[i + 1].rate);
        if (wanted < above) { // prices are linear between two rates
            auto const low = list[i].rate.bytes_per_second, high = list[i + 1].rate.bytes_per_second;
            return {low + (high - low) * ((wanted - below) / (above - below))};
        }
        below = above;
    }
}

} // namespace parsearch::fabric
