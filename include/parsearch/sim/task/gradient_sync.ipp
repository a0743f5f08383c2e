#pragma once
// Which devices hold which parts of the weights: all-reduces of their gradients, updates, and memory.

#include <parsearch/sim/task/gradient_sync.hpp>

namespace parsearch::sim::detail {

PARSEARCH_INLINE weight_parts refine(weight_parts parts) {
    if (parts.size() < 2) return parts;
    auto const axes = parts.begin()->first.size();
    std::vector<std::vector<std::int64_t>> cuts(axes);
    for (auto const& [r, shards] : parts)
        for (std::size_t a = 0; a < axes; ++a) cuts[a].insert(cuts[a].end(), {r[a].begin, r[a].end});
    for (auto& c : cuts) {
        std::sort(c.begin(), c.end());
        c.erase(std::unique(c.begin(), c.end()), c.end());
    }
    auto const first_cut = [&](region const& r, std::size_t a) {
        return static_cast<std::size_t>(std::lower_bound(cuts[a].begin(), cuts[a].end(), r[a].begin) - cuts[a].begin());
    };
    // Distinct parts that are one cell of the cut grid each do not overlap.
    bool const disjoint = std::all_of(parts.begin(), parts.end(), [&](auto const& part) {
        for (std::size_t a = 0; a < axes; ++a)
            if (cuts[a][first_cut(part.first, a) + 1] != part.first[a].end) return false;
        return true;
    });
    if (disjoint) return parts;
    weight_parts out;
    for (auto const& [r, shards] : parts) {
        // Every cell of the cut grid inside r, by odometer.
        std::vector<std::size_t> first(axes), at(axes);
        for (std::size_t a = 0; a < axes; ++a) first[a] = at[a] = first_cut(r, a);
        for (bool more = true; more;) {
            region cell(axes);
            for (std::size_t a = 0; a < axes; ++a) cell[a] = {cuts[a][at[a]], cuts[a][at[a] + 1]};
            auto& holders = out[cell];
            holders.insert(holders.end(), shards.begin(), shards.end());
            more = false;
            for (std::size_t a = axes; a-- > 0 && !more;) {
                more = cuts[a][++at[a]] < r[a].end;
                if (!more) at[a] = first[a];
            }
        }
    }
    return out;
}

} // namespace parsearch::sim::detail

namespace parsearch::sim {

PARSEARCH_INLINE ops::shard_work update_work(ops::operation const& op, std::int64_t elements, byte_count traffic, optimizer by) {
    auto const rule = cost_of(by);
    ops::shard_work work{.op = &op, .pass = ops::pass::update};
    std::fill_n(work.degrees.begin(), op.dims.size(), 1);
    work.flops = rule.flops * static_cast<double>(elements);
    work.bytes = static_cast<double>(traffic) + 8.0 * static_cast<double>(rule.states * elements);
    return work;
}

} // namespace parsearch::sim
