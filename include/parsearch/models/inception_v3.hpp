#pragma once
/// Inception-v3 (Szegedy et al., CVPR 2016) without the auxiliary classifier, as torchvision defines it.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/parts/layers.hpp>

namespace parsearch::models {

struct inception_v3_options {
    std::int64_t image = 299; ///< height and width, at least 75
    std::int64_t classes = 1000;
    std::int64_t batch = 64;
    double dropout = 0.5; ///< probability; 0 leaves the dropout operator out
    ops::dtype type = ops::dtype::f32;
};

/// 23,834,568 parameters and 5.7 G multiply-adds by default. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph inception_v3(inception_v3_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/inception_v3.ipp>
#endif
