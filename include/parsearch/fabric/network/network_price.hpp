#pragma once
/// What the parts of a network cost.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>

namespace parsearch::fabric {

/// What links between two servers go through.
enum class cabling : std::uint8_t {
    fixed,         ///< one cable
    patch_panel,   ///< a cable to a patch panel from either end, two of its ports
    optical_switch ///< the same with an optical circuit switch
};

/// Prices in US dollars of what an end of a link of this rate needs. A link between listed rates costs what lies between, in proportion.
struct rate_price {
    bandwidth rate{};
    double interface = 0;   ///< of a server
    double transceiver = 0; ///< at either end
    double switch_port = 0;
    friend bool operator==(rate_price const&, rate_price const&) = default;
};

/// Prices of parts in US dollars, rates ascending. From 100 Gb/s, and panels and optical switches: table 4 of X. Liao et al., MixNet, SIGCOMM 2025,
/// which takes switch ports up to 200 Gb/s, panels and optical switches from W. Wang et al., TopoOpt, NSDI 2023. Below 100 Gb/s, and cables (half of
/// a kilometre of fibre on the average): assumptions of the same order; set your own.
struct price_list {
    std::vector<rate_price> by_rate{{{10e9 / 8}, 185, 20, 94},      {{25e9 / 8}, 185, 39, 144},    {{40e9 / 8}, 354, 39, 144},
                                    {{100e9 / 8}, 659, 99, 187},    {{200e9 / 8}, 1079, 239, 374}, {{400e9 / 8}, 1499, 659, 1090},
                                    {{800e9 / 8}, 2248, 1399, 1400}};
    double patch_panel_port = 100, optical_switch_port = 520;
    double cable = 150; ///< of any length and rate

    /// The prices at a rate. Throws `invalid_input` on a rate outside the list, an empty list, rates that do not ascend, a price that is negative or
    /// not finite.
    [[nodiscard]] rate_price at(bandwidth rate) const {
        check();
        if (!(rate.bytes_per_second >= by_rate.front().rate.bytes_per_second && rate.bytes_per_second <= by_rate.back().rate.bytes_per_second))
            throw invalid_input("price of a link of ", rate.bytes_per_second, " B/s: the list has prices from ",
                                by_rate.front().rate.bytes_per_second, " to ", by_rate.back().rate.bytes_per_second, " B/s");
        std::size_t i = 0;
        while (by_rate[i].rate.bytes_per_second < rate.bytes_per_second) ++i;
        if (by_rate[i].rate == rate) return by_rate[i];
        auto const &low = by_rate[i - 1], &high = by_rate[i];
        auto const part = (rate.bytes_per_second - low.rate.bytes_per_second) / (high.rate.bytes_per_second - low.rate.bytes_per_second);
        auto const between = [&](double x, double y) { return x + part * (y - x); };
        return {rate, between(low.interface, high.interface), between(low.transceiver, high.transceiver), between(low.switch_port, high.switch_port)};
    }

  private:
    void check() const {
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
};

/// The price of a network by parts, in US dollars.
struct network_price {
    double interfaces = 0, transceivers = 0, switch_ports = 0, optical_ports = 0, cables = 0;
    [[nodiscard]] double total() const noexcept { return interfaces + transceivers + switch_ports + optical_ports + cables; }
};

/// What network `n` costs: for each end of a link a transceiver and an interface (server) or a port (switch), of ports those in use; for each link a
/// cable, and where it joins two servers what `through` says. Throws as `price_list::at`. Complexity: O(links * rates).
[[nodiscard]] inline network_price price_of(network const& n, cabling through = cabling::fixed, price_list const& prices = {}) {
    network_price out;
    for (auto const& l : n.links) {
        auto const p = prices.at(l.each.rate);
        for (auto const v : {l.a, l.b}) (v < n.servers ? out.interfaces : out.switch_ports) += v < n.servers ? p.interface : p.switch_port;
        out.transceivers += 2 * p.transceiver;
        bool const optical = through != cabling::fixed && l.a < n.servers && l.b < n.servers;
        out.cables += (optical ? 2 : 1) * prices.cable;
        if (optical) out.optical_ports += 2 * (through == cabling::patch_panel ? prices.patch_panel_port : prices.optical_switch_port);
    }
    return out;
}

/// The rate of the one interface of each server of a fat tree (`fat_tree`, of as many servers, all links of this rate) that costs what `direct`
/// does: d * B' in the terms of W. Wang et al., TopoOpt, NSDI 2023, where servers have d interfaces of rate B > B'.
/// Throws `invalid_input` where the fat tree of the lowest rate of the list costs more, or the one of the highest less, and as `price_of`.
[[nodiscard]] inline bandwidth fat_tree_rate_of_similar_price(network const& direct, cabling through = cabling::patch_panel,
                                                              price_list const& prices = {}) {
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
