#pragma once
/// Normalizations of a sample over groups of channels, or over each channel.

#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// x[s, c, ...] -> y of the same shape, each of `groups` groups of channels of each sample normalised over its channels and the axes behind
/// (Wu and He, ECCV 2018). Groups are a parameter dim; nothing within a group is divisible.
struct group_norm {
    static constexpr std::string_view kind = "group_norm";
    std::int64_t groups = 1;
    bool affine = true; ///< has weight[c] and bias[c]
    std::string parameter{};
    /// Input: x of at least two axes.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// Each channel of each sample normalised over the axes behind it (Ulyanov et al., 2016): as many groups as channels.
struct instance_norm {
    static constexpr std::string_view kind = "instance_norm";
    std::string parameter{};
    /// Input: x of at least three axes. Weights: weight[c], bias[c].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/group_norm.ipp>
#endif
