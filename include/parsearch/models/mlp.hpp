#pragma once
/// Multi-layer perceptron.

#include <cstdint>
#include <vector>

#include <parsearch/models/parts/layers.hpp>

namespace parsearch::models {

struct mlp_options {
    std::int64_t features = 784;                  ///< of a sample
    std::vector<std::int64_t> hidden{1024, 1024}; ///< outputs of the hidden layers
    std::int64_t classes = 10;
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
};

/// Linear layers with ReLU between them, and a classifier. Throws `invalid_input` naming the option.
[[nodiscard]] inline graph::operator_graph mlp(mlp_options const& o = {}) {
    detail::check_size("mlp", "features", o.features);
    for (auto const h : o.hidden) detail::check_size("mlp", "hidden", h);
    detail::check_size("mlp", "classes", o.classes);
    detail::check_size("mlp", "batch", o.batch);
    detail::check_floating("mlp", o.type);
    graph::operator_graph g;
    detail::chain net{g, g.input("samples", {{o.batch, o.features}, o.type})};
    for (std::size_t i = 0; i < o.hidden.size(); ++i)
        net.then(text("fc", i + 1), ops::linear{.out = o.hidden[i]}).then(text("relu", i + 1), detail::relu);
    net.then(text("fc", o.hidden.size() + 1), ops::linear{.out = o.classes});
    detail::add_loss(g, net.end);
    return g;
}

} // namespace parsearch::models
