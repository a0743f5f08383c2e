#pragma once
// Llama: a decoder-only transformer with RMS normalization, rotary positions, gated perceptrons and, from Llama 2 on, grouped heads

#include <parsearch/models/llama.hpp>
#include <parsearch/ops/rotary.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph llama(llama_options const& o) {
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
