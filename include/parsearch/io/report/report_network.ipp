#pragma once
// The network that a report draws, and how it is handed to the page.

#include <cmath>

#include <parsearch/core/error.hpp>
#include <parsearch/io/report/report_network.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE nlohmann::ordered_json network_json(std::optional<report_network> const& given) {
    using nlohmann::ordered_json;
    if (!given) return nullptr;
    if (!given->network || !given->traffic) throw invalid_input("a report on a network without the network or its traffic: needs both");
    auto const& n = *given->network;
    auto const& t = *given->traffic;
    for (auto const* const by_direction : {&t.message_bytes, &t.collective_bytes, &t.utilisation})
        if (by_direction->size() != 2 * n.links.size())
            throw invalid_input("a report on a network of ", n.links.size(), " links, and traffic on ", by_direction->size(),
                                " directions of links: must be two of each");
    auto const bytes = [](std::vector<double> const& all) {
        ordered_json out = ordered_json::array();
        for (auto const b : all) out.push_back(static_cast<std::int64_t>(std::round(b)));
        return out;
    };
    ordered_json links = ordered_json::array(), utilisation = ordered_json::array();
    for (auto const& l : n.links) links.push_back({l.a, l.b, l.each.rate.bytes_per_second, l.each.latency.count()});
    for (auto const u : t.utilisation) utilisation.push_back(std::round(u * 1e6) / 1e6);
    ordered_json price = nullptr, rounds = ordered_json::array();
    for (auto const& r : given->rounds) rounds.push_back({r.network, r.round, r.before.count(), r.after.count(), r.evaluations, r.chosen});
    if (given->price) price = std::round(*given->price);
    return {{"name", n.name},
            {"servers", n.servers},
            {"switches", n.switches},
            {"links", links},
            {"messages", bytes(t.message_bytes)},
            {"collectives", bytes(t.collective_bytes)},
            {"utilisation", utilisation},
            {"demanded", std::round(t.demanded)},
            {"carried", std::round(t.carried)},
            {"tax", t.bandwidth_tax()},
            {"pairHops", {t.mean_pair_hops, t.max_pair_hops}},
            {"messageHops", {t.mean_message_hops, t.max_message_hops}},
            {"price", price},
            {"rounds", rounds}};
}

} // namespace parsearch::io::detail
