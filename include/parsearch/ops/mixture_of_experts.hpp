#pragma once
/// Mixtures of experts: the gate that keeps the best experts of each token, the dispatch of tokens to experts, the sum of what
/// these answer. The experts themselves are an `einsum` with a weight: "sech,eho->seco".

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

namespace detail {
/// Slots of an expert for the l tokens of a sample: ceil(experts_per_token * l / experts * factor), at least 1 and at most l.
[[nodiscard]] inline std::int64_t expert_capacity(std::int64_t tokens, std::int64_t experts, std::int64_t experts_per_token, double factor) {
    double const even = static_cast<double>(experts_per_token) * static_cast<double>(tokens) / static_cast<double>(experts);
    double const slots = std::ceil(even * factor);
    return slots >= static_cast<double>(tokens) ? tokens : std::max<std::int64_t>(1, static_cast<std::int64_t>(slots));
}
} // namespace detail

/// x[s, ..., e] -> y[s, ..., e]: the k largest of the last axis, scaled to a sum of 1 where there are several; zero elsewhere. The last axis is not
/// divisible. The operation's kind is "top_2_gate". Sources: N. Shazeer et al., Outrageously large neural networks, ICLR 2017, section 2.1;
/// k = 1 is W. Fedus et al., Switch transformers, JMLR 2022, which keeps the router's probability.
struct top_k_gate {
    static constexpr std::string_view kind = "top_k_gate";
    std::int64_t k = 2;
    /// Input: x of at least two axes, the last of at least k.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 1);
        kit::expect_least_rank(inputs, 0, 2);
        kit::expect_floating(inputs, 0, 0);
        auto const& x = inputs[0];
        auto const outer = x.extents.size() - 1;
        if (kit::checked("k", k) > x.extents.back())
            throw invalid_input("option k is ", k, ": must be at most the last extent of ", kit::shown(inputs, 0));
        operation op{.kind = text("top_", k, "_gate"), .work = work_class::softmax};
        kit::add_axis_dims(op, x, outer, outer + 1);
        kit::add_dim(op, "e", x.extents.back(), dim_kind::fixed);
        double const n = kit::elements(x), kept = n / static_cast<double>(x.extents.back()) * static_cast<double>(k);
        op.flops = n * static_cast<double>(k) + 2 * kept;                                             // k maxima; sum and division
        kit::add_input(op, "x", x.type, kit::along_dims(op, 0, outer + 1)).gradient_flops = 4 * kept; // as softmax
        kit::add_output(op, "y", x.type, kit::along_dims(op, 0, outer + 1)).saved = true;
        return kit::finished(std::move(op));
    }
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
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 2);
        kit::expect_rank(inputs, 0, 3);
        kit::expect_rank(inputs, 1, 3);
        kit::expect_floating(inputs, 0, 0);
        kit::expect_floating(inputs, 1, 1);
        auto const& x = inputs[0];
        auto const& gates = inputs[1];
        for (std::size_t a = 0; a < 2; ++a) kit::expect_extent(inputs, 1, a, x.extents[a], "that of input 0");
        auto const tokens = x.extents[1], experts = gates.extents[2];
        if (kit::checked("experts_per_token", experts_per_token) > experts)
            throw invalid_input("option experts_per_token is ", experts_per_token, ": must be at most the ", experts, " experts of ",
                                kit::shown(inputs, 1));
        if (!(capacity_factor > 0) || capacity_factor > 1e6)
            throw invalid_input("option capacity_factor is ", capacity_factor, ": must be above 0 and at most 1e6");
        operation op{.kind = std::string(kind), .work = work_class::memory};
        auto const s = kit::add_dim(op, "s", x.extents[0], dim_kind::sample);
        auto const e = kit::add_dim(op, "e", experts, dim_kind::attribute);
        kit::add_dim(op, "c", detail::expert_capacity(tokens, experts, experts_per_token, capacity_factor), dim_kind::fixed);
        auto const h = kit::add_dim(op, "h", x.extents[2], dim_kind::attribute);
        auto const& y = kit::add_output(op, "y", x.type, kit::along_dims(op, 0, 4));
        double const moved = kit::elements(tensor_of(y)), slots = moved / static_cast<double>(x.extents[2]);
        auto& in = kit::add_input(op, "x", x.type, {kit::along(op, s), kit::whole(tokens), kit::along(op, h)});
        in.touched_bytes = moved * static_cast<double>(size_of(x.type));
        in.gradient_flops = moved; // each slot's gradient is added to its token's
        kit::add_input(op, "gates", gates.type, {kit::along(op, s), kit::whole(tokens), kit::along(op, e)}).differentiable = false;
        op.flops = kit::elements(gates); // a running count of each expert's tokens
        op.saved_bytes = 4 * slots;
        return kit::finished(std::move(op));
    }
};

/// x[s, e, c, h], gates[s, l, e] -> y[s, l, h]: each token's sum over its experts of gate * what the expert answers in the token's slot; zero where
/// it was dropped everywhere. Dims: s sample, l attribute, h attribute, e reduction: a shard of some experts reads these experts' slots
/// and yields partial sums. Slots are read through the indices that `moe_dispatch` keeps. An empty slot is counted as a full one.
struct moe_combine {
    static constexpr std::string_view kind = "moe_combine";
    /// Inputs: x of four axes, gates of three, of equal s and e.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 2);
        kit::expect_rank(inputs, 0, 4);
        kit::expect_rank(inputs, 1, 3);
        kit::expect_floating(inputs, 0, 0);
        kit::expect_floating(inputs, 1, 1);
        auto const& x = inputs[0];
        auto const& gates = inputs[1];
        kit::expect_extent(inputs, 1, 0, x.extents[0], "that of input 0");
        kit::expect_extent(inputs, 1, 2, x.extents[1], "the number of experts of input 0");
        operation op{.kind = std::string(kind), .work = work_class::memory};
        auto const s = kit::add_dim(op, "s", x.extents[0], dim_kind::sample);
        auto const l = kit::add_dim(op, "l", gates.extents[1], dim_kind::attribute);
        auto const h = kit::add_dim(op, "h", x.extents[3], dim_kind::attribute);
        auto const e = kit::add_dim(op, "e", x.extents[1], dim_kind::reduction);
        double const products = kit::elements(x);
        auto const slots = kit::whole(x.extents[2]);
        auto& in = kit::add_input(op, "x", x.type, {kit::along(op, s), kit::along(op, e), slots, kit::along(op, h)});
        in.saved = true;
        in.gradient_flops = products;
        in.touched_bytes = products * static_cast<double>(size_of(x.type)); // a part of the tokens reads its own slots
        auto& weights = kit::add_input(op, "gates", gates.type, {kit::along(op, s), kit::along(op, l), kit::along(op, e)});
        weights.saved = true;
        weights.gradient_flops = 2 * products;
        kit::add_output(op, "y", x.type, {kit::along(op, s), kit::along(op, l), kit::along(op, h)});
        op.flops = 2 * products;
        return kit::finished(std::move(op));
    }
};

} // namespace parsearch::ops
