#pragma once
/// NCF: neural collaborative filtering, the fusion of matrix factorization and a perceptron (He et al., WWW 2017: NeuMF).

#include <cstdint>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>

namespace parsearch::models {

/// MovieLens 20M with the sizes of MLPerf's reference. TopoOpt's (Wang et al., NSDI 2023): users and items 1,000,000, tables 32,
/// hidden 8 x 4096.
struct ncf_options {
    std::int64_t users = 138'493, items = 26'744; ///< rows of their tables
    std::int64_t tables = 1;                      ///< kinds of user and of item features, each with tables of its own
    std::int64_t factors = 64;                    ///< features of a row for the factorization
    std::int64_t embedding = 128;                 ///< features of a row for the perceptron
    std::vector<std::int64_t> hidden{256, 128, 64};
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
};

/// The product of user's and item's factors, and a perceptron over both their embeddings, side by side before one unit.
/// Parameters: tables * (users + items) * (factors + embedding), (k + 1) * o of each layer: 31,832,577 by default. The loss is the squared
/// error of the probability. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph ncf(ncf_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/ncf.ipp>
#endif
