#pragma once
// What the recommendation models and CANDLE Uno share: embedding tables, perceptrons, a regression's loss.

#include <parsearch/models/parts/recommendation.hpp>
#include <parsearch/ops/embedding.hpp>

namespace parsearch::models::detail {

PARSEARCH_INLINE chain& perceptron(chain& net, std::string const& name, std::span<std::int64_t const> sizes, bool bias,
                                   std::string const& parameter) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        auto const shared = parameter.empty() ? parameter : text(parameter, ".fc", i + 1);
        net.then(text(name, ".fc", i + 1), ops::linear{.out = sizes[i], .bias = bias, .parameter = shared}).then(text(name, ".relu", i + 1), relu);
    }
    return net;
}

PARSEARCH_INLINE std::vector<tensor_ref> sparse_features(operator_graph& g, std::span<std::int64_t const> rows, std::int64_t features,
                                                         std::int64_t bag, std::int64_t batch, ops::dtype type) {
    std::vector<tensor_ref> out;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        auto const name = text("table", i + 1);
        auto const indices = g.input(name + ".index", {{batch, bag}, ops::dtype::i64});
        out.push_back(g.add(name, ops::embedding_bag{.entries = rows[i], .features = features, .type = type}, indices));
    }
    return out;
}

} // namespace parsearch::models::detail
