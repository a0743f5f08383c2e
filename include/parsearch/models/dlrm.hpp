#pragma once
/// DLRM: a recommendation model of embedding tables and perceptrons (Naumov et al., 2019).

#include <cstdint>
#include <string_view>
#include <vector>

#include <parsearch/models/parts/recommendation.hpp>
#include <parsearch/ops/indexing.hpp>
#include <parsearch/ops/linear.hpp>

namespace parsearch::models {

/// How DLRM combines the dense vector and those of the tables.
enum class feature_interaction : std::uint8_t {
    concatenate, ///< one after the other
    dot          ///< the products of all pairs of them, behind the dense vector: the paper's
};
[[nodiscard]] constexpr std::string_view name_of(feature_interaction i) noexcept { return i == feature_interaction::dot ? "dot" : "concatenate"; }

/// The sizes of TopoOpt (Wang et al., NSDI 2023). Its largest, for 128 servers: bottom 8 x 2048 on 2048 features, 64 tables of 10 M x 128,
/// top 16 x 4096. MLPerf's: dense 13, bottom {512, 256, 128}, 26 tables, features 128, bag 1, dot, top {1024, 1024, 512, 256}.
struct dlrm_options {
    std::int64_t dense = 1024;                                                    ///< dense features of a sample
    std::vector<std::int64_t> bottom = std::vector<std::int64_t>(8, 1024);        ///< layers over the dense features
    std::vector<std::int64_t> tables = std::vector<std::int64_t>(16, 10'000'000); ///< rows of each table
    std::int64_t features = 256;                                                  ///< of a row
    std::int64_t bag = 100;                                                       ///< rows of a table that a sample sums
    feature_interaction interaction = feature_interaction::concatenate;
    std::vector<std::int64_t> top = std::vector<std::int64_t>(16, 2048); ///< hidden layers over the interaction
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
};

/// Parameters: rows * features of each table, (k + 1) * o of each layer: 41,041,831,937 by default. `dot` takes the n (n + 1) / 2 products
/// below the diagonal of n tables' vectors and the dense one, which then must have equal sizes. The loss is the squared error of the
/// probability. Throws `invalid_input` naming the option.
[[nodiscard]] inline graph::operator_graph dlrm(dlrm_options const& o = {}) {
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
