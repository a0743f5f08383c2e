#pragma once
/// BERT (Devlin et al., NAACL 2019): a transformer encoder trained on masked tokens and, if wanted, on next sentences.

#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>

namespace parsearch::models {

/// BERT-Large, uncased, by default.
struct bert_options {
    std::int64_t layers = 24;
    std::int64_t hidden = 1024;
    std::int64_t heads = 16;
    std::int64_t sequence = 512; ///< tokens of a sample; the table of positions has as many rows
    std::int64_t vocabulary = 30522;
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
    double dropout = 0.1;         ///< probability, after the embedding, of attention and in each residual branch; 0 leaves the operators out
    bool flash = true;            ///< false: kernels of attention keep scores in memory
    std::int64_t predictions = 0; ///< masked tokens of a sample, that alone are predicted; 0: all tokens are
    bool next_sentence = false;   ///< adds the pooler of the first token, its classifier and its loss
};

/// The masked-token head (dense layer, GELU, normalization, output layer that shares the embedding of tokens) is applied to all
/// positions, as Hugging Face has it, or to `predictions` of each sample, which are gathered, as NVIDIA has it (DeepLearningExamples). By default
/// 335,174,458 parameters. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph bert(bert_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/bert.ipp>
#endif
