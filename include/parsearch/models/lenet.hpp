#pragma once
/// LeNet-5 (LeCun et al., Proceedings of the IEEE 1998), with ReLU and maximum pooling.

#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/parts/layers.hpp>

namespace parsearch::models {

struct lenet_options {
    std::int64_t classes = 10;
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
};

/// Images are [batch, 1, 32, 32]; the second convolution sees all channels, as in today's versions (61,706 parameters with 10 classes).
/// Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph lenet(lenet_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/lenet.ipp>
#endif
