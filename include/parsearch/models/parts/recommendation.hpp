#pragma once
/// What the recommendation models and CANDLE Uno share: embedding tables, perceptrons, a regression's loss.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/parts/layers.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models::detail {

/// Checks each of a list of sizes.
inline void check_sizes(std::string_view model, std::string_view option, std::span<std::int64_t const> sizes) {
    for (auto const n : sizes) check_size(model, option, n);
}

/// Linear layers of the given sizes, each followed by ReLU: "name.fc1", "name.relu1", ... Their parameters are named after `parameter`
/// where that is not empty.
chain& perceptron(chain& net, std::string const& name, std::span<std::int64_t const> sizes, bool bias = true, std::string const& parameter = {});

/// Tables of the given numbers of rows, "table1", "table2", ..., each looked up by `bag` indices of a sample and summed:
/// tensors [batch, features].
std::vector<tensor_ref> sparse_features(operator_graph& g, std::span<std::int64_t const> rows, std::int64_t features, std::int64_t bag,
                                        std::int64_t batch, ops::dtype type);

/// The tensors joined along axis 1.
inline tensor_ref join(operator_graph& g, std::string name, std::span<tensor_ref const> parts) {
    return g.add(std::move(name), ops::concat{.axis = 1}, parts);
}

/// The squared error of `y` against a graph input of labels of its shape and type. Names: "labels", "error" and "loss".
inline void add_squared_error(operator_graph& g, tensor_ref y) {
    auto const labels = g.input("labels", g.shape(y));
    chain{g, g.add("error", ops::nary{ops::combine::subtract}, y, labels)}.then("loss", ops::unary{ops::function::square});
}

/// A probability: one unit and its sigmoid, and the squared error.
inline void add_click_loss(chain& net) {
    net.then("output", ops::linear{.out = 1}).then("probability", ops::unary{ops::function::sigmoid});
    add_squared_error(net.graph, net.end);
}

} // namespace parsearch::models::detail

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/parts/recommendation.ipp>
#endif
