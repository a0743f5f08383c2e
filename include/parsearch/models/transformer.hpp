#pragma once
/// Transformer blocks (Vaswani et al., NeurIPS 2017) and embeddings: what BERT and GPT share.

#include <cstdint>
#include <string>
#include <string_view>

#include <parsearch/models/parts.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/embedding.hpp>

namespace parsearch::models::detail {

/// Where the layer normalization of a block stands.
enum class norm_place : std::uint8_t {
    before, ///< x + f(norm(x)): GPT-2
    after   ///< norm(x + f(x)): the original, BERT
};

/// Sizes of a stack of blocks over [batch, sequence, hidden]; the hidden layer of a block's perceptron has 4 * hidden units.
struct transformer {
    std::int64_t layers = 1, hidden = 1, heads = 1, sequence = 1, vocabulary = 1, batch = 1;
    norm_place norm = norm_place::before;
    bool causal = false;
    double dropout = 0;
    ops::dtype type = ops::dtype::f32;
};

inline void check(std::string_view model, transformer const& t) {
    check_size(model, "layers", t.layers);
    check_multiple(model, "hidden", t.hidden, "heads", t.heads);
    check_size(model, "sequence", t.sequence);
    check_size(model, "vocabulary", t.vocabulary);
    check_size(model, "batch", t.batch);
    check_probability(model, "dropout", t.dropout);
    check_floating(model, t.type);
}

/// Embedding of a graph input of indices, [rows, sequence], by a table of `entries` rows. The table's parameter has the operator's name.
inline tensor_ref embed(operator_graph& g, transformer const& t, std::string const& name, std::int64_t entries, std::int64_t rows) {
    auto const indices = g.input(name + ".index", {{rows, t.sequence}, ops::dtype::i64});
    return g.add(name, ops::embedding{.entries = entries, .features = t.hidden, .type = t.type, .parameter = name}, indices);
}

/// One half of a block: the function `f` of a tensor, dropout, residual connection, normalization.
template <class F> tensor_ref residual(operator_graph& g, transformer const& t, std::string const& name, tensor_ref x, F const& f) {
    auto const normalized = [&](tensor_ref y) { return g.add(name + ".norm", ops::layer_norm{}, y); };
    chain branch{g, f(t.norm == norm_place::before ? normalized(x) : x)};
    drop(branch, name + ".dropout", t.dropout);
    auto const y = sum(g, name + ".add", x, branch.end);
    return t.norm == norm_place::after ? normalized(y) : y;
}

/// `layers` blocks of self-attention and perceptron, named block1, block2, ...
inline tensor_ref blocks(operator_graph& g, transformer const& t, tensor_ref x) {
    ops::multi_head_attention const attention{.heads = t.heads, .head_size = t.hidden / t.heads, .out = t.hidden, .causal = t.causal};
    for (std::int64_t layer = 1; layer <= t.layers; ++layer) {
        auto const name = text("block", layer);
        x = residual(g, t, name + ".attention", x, [&](tensor_ref y) { return g.add(name + ".attention", attention, y, y, y)[0]; });
        x = residual(g, t, name + ".mlp", x, [&](tensor_ref y) {
            return chain{g, y}
                .then(name + ".mlp.1", ops::linear{.out = 4 * t.hidden})
                .then(name + ".mlp.gelu", ops::unary{ops::function::gelu})
                .then(name + ".mlp.2", ops::linear{.out = t.hidden})
                .end;
        });
    }
    return x;
}

} // namespace parsearch::models::detail
