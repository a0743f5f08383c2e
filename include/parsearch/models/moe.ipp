#pragma once
// A decoder-only transformer whose perceptrons are mixtures of experts (Shazeer et al., 2017; GShard: Lepikhin et al., ICLR 2021;

#include <parsearch/models/moe.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/mixture_of_experts.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/ops/softmax.hpp>

namespace parsearch::models::detail {

/// How many samples have their tokens routed together. In inference no token is dropped, and slots that even use leaves empty would count as work:
/// the fewest samples, a divisor of the batch, whose tokens fill the experts' slots evenly; else all.
[[nodiscard]] inline std::int64_t routed_together(moe_options const& o) {
    for (std::int64_t n = 1; n < o.batch && o.inference; ++n)
        if (o.batch % n == 0 && n * o.sequence * o.experts_per_token % o.experts == 0) return n;
    return o.inference ? o.batch : 1;
}

} // namespace parsearch::models::detail

namespace parsearch::models::detail {

PARSEARCH_INLINE tensor_ref mixture(operator_graph& g, moe_options const& o, std::string const& name, tensor_ref input) {
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

} // namespace parsearch::models::detail

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph moe(moe_options const& o) {
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
