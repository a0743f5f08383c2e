#pragma once
// Transformer blocks (Vaswani et al., NeurIPS 2017), their parts, and embeddings: what BERT, GPT, ViT, T5 and Llama share.

#include <parsearch/models/transformer.hpp>

namespace parsearch::models::detail {

PARSEARCH_INLINE void check(std::string_view model, transformer const& t) {
    check_count(model, "layers", t.layers);
    check_multiple(model, "hidden", t.hidden, "heads", t.heads);
    check_size(model, "sequence", t.sequence);
    check_size(model, "vocabulary", t.vocabulary);
    check_size(model, "batch", t.batch);
    check_probability(model, "dropout", t.dropout);
    check_floating(model, t.type);
}

PARSEARCH_INLINE tensor_ref blocks(operator_graph& g, transformer const& t, tensor_ref x) {
    ops::multi_head_attention const attention{.heads = t.heads,
                                              .head_size = t.hidden / t.heads,
                                              .out = t.hidden,
                                              .causal = t.causal,
                                              .flash = t.flash,
                                              .dropout = t.dropout,
                                              .cache = t.how.inference,
                                              .cached = t.how.cached};
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

PARSEARCH_INLINE tensor_ref feed_forward(operator_graph& g, std::string const& name, tensor_ref x, std::int64_t units, std::int64_t out,
                                         ops::function f, bool gated) {
    return feed_forward(g, name, x, units, out, f, gated, [&](std::string layer, std::int64_t features, tensor_ref y) -> tensor_ref {
        return g.add(std::move(layer), ops::linear{.out = features, .bias = false}, y);
    });
}

} // namespace parsearch::models::detail
