#pragma once
/// A decoder-only transformer whose perceptrons are mixtures of experts (Shazeer et al., 2017; GShard: Lepikhin et al., ICLR 2021;
/// Switch: Fedus et al., JMLR 2022; Mixtral: Jiang et al., 2024).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/models/transformer.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/mixture_of_experts.hpp>
#include <parsearch/ops/shape.hpp>

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

/// How many samples have their tokens routed together. In inference no token is dropped, and slots that even use leaves empty would count as work:
/// the fewest samples, a divisor of the batch, whose tokens fill the experts' slots evenly; else all.
[[nodiscard]] inline std::int64_t routed_together(moe_options const& o) {
    for (std::int64_t n = 1; n < o.batch && o.inference; ++n)
        if (o.batch % n == 0 && n * o.sequence * o.experts_per_token % o.experts == 0) return n;
    return o.inference ? o.batch : 1;
}

/// The mixture of experts of a block: router, dispatch, experts, sum.
inline tensor_ref mixture(operator_graph& g, moe_options const& o, std::string const& name, tensor_ref input) {
    auto const together = routed_together(o);
    auto const in_shape = [&](std::string const& part, std::vector<std::int64_t> shape, tensor_ref y) -> tensor_ref {
        return together == 1 ? y : g.add(name + part, ops::reshape{.shape = std::move(shape)}, y);
    };
    auto const x = in_shape(".tokens", {o.batch / together, together * o.sequence, o.hidden}, input);
    auto const gates = chain{g, x}
                           .then(name + ".router", ops::linear{.out = o.experts, .bias = false})
                           .then(name + ".softmax", ops::softmax{})
                           .then(name + ".top_k", ops::top_k_gate{.k = o.experts_per_token})
                           .end;
    auto const dispatched =
        g.add(name + ".dispatch", ops::moe_dispatch{.experts_per_token = o.experts_per_token, .capacity_factor = o.inference ? 1 : o.capacity_factor},
              x, gates);
    // A view where the tokens arrive: what two operators read is moved for each of them, and experts get theirs once.
    auto const slots = g.add(name + ".slots", ops::reshape{.shape = g.shape(dispatched).extents}, dispatched);
    auto const product = [&](std::string layer, std::int64_t out, tensor_ref y) -> tensor_ref {
        auto const in = g.shape(y).extents.back();
        return g.add(std::move(layer), ops::einsum{.equation = "sech,eho->seco", .weight = {o.experts, in, out}}, y);
    };
    auto const answers = feed_forward(g, name, slots, o.feed_forward, o.hidden, activation(o), o.gated, product);
    return in_shape(".samples", {o.batch, o.sequence, o.hidden}, g.add(name + ".combine", ops::moe_combine{}, answers, gates));
}
} // namespace detail

/// Attention without bias and with grouped heads, RMS normalization, residual connections. Parameters of a block: 2 h^2 + 2 h^2 kv_heads / heads of
/// attention, 2 h of normalization, m h f of a perceptron (m = 3 where gated, else 2) or e (h + m h f) of experts and router; then h of the last
/// normalization and V h or 2 V h of vocabulary. By default 46,702,792,704. The auxiliary loss that balances the use of experts is left out:
/// its work is negligible, and that it works is assumed, since all experts take as long. Throws `invalid_input` naming the option.
[[nodiscard]] inline graph::operator_graph moe(moe_options const& o = {}) {
    detail::check_count("moe", "layers", o.layers);
    detail::check_multiple("moe", "hidden", o.hidden, "heads", o.heads);
    detail::check_multiple("moe", "heads", o.heads, "kv_heads", o.kv_heads);
    detail::check_size("moe", "feed_forward", o.feed_forward);
    detail::check_size("moe", "experts", o.experts);
    detail::check_size("moe", "experts_per_token", o.experts_per_token);
    if (o.experts_per_token > o.experts)
        throw invalid_input("moe: experts_per_token is ", o.experts_per_token, ": must be at most experts, which is ", o.experts);
    if (!(o.capacity_factor > 0) || o.capacity_factor > 1e6)
        throw invalid_input("moe: capacity_factor is ", o.capacity_factor, ": must be above 0 and at most 1e6");
    detail::check_size("moe", "every", o.every);
    detail::check_size("moe", "sequence", o.sequence);
    detail::check_size("moe", "vocabulary", o.vocabulary);
    detail::check_size("moe", "batch", o.batch);
    detail::check_floating("moe", o.type);
    auto const how = detail::checked_generation("moe", o.inference, o.cached);
    graph::operator_graph g;
    auto const index = g.input("tokens.index", {{o.batch, o.sequence}, ops::dtype::i64});
    std::string const table = o.tied ? "tokens" : "";
    detail::chain net{g, g.add("tokens", ops::embedding{.entries = o.vocabulary, .features = o.hidden, .type = o.type, .parameter = table}, index)};
    auto const residual = [&](std::string const& name, auto const& f) {
        auto const y = f(g.add(name + ".norm", ops::rms_norm{}, net.end));
        net.end = detail::sum(g, name + ".add", net.end, y);
    };
    for (std::int64_t layer = 1; layer <= o.layers; ++layer) {
        auto const block = text("block", layer);
        residual(block + ".attention", [&](graph::tensor_ref x) {
            ops::multi_head_attention const attention{
                .heads = o.heads, .kv_heads = o.kv_heads, .causal = true, .bias = false, .cache = how.inference, .cached = how.cached};
            return g.add(block + ".attention", attention, x, x, x)[0];
        });
        bool const sparse = layer % o.every == 0;
        auto const name = block + (sparse ? ".experts" : ".mlp");
        residual(name, [&](graph::tensor_ref x) {
            if (sparse) return detail::mixture(g, o, name, x);
            return detail::feed_forward(g, name, x, o.feed_forward, o.hidden, detail::activation(o), o.gated);
        });
    }
    detail::take_predicting(net, how);
    net.then("norm", ops::rms_norm{}).then("logits", ops::linear{.out = o.vocabulary, .bias = false, .parameter = table});
    detail::finish(net, how);
    return g;
}

} // namespace parsearch::models
