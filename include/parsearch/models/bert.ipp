#pragma once
// BERT (Devlin et al., NAACL 2019): a transformer encoder trained on masked tokens and, if wanted, on next sentences.

#include <parsearch/models/bert.hpp>
#include <parsearch/models/transformer.hpp>
#include <parsearch/ops/indexing.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph bert(bert_options const& o) {
    detail::transformer const t{.layers = o.layers,
                                .hidden = o.hidden,
                                .heads = o.heads,
                                .sequence = o.sequence,
                                .vocabulary = o.vocabulary,
                                .batch = o.batch,
                                .norm = detail::norm_place::after,
                                .causal = false,
                                .flash = o.flash,
                                .dropout = o.dropout,
                                .type = o.type};
    detail::check("bert", t);
    detail::check_size("bert", "predictions", o.predictions, 0);
    if (o.predictions > o.sequence) throw invalid_input("bert: predictions is ", o.predictions, ": must be at most sequence, which is ", o.sequence);
    graph::operator_graph g;
    auto const tokens = detail::embed(g, t, "tokens", o.vocabulary, o.batch);
    auto x = detail::sum(g, "embedding.add1", tokens, detail::embed(g, t, "segments", 2, o.batch));
    x = detail::sum(g, "embedding.add2", x, detail::embed(g, t, "positions", o.sequence, 1));
    detail::chain embedding{g, g.add("embedding.norm", ops::layer_norm{}, x)};
    detail::drop(embedding, "embedding.dropout", o.dropout);
    auto const encoded = detail::blocks(g, t, embedding.end);
    detail::chain head{g, encoded};
    if (o.predictions) {
        auto const masked = g.input("masked", {{o.batch, o.predictions, 1}, ops::dtype::i64});
        head.end = g.add("head.gather", ops::gather_nd{.batch_axes = 1}, encoded, masked);
    }
    head.then("head", ops::linear{.out = o.hidden}).then("head.gelu", ops::unary{ops::function::gelu}).then("head.norm", ops::layer_norm{});
    detail::add_loss(g, head.then("logits", ops::linear{.out = o.vocabulary, .parameter = "tokens"}).end);
    if (o.next_sentence) {
        detail::chain pooler{g, encoded};
        pooler.then("pooler.first", ops::slice{.axis = 1, .begin = 0, .end = 1}).then("pooler.flatten", ops::flatten{});
        pooler.then("pooler", ops::linear{.out = o.hidden}).then("pooler.tanh", ops::unary{ops::function::tanh});
        detail::add_loss(g, pooler.then("next_sentence", ops::linear{.out = 2}).end, ".next_sentence");
    }
    return g;
}

} // namespace parsearch::models
