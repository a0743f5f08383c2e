#pragma once
/// Residual networks of bottleneck blocks: ResNet (He et al., CVPR 2016), ResNeXt (Xie et al., CVPR 2017), Wide ResNet.

#include <array>
#include <cstdint>

#include <parsearch/models/parts/layers.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/shape.hpp>

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
inline tensor_ref bottleneck(operator_graph& g, std::string const& name, tensor_ref x, std::int64_t width, std::int64_t groups, std::int64_t out,
                             std::int64_t stride) {
    auto y = normalized_conv(g, name + ".1", x, {.out = width, .kernel = {1, 1}});
    ops::conv2d const spatial{.out = width, .kernel = {3, 3}, .stride = {stride, stride}, .padding = {1, 1}, .groups = groups};
    y = normalized_conv(g, name + ".2", y, spatial);
    y = normalized_conv(g, name + ".3", y, {.out = out, .kernel = {1, 1}}, false);
    if (stride != 1 || g.shape(x).extents[1] != out)
        x = normalized_conv(g, name + ".shortcut", x, {.out = out, .kernel = {1, 1}, .stride = {stride, stride}}, false);
    return g.add(name + ".relu", relu, sum(g, name + ".add", y, x));
}
} // namespace detail

/// As torchvision (the stride of a stage is in its first 3x3 convolution): depth 50 has 25,557,032 parameters and 4.09 G
/// multiply-adds. Throws `invalid_input` naming the option.
[[nodiscard]] inline graph::operator_graph resnet(resnet_options const& o = {}) {
    if (o.depth != 50 && o.depth != 101 && o.depth != 152) throw invalid_input("resnet: depth is ", o.depth, ": must be 50, 101 or 152");
    detail::check_size("resnet", "groups", o.groups);
    detail::check_size("resnet", "group_width", o.group_width);
    std::array<std::int64_t, 4> const blocks{3, o.depth == 152 ? 8 : 4, o.depth == 50 ? 6 : (o.depth == 101 ? 23 : 36), 3};
    graph::operator_graph g;
    auto x = detail::images(g, "resnet", o, 32);
    x = detail::normalized_conv(g, "stem", x, {.out = 64, .kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}});
    x = g.add("stem.pool", ops::pool2d{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, x);
    for (std::size_t stage = 0; stage < blocks.size(); ++stage)
        for (std::int64_t block = 0; block < blocks[stage]; ++block)
            x = detail::bottleneck(g, text("stage", stage + 1, '.', block + 1), x, o.groups * o.group_width << stage, o.groups,
                                   std::int64_t{256} << stage, stage && !block ? 2 : 1);
    x = g.add("pool", ops::global_pool{.mode = ops::pool_mode::average}, x);
    detail::add_loss(g, detail::chain{g, x}.then("flatten", ops::flatten{}).then("fc", ops::linear{.out = o.classes}).end);
    return g;
}

} // namespace parsearch::models
