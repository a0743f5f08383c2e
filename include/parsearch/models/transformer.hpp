#pragma once
/// Transformer blocks (Vaswani et al., NeurIPS 2017), their parts, and embeddings: what BERT, GPT, ViT, T5 and Llama share.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/parts/layers.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/normalization.hpp>

namespace parsearch::models::detail {

/// Where the layer normalization of a block stands.
enum class norm_place : std::uint8_t {
    before, ///< x + f(norm(x)): GPT-2, ViT, T5, Llama
    after   ///< norm(x + f(x)): the original, BERT
};

/// Sizes of a stack of blocks over [batch, sequence, hidden]; the hidden layer of a block's perceptron has 4 * hidden units.
struct transformer {
    std::int64_t layers = 1, hidden = 1, heads = 1, sequence = 1, vocabulary = 1, batch = 1;
    norm_place norm = norm_place::before;
    bool rms = false; ///< normalizations are RMS normalizations
    bool causal = false;
    bool flash = true;
    double dropout = 0;
    generation how{};
    ops::dtype type = ops::dtype::f32;
};

void check(std::string_view model, transformer const& t);

/// Embedding of a graph input of indices, [rows, sequence], by a table of `entries` rows. The table's parameter has the operator's name.
inline tensor_ref embed(operator_graph& g, transformer const& t, std::string const& name, std::int64_t entries, std::int64_t rows) {
    auto const indices = g.input(name + ".index", {{rows, t.sequence}, ops::dtype::i64});
    return g.add(name, ops::embedding{.entries = entries, .features = t.hidden, .type = t.type, .parameter = name}, indices);
}

inline tensor_ref normalize(operator_graph& g, transformer const& t, std::string name, tensor_ref x) {
    return t.rms ? g.add(std::move(name), ops::rms_norm{}, x) : g.add(std::move(name), ops::layer_norm{}, x);
}

/// A part of a block: the function `f` of a tensor, dropout, residual connection, normalization.
template <class F> tensor_ref residual(operator_graph& g, transformer const& t, std::string const& name, tensor_ref x, F const& f) {
    auto const normalized = [&](tensor_ref y) { return normalize(g, t, name + ".norm", y); };
    chain branch{g, f(t.norm == norm_place::before ? normalized(x) : x)};
    drop(branch, name + ".dropout", t.dropout);
    auto const y = sum(g, name + ".add", x, branch.end);
    return t.norm == norm_place::after ? normalized(y) : y;
}

/// `layers` blocks of self-attention and perceptron, named block1, block2, ...
tensor_ref blocks(operator_graph& g, transformer const& t, tensor_ref x);

/// Heads of an attention whose projections are operators of their own, without biases.
struct head_sizes {
    std::int64_t heads = 1, kv_heads = 1, size = 1;
};

/// Attention of `x` to `memory`: projections, what `core(q, k, v)` adds, and the output projection to `out` features.
template <class Core>
tensor_ref projected_attention(operator_graph& g, std::string const& name, tensor_ref x, tensor_ref memory, head_sizes h, std::int64_t out,
                               Core const& core) {
    auto const linear = [&](std::string const& part, std::int64_t features, tensor_ref y) -> tensor_ref {
        return g.add(name + part, ops::linear{.out = features, .bias = false}, y);
    };
    auto const q = linear(".q", h.heads * h.size, x);
    auto const k = linear(".k", h.kv_heads * h.size, memory);
    auto const v = linear(".v", h.kv_heads * h.size, memory);
    return linear(".out", out, core(q, k, v));
}

/// A perceptron: down(f(up(x))) or, gated, down(f(gate(x)) * up(x)) (Shazeer, arXiv 2002.05202), where `product(name, features, x)` adds
/// a linear layer.
template <class Product>
tensor_ref feed_forward(operator_graph& g, std::string const& name, tensor_ref x, std::int64_t units, std::int64_t out, ops::function f, bool gated,
                        Product const& product) {
    auto const activated = [&](tensor_ref y) -> tensor_ref { return g.add(text(name, '.', ops::name_of(f)), ops::unary{f}, y); };
    auto const up = product(name + ".up", units, x);
    if (!gated) return product(name + ".down", out, activated(up));
    auto const gate = activated(product(name + ".gate", units, x));
    return product(name + ".down", out, g.add(name + ".product", ops::nary{ops::combine::multiply}, gate, up));
}

/// The same of linear layers without biases.
tensor_ref feed_forward(operator_graph& g, std::string const& name, tensor_ref x, std::int64_t units, std::int64_t out, ops::function f, bool gated);

} // namespace parsearch::models::detail

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/transformer.ipp>
#endif
