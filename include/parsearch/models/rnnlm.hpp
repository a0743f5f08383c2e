#pragma once
/// RNNLM, the recurrent language model of the FlexFlow paper (Jia et al., MLSys 2019).

#include <cstdint>

#include <parsearch/models/parts/unrolled.hpp>

namespace parsearch::models {

struct rnnlm_options {
    std::int64_t layers = 2;
    std::int64_t hidden = 2048; ///< of the embedding too
    std::int64_t steps = 40;
    std::int64_t vocabulary = 10000; ///< Penn Treebank (Zaremba et al., arXiv 1409.2329)
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
    bool unroll_shared = true; ///< the steps share their weights; false: each step has its own
};

/// LSTM layers that predict the next word in every step. Throws `invalid_input` naming the option.
[[nodiscard]] inline graph::operator_graph rnnlm(rnnlm_options const& o = {}) {
    detail::unrolled const u{o.layers, o.hidden, o.steps, o.vocabulary, o.batch, o.type, o.unroll_shared};
    detail::check("rnnlm", u);
    graph::operator_graph g;
    detail::lstm_stack lstm(g, u, "lstm");
    for (std::int64_t t = 1; t <= o.steps; ++t) detail::predict(g, u, lstm.step(detail::embed(g, u, "embedding", t), t), t);
    return g;
}

} // namespace parsearch::models
