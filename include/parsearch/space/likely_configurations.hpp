#pragma once
/// A few configurations of an operator among which a good one is likely to be: what searches that price every pair along an edge can afford.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/space/operator_space.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

namespace parsearch::space {

/// What is asked of `likely_configurations`.
struct likely_options {
    std::size_t limit = 24;   ///< configurations, at least 1
    std::size_t per_node = 1; ///< devices of a node; 1 where nodes differ
};

/// What of `all`, the space of `op`, is nearest to data parallelism over `devices` devices: itself for graph inputs, which may be anywhere.
[[nodiscard]] inline configuration nearest_data_parallel(ops::operation const& op, operator_space const& all, std::size_t devices) {
    auto c = split_samples(op, static_cast<std::int64_t>(devices), 1, 0, all.uneven());
    return op.work == ops::work_class::source ? c : all.nearest(c);
}

/// Of `all`, the space of `op` on `devices` devices, at most `limit` configurations (but for the last kind), none twice:
/// - data parallelism, always the first, or what the space has nearest to it;
/// - the operator whole on the first device, its samples over the first node, and over one of every g devices, for every divisor g of a node's;
/// - of tables that are looked up, one dim of the table split among g devices as far apart as they can be, and nothing else;
/// - one more dim split among g neighbours and the samples over `devices / g` such groups, for every divisor g of `devices`: small groups first, in
///   each the dims as they lie nearest. Attribute dims over more than a node only where there are fewer samples than devices: borders then move
///   between many devices. Where dims repeat work (copies, partial sums), a third of `limit` more with these, so that they take no other's place.
/// They follow from the operation and the arguments alone, so that an operator has the same ones in every graph. What experts give single
/// operators (one weird trick, Megatron's splits of any degree, expert parallelism) is among them where `limit` allows.
/// Complexity: O(divisors * dims) look-ups in `all`.
[[nodiscard]] inline std::vector<configuration> likely_configurations(ops::operation const& op, operator_space const& all, std::size_t devices,
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
    bool const looked_up = !op.weights.empty() && op.weights[0].touched_bytes >= 0;
    for (std::int32_t g = 2; looked_up && g < total; ++g)
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
