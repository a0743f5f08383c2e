#pragma once
// RNNLM, the recurrent language model of the FlexFlow paper (Jia et al., MLSys 2019).

#include <parsearch/models/parts/unrolled.hpp>
#include <parsearch/models/rnnlm.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph rnnlm(rnnlm_options const& o) {
    detail::unrolled const u{o.layers, o.hidden, o.steps, o.vocabulary, o.batch, o.type, o.unroll_shared};
    detail::check("rnnlm", u);
    graph::operator_graph g;
    detail::lstm_stack lstm(g, u, "lstm");
    for (std::int64_t t = 1; t <= o.steps; ++t) detail::predict(g, u, lstm.step(detail::embed(g, u, "embedding", t), t), t);
    return g;
}

} // namespace parsearch::models
