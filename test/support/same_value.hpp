#pragma once
/// Whether two parallel graphs compute the same, forward and backward, from the same inputs and weights.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/lab/reference/reference.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>

namespace support {

using named_arrays = std::map<std::string, parsearch::rewrite::reference::array>;

/// What a run makes: results, and the gradients of inputs and weights by name.
struct graph_run {
    std::vector<parsearch::rewrite::reference::array> results;
    named_arrays gradients;
};

using arrays = std::vector<parsearch::rewrite::reference::array>;

/// Part `m` of `a`, which is held as `t`, where that comes in several.
inline parsearch::rewrite::reference::array micro_batch_of(parsearch::rewrite::reference::array const& a,
                                                           parsearch::rewrite::parallel_tensor const& t, std::int64_t m) {
    if (t.micro_batches == 1) return a;
    auto const size = a.extents[t.sample_axis] / t.micro_batches;
    return parsearch::rewrite::reference::part(a, t.sample_axis, m * size, size);
}
/// What micro-batches made of a tensor held as `t`: joined where it comes in several, else added up.
inline parsearch::rewrite::reference::array of_micro_batches(arrays const& made, parsearch::rewrite::parallel_tensor const& t) {
    using namespace parsearch::rewrite;
    if (t.micro_batches > 1) return reference::joined(made, t.sample_axis);
    auto out = made.at(0);
    for (std::size_t m = 1; m < made.size(); ++m)
        for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = reference::sum(out.values[i], made[m].values[i]);
    return out;
}
/// Runs node `n` of `g` on whole operands, micro-batch after micro-batch, each on its samples alone; answers its outputs, or the gradients of its
/// operands where those of its outputs are `given`.
inline arrays run_node(parsearch::rewrite::parallel_graph const& g, std::uint32_t n, arrays const& operands, arrays const* given,
                       parsearch::rewrite::purpose use) {
    using namespace parsearch::rewrite;
    auto const count = g[n]->split.micro_batches;
    auto const part = parsearch::ops::on_samples(g[n]->operation, {.n = count}, g[n]->name);
    std::vector<parallel_tensor> read;
    for (auto const& t : g[n].inputs) read.push_back(g.tensor(t));
    auto const& held = given ? read : g[n]->outputs;
    std::vector<arrays> made(held.size());
    for (std::int64_t m = 0; m < count; ++m) {
        arrays x, w, seeds;
        for (std::size_t i = 0; i < operands.size(); ++i) (i < part.inputs.size() ? x : w).push_back(micro_batch_of(operands[i], read[i], m));
        arrays out;
        if (given) {
            for (std::size_t i = 0; i < given->size(); ++i) seeds.push_back(micro_batch_of((*given)[i], g[n]->outputs[i], m));
            auto back = reference::gradients_of(part, x, w, seeds, use);
            out = std::move(back.inputs);
            out.insert(out.end(), back.weights.begin(), back.weights.end());
        } else {
            out = reference::outputs_of(part, x, w, use);
        }
        for (std::size_t i = 0; i < out.size(); ++i) made[i].push_back(std::move(out[i]));
    }
    arrays out;
    for (std::size_t i = 0; i < held.size(); ++i) out.push_back(of_micro_batches(made[i], held[i]));
    return out;
}

/// Runs `g` on whole tensors: what reshards changes none. `seeds`: the gradients of the results.
inline graph_run run(parsearch::rewrite::parallel_graph const& g, named_arrays const& values,
                     std::span<parsearch::rewrite::reference::array const> seeds, parsearch::rewrite::purpose use) {
    using namespace parsearch::rewrite;
    std::vector<std::vector<reference::array>> made(g.bound()), gradients(g.bound());
    auto const order = g.order();
    auto const operands = [&](std::uint32_t n) {
        arrays out;
        for (auto const& t : g[n].inputs) out.push_back(made[t.producer][t.slot]);
        return out;
    };
    for (auto const n : order) {
        if (g[n]->kind == node_kind::reshard) made[n] = {made[g[n].inputs[0].producer][g[n].inputs[0].slot]};
        else if (g[n]->kind == node_kind::compute) made[n] = run_node(g, n, operands(n), nullptr, use);
        else made[n] = {values.at(g[n]->name)};
        for (auto const& a : made[n]) gradients[n].push_back(reference::filled(a.extents));
    }
    auto const add = [](reference::array& to, reference::array const& more) {
        for (std::size_t i = 0; i < to.values.size(); ++i) to.values[i] = reference::sum(to.values[i], more.values[i]);
    };
    graph_run out;
    for (std::size_t i = 0; i < g.results().size(); ++i) {
        auto const& t = g.results()[i];
        out.results.push_back(made[t.producer][t.slot]);
        add(gradients[t.producer][t.slot], seeds[i]);
    }
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
        auto const n = *at;
        auto const back = [&](std::size_t i, reference::array const& a) { add(gradients[g[n].inputs[i].producer][g[n].inputs[i].slot], a); };
        if (g[n]->kind == node_kind::reshard) back(0, gradients[n][0]);
        else if (g[n]->kind == node_kind::compute) {
            auto const all = run_node(g, n, operands(n), &gradients[n], use);
            for (std::size_t i = 0; i < all.size(); ++i) back(i, all[i]);
        } else if (g[n]->outputs[0].whole.type <= parsearch::ops::dtype::bf16) out.gradients[g[n]->name] = gradients[n][0]; // indices have none
    }
    return out;
}

/// True where `a` and `b` have the same results and gradients for random inputs, weights and gradients of the results. Inputs and weights are told by
/// name; one that a graph has not gets no gradient. Throws where the reference does not know an operator.
template <class R>
bool same_value(parsearch::rewrite::parallel_graph const& a, parsearch::rewrite::parallel_graph const& b, R& rng,
                parsearch::rewrite::purpose use = parsearch::rewrite::purpose::training) {
    using namespace parsearch::rewrite;
    if (a.results().size() != b.results().size()) return false;
    named_arrays values;
    for (auto const* g : {&a, &b})
        for (std::uint32_t n = 0; n < g->bound(); ++n)
            if (g->contains(n) && ((*g)[n]->kind == node_kind::input || (*g)[n]->kind == node_kind::weight) && !values.contains((*g)[n]->name))
                values[(*g)[n]->name] = reference::random_array((*g)[n]->outputs[0].whole.extents, rng);
    std::vector<reference::array> seeds;
    for (std::size_t i = 0; i < a.results().size(); ++i) {
        if (!(a.tensor(a.results()[i]) == b.tensor(b.results()[i]))) return false;
        seeds.push_back(reference::random_array(a.tensor(a.results()[i]).whole.extents, rng));
    }
    auto x = run(a, values, seeds, use), y = run(b, values, seeds, use);
    for (auto const& [name, v] : values) { // what is not there has no gradient
        x.gradients.try_emplace(name, reference::filled(v.extents));
        y.gradients.try_emplace(name, reference::filled(v.extents));
    }
    return x.results == y.results && x.gradients == y.gradients;
}

} // namespace support
