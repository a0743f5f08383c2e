#pragma once
/// A decoder-only transformer whose perceptrons are mixtures of experts (Shazeer et al., 2017; GShard: Lepikhin et al., ICLR 2021;
/// Switch: Fedus et al., JMLR 2022; Mixtral: Jiang et al., 2024).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/models/transformer.hpp>

namespace parsearch::models {

/// Mixtral 8x7B by default. A decoder of the sizes of Switch-Base: layers 12, hidden 768, heads 12, kv_heads 12, feed_forward 3072, experts 128,
/// experts_per_token 1, every 2, gated false, sequence 512, vocabulary 32128, tied true.
struct moe_options {
    std::int64_t layers = 32;
    std::int64_t hidden = 4096;
    std::int64_t heads = 32;
    std::int64_t kv_heads = 8;         ///< heads of keys and values
    std::int64_t feed_forward = 14336; ///< hidden units of an expert
    std::int64_t experts = 8;
    std::int64_t experts_per_token = 2;
    double capacity_factor = 1.25; ///< slots of an expert over what even use needs; 1 where all tokens are kept and use is even, as in inference
    std::int64_t every = 1;        ///< blocks every, 2 * every, ... have experts, the others one perceptron of the same size
    bool gated = true;             ///< a perceptron is down(silu(gate(x)) * up(x)), three matrices; else down(relu(up(x)))
    std::int64_t sequence = 4096;  ///< tokens of a sample
    std::int64_t vocabulary = 32000;
    bool tied = false; ///< the output layer shares the table of tokens
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
    bool inference = false;  ///< no loss; attention keeps keys and values, and the last token alone is followed
    std::int64_t cached = 0; ///< in inference, earlier tokens of a sample of which these are kept
};

namespace detail {

[[nodiscard]] constexpr ops::function activation(moe_options const& o) noexcept { return o.gated ? ops::function::silu : ops::function::relu; }

/// The mixture of experts of a block: router, dispatch, experts, sum.
tensor_ref mixture(operator_graph& g, moe_options const& o, std::string const& name, tensor_ref input);
} // namespace detail

/// Attention without bias and with grouped heads, RMS normalization, residual connections. Parameters of a block: 2 h^2 + 2 h^2 kv_heads / heads of
/// attention, 2 h of normalization, m h f of a perceptron (m = 3 where gated, else 2) or e (h + m h f) of experts and router; then h of the last
/// normalization and V h or 2 V h of vocabulary. By default 46,702,792,704. The auxiliary loss that balances the use of experts is left out:
/// its work is negligible, and that it works is assumed, since all experts take as long. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph moe(moe_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/moe.ipp>
#endif
