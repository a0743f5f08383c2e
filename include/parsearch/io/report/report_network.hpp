#pragma once
/// The network that a report draws, and how it is handed to the page.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/servers/network_report.hpp>

namespace parsearch::io {

/// A search on one of the wirings that were tried.
struct report_round {
    std::string network{};         ///< what was searched on, in a few words
    std::uint64_t round = 0;       ///< counted from 1 for each beginning
    picoseconds before{}, after{}; ///< cost of the strategy that the network was wired for, and of the one found
    std::uint64_t evaluations = 0;
    bool chosen = false; ///< the network and strategy of the report
};

/// A network and what the strategy of the report puts on it. What the pointers name must outlive the call; none is null.
struct report_network {
    fabric::network const* network = nullptr;
    fabric::network_report const* traffic = nullptr; ///< of `network`
    std::optional<double> price{};                   ///< US dollars; where it is known
    std::vector<report_round> rounds{};              ///< where it was wired for the strategy
};

namespace detail {

/// What the page draws; null where there is no network. Bytes are rounded to whole ones, shares to a millionth. Throws `invalid_input` where a
/// pointer is null, or the traffic is not of as many links.
[[nodiscard]] nlohmann::ordered_json network_json(std::optional<report_network> const& given);
} // namespace detail

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/report/report_network.ipp>
#endif
