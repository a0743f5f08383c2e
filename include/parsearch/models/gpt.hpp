#pragma once
/// GPT: a decoder-only transformer that predicts the next token (Radford et al., 2019: GPT-2).

#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>

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
[[nodiscard]] graph::operator_graph gpt(gpt_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/gpt.ipp>
#endif
