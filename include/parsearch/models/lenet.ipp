#pragma once
// LeNet-5 (LeCun et al., Proceedings of the IEEE 1998), with ReLU and maximum pooling.

#include <parsearch/models/lenet.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph lenet(lenet_options const& o) {
    detail::check_size("lenet", "classes", o.classes);
    detail::check_size("lenet", "batch", o.batch);
    detail::check_floating("lenet", o.type);
    ops::pool2d const pool{.kernel = {2, 2}, .stride = {2, 2}};
    graph::operator_graph g;
    detail::chain net{g, g.input("images", {{o.batch, 1, 32, 32}, o.type})};
    net.then("conv1", ops::conv2d{.out = 6, .kernel = {5, 5}}).then("relu1", detail::relu).then("pool1", pool);
    net.then("conv2", ops::conv2d{.out = 16, .kernel = {5, 5}}).then("relu2", detail::relu).then("pool2", pool);
    net.then("flatten", ops::flatten{});
    net.then("fc1", ops::linear{.out = 120}).then("relu3", detail::relu);
    net.then("fc2", ops::linear{.out = 84}).then("relu4", detail::relu);
    net.then("fc3", ops::linear{.out = o.classes});
    detail::add_loss(g, net.end);
    return g;
}

} // namespace parsearch::models
