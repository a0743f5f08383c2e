#pragma once
/// ViT, the vision transformer (Dosovitskiy et al., ICLR 2021): a transformer encoder over patches of an image.

#include <cstdint>
#include <string_view>

#include <parsearch/models/transformer.hpp>
#include <parsearch/ops/kit/weighted.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models {

/// What of the encoder's tokens is classified.
enum class token_pooling : std::uint8_t {
    class_token, ///< a learned token in front of the patches
    mean         ///< the mean of the patches (Zhai et al., CVPR 2022)
};
[[nodiscard]] constexpr std::string_view name_of(token_pooling p) noexcept { return p == token_pooling::mean ? "mean" : "class_token"; }

/// ViT-B/16 by default. ViT-L/16: layers 24, hidden 1024, heads 16. ViT-H/14: patch 14, layers 32, hidden 1280, heads 16.
struct vit_options {
    std::int64_t image = 224; ///< height and width
    std::int64_t patch = 16;  ///< height and width, divides image
    std::int64_t layers = 12;
    std::int64_t hidden = 768;
    std::int64_t heads = 12;
    token_pooling pooling = token_pooling::class_token;
    std::int64_t classes = 1000;
    std::int64_t batch = 64;
    double dropout = 0.1; ///< probability, after the embedding and in each residual branch; 0 leaves the operators out
    ops::dtype type = ops::dtype::f32;
};

/// With n = (image / patch)^2 patches, h hidden and c classes, parameters: h (3 patch^2 + 1) of the projection of patches, h of the class token,
/// h (n + 1) of positions, 12 h^2 + 13 h of each block, 2 h of the last normalization, (h + 1) c of the classifier; with mean pooling 2 h less.
/// By default 86,567,656, as torchvision's. Throws `invalid_input` naming the option.
[[nodiscard]] inline graph::operator_graph vit(vit_options const& o = {}) {
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
