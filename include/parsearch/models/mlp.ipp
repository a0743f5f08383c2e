#pragma once
// Multi-layer perceptron.

#include <parsearch/models/mlp.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph mlp(mlp_options const& o) {
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
