#pragma once
/// XDL: the click-through model of an industrial framework (Jiang et al., DLP-KDD 2019), as FlexFlow's example has it.

#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>

namespace parsearch::models {

struct xdl_options {
    std::vector<std::int64_t> tables = std::vector<std::int64_t>(4, 1'000'000); ///< rows of each table
    std::int64_t features = 64;                                                 ///< of a row
    std::int64_t bag = 1;                                                       ///< rows of a table that a sample sums
    std::vector<std::int64_t> hidden{256, 256};                                 ///< layers over the tables' vectors
    std::int64_t classes = 2;
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
};

/// Embedding tables, concatenated, and linear layers without bias. Parameters: rows * features of each table, k * o of each layer:
/// 256,131,584 by default. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph xdl(xdl_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/xdl.ipp>
#endif
