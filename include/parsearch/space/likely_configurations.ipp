#pragma once
// A few configurations of an operator among which a good one is likely to be: what searches that price every pair along an edge can afford.

#include <algorithm>

#include <parsearch/space/likely_configurations.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

namespace parsearch::space {

PARSEARCH_INLINE std::vector<configuration> likely_configurations(ops::operation const& op, operator_space const& all, std::size_t devices,
                                                                  likely_options const& o) {
    auto const total = static_cast<std::int64_t>(devices);
    std::vector<configuration> out{nearest_data_parallel(op, all, devices)};
    auto limit = o.limit;
    auto const add = [&](configuration const& c) {
        if (out.size() < limit && all.contains(c) && std::find(out.begin(), out.end(), c) == out.end()) out.push_back(c);
    };
    auto const may_be_in = [&](std::uint32_t k, std::int32_t parts) {
        auto const& d = op.dims[k];
        return d.extent % parts == 0 || (all.uneven() && ops::can_be_in(d, parts));
    };
    auto const order = inner_dims_first(op);
    auto const samples = detail::first_dim(op, ops::dim_kind::sample);
    auto const most_attribute = static_cast<std::int32_t>(samples && op.dims[*samples].extent >= total ? o.per_node : devices);
    add(whole(op));
    if (o.per_node > 1 && o.per_node < devices) add(split_samples(op, static_cast<std::int64_t>(o.per_node), 1, 0, all.uneven()));
    for (std::size_t g = 2; g <= o.per_node; ++g)
        if (o.per_node % g == 0 && devices % g == 0)
            add(split_samples(op, total / static_cast<std::int64_t>(g), static_cast<std::int32_t>(g), 0, all.uneven()));
    for (std::int32_t g = 2; ops::looks_up(op) && g < total; ++g)
        for (auto const k : order) {
            if (total % g != 0 || !may_be_in(k, g) || !ops::is_indexed_by(op.weights[0], k)) continue;
            auto c = whole(op);
            c.degree[k] = g;
            lay_out(c, order, static_cast<std::int32_t>(total / g));
            add(c);
        }
    auto const add_groups = [&](bool repeats) {
        for (std::int32_t g = 2; g <= total; ++g) {
            if (total % g != 0) continue;
            for (auto const k : order) {
                auto const kind = op.dims[k].kind;
                if (ops::repeats_work(kind) != repeats || kind == ops::dim_kind::fixed || kind == ops::dim_kind::sample || !may_be_in(k, g)) continue;
                if (kind == ops::dim_kind::attribute && g > most_attribute) continue;
                add(detail::split_in_groups(op, k, g, total / g, all.uneven()));
            }
        }
    };
    add_groups(false);
    limit += o.limit / 3;
    add_groups(true);
    return out;
}

} // namespace parsearch::space
