#pragma once
/// A few configurations of an operator among which a good one is likely to be: what searches that price every pair along an edge can afford.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/space/operator_space.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>

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
[[nodiscard]] std::vector<configuration> likely_configurations(ops::operation const& op, operator_space const& all, std::size_t devices,
                                                               likely_options const& o);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/likely_configurations.ipp>
#endif
