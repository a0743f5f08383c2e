#pragma once
/// Runs a parallel graph as its nodes say: each operator in its tasks, each on its blocks and partial sums, forward and backward.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/lab/reference/reference.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/ops/softmax.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>

#include "support/same_value.hpp"

namespace support {

namespace in_parts {

using namespace parsearch;
using namespace parsearch::rewrite;
using arrays = std::vector<reference::array>;

/// Operands "0", "1", ... of an attention and what computes it of operators that the reference knows.
inline parallel_graph attention_of_parts(ops::operation const& op) {
    parallel_graph g;
    auto const add = [&](auto const& o, std::vector<tensor_ref> in, std::size_t inputs) {
        std::vector<ops::tensor> shapes;
        for (std::size_t i = 0; i < inputs; ++i) shapes.push_back(g.tensor(in[i]).whole);
        auto made = o.infer(shapes);
        return tensor_ref{g.add_operator(made.kind, std::move(made), std::move(in)), 0};
    };
    std::vector<tensor_ref> x, w;
    for (std::size_t i = 0; i < operands_of(op); ++i) (i < 3 ? x : w).push_back(g.add_input(std::to_string(i), ops::tensor_of(operand_of(op, i))));
    auto const s = op.dims[0].extent, lq = op.dims[1].extent, heads = op.dims[2].extent, lk = op.dims[3].extent;
    bool const projected = op.kind == "multi_head_attention", bias = w.size() == 8;
    if (projected)
        for (std::size_t i = 0; i < 3; ++i) {
            std::vector<tensor_ref> in{x[i], w[bias ? 2 * i : i]};
            if (bias) in.push_back(w[2 * i + 1]);
            x[i] = add(ops::linear{.out = g.tensor(in[1]).whole.extents[0], .bias = bias}, in, 1);
        }
    auto const size = g.tensor(x[1]).whole.extents[2] / heads, wide = g.tensor(x[2]).whole.extents[2] / heads,
               per_group = g.tensor(x[0]).whole.extents[2] / heads / size;
    auto const q = add(ops::reshape{.shape = {s, lq, heads, per_group, size}}, {x[0]}, 1);
    auto const k = add(ops::reshape{.shape = {s, lk, heads, size}}, {x[1]}, 1);
    auto const v = add(ops::reshape{.shape = {s, lk, heads, wide}}, {x[2]}, 1);
    auto const scores = add(ops::softmax{}, {add(ops::einsum{.equation = "sqhmd,skhd->shmqk"}, {q, k}, 2)}, 1);
    auto y = add(ops::reshape{.shape = {s, lq, heads * per_group * wide}}, {add(ops::einsum{.equation = "shmqk,skhd->sqhmd"}, {scores, v}, 2)}, 1);
    if (projected) {
        std::vector<tensor_ref> in{y, w[bias ? 6 : 3]};
        if (bias) in.push_back(w[7]);
        y = add(ops::linear{.out = op.outputs[0].axes[2].extent, .bias = bias}, in, 1);
    }
    g.set_results({y});
    return g;
}

/// An index that a task does not see.
inline constexpr std::int64_t unseen = std::numeric_limits<std::int64_t>::min();

/// What an operation makes of its operands, and, where there are `seeds`, the gradients of these. Unlike to the reference, attention is known, a
/// scale is one by a number, 3, and an index may be unseen.
struct evaluated {
    arrays outputs, gradients;
};
inline evaluated evaluate(ops::operation const& op, arrays const& operands, arrays const* seeds, purpose use) {
    evaluated out;
    if (op.kind == "scale") {
        auto const thrice = [](reference::array a) {
            for (auto& v : a.values) v = reference::product(v, 3);
            return a;
        };
        out.outputs = {thrice(operands[0])};
        if (seeds) out.gradients = {thrice((*seeds)[0])};
        return out;
    }
    if (op.work == ops::work_class::attention) {
        named_arrays values;
        for (std::size_t i = 0; i < operands.size(); ++i) values[std::to_string(i)] = operands[i];
        auto const zeros = arrays{reference::zeros_of(op.outputs[0])};
        auto const ran = run(attention_of_parts(op), values, seeds ? *seeds : zeros, use);
        out.outputs = ran.results;
        for (std::size_t i = 0; i < operands.size(); ++i) out.gradients.push_back(ran.gradients.at(std::to_string(i)));
        return out;
    }
    if (op.kind == "embedding" || op.kind == "embedding_bag") {
        auto const &indices = operands[0], &table = operands[1];
        auto const rows = table.extents[0];
        auto const features = static_cast<std::size_t>(table.extents[1]),
                   bag = op.kind == "embedding" ? 1 : static_cast<std::size_t>(indices.extents.back());
        out = {{reference::zeros_of(op.outputs[0])}, {reference::filled(indices.extents), reference::filled(table.extents)}};
        for (std::size_t i = 0; i < indices.values.size(); ++i)
            for (std::size_t o = 0; o < features && indices.values[i] != unseen; ++o) {
                auto const row = static_cast<std::size_t>((indices.values[i] % rows + rows) % rows) * features + o, to = i / bag * features + o;
                out.outputs[0].values[to] = reference::sum(out.outputs[0].values[to], table.values[row]);
                if (seeds) out.gradients[1].values[row] = reference::sum(out.gradients[1].values[row], (*seeds)[0].values[to]);
            }
        return out;
    }
    auto const inputs = static_cast<std::ptrdiff_t>(op.inputs.size());
    arrays const x(operands.begin(), operands.begin() + inputs), w(operands.begin() + inputs, operands.end());
    if (!seeds) out.outputs = reference::outputs_of(op, x, w, use);
    else {
        auto back = reference::gradients_of(op, x, w, *seeds, use);
        out.gradients = std::move(back.inputs);
        std::ranges::move(back.weights, std::back_inserter(out.gradients));
    }
    return out;
}

/// `a` within what `b` touches of it, `other` elsewhere.
inline reference::array within(reference::array a, ops::operand const& o, ops::box const& b, std::int64_t other = 0) {
    std::size_t inner = a.values.size();
    for (auto const& axis : o.axes) {
        auto const extent = static_cast<std::size_t>(axis.extent);
        inner /= extent;
        auto const touched = ops::axis_interval(axis, b);
        if (touched.size() == axis.extent) continue;
        for (std::size_t i = 0; i < a.values.size(); ++i)
            if (auto const at = static_cast<std::int64_t>(i / inner % extent); at < touched.begin || at >= touched.end) a.values[i] = other;
    }
    return a;
}
inline void add_to(reference::array& to, reference::array const& more) {
    for (std::size_t i = 0; i < to.values.size(); ++i) to.values[i] = reference::sum(to.values[i], more.values[i]);
}

/// Calls `visit(box, partial sum of the operands, partial sum of output 0, whether biases are added)` for each task of an operator; its copies are
/// alike.
template <class F> void for_each_task(ops::operation const& op, operator_split const& s, F const& visit) {
    for (std::int64_t task = 0; task < ops::shard_count(s.degree); ++task) {
        auto const box = ops::shard_box(op, s.degree, task);
        std::size_t part = 0;
        for (std::size_t d = 0; d < op.dims.size(); ++d) {
            if (ops::is_indexed_by(op.outputs[0], d)) continue;
            auto const size = op.dims[d].extent / s.degree[d];
            part = part * static_cast<std::size_t>(s.degree[d]) + static_cast<std::size_t>(box[d].begin / size);
        }
        for (std::size_t sum = 0; sum < static_cast<std::size_t>(s.sums); ++sum)
            visit(box, sum, part * static_cast<std::size_t>(s.sums) + sum, part == 0);
    }
}

} // namespace in_parts

/// Runs `g` in parts. A tensor is held as its partial sums, each in the shape of the whole: blocks stand where they belong, and copies are alike, so
/// that their gradients are added up. A task sees of its operands what its part of the iteration space touches (windows beyond its block too), and
/// zeros elsewhere, or unseen indices; of what it makes counts its block alone. All outputs of an operator are indexed by the same dims. Where an
/// operator sums over a dim that is split, its first part adds the bias.
inline graph_run run_in_parts(parsearch::rewrite::parallel_graph const& g, named_arrays const& values,
                              std::span<parsearch::rewrite::reference::array const> seeds, parsearch::rewrite::purpose use) {
    using namespace in_parts;
    std::vector<std::vector<arrays>> made(g.bound()), gradients(g.bound()); // by node, output, partial sum
    auto const order = g.order();
    // A bias is added to what is summed; one that is cut along with it goes into each part.
    auto const biases = [](ops::operation const& op, std::size_t i) {
        if (i < op.inputs.size() || !operand_of(op, i).name.ends_with("bias")) return false;
        for (std::size_t d = 0; d < op.dims.size(); ++d)
            if (ops::is_indexed_by(operand_of(op, i), d) && !ops::is_indexed_by(op.outputs[0], d)) return false;
        return true;
    };
    auto const summed = [](operator_split const& s, std::size_t i) { return i < 64 && (s.summed >> i & 1) != 0; };
    // What a task reads.
    auto const operands = [&](std::uint32_t n, ops::box const& box, std::size_t sum, bool first) {
        auto const& op = g[n]->operation;
        arrays out;
        for (std::size_t i = 0; i < operands_of(op); ++i) {
            auto const& t = g[n].inputs[i];
            auto const& parts = made[t.producer][t.slot];
            auto const& a = parts.at(summed(g[n]->split, i) ? sum : 0);
            out.push_back(biases(op, i) && !first ? reference::filled(a.extents)
                                                  : within(a, operand_of(op, i), box, operand_of(op, i).type > ops::dtype::bf16 ? unseen : 0));
        }
        return out;
    };
    for (auto const n : order) {
        for (auto const& t : g[n]->outputs) made[n].emplace_back(static_cast<std::size_t>(t.sums), reference::filled(t.whole.extents));
        gradients[n] = made[n];
        if (g[n]->kind == node_kind::reshard) {
            auto const& from = made[g[n].inputs[0].producer][g[n].inputs[0].slot];
            for (std::size_t j = 0; j < from.size(); ++j) add_to(made[n][0][j * made[n][0].size() / from.size()], from[j]);
        } else if (g[n]->kind == node_kind::compute) {
            auto const& op = g[n]->operation;
            for_each_task(op, g[n]->split, [&](ops::box const& box, std::size_t sum, std::size_t part, bool first) {
                auto const all = evaluate(op, operands(n, box, sum, first), nullptr, use);
                for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
                    add_to(made[n][slot].at(part), within(all.outputs[slot], op.outputs[slot], box));
            });
        } else made[n][0][0] = values.at(g[n]->name);
    }
    graph_run out;
    for (std::size_t i = 0; i < g.results().size(); ++i) {
        auto const& t = g.results()[i];
        out.results.push_back(reference::filled(g.tensor(t).whole.extents));
        for (auto const& part : made[t.producer][t.slot]) add_to(out.results.back(), part);
        for (auto& part : gradients[t.producer][t.slot]) add_to(part, seeds[i]);
    }
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
        auto const n = *at;
        if (g[n]->kind == node_kind::reshard) {
            auto& to = gradients[g[n].inputs[0].producer][g[n].inputs[0].slot];
            for (std::size_t j = 0; j < to.size(); ++j) add_to(to[j], gradients[n][0][j * gradients[n][0].size() / to.size()]);
        } else if (g[n]->kind == node_kind::compute) {
            auto const& op = g[n]->operation;
            for_each_task(op, g[n]->split, [&](ops::box const& box, std::size_t sum, std::size_t part, bool first) {
                arrays given;
                for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
                    given.push_back(within(gradients[n][slot].at(part), op.outputs[slot], box));
                auto const all = evaluate(op, operands(n, box, sum, first), &given, use);
                for (std::size_t i = 0; i < operands_of(op); ++i)
                    if (auto const& t = g[n].inputs[i]; first || !biases(op, i))
                        add_to(gradients[t.producer][t.slot].at(summed(g[n]->split, i) ? sum : 0), within(all.gradients[i], operand_of(op, i), box));
            });
        } else if (g[n]->outputs[0].whole.type <= ops::dtype::bf16) out.gradients[g[n]->name] = gradients[n][0][0]; // indices have none
    }
    return out;
}

} // namespace support
