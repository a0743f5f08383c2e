#pragma once
/// Weights that are only joined, cut or turned before they are used are held joined, cut or turned.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/rewrite/attributes.hpp>
#include <parsearch/rewrite/parallel_graph.hpp>

namespace parsearch::rewrite {

/// `g` in which every operator that only moves elements of weights (a concat, split, transpose or view in one task), which nobody else reads, is
/// replaced by weights of the shapes it makes: what merging makes of weights costs nothing while the network runs. The new weights are named after
/// the old: "a|b" joined, "a[0]", "a[1]" cut, "a'" turned. Training is the same: gradients of moved elements are moved gradients.
/// Complexity: O(operators (V + E)).
[[nodiscard]] inline parallel_graph fold_weights(parallel_graph g) {
    for (bool changed = true; changed;) {
        changed = false;
        auto const uses = g.uses();
        for (auto const n : g.order()) {
            if (g[n]->kind != node_kind::compute || !is_unsplit(g[n]->split) || g[n].inputs.empty()) continue;
            auto const& op = g[n]->operation;
            bool const joins = read_concat(op).has_value(), cuts = read_split(op).has_value(), turns = read_transpose(op) || is_reshape(op);
            if (!joins && !cuts && !turns) continue;
            bool const own = std::ranges::all_of(g[n].inputs, [&](auto const& t) {
                bool const result = std::ranges::find(g.results(), t) != g.results().end();
                return g[t.producer]->kind == node_kind::weight && uses[t.producer].size() == 1 && !result;
            });
            if (!own) continue;
            std::string name;
            for (auto const& t : g[n].inputs) name += text(name.empty() ? "" : "|", g[t.producer]->name);
            if (turns) name += '\'';
            for (std::uint32_t slot = 0; slot < op.outputs.size(); ++slot) {
                auto const called = g.unused_name(node_kind::weight, cuts ? text(name, '[', slot, ']') : name);
                auto const w = g.add_weight(called, ops::tensor_of(op.outputs[slot]));
                g.redirect({n, slot}, w);
            }
            g.prune();
            changed = true;
            break; // the uses have changed
        }
    }
    return g;
}

} // namespace parsearch::rewrite
