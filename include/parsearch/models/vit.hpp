#pragma once
/// ViT, the vision transformer (Dosovitskiy et al., ICLR 2021): a transformer encoder over patches of an image.

#include <cstdint>
#include <string_view>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/transformer.hpp>
#include <parsearch/ops/reduce.hpp>

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
[[nodiscard]] graph::operator_graph vit(vit_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/vit.ipp>
#endif
