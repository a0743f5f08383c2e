#pragma once
/// Recurrent networks unrolled in time: one operator per layer and step, whose weights the steps share.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/parts/layers.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/linear.hpp>

namespace parsearch::models::detail {

/// What the recurrent models of the FlexFlow paper have in common.
struct unrolled {
    std::int64_t layers = 1, hidden = 1, steps = 1, vocabulary = 1, batch = 1;
    ops::dtype type = ops::dtype::f32;
    bool shared = true;

    /// Name of the weights that `layer` uses in each step; empty, for weights of its own, where steps share none.
    [[nodiscard]] std::string weights(std::string const& layer) const { return shared ? layer : std::string{}; }
};

void check(std::string_view model, unrolled const& u);

/// Name of the operator of `layer` in step `t`.
[[nodiscard]] inline std::string at_step(std::string const& layer, std::int64_t t) { return text(layer, '.', t); }

/// The tokens of one step, a graph input [batch], embedded: [batch, hidden].
inline tensor_ref embed(operator_graph& g, unrolled const& u, std::string const& name, std::int64_t t) {
    auto const tokens = g.input(at_step(name + ".tokens", t), {{u.batch}, ops::dtype::i64});
    ops::embedding const table{.entries = u.vocabulary, .features = u.hidden, .type = u.type, .parameter = u.weights(name)};
    return g.add(at_step(name, t), table, tokens);
}

/// Layers of LSTM cells, one on another.
struct lstm_stack {
    /// Hidden and cell state of a layer after the step last made, [batch, hidden] each.
    using state = std::pair<tensor_ref, tensor_ref>;

    operator_graph& g;
    unrolled const& u;
    std::string name;
    std::vector<state> states;

    /// States before the first step are graph inputs.
    lstm_stack(operator_graph& graph, unrolled const& sizes, std::string prefix);
    /// States before the first step are those that another stack of as many layers has now.
    lstm_stack(std::string prefix, lstm_stack const& before) : g(before.g), u(before.u), name(std::move(prefix)), states(before.states) {}

    /// Makes step `t` on input `x`; the hidden state of the last layer.
    tensor_ref step(tensor_ref x, std::int64_t t);
};

/// Output layer over the vocabulary and loss of step `t`.
inline void predict(operator_graph& g, unrolled const& u, tensor_ref x, std::int64_t t) {
    add_loss(g, g.add(at_step("logits", t), ops::linear{.out = u.vocabulary, .parameter = u.weights("logits")}, x), text('.', t));
}

} // namespace parsearch::models::detail

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/parts/unrolled.ipp>
#endif
