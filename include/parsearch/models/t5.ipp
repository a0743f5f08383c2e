#pragma once
// T5 (Raffel et al., JMLR 2020): a transformer encoder and decoder without biases, with RMS normalization and relative positions.

#include <parsearch/models/t5.hpp>

namespace parsearch::models::detail {

/// Attention whose scores get, for each head, an entry of a table that their relative position chooses: a weight bias[buckets, heads].
/// Every device fills in the scores from its table, so that the bias of all pairs of positions is never moved. Inputs as of `ops::attention`.
struct relative_attention {
    static constexpr std::string_view kind = "attention";
    ops::attention core{};
    std::int64_t buckets = 1;
    std::string parameter{};
    [[nodiscard]] ops::operation infer(std::span<ops::tensor const> inputs) const;
};

} // namespace parsearch::models::detail

namespace parsearch::models::detail {

PARSEARCH_INLINE ops::operation relative_attention::infer(std::span<ops::tensor const> inputs) const {
    ops::kit::expect_inputs(inputs, 3);
    auto op = core.infer(inputs);
    auto const scores = ops::kit::elements({.extents = {op.dims[0].extent, op.dims[1].extent, op.dims[3].extent}}) * static_cast<double>(core.heads);
    op.flops += scores;
    op.dims[2].kind = ops::dim_kind::parameter;
    ops::kit::add_weight(op, parameter, "bias", inputs[0].type, {ops::kit::whole(buckets), ops::kit::along(op, 2)}, scores);
    return op;
}

/// One of T5's two stacks of blocks, over x[batch, length, hidden]. The decoder (named `memory`: what it attends to) looks back only.
PARSEARCH_INLINE tensor_ref t5_stack(operator_graph& g, t5_options const& o, std::string const& stack, tensor_ref x, tensor_ref const* memory) {
    transformer const t{.rms = true, .dropout = o.dropout};
    head_sizes const h{.heads = o.heads, .kv_heads = o.heads, .size = o.head_size};
    chain net{g, x};
    drop(net, stack + ".dropout", o.dropout);
    relative_attention const self{.core = {.heads = o.heads, .causal = memory != nullptr}, .buckets = o.buckets, .parameter = stack + ".positions"};
    for (std::int64_t layer = 1; layer <= o.layers; ++layer) {
        auto const block = text(stack, ".block", layer);
        auto const attention = block + ".attention", cross = block + ".cross", mlp = block + ".mlp";
        net.end = residual(g, t, attention, net.end, [&](tensor_ref y) {
            return projected_attention(g, attention, y, y, h, o.hidden, [&](auto q, auto k, auto v) { return g.add(attention, self, q, k, v); });
        });
        if (memory)
            net.end = residual(g, t, cross, net.end, [&](tensor_ref y) {
                return projected_attention(g, cross, y, *memory, h, o.hidden,
                                           [&](auto q, auto k, auto v) { return g.add(cross, ops::attention{.heads = o.heads}, q, k, v); });
            });
        net.end = residual(g, t, mlp, net.end, [&](tensor_ref y) {
            return feed_forward(g, mlp, y, o.feed_forward, o.hidden, o.gated ? ops::function::gelu : ops::function::relu, o.gated);
        });
    }
    net.then(stack + ".norm", ops::rms_norm{});
    drop(net, stack + ".norm.dropout", o.dropout);
    return net.end;
}

} // namespace parsearch::models::detail

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph t5(t5_options const& o) {
    detail::check_count("t5", "layers", o.layers);
    detail::check_size("t5", "hidden", o.hidden);
    detail::check_size("t5", "heads", o.heads);
    detail::check_size("t5", "head_size", o.head_size);
    detail::check_size("t5", "feed_forward", o.feed_forward);
    detail::check_size("t5", "buckets", o.buckets);
    detail::check_size("t5", "source", o.source);
    detail::check_size("t5", "target", o.target);
    detail::check_size("t5", "vocabulary", o.vocabulary);
    detail::check_size("t5", "batch", o.batch);
    detail::check_probability("t5", "dropout", o.dropout);
    detail::check_floating("t5", o.type);
    graph::operator_graph g;
    auto const embedded = [&](std::string const& name, std::int64_t length) -> graph::tensor_ref {
        auto const index = g.input(name + ".index", {{o.batch, length}, ops::dtype::i64});
        return g.add(name, ops::embedding{.entries = o.vocabulary, .features = o.hidden, .type = o.type, .parameter = "tokens"}, index);
    };
    auto const memory = detail::t5_stack(g, o, "encoder", embedded("source", o.source), nullptr);
    detail::chain net{g, detail::t5_stack(g, o, "decoder", embedded("target", o.target), &memory)};
    if (o.tied) net.then("scale", ops::unary{ops::function::scale}); // by the root of hidden
    net.then("logits", ops::linear{.out = o.vocabulary, .bias = false, .parameter = o.tied ? "tokens" : ""});
    detail::add_loss(g, net.end);
    return g;
}

} // namespace parsearch::models
