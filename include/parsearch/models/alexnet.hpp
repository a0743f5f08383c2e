#pragma once
/// AlexNet in its one-column form (Krizhevsky, arXiv 1404.5997), as torchvision defines it.

#include <array>
#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/parts/layers.hpp>

namespace parsearch::models {

struct alexnet_options {
    std::int64_t image = 224; ///< height and width, at least 63
    std::int64_t classes = 1000;
    std::int64_t batch = 64;
    double dropout = 0.5; ///< probability; 0 leaves the dropout operators out
    ops::dtype type = ops::dtype::f32;
};

/// 61,100,840 parameters by default. torchvision's adaptive pooling to 6x6, the identity at 224, is left out, so that at another
/// image size the first linear layer changes instead. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph alexnet(alexnet_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/alexnet.ipp>
#endif
