#pragma once
/// XDL: the click-through model of an industrial framework (Jiang et al., DLP-KDD 2019), as FlexFlow's example has it.

#include <cstdint>
#include <vector>

#include <parsearch/models/parts/recommendation.hpp>

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
[[nodiscard]] inline graph::operator_graph xdl(xdl_options const& o = {}) {
    detail::check_count("xdl", "number of tables", static_cast<std::int64_t>(o.tables.size()));
    detail::check_sizes("xdl", "tables", o.tables);
    detail::check_size("xdl", "features", o.features);
    detail::check_size("xdl", "bag", o.bag);
    detail::check_sizes("xdl", "hidden", o.hidden);
    detail::check_size("xdl", "classes", o.classes);
    detail::check_size("xdl", "batch", o.batch);
    detail::check_floating("xdl", o.type);
    graph::operator_graph g;
    auto const vectors = detail::sparse_features(g, o.tables, o.features, o.bag, o.batch, o.type);
    detail::chain net{g, detail::join(g, "vectors", vectors)};
    detail::perceptron(net, "mlp", o.hidden, false).then("output", ops::linear{.out = o.classes, .bias = false});
    detail::add_loss(g, net.end);
    return g;
}

} // namespace parsearch::models
