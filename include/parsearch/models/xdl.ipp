#pragma once
// XDL: the click-through model of an industrial framework (Jiang et al., DLP-KDD 2019), as FlexFlow's example has it.

#include <parsearch/models/parts/recommendation.hpp>
#include <parsearch/models/xdl.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph xdl(xdl_options const& o) {
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
