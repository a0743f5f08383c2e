#pragma once
/// Residual networks of bottleneck blocks: ResNet (He et al., CVPR 2016), ResNeXt (Xie et al., CVPR 2017), Wide ResNet.

#include <array>
#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/parts/layers.hpp>

namespace parsearch::models {

struct resnet_options {
    std::int64_t depth = 50;       ///< weight layers: 50, 101 or 152
    std::int64_t groups = 1;       ///< of the 3x3 convolutions. ResNeXt-50 32x4d: groups 32, group_width 4
    std::int64_t group_width = 64; ///< channels of one group in the first stage. Wide ResNet-50-2: 128
    std::int64_t image = 224;      ///< height and width, at least 32
    std::int64_t classes = 1000;
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
};

namespace detail {
/// 1x1, 3x3 (which has the stride) and 1x1 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes.
tensor_ref bottleneck(operator_graph& g, std::string const& name, tensor_ref x, std::int64_t width, std::int64_t groups, std::int64_t out,
                      std::int64_t stride);
} // namespace detail

/// As torchvision (the stride of a stage is in its first 3x3 convolution): depth 50 has 25,557,032 parameters and 4.09 G
/// multiply-adds. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph resnet(resnet_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/resnet.ipp>
#endif
