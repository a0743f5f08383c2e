#pragma once
// AlexNet in its one-column form (Krizhevsky, arXiv 1404.5997), as torchvision defines it.

#include <parsearch/models/alexnet.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph alexnet(alexnet_options const& o) {
    struct stage {
        std::int64_t out, kernel, stride, padding;
        bool pool;
    };
    constexpr std::array<stage, 5> stages{
        {{64, 11, 4, 2, true}, {192, 5, 1, 2, true}, {384, 3, 1, 1, false}, {256, 3, 1, 1, false}, {256, 3, 1, 1, true}}};
    graph::operator_graph g;
    detail::chain net{g, detail::images(g, "alexnet", o, 63)};
    for (std::size_t i = 0; i < stages.size(); ++i) {
        auto const [out, kernel, stride, padding, pool] = stages[i];
        ops::conv2d const conv{.out = out, .kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {padding, padding}};
        net.then(text("conv", i + 1), conv);
        net.then(text("relu", i + 1), detail::relu);
        if (pool) net.then(text("pool", i + 1), ops::pool2d{.kernel = {3, 3}, .stride = {2, 2}});
    }
    net.then("flatten", ops::flatten{});
    for (auto const* const layer : {"6", "7"}) {
        detail::drop(net, text("dropout", layer), o.dropout);
        net.then(text("fc", layer), ops::linear{.out = 4096}).then(text("relu", layer), detail::relu);
    }
    net.then("fc8", ops::linear{.out = o.classes});
    detail::add_loss(g, net.end);
    return g;
}

} // namespace parsearch::models
