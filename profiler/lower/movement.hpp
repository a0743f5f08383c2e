#pragma once
/// Operators that move data: copies, permutations, lookups, sums, and what mixtures of experts do with tokens.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "elementwise.hpp"
#include "shard.hpp"

namespace parsearch::profiler::detail {

/// Concatenations, cuts, repetitions, padding: everything that is read, in a row, to everything that is written. Backward copies back what is wanted,
/// or sums what was repeated.
[[nodiscard]] inline launches lower_copy(shard const& s) {
    auto const& op = s.op();
    auto const type = op.outputs[0].type;
    std::int64_t read = 0, written = 0;
    for (auto const& o : op.outputs) written += s.elements(o);
    launches out;
    if (!s.backward()) {
        for (auto const& o : op.inputs) read += s.moved(o);
        for (auto const& o : op.weights) read += s.moved(o);
        append_copy(out, read, written, type);
        return out;
    }
    std::vector<ops::operand const*> wanted;
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
        if (s.wants(i)) wanted.push_back(&op.inputs[i]);
    for (auto const& w : op.weights) wanted.push_back(&w);
    std::int64_t copied = 0;
    for (auto const* const o : wanted) {
        bool const repeated = op.outputs.size() == 1 && s.elements(*o) < s.elements(op.outputs[0]) && (op.kind == "expand" || op.kind == "tile");
        if (repeated) append_reduction(out, s, op.outputs[0], *o, type);
        else copied += s.elements(*o);
        // A weight that is repeated beside others (a class token for each sample) is summed too.
        if (!repeated && op.kind == "concat") {
            std::vector<std::int64_t> extents;
            std::vector<bool> kept;
            for (std::size_t a = 0; a < o->axes.size(); ++a) {
                bool const once = o->axes[a].terms.empty() && o->axes[a].extent == 1;
                extents.push_back(once ? s.touched(op.outputs[0].axes[a]) : s.touched(o->axes[a]));
                kept.push_back(!once);
            }
            if (std::ranges::find(kept, false) != kept.end()) append_reductions(out, std::move(extents), std::move(kept), type);
        }
    }
    append_copy(out, copied, copied, type);
    return out;
}

/// Output axis i is the input axis with the same dim.
[[nodiscard]] inline launches lower_transpose(shard const& s) {
    auto const& op = s.op();
    auto const &x = op.inputs.at(0), &y = op.outputs[0];
    auto const &from = s.backward() ? y : x, &to = s.backward() ? x : y;
    if (s.backward() && !s.wants(0)) return {};
    launches out;
    std::vector<std::int64_t> extents;
    std::vector<std::uint32_t> order;
    for (auto const& a : from.axes) {
        s.expect(a.terms.size() == 1, "an axis is not one dim");
        extents.push_back(s.touched(a));
    }
    for (auto const& a : to.axes)
        for (std::uint32_t i = 0; i < from.axes.size(); ++i)
            if (from.axes[i].terms[0].dim == a.terms.at(0).dim) order.push_back(i);
    s.expect(order.size() == from.axes.size(), "must have each dim once");
    append_permutation(out, std::move(extents), std::move(order), x.type);
    if (out.empty()) append_copy(out, s.elements(x), s.elements(y), x.type); // axes of one element moved
    return out;
}

/// Sums, means, norms over axes; backward spreads the gradient over what was summed.
[[nodiscard]] inline launches lower_reduce(shard const& s) {
    auto const& op = s.op();
    auto const &x = op.inputs.at(0), &y = op.outputs[0];
    launches out;
    if (!s.backward()) {
        append_reduction(out, s, x, y, x.type);
        if (out.empty()) append_copy(out, s.elements(x), s.elements(y), x.type);
        return out;
    }
    if (!s.wants(0)) return out;
    std::vector<stream> reads{{s.elements(y), y.type}};
    if (y.saved) reads.push_back({s.elements(y), y.type});
    if (x.saved) reads.push_back({s.elements(x), x.type});
    append_streaming(out, std::move(reads), {{s.elements(x), x.type}}, s.work().flops);
    return out;
}

/// The largest entries, or the place of the largest, along an axis: each row is read once.
[[nodiscard]] inline launches lower_selection(shard const& s) {
    auto const& op = s.op();
    auto const &x = op.inputs.at(0), &y = op.outputs[0];
    auto const size = s.elements(x), results = s.elements(y);
    launches out;
    if (!s.backward()) {
        s.expect(size % results == 0 || size > results, "reads less than it writes");
        out.emplace_back(reduction{.outer = results, .summed = std::max<std::int64_t>(1, size / results), .inner = 1, .type = x.type});
        if (op.outputs.size() > 1) append_streaming(out, {}, {{results, op.outputs[1].type}}, 0);
        return out;
    }
    if (s.wants(0)) out.emplace_back(lookup{.backward = true, .rows = size, .width = 1, .lookups = results, .type = x.type});
    return out;
}

/// Rows of a table. A shard of some of the rows finds its share of the lookups, and yields zeros for the others.
[[nodiscard]] inline launches lower_embedding(shard const& s) {
    auto const& op = s.op();
    s.expect(op.inputs.size() == 1 && op.weights.size() == 1, "must have indices and a table");
    auto const &table = op.weights[0], &y = op.outputs[0];
    lookup l{.backward = s.backward(), .rows = s.extent("v"), .width = s.extent("o"), .lookups = s.elements(op.inputs[0]), .type = table.type};
    std::int64_t parts = 1;
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].name == "v") parts = s.degree(k);
    auto const results = s.elements(y) / l.width;
    auto const found = ceil_division(results, parts);
    l.bag = op.kind == "embedding_bag" ? l.lookups / results : 1;
    l.lookups = found * l.bag;
    launches out{l};
    if (!s.backward()) append_streaming(out, {}, {{(results - found) * l.width, y.type}}, 0);
    return out;
}

/// Rows of `width` neighbouring elements of `table`.
[[nodiscard]] inline lookup rows_of(shard const& s, ops::operand const& table, std::int64_t width, std::int64_t touched, bool backward) {
    return {.backward = backward,
            .rows = std::max<std::int64_t>(1, s.elements(table) / width),
            .width = width,
            .lookups = std::max<std::int64_t>(1, touched / width),
            .bag = 1,
            .type = table.type};
}

/// The elements of the trailing axes of `data` that are taken whole: those behind the axes which an index names.
[[nodiscard]] inline std::int64_t row_width(shard const& s, ops::operand const& data, ops::operand const& indices) {
    std::int64_t width = 1;
    for (std::size_t a = data.axes.size(); a-- > 0;) {
        auto const& axis = data.axes[a];
        if (axis.terms.empty()) break; // named by an index
        if (ops::is_indexed_by(indices, axis.terms[0].dim)) break;
        width *= s.touched(axis);
    }
    return width;
}

[[nodiscard]] inline launches lower_gather(shard const& s) {
    auto const& op = s.op();
    bool const trained = !op.weights.empty();
    auto const& data = trained ? op.weights[0] : op.inputs.at(0);
    auto const& indices = op.inputs.at(trained ? 0 : 1);
    auto const width = row_width(s, data, indices);
    auto const row = rows_of(s, data, width, s.elements(op.outputs[0]), s.backward());
    if (s.backward() && !trained && !s.wants(0)) return {};
    return {row};
}

/// A copy of the data, to rows of which the updates are added. Backward copies the gradient and gathers that of the updates.
[[nodiscard]] inline launches lower_scatter(shard const& s) {
    auto const& op = s.op();
    s.expect(op.inputs.size() == 3, "must have data, indices and updates");
    auto const &data = op.inputs[0], &indices = op.inputs[1], &updates = op.inputs[2];
    std::int64_t width = 1;
    for (std::size_t a = updates.axes.size(); op.kind == "scatter_nd" && a-- > 0;) {
        auto const& axis = updates.axes[a];
        if (axis.terms.empty() || ops::is_indexed_by(indices, axis.terms[0].dim)) break;
        width *= s.touched(axis);
    }
    auto const size = s.elements(data);
    launches out;
    if (!s.backward()) {
        append_copy(out, size, size, data.type);
        out.emplace_back(rows_of(s, data, width, s.elements(updates), true));
        return out;
    }
    if (s.wants(0)) append_copy(out, size, size, data.type);
    if (s.wants(2)) out.emplace_back(rows_of(s, data, width, s.elements(updates), false));
    return out;
}

/// Interpolation between neighbours: streams where the result is the longer, a sum of neighbours where x is; backward the other way round.
[[nodiscard]] inline launches lower_resize(shard const& s) {
    auto const& op = s.op();
    auto const &x = op.inputs.at(0), &y = op.outputs[0];
    auto const from = s.backward() ? s.elements(y) : s.elements(x), to = s.backward() ? s.elements(x) : s.elements(y);
    launches out;
    if (s.backward() && !s.wants(0)) return out;
    if (from <= to) append_streaming(out, {{from, x.type}}, {{to, x.type}}, s.work().flops);
    else out.emplace_back(reduction{.outer = to, .summed = from / to, .inner = 1, .type = x.type});
    return out;
}

/// Tokens to the slots of their experts: a running count over the gates, and rows by index.
[[nodiscard]] inline launches lower_moe_dispatch(shard const& s) {
    auto const& op = s.op();
    auto const &x = op.inputs.at(0), &gates = op.inputs.at(1), &y = op.outputs[0];
    auto const width = s.extent("h");
    launches out;
    if (!s.backward()) {
        auto const experts = s.extent("e"), samples = s.extent("s");
        out.emplace_back(reduction{.outer = samples, .summed = s.elements(gates) / samples / experts, .inner = experts, .type = gates.type});
        out.emplace_back(rows_of(s, x, width, s.elements(y), false));
        return out;
    }
    if (s.wants(0)) out.emplace_back(rows_of(s, x, width, s.elements(y), true));
    return out;
}

/// Each token's weighted sum of its slots. Backward sends each token's gradient to its slots, and multiplies it with what was there for that of the
/// gate.
[[nodiscard]] inline launches lower_moe_combine(shard const& s) {
    auto const& op = s.op();
    auto const &x = op.inputs.at(0), &gates = op.inputs.at(1), &y = op.outputs[0];
    auto const width = s.extent("h"), tokens = s.elements(y) / width, experts = s.extent("e");
    auto const slots = std::max<std::int64_t>(1, s.moved(x) / width);
    launches out;
    if (!s.backward()) {
        auto l = rows_of(s, x, width, slots * width, false);
        l.bag = std::max<std::int64_t>(1, slots / tokens);
        l.lookups = slots / l.bag * l.bag;
        out.emplace_back(reduction{.outer = tokens, .summed = experts, .inner = 1, .type = gates.type});
        out.emplace_back(l);
        append_streaming(out, {}, {{std::max<std::int64_t>(0, tokens - l.lookups / l.bag) * width, y.type}}, 0);
        return out;
    }
    if (s.wants(0)) out.emplace_back(rows_of(s, y, width, slots * width, false));
    if (s.wants(1)) out.emplace_back(reduction{.outer = slots, .summed = width, .inner = 1, .type = x.type});
    return out;
}

} // namespace parsearch::profiler::detail
