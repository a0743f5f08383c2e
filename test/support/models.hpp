#pragma once
/// What the tests of the models check of each of them.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/summary.hpp>

#include "support/refusal.hpp"

namespace support {

/// The graph is readable, its operators have different names, every operator leads to a loss, everything with weights is
/// trained. `losses`: the losses expected (cross entropies, or what is named "loss"). Returns the summary.
inline parsearch::models::summary check_model(parsearch::graph::operator_graph const& model, std::size_t losses = 1) {
    auto const g = parsearch::graph::read_graph(model).graph;
    CHECK(std::set<std::string>(g.names.begin(), g.names.end()).size() == g.size());
    std::size_t found = 0;
    std::vector<bool> useful(g.size());
    for (auto op = g.order.rbegin(); op != g.order.rend(); ++op) {
        bool const loss = g.operations[*op].kind == "cross_entropy" || g.names[*op] == "loss";
        found += loss;
        useful[*op] = loss;
        for (auto const e : g.out(*op)) useful[*op] = useful[*op] || useful[g.edges[e].consumer];
        INFO(g.names[*op]);
        CHECK(useful[*op]);
        if (!g.operations[*op].weights.empty()) CHECK(g.trains[*op]);
    }
    CHECK(found == losses);
    return parsearch::models::summarize(g);
}

/// The number of operators of a kind.
inline std::size_t count(parsearch::graph::operator_graph const& model, std::string_view kind) {
    std::size_t n = 0;
    for (std::size_t v = 0; v < model.size(); ++v) n += model[v].operation.kind == kind;
    return n;
}

/// Parameters of an LSTM layer with as many inputs as hidden units: four gates of two matrices and two biases.
constexpr std::int64_t lstm_parameters(std::int64_t hidden) { return 4 * (2 * hidden * hidden + 2 * hidden); }

} // namespace support
