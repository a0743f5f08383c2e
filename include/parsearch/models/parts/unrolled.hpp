#pragma once
/// Recurrent networks unrolled in time: one operator per layer and step, whose weights the steps share.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/models/parts/layers.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/lstm.hpp>

namespace parsearch::models::detail {

/// What the recurrent models of the FlexFlow paper have in common.
struct unrolled {
    std::int64_t layers = 1, hidden = 1, steps = 1, vocabulary = 1, batch = 1;
    ops::dtype type = ops::dtype::f32;
    bool shared = true;

    /// Name of the weights that `layer` uses in each step; empty, for weights of its own, where steps share none.
    [[nodiscard]] std::string weights(std::string const& layer) const { return shared ? layer : std::string{}; }
};

inline void check(std::string_view model, unrolled const& u) {
    check_count(model, "layers", u.layers);
    check_size(model, "hidden", u.hidden);
    check_count(model, "steps", u.steps);
    check_count(model, "layers * steps", u.layers * u.steps);
    check_size(model, "vocabulary", u.vocabulary);
    check_size(model, "batch", u.batch);
    check_floating(model, u.type);
}

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
    lstm_stack(operator_graph& graph, unrolled const& sizes, std::string prefix) : g(graph), u(sizes), name(std::move(prefix)) {
        ops::tensor const shape{{u.batch, u.hidden}, u.type};
        for (std::int64_t l = 1; l <= u.layers; ++l) {
            tensor_ref const h = g.input(text(name, l, ".h"), shape), c = g.input(text(name, l, ".c"), shape);
            states.emplace_back(h, c);
        }
    }
    /// States before the first step are those that another stack of as many layers has now.
    lstm_stack(std::string prefix, lstm_stack const& before) : g(before.g), u(before.u), name(std::move(prefix)), states(before.states) {}

    /// Makes step `t` on input `x`; the hidden state of the last layer.
    tensor_ref step(tensor_ref x, std::int64_t t) {
        for (std::size_t l = 0; l < states.size(); ++l) {
            auto const layer = text(name, l + 1);
            auto const& [h, c] = states[l];
            auto const cell = g.add(at_step(layer, t), ops::lstm_cell{.hidden = u.hidden, .parameter = u.weights(layer)}, x, h, c);
            states[l] = {cell[0], cell[1]};
            x = cell[0];
        }
        return x;
    }
};

/// Output layer over the vocabulary and loss of step `t`.
inline void predict(operator_graph& g, unrolled const& u, tensor_ref x, std::int64_t t) {
    add_loss(g, g.add(at_step("logits", t), ops::linear{.out = u.vocabulary, .parameter = u.weights("logits")}, x), text('.', t));
}

} // namespace parsearch::models::detail
