#pragma once
// NMT, the recurrent translation model of the FlexFlow paper (Jia et al., MLSys 2019).

#include <parsearch/models/nmt.hpp>
#include <parsearch/models/parts/unrolled.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph nmt(nmt_options const& o) {
    detail::unrolled const u{o.layers, o.hidden, o.steps, o.vocabulary, o.batch, o.type, o.unroll_shared};
    detail::check("nmt", u);
    graph::operator_graph g;
    // A state as a sequence of length 1, and back.
    ops::reshape const as_sequence{.shape = {o.batch, 1, o.hidden}};
    detail::lstm_stack encoder(g, u, "encoder");
    std::vector<graph::tensor_ref> encoded;
    for (std::int64_t t = 1; t <= o.steps; ++t) {
        auto const h = encoder.step(detail::embed(g, u, "source", t), t);
        encoded.push_back(g.add(detail::at_step("encoded", t), as_sequence, h));
    }
    auto const memory = g.add("memory", ops::concat{.axis = 1}, std::span<graph::tensor_ref const>(encoded));
    detail::lstm_stack decoder("decoder", encoder);
    for (std::int64_t t = 1; t <= o.steps; ++t) {
        auto const at = [&](char const* part) { return detail::at_step(part, t); };
        auto const h = decoder.step(detail::embed(g, u, "target", t), t);
        auto const query = detail::chain{g, h}
                               .then(at("query"), ops::linear{.out = o.hidden, .bias = false, .parameter = u.weights("query")})
                               .then(at("query.row"), as_sequence)
                               .end;
        auto const context = g.add(at("attention"), ops::attention{.heads = 1}, query, memory, memory);
        auto const row = g.add(at("context"), ops::flatten{}, context);
        auto const state = detail::chain{g, g.add(at("joined"), ops::concat{.axis = 1}, row, h)}
                               .then(at("attentional"), ops::linear{.out = o.hidden, .bias = false, .parameter = u.weights("attentional")})
                               .then(at("attentional.tanh"), ops::unary{ops::function::tanh})
                               .end;
        detail::predict(g, u, state, t);
    }
    return g;
}

} // namespace parsearch::models
