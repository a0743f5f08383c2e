#pragma once
/// Multi-layer perceptron.

#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
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
[[nodiscard]] graph::operator_graph mlp(mlp_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/mlp.ipp>
#endif
