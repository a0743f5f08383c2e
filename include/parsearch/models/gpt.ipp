#pragma once
// GPT: a decoder-only transformer that predicts the next token (Radford et al., 2019: GPT-2).

#include <parsearch/models/gpt.hpp>
#include <parsearch/models/transformer.hpp>
#include <parsearch/ops/kit/weighted.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph gpt(gpt_options const& o) {
    detail::transformer const t{.layers = o.layers,
                                .hidden = o.hidden,
                                .heads = o.heads,
                                .sequence = o.sequence,
                                .vocabulary = o.vocabulary,
                                .batch = o.batch,
                                .norm = detail::norm_place::before,
                                .causal = true,
                                .flash = o.flash,
                                .dropout = o.inference ? 0 : o.dropout,
                                .how = detail::checked_generation("gpt", o.inference, o.cached),
                                .type = o.type};
    detail::check("gpt", t);
    graph::operator_graph g;
    auto const tokens = detail::embed(g, t, "tokens", o.vocabulary, o.batch);
    detail::chain net{g, tokens};
    // Every device adds its part of the table: nothing is sent for it.
    ops::weighted<ops::nary> const positions{.weight = {.input = 1, .name = "positions"}, .as = {{o.sequence, o.hidden}, o.type}};
    if (o.cached == 0) net.then("positions", positions);
    else net.end = detail::sum(g, "positions.add", net.end, detail::embed(g, t, "positions", o.cached + o.sequence, o.batch));
    detail::drop(net, "embedding.dropout", t.dropout);
    net.end = detail::blocks(g, t, net.end);
    detail::take_predicting(net, t.how);
    net.then("norm", ops::layer_norm{}).then("logits", ops::linear{.out = o.vocabulary, .bias = false, .parameter = "tokens"});
    detail::finish(net, t.how);
    return g;
}

} // namespace parsearch::models
