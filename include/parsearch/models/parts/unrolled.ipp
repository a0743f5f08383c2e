#pragma once
// Recurrent networks unrolled in time: one operator per layer and step, whose weights the steps share.

#include <parsearch/models/parts/unrolled.hpp>
#include <parsearch/ops/lstm.hpp>

namespace parsearch::models::detail {

PARSEARCH_INLINE void check(std::string_view model, unrolled const& u) {
    check_count(model, "layers", u.layers);
    check_size(model, "hidden", u.hidden);
    check_count(model, "steps", u.steps);
    check_count(model, "layers * steps", u.layers * u.steps);
    check_size(model, "vocabulary", u.vocabulary);
    check_size(model, "batch", u.batch);
    check_floating(model, u.type);
}

PARSEARCH_INLINE lstm_stack::lstm_stack(operator_graph& graph, unrolled const& sizes, std::string prefix)
    : g(graph), u(sizes), name(std::move(prefix)) {
    ops::tensor const shape{{u.batch, u.hidden}, u.type};
    for (std::int64_t l = 1; l <= u.layers; ++l) {
        tensor_ref const h = g.input(text(name, l, ".h"), shape), c = g.input(text(name, l, ".c"), shape);
        states.emplace_back(h, c);
    }
}

PARSEARCH_INLINE tensor_ref lstm_stack::step(tensor_ref x, std::int64_t t) {
    for (std::size_t l = 0; l < states.size(); ++l) {
        auto const layer = text(name, l + 1);
        auto const& [h, c] = states[l];
        auto const cell = g.add(at_step(layer, t), ops::lstm_cell{.hidden = u.hidden, .parameter = u.weights(layer)}, x, h, c);
        states[l] = {cell[0], cell[1]};
        x = cell[0];
    }
    return x;
}

} // namespace parsearch::models::detail
