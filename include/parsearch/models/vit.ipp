#pragma once
// ViT, the vision transformer (Dosovitskiy et al., ICLR 2021): a transformer encoder over patches of an image.

#include <parsearch/models/vit.hpp>
#include <parsearch/ops/kit/weighted.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph vit(vit_options const& o) {
    detail::check_multiple("vit", "image", o.image, "patch", o.patch);
    detail::check_count("vit", "layers", o.layers);
    detail::check_multiple("vit", "hidden", o.hidden, "heads", o.heads);
    if (o.pooling > token_pooling::mean)
        throw invalid_input("vit: pooling is number ", static_cast<int>(o.pooling), ": must be one of those declared");
    bool const token = o.pooling == token_pooling::class_token;
    graph::operator_graph g;
    detail::chain net{g, detail::images(g, "vit", o, 1)};
    ops::conv2d const projection{.out = o.hidden, .kernel = {o.patch, o.patch}, .stride = {o.patch, o.patch}};
    net.then("patches", projection)
        .then("patches.flatten", ops::flatten{.from_axis = 2})
        .then("patches.transpose", ops::transpose{.permutation = {0, 2, 1}});
    if (token)
        net.then("class_token", ops::weighted<ops::concat>{.op = {.axis = 1},
                                                           .weight = {.input = 0, .name = "token", .extents = {1, 1, o.hidden}},
                                                           .as = {{o.batch, 1, o.hidden}, o.type}});
    auto const tokens = g.shape(net.end).extents[1];
    net.then("positions", ops::weighted<ops::nary>{.weight = {.input = 1, .name = "positions"}, .as = {{tokens, o.hidden}, o.type}});
    detail::drop(net, "embedding.dropout", o.dropout);
    detail::transformer const t{.layers = o.layers, .hidden = o.hidden, .heads = o.heads, .dropout = o.dropout, .type = o.type};
    net.end = detail::blocks(g, t, net.end);
    net.then("norm", ops::layer_norm{});
    if (token) net.then("first", ops::slice{.axis = 1, .begin = 0, .end = 1}).then("flatten", ops::flatten{});
    else net.then("mean", ops::reduce{.mode = ops::reduction_mode::mean, .axes = {1}});
    detail::add_loss(g, net.then("classifier", ops::linear{.out = o.classes}).end);
    return g;
}

} // namespace parsearch::models
