#pragma once
// The routes between all pairs of devices.

#include <algorithm>
#include <map>

#include <parsearch/topology/route_table.hpp>

namespace parsearch::topology {

PARSEARCH_INLINE route_table::route_table(std::vector<std::uint32_t> group, link_lists pairs, link_lists up, link_lists down) {
    arrays t{.groups = 0, .group = std::move(group), .place = {}, .row = {}, .pairs = std::move(pairs), .up = std::move(up), .down = std::move(down)};
    std::vector<std::uint32_t> met;
    for (auto const g : t.group) {
        if (g >= met.size()) met.resize(g + std::size_t{1}, 0);
        t.place.push_back(met[g]++);
    }
    t.groups = static_cast<std::uint32_t>(met.size());
    if (t.groups < 2) t.up = t.down = {}; // no route has a part of them
    std::size_t next = 0;
    for (auto const g : t.group) {
        t.row.push_back(next);
        next += met[g];
    }
    made_ = std::make_shared<arrays const>(std::move(t));
}

PARSEARCH_INLINE route_table route_table::part(std::span<std::size_t const> kept) const {
    if (!made_) return {};
    auto const& t = *made_;
    std::map<std::uint32_t, std::uint32_t> number; // of groups, by first use
    std::vector<std::vector<std::size_t>> members;
    std::vector<std::uint32_t> group;
    link_lists pairs, up, down;
    for (auto const d : kept) {
        group.push_back(number.try_emplace(t.group[d], static_cast<std::uint32_t>(number.size())).first->second);
        if (group.back() == members.size()) members.emplace_back();
        members[group.back()].push_back(d);
        if (t.up.size() == 0) continue;
        up.add_all(t.up[d]);
        down.add_all(t.down[d]);
    }
    for (std::size_t i = 0; i < kept.size(); ++i)
        for (auto const b : members[group[i]]) pairs.add_all((*this)(kept[i], b));
    return {std::move(group), std::move(pairs), std::move(up), std::move(down)};
}

PARSEARCH_INLINE route_table route_table::with_links(std::span<std::uint32_t const> number) const {
    if (!made_) return {};
    auto t = *made_;
    for (auto* lists : {&t.pairs, &t.up, &t.down}) lists->renumber(number);
    route_table out;
    out.made_ = std::make_shared<arrays const>(std::move(t));
    return out;
}

PARSEARCH_INLINE bool route_table::equal(route_table const& a, route_table const& b) noexcept {
    auto const n = a.made_->group.size();
    if (*a.made_ == *b.made_) return true;
    if (b.made_->group.size() != n) return false;
    for (std::size_t from = 0; from < n; ++from)
        for (std::size_t to = 0; to < n; ++to)
            if (!std::ranges::equal(a(from, to), b(from, to))) return false;
    return true;
}

} // namespace parsearch::topology
