#pragma once
// In which order variables are eliminated, and from which tables each message is made: what it will cost, before anything is computed.

#include <algorithm>
#include <set>

#include <parsearch/search/additive/elimination_plan.hpp>

namespace parsearch::search::additive {

PARSEARCH_INLINE std::vector<std::uint32_t> elimination_order(std::span<std::uint32_t const> sizes, std::span<table_scope const> scopes,
                                                              std::span<std::uint32_t const> variables, order_by rule) {
    std::vector<table_scope> near(sizes.size()); // ascending
    auto const join = [](table_scope& s, std::uint32_t v) {
        if (auto const at = std::lower_bound(s.begin(), s.end(), v); at == s.end() || *at != v) s.insert(at, v);
    };
    for (auto const& s : scopes)
        for (auto const a : s)
            for (auto const b : s)
                if (a != b) join(near[a], b);
    auto const key_of = [&](std::uint32_t v) {
        double entries = 1;
        for (auto const n : near[v]) entries *= sizes[n];
        double const operations = entries * sizes[v];
        return rule == order_by::entries ? std::tuple(entries, operations, v) : std::tuple(operations, entries, v);
    };
    std::set<std::tuple<double, double, std::uint32_t>> waiting;
    std::vector<std::tuple<double, double, std::uint32_t>> key(sizes.size());
    std::vector<bool> open(sizes.size(), false);
    for (auto const v : variables) {
        open[v] = true;
        waiting.insert(key[v] = key_of(v));
    }
    std::vector<std::uint32_t> order;
    while (!waiting.empty()) {
        auto const v = std::get<2>(*waiting.begin());
        waiting.erase(waiting.begin());
        open[v] = false;
        order.push_back(v);
        for (auto const n : near[v]) {
            near[n].erase(std::lower_bound(near[n].begin(), near[n].end(), v));
            for (auto const other : near[v])
                if (other != n) join(near[n], other);
        }
        for (auto const n : near[v])
            if (open[n]) {
                waiting.erase(key[n]);
                waiting.insert(key[n] = key_of(n));
            }
    }
    return order;
}

} // namespace parsearch::search::additive

namespace parsearch::search::additive::detail {

PARSEARCH_INLINE void lay_out(message_plan& m, std::span<table_scope const> scopes, std::span<std::uint32_t const> sizes) {
    if (m.scope.empty()) return;
    auto const inner =
        *std::max_element(m.scope.begin(), m.scope.end(), [&](auto a, auto b) { return std::pair(sizes[a], b) < std::pair(sizes[b], a); });
    auto const holds = [&](table_scope const& s, std::uint32_t v) { return std::find(s.begin(), s.end(), v) != s.end(); };
    auto const rank = [&](std::uint32_t v) {
        if (v == inner) return 2;
        return std::any_of(m.inputs.begin(), m.inputs.end(), [&](auto n) { return holds(scopes[n], inner) && holds(scopes[n], v); }) ? 0 : 1;
    };
    std::sort(m.scope.begin(), m.scope.end(), [&](auto a, auto b) { return std::pair(rank(a), a) < std::pair(rank(b), b); });
}

} // namespace parsearch::search::additive::detail

namespace parsearch::search::additive {

PARSEARCH_INLINE elimination_plan plan_elimination(std::span<std::uint32_t const> sizes, std::vector<table_scope> scopes,
                                                   std::vector<std::uint32_t> order, double limit) {
    elimination_plan plan;
    plan.order = std::move(order);
    std::vector<std::vector<std::uint32_t>> holding(sizes.size()); // factors not yet used, by variable
    for (std::uint32_t n = 0; n < scopes.size(); ++n)
        for (auto const v : scopes[n]) holding[v].push_back(n);
    std::vector<bool> used(scopes.size(), false);
    for (auto const v : plan.order) {
        plan.first_message.push_back(static_cast<std::uint32_t>(plan.messages.size()));
        std::vector<std::uint32_t> bucket;
        for (auto const n : holding[v])
            if (!used[n]) bucket.push_back(n);
        plan.buckets.push_back(bucket);
        for (auto const n : bucket) used[n] = true;
        // Large tables first, so that small ones find a mini-bucket that holds their variables already.
        std::stable_sort(bucket.begin(), bucket.end(), [&](auto a, auto b) { return scopes[a].size() > scopes[b].size(); });
        std::vector<std::pair<message_plan, table_scope>> parts; // with the variables that each holds, ascending
        table_scope together;
        for (auto const n : bucket) {
            auto const grow = [&](table_scope const& held) {
                together = held;
                for (auto const x : scopes[n])
                    if (auto const place = std::lower_bound(together.begin(), together.end(), x); x != v && (place == together.end() || *place != x))
                        together.insert(place, x);
            };
            auto const fits = [&](auto const& part) {
                grow(part.second);
                double entries = 1;
                for (auto const x : together) entries *= sizes[x];
                return together.size() == part.second.size() || entries <= limit;
            };
            auto at = std::find_if(parts.begin(), parts.end(), fits);
            if (at == parts.end()) at = parts.insert(at, {message_plan{v, {}, {}}, {}});
            at->first.inputs.push_back(n);
            grow(at->second);
            at->second = together;
        }
        if (parts.empty()) parts.push_back({message_plan{v, {}, {}}, {}});
        for (auto& [m, held] : parts) {
            std::sort(m.inputs.begin(), m.inputs.end());
            m.scope = held;
            detail::lay_out(m, scopes, sizes);
            double entries = 1, laid_out = 0;
            for (auto const x : m.scope) entries *= sizes[x];
            for (auto const n : m.inputs) {
                double size = 1;
                for (auto const x : scopes[n]) size *= sizes[x];
                laid_out += size;
            }
            plan.entries += entries;
            plan.operations += entries * sizes[v];
            plan.largest = std::max(plan.largest, entries + 2 * laid_out);
            auto const number = static_cast<std::uint32_t>(scopes.size());
            for (auto const x : m.scope) holding[x].push_back(number);
            scopes.push_back(m.scope);
            used.push_back(false);
            plan.messages.push_back(std::move(m));
        }
    }
    plan.first_message.push_back(static_cast<std::uint32_t>(plan.messages.size()));
    for (std::uint32_t n = 0; n < scopes.size(); ++n)
        if (!used[n]) plan.rest.push_back(n);
    return plan;
}

} // namespace parsearch::search::additive
