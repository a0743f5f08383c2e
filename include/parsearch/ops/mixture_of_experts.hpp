#pragma once
/// Mixtures of experts: the gate that keeps the best experts of each token, the dispatch of tokens to experts, the sum of what
/// these answer. The experts themselves are an `einsum` with a weight: "sech,eho->seco".

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// x[s, ..., e] -> y[s, ..., e]: the k largest of the last axis, scaled to a sum of 1 where there are several; zero elsewhere. The last axis is not
/// divisible. The operation's kind is "top_2_gate". Sources: N. Shazeer et al., Outrageously large neural networks, ICLR 2017, section 2.1;
/// k = 1 is W. Fedus et al., Switch transformers, JMLR 2022, which keeps the router's probability.
struct top_k_gate {
    static constexpr std::string_view kind = "top_k_gate";
    std::int64_t k = 2;
    /// Input: x of at least two axes, the last of at least k.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// x[s, l, h], gates[s, l, e] -> y[s, e, c, h]: for each expert e the tokens of the sample whose gate is not zero, in slots; tokens beyond
/// the c slots of their expert are dropped, slots without a token are zero. c = ceil(experts_per_token * l / e * capacity_factor), at most
/// l. A sample is a group: its tokens compete for slots among themselves (D. Lepikhin et al., GShard, ICLR 2021, section 2.2), so a split of s
/// needs no communication. Dims: s sample, e attribute, c fixed (which slot a token gets depends on all tokens before it), h attribute.
/// Every shard may read any token, but touches only those in its slots. An empty slot is counted as a full one. No gradient flows to the
/// gates here (it does in `moe_combine`); a 4-byte index per slot is kept for backward.
struct moe_dispatch {
    static constexpr std::string_view kind = "moe_dispatch";
    std::int64_t experts_per_token = 2;
    double capacity_factor = 1.25;
    /// Inputs: x and gates of three axes, equal in the first two.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// x[s, e, c, h], gates[s, l, e] -> y[s, l, h]: each token's sum over its experts of gate * what the expert answers in the token's slot; zero where
/// it was dropped everywhere. Dims: s sample, l attribute, h attribute, e reduction: a shard of some experts reads these experts' slots
/// and yields partial sums. Slots are read through the indices that `moe_dispatch` keeps. An empty slot is counted as a full one.
struct moe_combine {
    static constexpr std::string_view kind = "moe_combine";
    /// Inputs: x of four axes, gates of three, of equal s and e.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/mixture_of_experts.ipp>
#endif
