#pragma once
// The least way that is left from a shard of an operator, over all configurations of the operators that are not decided.

#include <parsearch/sim/bounds/remaining_paths.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE std::int64_t remaining_paths::least() const noexcept {
    std::int64_t most = 0;
    for (auto const& choices : ways_) {
        auto least = std::numeric_limits<std::int64_t>::max();
        for (auto const& w : choices) {
            std::int64_t mine = 0, first = std::numeric_limits<std::int64_t>::max(), last_back = 0;
            for (std::size_t s = 0; s < w.earliest.size(); ++s) {
                mine = std::max(mine, w.earliest[s] + w.tail[s]);
                first = std::min(first, w.earliest[s]);
                last_back = std::max(last_back, w.back[s]);
            }
            if (w.every_round > 0) mine = std::max(mine, first + w.every_round + last_back);
            least = std::min(least, mine);
        }
        if (!choices.empty()) most = std::max(most, least);
    }
    return most;
}

PARSEARCH_INLINE void remaining_paths::find_earliest(std::uint32_t op) {
    auto const& g = graph();
    for (std::size_t c = 0; c < choices(op).size(); ++c) {
        require_running(tables_->stop());
        auto& mine = ways_[op][c];
        auto const& durations = choices(op)[c].forward;
        mine.earliest.assign(durations.size(), 0);
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
            auto& arrives = arrival_[e];
            arrives.resize(choices(op).size());
            arrives[c].assign(durations.size(), 0);
            if (!tables_->has_edge(e)) continue;
            auto const producer = g.edges[e].producer;
            for (std::size_t t = 0; t < durations.size(); ++t) {
                auto least = std::numeric_limits<std::int64_t>::max();
                for (std::size_t from = 0; from < choices(producer).size(); ++from) {
                    auto const& delay = tables_->edge(e, from, c);
                    std::int64_t latest = 0;
                    for (std::size_t s = 0; s < ways_[producer][from].earliest.size(); ++s)
                        latest = std::max(latest, ways_[producer][from].earliest[s] + delay.there(s, t));
                    least = std::min(least, latest);
                }
                arrives[c][t] = least;
                mine.earliest[t] = std::max(mine.earliest[t], least);
            }
        }
        for (std::size_t t = 0; t < durations.size(); ++t) mine.earliest[t] += durations[t];
    }
}

PARSEARCH_INLINE void remaining_paths::find_round(std::uint32_t op) {
    if (!returns(op)) return;
    for (std::size_t c = 0; c < choices(op).size(); ++c) {
        auto const& backward = choices(op)[c].backward;
        auto const n = backward.size();
        std::vector<std::int64_t> most(n * n, never); // from a forward end to the start of a backward shard
        for (std::size_t s = 0; s < n; ++s) most[s * n + s] = 0;
        std::int64_t every = 0;
        for (auto const e : graph().out(op)) {
            if (!returns_along(e)) continue;
            std::vector<std::int64_t> least(n * n, std::numeric_limits<std::int64_t>::max());
            auto least_every = std::numeric_limits<std::int64_t>::max();
            for (std::size_t to = 0; to < choices(graph().edges[e].consumer).size(); ++to)
                least_every = std::min(least_every, go_round(e, c, to, least));
            for (std::size_t i = 0; i < n * n; ++i) most[i] = std::max(most[i], least[i]);
            every = std::max(every, least_every);
        }
        auto& mine = ways_[op][c];
        mine.round.resize(n * n);
        for (std::size_t s = 0; s < n; ++s)
            for (std::size_t t = 0; t < n; ++t) mine.round[s * n + t] = most[s * n + t] == never ? never : most[s * n + t] + backward[t];
        mine.every_round = every + *std::min_element(backward.begin(), backward.end());
    }
}

PARSEARCH_INLINE std::int64_t remaining_paths::go_round(std::uint32_t e, std::size_t from, std::size_t to, std::vector<std::int64_t>& least) {
    auto const [producer, slot, consumer, input] = graph().edges[e];
    require_running(tables_->stop());
    auto const& delay = tables_->edge(e, from, to);
    auto const& there = ways_[consumer][to];
    auto const& forward = choices(consumer)[to].forward;
    auto const n = choices(producer)[from].forward.size(), m = forward.size();
    over_.assign(m, never);
    auto first = std::numeric_limits<std::int64_t>::max();
    for (std::size_t u = 0; u < m; ++u) {
        auto latest = never;
        for (std::size_t s = 0; s < n; ++s) latest = std::max(latest, delay.there(s, u));
        first = std::min(first, latest == never ? never : latest + forward[u]);
    }
    auto every = std::numeric_limits<std::int64_t>::max();
    for (std::size_t t = 0; t < n; ++t) {
        auto latest = never;
        for (std::size_t v = 0; v < m; ++v) latest = std::max(latest, delay.back(v, t));
        every = std::min(every, latest);
    }
    for (std::size_t s = 0; s < n; ++s) {
        require_running(tables_->stop()); // what follows is of shards^2
        for (std::size_t v = 0; v < m; ++v) {
            over_[v] = never;
            for (std::size_t u = 0; u < m; ++u)
                if (delay.there(s, u) != never && there.between(u, v) != never)
                    over_[v] = std::max(over_[v], delay.there(s, u) + forward[u] + there.between(u, v));
        }
        for (std::size_t t = 0; t < n; ++t) {
            auto longest = never;
            for (std::size_t v = 0; v < m; ++v)
                if (over_[v] != never && delay.back(v, t) != never) longest = std::max(longest, over_[v] + delay.back(v, t));
            least[s * n + t] = std::min(least[s * n + t], longest);
        }
    }
    return first == never || every == never ? 0 : first + there.every_round + every;
}

PARSEARCH_INLINE void remaining_paths::find_tail(std::uint32_t op) {
    auto const& g = graph();
    for (std::size_t c = 0; c < choices(op).size(); ++c) {
        auto& mine = ways_[op][c];
        auto const n = choices(op)[c].forward.size();
        require_running(tables_->stop());
        mine.tail.assign(n, 0);
        for (std::size_t s = 0; s < n; ++s) {
            if (!mine.round.empty())
                for (std::size_t t = 0; t < n; ++t)
                    if (mine.between(s, t) != never) mine.tail[s] = std::max(mine.tail[s], mine.between(s, t) + mine.back[t]);
            for (auto const e : g.out(op)) {
                if (!tables_->has_edge(e)) continue;
                auto const consumer = g.edges[e].consumer;
                auto least = std::numeric_limits<std::int64_t>::max();
                for (std::size_t to = 0; to < choices(consumer).size(); ++to) {
                    auto const& delay = tables_->edge(e, c, to);
                    auto const& forward = choices(consumer)[to].forward;
                    std::int64_t longest = 0;
                    for (std::size_t u = 0; u < forward.size(); ++u)
                        if (delay.there(s, u) != never) longest = std::max(longest, delay.there(s, u) + forward[u] + ways_[consumer][to].tail[u]);
                    least = std::min(least, longest);
                }
                mine.tail[s] = std::max(mine.tail[s], least);
            }
        }
    }
}

} // namespace parsearch::sim
