#pragma once
// Which shards of a consumer read what which shards of a producer made, and the collectives such an edge amounts to.

#include <algorithm>

#include <parsearch/sim/task/overlap.hpp>

namespace parsearch::sim::detail {

/// Finds the shards that may overlap a region: those whose first axis does.
class first_axis_index {
  public:
    explicit first_axis_index(shard_regions const& regions);
    /// Ascending numbers.
    void find(std::span<ops::interval const> region, std::vector<std::uint32_t>& out) const;

  private:
    shard_regions const* regions_;
    std::vector<std::uint32_t> order_; ///< by the beginning of the first axis
    std::vector<std::int64_t> reach_;  ///< the farthest end so far, in that order
};

} // namespace parsearch::sim::detail

namespace parsearch::sim::detail {

PARSEARCH_INLINE bool on_a_grid(shard_regions const& regions, std::span<std::uint32_t const> shards) {
    std::vector<ops::interval> taken(shards.size());
    for (std::size_t a = 0; a < regions.axes(); ++a) {
        for (std::size_t i = 0; i < shards.size(); ++i) taken[i] = regions[shards[i]][a];
        std::sort(taken.begin(), taken.end(), [](auto const& x, auto const& y) { return x.begin < y.begin; });
        for (std::size_t i = 1; i < taken.size(); ++i)
            if (taken[i - 1] != taken[i] && taken[i].begin < taken[i - 1].end) return false;
    }
    return true;
}

PARSEARCH_INLINE std::optional<bool> replicated(shard_regions const& regions, std::span<std::uint32_t const> shards) {
    auto const first = regions[shards[0]];
    if (std::all_of(shards.begin(), shards.end(), [&](auto n) { return same_region(regions[n], first); })) return true;
    if (on_a_grid(regions, shards)) {
        std::vector<std::uint32_t> order(shards.begin(), shards.end());
        std::sort(order.begin(), order.end(), [&](auto a, auto b) {
            auto const x = regions[a], y = regions[b];
            return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(),
                                                [](auto const& i, auto const& j) { return i.begin < j.begin; });
        });
        for (std::size_t i = 1; i < order.size(); ++i)
            if (same_region(regions[order[i - 1]], regions[order[i]])) return std::nullopt;
        return false;
    }
    for (std::size_t i = 1; i < shards.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (common_elements(regions[shards[i]], regions[shards[j]]) != 0) return std::nullopt;
    return false;
}

/// The collective that a complete exchange amounts to; nothing where point-to-point messages do as well.
PARSEARCH_INLINE bool classify(exchange& x, shard_regions const& made, shard_regions const& read, std::int64_t partials) {
    auto const distinct = x.producers.size() / static_cast<std::size_t>(partials);
    auto const copies = replicated(read, x.consumers);
    if (!copies) return false;
    bool const one_reader = x.consumers.size() == 1;
    x.partial = partials > 1;
    if (x.partial) {
        if (one_reader) x.forward = collective_kind::reduce, x.backward = collective_kind::broadcast;
        else if (*copies) x.forward = x.backward = collective_kind::all_reduce;
        else x.forward = collective_kind::reduce_scatter, x.backward = collective_kind::all_gather;
    } else if (one_reader) {
        return false;
    } else if (distinct == 1) {
        if (!*copies) return false;
        x.forward = collective_kind::broadcast, x.backward = collective_kind::reduce;
    } else if (*copies) {
        x.forward = collective_kind::all_gather, x.backward = collective_kind::reduce_scatter;
    } else {
        x.forward = x.backward = collective_kind::all_to_all;
    }
    // What is read once, over the producers' distinct regions.
    x.elements = 0;
    auto const readers = *copies ? std::size_t{1} : x.consumers.size();
    for (std::size_t c = 0; c < readers; ++c)
        for (auto const p : x.producers) x.elements += common_elements(made[p], read[x.consumers[c]]);
    x.elements /= partials;
    return true;
}

PARSEARCH_INLINE void find_exchanges(overlap_table& t, shard_regions const& made, shard_regions const& read, std::int64_t partials) {
    t.exchange_of.assign(t.pairs.size(), -1);
    std::vector<bool> seen(read.size());
    auto const consumers_of = [&](std::uint32_t p) {
        return std::span(t.by_producer).subspan(t.first_of_producer[p], t.first_of_producer[p + 1] - t.first_of_producer[p]);
    };
    auto const producers_of = [&](std::uint32_t c) {
        return std::span(t.pairs).subspan(t.first_of_consumer[c], t.first_of_consumer[c + 1] - t.first_of_consumer[c]);
    };
    for (std::uint32_t c = 0; c < read.size(); ++c) {
        auto const mine = producers_of(c);
        if (seen[c] || mine.empty()) continue;
        // Complete exchange: every producer of c feeds the same consumers, and each of these reads the same producers.
        exchange x;
        for (auto const& o : mine) x.producers.push_back(o.producer);
        for (auto const pair : consumers_of(x.producers.front())) x.consumers.push_back(t.pairs[pair].consumer);
        bool complete = true;
        for (auto const p : x.producers)
            complete = complete && std::ranges::equal(consumers_of(p), x.consumers, {}, [&](std::uint32_t pair) { return t.pairs[pair].consumer; });
        for (auto const other : x.consumers) {
            seen[other] = true;
            complete = complete && std::ranges::equal(producers_of(other), x.producers, {}, &overlap::producer);
        }
        if (!complete || !classify(x, made, read, partials)) continue;
        for (auto const other : x.consumers)
            for (auto i = t.first_of_consumer[other]; i < t.first_of_consumer[other + 1]; ++i)
                t.exchange_of[i] = static_cast<std::int32_t>(t.exchanges.size());
        t.exchanges.push_back(std::move(x));
    }
}

PARSEARCH_INLINE first_axis_index::first_axis_index(shard_regions const& regions) : regions_(&regions) {
    for (std::uint32_t n = 0; n < regions.size(); ++n) order_.push_back(n);
    if (regions.size() == 0 || regions[0].empty()) return;
    std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) { return regions[a][0].begin < regions[b][0].begin; });
    for (auto const n : order_) reach_.push_back(std::max(reach_.empty() ? regions[n][0].end : reach_.back(), regions[n][0].end));
}

PARSEARCH_INLINE void first_axis_index::find(std::span<ops::interval const> region, std::vector<std::uint32_t>& out) const {
    auto first = order_.begin(), last = order_.end();
    if (!region.empty()) {
        first += std::upper_bound(reach_.begin(), reach_.end(), region[0].begin) - reach_.begin();
        last = std::lower_bound(first, last, region[0].end, [&](auto n, auto end) { return (*regions_)[n][0].begin < end; });
    }
    out.assign(first, last);
    if (!std::is_sorted(out.begin(), out.end())) std::sort(out.begin(), out.end());
}

/// Of each reader, the copy that it reads where there are `copies`: the readers of one region and share, in the order of their numbers, divide them
/// evenly.
PARSEARCH_INLINE std::vector<std::uint32_t> copies_read(shard_layout const& read, std::int64_t copies) {
    std::vector<std::uint32_t> order(read.regions.size()), out(read.regions.size(), 0);
    for (std::uint32_t n = 0; n < order.size(); ++n) order[n] = n;
    auto const share = [&](std::uint32_t n) { return read.partial.empty() ? 0 : read.partial[n]; };
    auto const alike = [&](std::uint32_t a, std::uint32_t b) { return share(a) == share(b) && same_region(read.regions[a], read.regions[b]); };
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
        if (share(a) != share(b)) return share(a) < share(b);
        auto const x = read.regions[a], y = read.regions[b];
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (x[i].begin != y[i].begin) return x[i].begin < y[i].begin;
            if (x[i].end != y[i].end) return x[i].end < y[i].end;
        }
        return a < b;
    });
    for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
        while (last < order.size() && alike(order[first], order[last])) ++last;
        for (auto i = first; i < last; ++i)
            out[order[i]] = static_cast<std::uint32_t>(static_cast<std::int64_t>(i - first) * copies / static_cast<std::int64_t>(last - first));
    }
    return out;
}

} // namespace parsearch::sim::detail

namespace parsearch::sim {

PARSEARCH_INLINE overlap_table find_overlaps(shard_layout const& made, shard_layout const& read) {
    auto const& from = made.regions;
    auto const& to = read.regions;
    overlap_table t;
    t.first_of_consumer.push_back(0);
    t.first_of_producer.assign(from.size() + 1, 0);
    detail::first_axis_index const index(from);
    auto const copy = made.copies > 1 ? detail::copies_read(read, made.copies) : std::vector<std::uint32_t>();
    auto const reads = [&](std::uint32_t p, std::uint32_t c) {
        if (!copy.empty() && made.copy[p] != copy[c]) return false;
        return read.partials == 1 || (made.partials == 1 ? 0 : made.partial[p]) * read.partials / made.partials == read.partial[c];
    };
    std::vector<std::uint32_t> near;
    for (std::uint32_t c = 0; c < to.size(); ++c) {
        index.find(to[c], near);
        for (auto const p : near)
            if (auto const n = reads(p, c) ? detail::common_elements(from[p], to[c]) : 0) {
                t.pairs.push_back({p, c, n});
                ++t.first_of_producer[p + 1];
            }
        t.first_of_consumer.push_back(static_cast<std::uint32_t>(t.pairs.size()));
    }
    for (std::size_t p = 0; p < from.size(); ++p) t.first_of_producer[p + 1] += t.first_of_producer[p];
    t.by_producer.resize(t.pairs.size());
    auto at = t.first_of_producer;
    for (std::uint32_t i = 0; i < t.pairs.size(); ++i) t.by_producer[at[t.pairs[i].producer]++] = i;
    t.partial = made.partials > read.partials;
    if (made.partials <= read.partials || made.partials % read.partials == 0)
        detail::find_exchanges(t, from, to, std::max<std::int64_t>(1, made.partials / read.partials));
    else t.exchange_of.assign(t.pairs.size(), -1); // shares of unequal size
    return t;
}

} // namespace parsearch::sim
