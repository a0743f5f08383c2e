#pragma once
// The links of a fabric while it is wired: free interfaces, connected parts, links that may go without parting anything.

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/wiring/link_graph.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE void link_graph::move(std::uint32_t number, std::uint32_t a, std::uint32_t b) {
    ++free_[links_[number].a];
    ++free_[links_[number].b];
    take(a, b);
    links_[number] = {a, b, link_purpose::joint};
}

PARSEARCH_INLINE void link_graph::connect() {
    for (;;) {
        auto const found = parts();
        auto other = std::uint32_t{1};
        while (other < servers() && found.root[other] == found.root[0]) ++other;
        if (other >= servers()) return;
        auto const first = end_in(found, found.root[0]), second = end_in(found, found.root[other]);
        if ((first.server == none && first.link == none) || (second.server == none && second.link == none))
            throw std::logic_error("fabric: a part of it has neither a free interface nor a link to spare");
        if (first.link == none && second.link == none) {
            add(first.server, second.server, link_purpose::joint);
        } else if (first.link != none && second.link != none) {
            auto const x = links_[first.link], y = links_[second.link];
            links_[first.link] = {x.a, y.a, link_purpose::joint};
            links_[second.link] = {x.b, y.b, link_purpose::joint};
        } else {
            auto const link = first.link != none ? first.link : second.link;
            move(link, links_[link].a, first.link != none ? second.server : first.server);
        }
    }
}

PARSEARCH_INLINE void link_graph::fill() {
    auto near = neighbours();
    for (std::uint32_t server = 0; server < servers(); ++server)
        while (free_[server] > 0) {
            auto const other = farthest_free(near, server);
            if (other == server) break;
            add(server, other, link_purpose::joint);
            near[server].push_back(other);
            near[other].push_back(server);
        }
    for (std::uint32_t server = 0; server < servers(); ++server)
        for (auto number = static_cast<std::uint32_t>(links_.size()); number-- > 0 && free_[server] >= 2;) {
            auto const link = links_[number];
            if (link.purpose == link_purpose::ring || link.a == server || link.b == server) continue;
            move(number, link.a, server);
            add(server, link.b, link_purpose::joint);
        }
}

PARSEARCH_INLINE bool link_graph::connected() const {
    auto const found = parts();
    for (auto const root : found.root)
        if (root != found.root[0]) return false;
    return true;
}

PARSEARCH_INLINE void link_graph::take(std::uint32_t a, std::uint32_t b) {
    if (a == b || free_[a] == 0 || free_[b] == 0)
        throw std::logic_error(text("fabric: a link of servers ", a, " and ", b, " with ", free_[a], " and ", free_[b], " free interfaces"));
    --free_[a];
    --free_[b];
}

PARSEARCH_INLINE link_graph::partition link_graph::parts() const {
    partition out;
    joined_sets sets(servers());
    for (bool const rings : {true, false})
        for (std::uint32_t number = 0; number < links_.size(); ++number) {
            auto const& link = links_[number];
            if ((link.purpose == link_purpose::ring) != rings) continue;
            if (!sets.join(link.a, link.b)) out.spare.push_back(number);
        }
    for (std::uint32_t v = 0; v < servers(); ++v) out.root.push_back(sets.root(v));
    return out;
}

PARSEARCH_INLINE link_graph::open_end link_graph::end_in(partition const& found, std::uint32_t part) const {
    for (std::uint32_t v = 0; v < servers(); ++v)
        if (found.root[v] == part && free_[v] > 0) return {v, none};
    for (auto i = found.spare.size(); i-- > 0;)
        if (found.root[links_[found.spare[i]].a] == part) return {none, found.spare[i]};
    return {};
}

PARSEARCH_INLINE std::uint32_t link_graph::farthest_free(std::vector<std::vector<std::uint32_t>> const& near, std::uint32_t from) const {
    auto const distance = hops_from(from, near);
    auto out = from;
    for (std::uint32_t v = 0; v < servers(); ++v)
        if (free_[v] > 0 && distance[v] > distance[out]) out = v;
    return out;
}

} // namespace parsearch::fabric
