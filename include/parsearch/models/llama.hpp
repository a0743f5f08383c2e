#pragma once
/// Llama: a decoder-only transformer with RMS normalization, rotary positions, gated perceptrons and, from Llama 2 on, grouped heads
/// (Touvron et al., arXiv 2302.13971 and 2307.09288; Grattafiori et al., arXiv 2407.21783). Mistral and Qwen have the same form.

#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/transformer.hpp>

namespace parsearch::models {

/// Llama 3.2 1B by default. Llama 2 7B: layers 32, hidden 4096, kv_heads 32, feed_forward 11008, vocabulary 32000, tied false.
/// Llama 3 8B: layers 32, hidden 4096, feed_forward 14336, tied false.
struct llama_options {
    std::int64_t layers = 16;
    std::int64_t hidden = 2048;
    std::int64_t heads = 32;
    std::int64_t kv_heads = 8;        ///< heads of keys and values, divides heads
    std::int64_t head_size = 0;       ///< elements of a head, even; 0: hidden / heads
    std::int64_t feed_forward = 8192; ///< hidden units of a perceptron
    std::int64_t sequence = 2048;     ///< tokens of a sample
    std::int64_t vocabulary = 128256;
    bool tied = true; ///< the output layer shares the table of tokens
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
    bool inference = false;  ///< no loss; attention keeps keys and values, and the last token alone is followed
    std::int64_t cached = 0; ///< in inference, earlier tokens of a sample of which these are kept
};

/// Parameters, with h hidden, d the size of a head, f hidden units and V entries: 2 h d (heads + kv_heads) + 3 h f + 2 h of each block, h of the
/// last normalization, V h of tokens, and V h again where not tied. By default 1,235,814,400. The tables of cosines and sines,
/// [sequence, d / 2], are graph inputs: they are not trained. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph llama(llama_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/llama.ipp>
#endif
