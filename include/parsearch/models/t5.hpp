#pragma once
/// T5 (Raffel et al., JMLR 2020): a transformer encoder and decoder without biases, with RMS normalization and relative positions.

#include <cstdint>
#include <string>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/transformer.hpp>

namespace parsearch::models {

/// T5-Base by default. T5 v1.1 Base: feed_forward 2048, gated true, tied false.
struct t5_options {
    std::int64_t layers = 12; ///< of the encoder, and of the decoder
    std::int64_t hidden = 768;
    std::int64_t heads = 12;
    std::int64_t head_size = 64;      ///< elements of a head
    std::int64_t feed_forward = 3072; ///< hidden units of a perceptron
    bool gated = false;               ///< a perceptron is down(gelu(gate(x)) * up(x)), as in v1.1; else down(relu(up(x)))
    std::int64_t buckets = 32;        ///< of relative positions
    std::int64_t source = 512;        ///< tokens that the encoder reads
    std::int64_t target = 512;        ///< tokens that the decoder predicts
    std::int64_t vocabulary = 32128;
    bool tied = true; ///< the output layer shares the table of tokens
    std::int64_t batch = 64;
    double dropout = 0.1; ///< probability, after embeddings, in each residual branch and at both ends; 0 leaves the operators out
    ops::dtype type = ops::dtype::f32;
};

/// Both stacks read one table of tokens, and each has one table of relative positions, which the self-attention of all its layers shares.
/// Parameters, with h hidden, a = heads * head_size, f hidden units, V entries and m matrices of a perceptron (3 where gated, else 2): 4 h a + m h f
/// + 2 h of an encoder block, 8 h a + m h f + 3 h of a decoder block, for each stack h of the last normalization and buckets * heads of positions,
/// V h of tokens, and V h again where not tied. By default 222,903,552. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph t5(t5_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/t5.ipp>
#endif
