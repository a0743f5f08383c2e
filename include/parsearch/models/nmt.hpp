#pragma once
/// NMT, the recurrent translation model of the FlexFlow paper (Jia et al., MLSys 2019).

#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>

namespace parsearch::models {

struct nmt_options {
    std::int64_t layers = 2;         ///< of the encoder, and of the decoder
    std::int64_t hidden = 1024;      ///< of the embeddings too
    std::int64_t steps = 40;         ///< of the encoder, and of the decoder
    std::int64_t vocabulary = 32000; ///< source and target: the 32 K word pieces for WMT of Wu et al., arXiv 1609.08144
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
    bool unroll_shared = true; ///< the steps share their weights; false: each step has its own
};

/// Encoder and decoder LSTMs; the decoder starts in the encoder's last states. In each of its steps the decoder's hidden state
/// attends to all encoder states ("general" score) and predicts a word from the attentional state tanh(W [context; hidden])
/// (Luong et al., EMNLP 2015). Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph nmt(nmt_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/nmt.ipp>
#endif
