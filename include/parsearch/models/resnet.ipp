#pragma once
// Residual networks of bottleneck blocks: ResNet (He et al., CVPR 2016), ResNeXt (Xie et al., CVPR 2017), Wide ResNet.

#include <parsearch/models/resnet.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models::detail {

PARSEARCH_INLINE tensor_ref bottleneck(operator_graph& g, std::string const& name, tensor_ref x, std::int64_t width, std::int64_t groups,
                                       std::int64_t out, std::int64_t stride) {
    auto y = normalized_conv(g, name + ".1", x, {.out = width, .kernel = {1, 1}});
    ops::conv2d const spatial{.out = width, .kernel = {3, 3}, .stride = {stride, stride}, .padding = {1, 1}, .groups = groups};
    y = normalized_conv(g, name + ".2", y, spatial);
    y = normalized_conv(g, name + ".3", y, {.out = out, .kernel = {1, 1}}, false);
    if (stride != 1 || g.shape(x).extents[1] != out)
        x = normalized_conv(g, name + ".shortcut", x, {.out = out, .kernel = {1, 1}, .stride = {stride, stride}}, false);
    return g.add(name + ".relu", relu, sum(g, name + ".add", y, x));
}

} // namespace parsearch::models::detail

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph resnet(resnet_options const& o) {
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
