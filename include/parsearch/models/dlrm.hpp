#pragma once
/// DLRM: a recommendation model of embedding tables and perceptrons (Naumov et al., 2019).

#include <cstdint>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>

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
[[nodiscard]] graph::operator_graph dlrm(dlrm_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/dlrm.ipp>
#endif
