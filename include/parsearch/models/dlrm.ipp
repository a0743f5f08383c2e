#pragma once
// DLRM: a recommendation model of embedding tables and perceptrons (Naumov et al., 2019).

#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/parts/recommendation.hpp>
#include <parsearch/ops/indexing.hpp>
#include <parsearch/ops/linear.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph dlrm(dlrm_options const& o) {
    detail::check_size("dlrm", "dense", o.dense);
    detail::check_sizes("dlrm", "bottom", o.bottom);
    detail::check_count("dlrm", "number of tables", static_cast<std::int64_t>(o.tables.size()));
    detail::check_sizes("dlrm", "tables", o.tables);
    detail::check_size("dlrm", "features", o.features);
    detail::check_size("dlrm", "bag", o.bag);
    detail::check_sizes("dlrm", "top", o.top);
    detail::check_size("dlrm", "batch", o.batch);
    detail::check_floating("dlrm", o.type);
    if (o.interaction > feature_interaction::dot)
        throw invalid_input("dlrm: interaction is number ", static_cast<int>(o.interaction), ": must be one of those declared");
    auto const width = o.bottom.empty() ? o.dense : o.bottom.back();
    bool const dot = o.interaction == feature_interaction::dot;
    if (dot && width != o.features)
        throw invalid_input("dlrm: features is ", o.features, ": must be the last size of bottom, which is ", width,
                            ", where the interaction is dot");
    graph::operator_graph g;
    detail::chain net{g, g.input("dense", {{o.batch, o.dense}, o.type})};
    detail::perceptron(net, "bottom", o.bottom);
    std::vector<graph::tensor_ref> vectors{net.end};
    for (auto const& table : detail::sparse_features(g, o.tables, o.features, o.bag, o.batch, o.type)) vectors.push_back(table);
    auto const joined = detail::join(g, "interaction.vectors", vectors);
    if (dot) {
        auto const n = static_cast<std::int64_t>(vectors.size());
        auto const rows = g.add("interaction.rows", ops::reshape{.shape = {o.batch, n, o.features}}, joined);
        auto const products = g.add("interaction.products", ops::batched_matmul{.transpose_b = true}, rows, rows);
        auto const lower = g.input("interaction.index", {{n * (n - 1) / 2}, ops::dtype::i64});
        auto const pairs = g.add("interaction.pairs", ops::gather{.axis = 1}, g.add("interaction.flat", ops::flatten{}, products), lower);
        net.end = g.add("interaction", ops::concat{}, net.end, pairs);
    } else {
        net.end = joined;
    }
    detail::perceptron(net, "top", o.top);
    detail::add_click_loss(net);
    return g;
}

} // namespace parsearch::models
