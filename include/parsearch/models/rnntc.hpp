#pragma once
/// RNNTC, the recurrent text classifier of the FlexFlow paper (Jia et al., MLSys 2019).

#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>

namespace parsearch::models {

struct rnntc_options {
    std::int64_t layers = 4;
    std::int64_t hidden = 1024; ///< of the embedding too
    std::int64_t steps = 40;
    std::int64_t vocabulary = 18765; ///< Movie Reviews (Kim, EMNLP 2014, table 1)
    std::int64_t classes = 2;
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
    bool unroll_shared = true; ///< the steps share their weights; false: each step has its own
};

/// LSTM layers over the words of a sentence; the hidden state of the last step is classified. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph rnntc(rnntc_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/rnntc.ipp>
#endif
