#pragma once
// VGG (Simonyan and Zisserman, ICLR 2015), configurations A, B, D and E, as torchvision defines them.

#include <parsearch/models/vgg.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph vgg(vgg_options const& o) {
    if (o.depth != 11 && o.depth != 13 && o.depth != 16 && o.depth != 19)
        throw invalid_input("vgg: depth is ", o.depth, ": must be 11, 13, 16 or 19");
    constexpr std::array<std::int64_t, 5> channels{64, 128, 256, 512, 512};
    graph::operator_graph g;
    detail::chain net{g, detail::images(g, "vgg", o, 32)};
    for (std::size_t stage = 0; stage < channels.size(); ++stage) {
        std::int64_t const convs = stage < 2 ? (o.depth == 11 ? 1 : 2) : (o.depth < 16 ? 2 : (o.depth == 16 ? 3 : 4));
        for (std::int64_t i = 1; i <= convs; ++i) {
            auto const number = text(stage + 1, '_', i);
            net.then("conv" + number, ops::conv2d{.out = channels[stage], .kernel = {3, 3}, .padding = {1, 1}});
            net.then("relu" + number, detail::relu);
        }
        net.then(text("pool", stage + 1), ops::pool2d{.kernel = {2, 2}, .stride = {2, 2}});
    }
    net.then("flatten", ops::flatten{});
    for (auto const* const layer : {"6", "7"}) {
        net.then(text("fc", layer), ops::linear{.out = 4096}).then(text("relu", layer), detail::relu);
        detail::drop(net, text("dropout", layer), o.dropout);
    }
    net.then("fc8", ops::linear{.out = o.classes});
    detail::add_loss(g, net.end);
    return g;
}

} // namespace parsearch::models
