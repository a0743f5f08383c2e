#pragma once
/// RNNLM, the recurrent language model of the FlexFlow paper (Jia et al., MLSys 2019).

#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>

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
[[nodiscard]] graph::operator_graph rnnlm(rnnlm_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/rnnlm.ipp>
#endif
