#pragma once
/// GPT: a decoder-only transformer that predicts the next token (Radford et al., 2019: GPT-2).

#include <cstdint>

#include <parsearch/models/transformer.hpp>
#include <parsearch/ops/kit/weighted.hpp>

namespace parsearch::models {

/// GPT-2 small by default. A vocabulary padded to 50,304 has more divisors to split by.
struct gpt_options {
    std::int64_t layers = 12;
    std::int64_t hidden = 768;
    std::int64_t heads = 12;
    std::int64_t sequence = 1024; ///< tokens of a sample; the table of positions has as many rows, and `cached` more
    std::int64_t vocabulary = 50257;
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
    double dropout = 0.1;    ///< probability, after the embedding, of attention and in each residual branch; 0 leaves the operators out
    bool flash = true;       ///< false: kernels of attention keep scores in memory
    bool inference = false;  ///< no loss; attention keeps keys and values, and the last token alone is followed
    std::int64_t cached = 0; ///< in inference, earlier tokens of a sample of which these are kept
};

/// The output layer shares its weights with the embedding of tokens. 124,439,808 parameters by default; forward and backward take
/// about 72 b s l h^2 (1 + s/(6h) + V/(12lh)) flops (Narayanan et al., SC 2021, without recomputation), less with `flash`: half of s/(6h).
/// Throws `invalid_input` naming the option.
[[nodiscard]] inline graph::operator_graph gpt(gpt_options const& o = {}) {
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
