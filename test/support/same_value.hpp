#pragma once
/// Whether two parallel graphs compute the same, forward and backward, from the same inputs and weights.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/rewrite/parallel_graph.hpp>
#include <parsearch/rewrite/reference.hpp>

namespace support {

using named_arrays = std::map<std::string, parsearch::rewrite::reference::array>;

/// What a run makes: results, and the gradients of inputs and weights by name.
struct graph_run {
    std::vector<parsearch::rewrite::reference::array> results;
    named_arrays gradients;
};

/// Runs `g` on whole tensors: what reshards changes none. `seeds`: the gradients of the results.
inline graph_run run(parsearch::rewrite::parallel_graph const& g, named_arrays const& values, std::span<parsearch::rewrite::reference::array const> seeds,
                     parsearch::rewrite::purpose use) {
    using namespace parsearch::rewrite;
    std::vector<std::vector<reference::array>> made(g.bound()), gradients(g.bound());
    auto const order = g.order();
    auto const operands = [&](std::uint32_t n) {
        std::pair<std::vector<reference::array>, std::vector<reference::array>> out;
        for (auto const& t : g[n].inputs) (out.first.size() < g[n]->operation.inputs.size() ? out.first : out.second).push_back(made[t.producer][t.slot]);
        return out;
    };
    for (auto const n : order) {
        if (g[n]->kind == node_kind::reshard) made[n] = {made[g[n].inputs[0].producer][g[n].inputs[0].slot]};
        else if (g[n]->kind == node_kind::compute) {
            auto const [x, w] = operands(n);
            made[n] = reference::outputs_of(g[n]->operation, x, w, use);
        } else made[n] = {values.at(g[n]->name)};
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
            auto const [x, w] = operands(n);
            auto const all = reference::gradients_of(g[n]->operation, x, w, gradients[n], use);
            for (std::size_t i = 0; i < x.size(); ++i) back(i, all.inputs[i]);
            for (std::size_t i = 0; i < w.size(); ++i) back(x.size() + i, all.weights[i]);
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
