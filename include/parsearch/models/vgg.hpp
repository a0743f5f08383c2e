#pragma once
/// VGG (Simonyan and Zisserman, ICLR 2015), configurations A, B, D and E, as torchvision defines them.

#include <array>
#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/parts/layers.hpp>

namespace parsearch::models {

struct vgg_options {
    std::int64_t depth = 16;  ///< weight layers: 11, 13, 16 or 19
    std::int64_t image = 224; ///< height and width, at least 32
    std::int64_t classes = 1000;
    std::int64_t batch = 64;
    double dropout = 0.5; ///< probability; 0 leaves the dropout operators out
    ops::dtype type = ops::dtype::f32;
};

/// 138,357,544 parameters by default. torchvision's adaptive pooling to 7x7, the identity at 224, is left out, so that at another
/// image size the first linear layer changes instead. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph vgg(vgg_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/vgg.ipp>
#endif
