#pragma once
/// Llama: a decoder-only transformer with RMS normalization, rotary positions, gated perceptrons and, from Llama 2 on, grouped heads
/// (Touvron et al., arXiv 2302.13971 and 2307.09288; Grattafiori et al., arXiv 2407.21783). Mistral and Qwen have the same form.

#include <cstdint>

#include <parsearch/models/transformer.hpp>
#include <parsearch/ops/rotary.hpp>

namespace parsearch::models {

/// Llama 3.2 1B by default. Llama 2 7B: layers 32, hidden 4096, kv_heads 32, feed_forward 11008, vocabulary 32000, tied false.
/// Llama 3 8B: layers 32, hidden 4096, feed_forward 14336, tied false.
struct llama_options {
    std::int64_t layers = 16;
    std::int64_t hidden = 2048;
    std::int64_t heads = 32;
    std::int64_t kv_heads = 8;        ///< heads of keys and values, divides heads
    std::int64_t head_size = 0;       ///< elements of a head, even; 0: hidden / heads
    std::int64_t feed_forward = 8192; ///< hidden units of a perceptron
    std::int64_t sequence = 2048;     ///< tokens of a sample
    std::int64_t vocabulary = 128256;
    bool tied = true; ///< the output layer shares the table of tokens
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
    bool inference = false;  ///< no loss; attention keeps keys and values, and the last token alone is followed
    std::int64_t cached = 0; ///< in inference, earlier tokens of a sample of which these are kept
};

/// Parameters, with h hidden, d the size of a head, f hidden units and V entries: 2 h d (heads + kv_heads) + 3 h f + 2 h of each block, h of the
/// last normalization, V h of tokens, and V h again where not tied. By default 1,235,814,400. The tables of cosines and sines,
/// [sequence, d / 2], are graph inputs: they are not trained. Throws `invalid_input` naming the option.
[[nodiscard]] inline graph::operator_graph llama(llama_options const& o = {}) {
    detail::check_count("llama", "layers", o.layers);
    detail::check_multiple("llama", "heads", o.heads, "kv_heads", o.kv_heads);
    detail::check_size("llama", "head_size", o.head_size, 0);
    if (o.head_size) detail::check_size("llama", "hidden", o.hidden);
    else detail::check_multiple("llama", "hidden", o.hidden, "heads", o.heads);
    detail::head_sizes const h{.heads = o.heads, .kv_heads = o.kv_heads, .size = o.head_size ? o.head_size : o.hidden / o.heads};
    if (h.size % 2) throw invalid_input("llama: head_size is ", h.size, ": must be even, since rotary positions turn pairs");
    detail::check_size("llama", "feed_forward", o.feed_forward);
    detail::check_size("llama", "sequence", o.sequence);
    detail::check_size("llama", "vocabulary", o.vocabulary);
    detail::check_size("llama", "batch", o.batch);
    detail::check_floating("llama", o.type);
    auto const how = detail::checked_generation("llama", o.inference, o.cached);
    detail::transformer const t{.hidden = o.hidden, .sequence = o.sequence, .rms = true, .type = o.type};
    graph::operator_graph g;
    std::string const table = o.tied ? "tokens" : "";
    auto const tokens = g.input("tokens.index", {{o.batch, o.sequence}, ops::dtype::i64});
    auto const cos = g.input("cos", {{o.sequence, h.size / 2}, o.type});
    auto const sin = g.input("sin", {{o.sequence, h.size / 2}, o.type});
    detail::chain net{g, g.add("tokens", ops::embedding{.entries = o.vocabulary, .features = o.hidden, .type = o.type, .parameter = table}, tokens)};
    for (std::int64_t layer = 1; layer <= o.layers; ++layer) {
        auto const attention = text("block", layer, ".attention"), mlp = text("block", layer, ".mlp");
        net.end = detail::residual(g, t, attention, net.end, [&](graph::tensor_ref x) {
            return detail::projected_attention(g, attention, x, x, h, o.hidden, [&](auto q, auto k, auto v) {
                auto const turned_q = g.add(attention + ".rotary_q", ops::rotary_embedding{.heads = h.heads}, q, cos, sin);
                auto const turned_k = g.add(attention + ".rotary_k", ops::rotary_embedding{.heads = h.kv_heads}, k, cos, sin);
                ops::attention const core{.heads = h.heads, .kv_heads = h.kv_heads, .causal = true, .cache = how.inference, .cached = how.cached};
                return g.add(attention, core, turned_q, turned_k, v);
            });
        });
        net.end = detail::residual(g, t, mlp, net.end, [&](graph::tensor_ref x) {
            return detail::feed_forward(g, mlp, x, o.feed_forward, o.hidden, ops::function::silu, true);
        });
    }
    detail::take_predicting(net, how);
    net.then("norm", ops::rms_norm{}).then("logits", ops::linear{.out = o.vocabulary, .bias = false, .parameter = table});
    detail::finish(net, how);
    return g;
}

} // namespace parsearch::models
