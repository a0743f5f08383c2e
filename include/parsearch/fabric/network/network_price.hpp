#pragma once
/// What the parts of a network cost.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>

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
    [[nodiscard]] rate_price at(bandwidth rate) const;

  private:
    void check() const;
};

/// The price of a network by parts, in US dollars.
struct network_price {
    double interfaces = 0, transceivers = 0, switch_ports = 0, optical_ports = 0, cables = 0;
    [[nodiscard]] double total() const noexcept { return interfaces + transceivers + switch_ports + optical_ports + cables; }
};

/// What network `n` costs: for each end of a wire a transceiver and an interface (server) or a port (switch), of ports those in use; for each wire a
/// cable, and where it joins two servers what `through` says. Throws as `price_list::at`. Complexity: O(links * rates).
[[nodiscard]] network_price price_of(network const& n, cabling through = cabling::fixed, price_list const& prices = {});

/// The rate of the one interface of each server of a fat tree (`fat_tree`, of as many servers, all links of this rate) that costs what `direct`
/// does: d * B' in the terms of W. Wang et al., TopoOpt, NSDI 2023, where servers have d interfaces of rate B > B'.
/// Throws `invalid_input` where the fat tree of the lowest rate of the list costs more, or the one of the highest less, and as `price_of`.
[[nodiscard]] bandwidth fat_tree_rate_of_similar_price(network const& direct, cabling through = cabling::patch_panel, price_list const& prices = {});

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/network/network_price.ipp>
#endif
