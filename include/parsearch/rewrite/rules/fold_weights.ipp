#pragma once
// Weights that are only joined, cut or turned before they are used are held joined, cut or turned; for inference, all that is computed of weights is

#include <algorithm>

#include <parsearch/rewrite/algebra/attributes.hpp>
#include <parsearch/rewrite/rules/fold_weights.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE parallel_graph fold_weights(parallel_graph g, purpose use) {
    auto uses = g.uses(); // of what is folded too
    for (auto const n : g.order()) {
        if (g[n]->kind != node_kind::compute || !is_unsplit(g[n]->split) || g[n].inputs.empty()) continue;
        auto const& op = g[n]->operation;
        bool const joins = read_concat(op).has_value(), cuts = read_split(op).has_value(), turns = read_transpose(op) || is_reshape(op);
        bool const moves = joins || cuts || turns;
        if (!moves && use == purpose::training) continue;
        if (!std::ranges::all_of(g[n].inputs, [&](auto const& t) { return g[t.producer]->kind == node_kind::weight; })) continue;
        bool const own = std::ranges::all_of(
            g[n].inputs, [&](auto const& t) { return uses[t.producer].size() == 1 && std::ranges::find(g.results(), t) == g.results().end(); });
        bool const result = std::ranges::find(g.results(), n, &tensor_ref::producer) != g.results().end();
        if (!(moves && own) && (use == purpose::training || result)) continue;
        std::string name;
        for (auto const& t : g[n].inputs) name += text(name.empty() ? "" : "|", g[t.producer]->name);
        if (turns) name += '\'';
        if (!moves) name = g[n]->name;
        for (std::uint32_t slot = 0; slot < op.outputs.size(); ++slot) {
            auto const called = g.unused_name(node_kind::weight, cuts || op.outputs.size() > 1 ? text(name, '[', slot, ']') : name);
            auto const w = g.add_weight(called, ops::tensor_of(op.outputs[slot]));
            uses.resize(g.bound());
            std::ranges::copy_if(uses[n], std::back_inserter(uses[w.producer]), [&](auto const& u) { return u.first == slot; });
            g.redirect({n, slot}, w);
        }
    }
    g.prune();
    return g;
}

} // namespace parsearch::rewrite
