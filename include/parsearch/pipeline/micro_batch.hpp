#pragma once
/// Micro-batches: an operator graph that does an n-th of the samples.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::pipeline {

/// The dim of the samples, if any: one of extent 1 is what all samples share (a position bias).
[[nodiscard]] inline std::optional<std::uint32_t> sample_dim(ops::operation const& op) {
    for (std::uint32_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind == ops::dim_kind::sample && op.dims[k].extent > 1) return k;
    return std::nullopt;
}

/// A part of a batch: `taken` of `n` equal parts of its samples.
struct batch_part {
    std::int64_t n = 1, taken = 1;
    friend auto operator<=>(batch_part const&, batch_part const&) = default;
};

/// What one of `replicas` does of each of `micro_batches` micro-batches of `samples`, which it divides among `groups` groups of its devices: where
/// these have different numbers of samples, as if all had the most.
[[nodiscard]] inline batch_part part_of_replica(std::int64_t samples, std::int64_t micro_batches, std::int64_t replicas,
                                                std::int64_t groups) noexcept {
    if (samples % (replicas * micro_batches * groups) == 0) return {.n = replicas * micro_batches};
    auto const all = samples / micro_batches;
    return {.n = samples, .taken = std::min(all, ops::largest_part(all, replicas * groups) * groups)};
}

namespace detail {

[[nodiscard]] inline ops::term const* term_of(ops::axis const& a, std::uint32_t dim) noexcept {
    for (auto const& t : a.terms)
        if (t.dim == dim) return &t;
    return nullptr;
}
} // namespace detail

/// Into how many micro-batches the samples of `g` can be divided: its divisors. 1 where no operator has samples.
[[nodiscard]] inline std::int64_t samples_of(graph::dense_graph const& g) {
    std::int64_t common = 0;
    for (auto const& op : g.operations)
        if (auto const k = sample_dim(op)) common = std::gcd(common, op.dims[*k].extent);
    return common > 0 ? common : 1;
}

/// `op` on a part of its samples: their dim and the axes that it indexes are shorter, the work is less. An operator without samples does all
/// of its work in every micro-batch; what is kept beside operands is divided evenly, as over shards. Throws `invalid_input` naming `name`, where it
/// is not empty, and the rule where `part.n` is not positive or does not divide the samples, where a second dim is one of samples, where they index
/// weights, and where an axis holds samples in other than equal consecutive parts.
[[nodiscard]] inline ops::operation micro_batch(ops::operation op, batch_part part, std::string_view name) {
    auto const n = part.n;
    auto const refuse = [&](auto const&... what) {
        throw invalid_input("micro-batches: ", name.empty() ? op.kind : text("operator '", name, "' (", op.kind, ')'), ' ', what...);
    };
    if (n < 1) refuse("is to run in ", n, " micro-batches: must be at least 1");
    if (part.taken < 1 || part.taken > n) refuse("is to do ", part.taken, " of ", n, " parts: must be from 1 to ", n);
    if (part.taken == n) return op;
    auto const k = sample_dim(op);
    if (!k) return op;
    auto& samples = op.dims[*k];
    if (samples.extent % n != 0) refuse("has ", samples.extent, " samples: ", n, " micro-batches must divide them");
    for (auto other = *k + 1; other < op.dims.size(); ++other)
        if (op.dims[other].kind == ops::dim_kind::sample && op.dims[other].extent > 1)
            refuse("has two dims of samples, '", samples.name, "' and '", op.dims[other].name, "': one can be divided");
    auto const shorter = [&](std::int64_t extent) { return extent / n * part.taken; };
    auto const less = [&](double amount) { return amount / static_cast<double>(n) * static_cast<double>(part.taken); };
    auto const shorten = [&](std::vector<ops::operand>& operands, bool weights) {
        for (auto& o : operands) {
            o.gradient_flops = less(o.gradient_flops);
            if (o.touched_bytes > 0) o.touched_bytes = less(o.touched_bytes);
            for (auto& a : o.axes) {
                auto const* const t = detail::term_of(a, *k);
                if (!t) continue;
                if (weights && !o.cache) refuse("has weights '", o.name, "' of which each sample has its own: they can not be divided");
                if (a.offset != 0 || a.extent != t->stride * samples.extent)
                    refuse("has an axis of extent ", a.extent, " in '", o.name, "' that is not ", samples.extent,
                           " equal parts of consecutive samples: it can not be divided");
                a.extent = shorter(a.extent);
            }
        }
    };
    shorten(op.inputs, false);
    shorten(op.weights, true);
    shorten(op.outputs, false);
    samples.extent = shorter(samples.extent);
    for (auto* amount : ops::amounts_of(op)) *amount = less(*amount);
    return op;
}

/// On one of `n` micro-batches.
[[nodiscard]] inline ops::operation micro_batch(ops::operation op, std::int64_t n, std::string_view name) {
    return micro_batch(std::move(op), batch_part{.n = n}, name);
}

/// The graph that does a part of the batch of `g`: what `g` would be with so many samples, numbered as `g`. Throws `invalid_input` as
/// above, and where `part.n` does not divide `samples_of(g)`, or an operator reads all samples of a tensor at once. Any graph is one micro-batch.
/// Complexity: linear.
[[nodiscard]] inline graph::dense_graph micro_batch(graph::dense_graph const& g, batch_part part) {
    auto const n = part.n;
    graph::dense_graph out;
    out.names = g.names;
    out.edges = g.edges;
    out.first_in = g.first_in;
    for (std::size_t op = 0; op < g.size(); ++op) out.operations.push_back(micro_batch(g.operations[op], part, g.names[op]));
    // Graph inputs have no dims: what is read of them says which axis counts samples.
    if (auto const samples = samples_of(g); samples % n != 0)
        throw invalid_input("micro-batches: the graph has ", samples, " samples: ", n, " micro-batches must divide them");
    for (auto const& e : g.edges)
        if (g.operations[e.producer].work == ops::work_class::source) {
            auto const& before = g.operations[e.consumer].inputs[e.input].axes;
            auto const& after = out.operations[e.consumer].inputs[e.input].axes;
            auto& made = out.operations[e.producer].outputs[e.slot].axes;
            for (std::size_t a = 0; a < made.size(); ++a)
                if (after[a].extent != before[a].extent) made[a].extent = after[a].extent;
        }
    for (auto const& e : out.edges)
        if (auto const made = ops::tensor_of(out.operations[e.producer].outputs[e.slot]),
            read = ops::tensor_of(out.operations[e.consumer].inputs[e.input]);
            !(made == read))
            throw invalid_input("micro-batches: operator '", g.names[e.consumer], "' (", g.operations[e.consumer].kind, ") reads ",
                                ops::to_string(read), " of '", g.names[e.producer], "', which makes ", ops::to_string(made),
                                " in a micro-batch: the samples are along another axis for it, or it needs those of all micro-batches at once");
    return graph::read_graph(out).graph;
}
/// One of `n` micro-batches.
[[nodiscard]] inline graph::dense_graph micro_batch(graph::dense_graph const& g, std::int64_t n) { return micro_batch(g, batch_part{.n = n}); }

/// Into how many micro-batches `g` can be divided: `samples_of(g)`, or 1 where `micro_batch` refuses the graph.
[[nodiscard]] inline std::int64_t divisible_samples(graph::dense_graph const& g) {
    auto const samples = samples_of(g);
    try {
        if (samples > 1) (void)micro_batch(g, samples);
    } catch (invalid_input const&) {
        return 1;
    }
    return samples;
}

} // namespace parsearch::pipeline
