#pragma once
/// Rotary position embedding.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// Turns pairs of elements of each head by angles that depend on the position: y = x cos + turned(x) sin (Su et al., RoFormer, 2021, 3.4).
/// x in a layout of attention, of `heads` heads -> y of the same shape. cos and sin have the axes of [s, heads, l, d], or with
/// `tables` those of another layout, counted from the last; axes that are repeated have extent 1, and d may be halved, one entry per pair.
/// The elements of a head are not divisible.
struct rotary_embedding {
    static constexpr std::string_view kind = "rotary_embedding";
    std::int64_t heads = 0;
    attention_layout layout = attention_layout::packed;
    attention_layout tables = attention_layout::by_head; ///< by_head or by_position
    /// Inputs: x, cos, sin.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/rotary.ipp>
#endif
