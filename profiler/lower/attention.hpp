#pragma once
/// Attention: the core, fused where a library has it, and the whole with its projections.

#include <cstdint>
#include <vector>

#include <parsearch/ops/attention.hpp>

#include "shard.hpp"

namespace parsearch::profiler::detail {

/// Fused for f16 and bf16; in the other types, for which no library has a fused one, products with a softmax between, of which the probabilities are
/// kept for backward; these work on all scores, causal or not.
inline void append_attention_core(launches& out, attention const& a) {
    if (a.type == ops::dtype::f16 || a.type == ops::dtype::bf16) {
        out.emplace_back(a);
        return;
    }
    auto const batch = a.batch * a.kv_heads, rows = a.heads / a.kv_heads * a.queries;
    auto const product = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb) {
        out.emplace_back(matmul{.batch = batch, .m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb, .type = a.type});
    };
    softmax const probabilities{.backward = a.backward, .rows = batch * rows, .columns = a.keys, .type = a.type};
    if (!a.backward) {
        product(rows, a.keys, a.size, false, true); // scores
        out.emplace_back(probabilities);
        product(rows, a.value_size, a.keys, false, false); // context
        return;
    }
    product(a.keys, a.value_size, rows, true, false); // gradient of v: of probabilities and context
    product(rows, a.keys, a.value_size, false, true); // of the probabilities
    out.emplace_back(probabilities);
    product(rows, a.size, a.keys, false, false); // of q
    product(a.keys, a.size, rows, true, false);  // of k
}

/// Whether a fused kernel may leave out the keys behind each query. Where queries are split, a shard's are not the first: it is measured on all keys.
[[nodiscard]] inline bool is_causal(shard const& s, attention const& a) { return s.op().variant == ops::causal_variant && a.queries == a.keys; }

/// The sizes of a head, from the elements that a shard touches of each operand.
[[nodiscard]] inline attention core_of(shard const& s) {
    auto const& op = s.op();
    s.expect(op.inputs.size() >= 3, "must have q, k and v");
    auto const &q = op.inputs[0], &k = op.inputs[1], &v = op.inputs[2];
    attention a{.backward = s.backward(),
                .batch = s.extent("s"),
                .kv_heads = s.extent("heads"),
                .queries = s.extent("lq"),
                .keys = s.extent("lk"),
                .type = q.type};
    auto const per = [&](ops::operand const& o, std::int64_t n) {
        s.expect(s.elements(o) % n == 0, text("the elements of ", o.name, " are no multiple of its heads"));
        return s.elements(o) / n;
    };
    a.size = per(k, a.batch * a.keys * a.kv_heads);
    a.value_size = per(v, a.batch * a.keys * a.kv_heads);
    a.heads = per(q, a.batch * a.queries * a.size);
    s.expect(a.heads % a.kv_heads == 0, "the heads of the queries are no multiple of those of the keys");
    a.causal = is_causal(s, a);
    return a;
}

/// Masks are read by a launch of their own, where a fused kernel reads them in its.
[[nodiscard]] inline launches lower_attention(shard const& s) {
    auto const& op = s.op();
    auto const core = core_of(s);
    launches out;
    bool wanted = !s.backward();
    for (std::size_t i = 0; i < 3; ++i) wanted = wanted || s.wants(i);
    if (wanted) append_attention_core(out, core);
    auto const scores = core.batch * core.heads * core.queries * core.keys;
    for (std::size_t i = 3; i < op.inputs.size(); ++i) {
        auto const& mask = op.inputs[i];
        auto const size = s.elements(mask);
        if (wanted || s.wants(i)) append_streaming(out, {{size, mask.type}}, {{size, mask.type}}, 0);
        if (!s.wants(i) || !s.backward()) continue;
        // The gradient of the scores is written, and summed over what the mask is repeated along.
        append_streaming(out, {}, {{scores, mask.type}}, 0);
        if (size < scores) {
            s.expect(scores % size == 0, text("the scores are no multiple of mask ", mask.name));
            append_reductions(out, {scores / size, size}, {false, true}, mask.type);
        }
    }
    for (auto const& mask : op.weights) { // a learned bias of the scores
        auto const size = s.elements(mask);
        append_streaming(out, {{size, mask.type}}, {{size, mask.type}}, 0);
        if (!s.backward()) continue;
        append_streaming(out, {}, {{scores, mask.type}}, 0);
        s.expect(scores % size == 0, text("the scores are no multiple of mask ", mask.name));
        append_reductions(out, {scores / size, size}, {false, true}, mask.type);
    }
    return out;
}

/// Four projections around the core. Where queries are split, each shard projects its part of the keys and values, as the operation counts it.
[[nodiscard]] inline launches lower_multi_head_attention(shard const& s) {
    auto const& op = s.op();
    auto const &q = op.inputs.at(0), &y = op.outputs[0];
    auto const *const qw = s.weight("q_weight"), *const kw = s.weight("k_weight"), *const vw = s.weight("v_weight"),
                      *const ow = s.weight("out_weight");
    s.expect(qw && kw && vw && ow, "must have weights of queries, keys, values and output");
    bool const bias = s.weight("out_bias") != nullptr;
    auto const type = q.type;
    attention core{.backward = s.backward(),
                   .batch = s.extent("s"),
                   .kv_heads = s.extent("heads"),
                   .queries = s.extent("lq"),
                   .keys = s.extent("lk"),
                   .type = type};
    auto const rows_of = [&](ops::operand const& w) { return s.touched(w.axes[0]); };
    core.size = core.value_size = rows_of(*kw) / core.kv_heads;
    core.heads = rows_of(*qw) / core.size;
    core.causal = is_causal(s, core);
    auto const queries = core.batch * core.queries, parts = queries > 0 ? s.count() / (s.degree(0) * s.degree(2)) : 1;
    auto const keys = ceil_division(core.batch * core.keys, parts);
    auto const wide = rows_of(*qw), results = s.touched(ow->axes[0]);

    launches out;
    auto const project = [&](std::int64_t rows, std::int64_t outputs, std::int64_t features) {
        out.emplace_back(matmul{.m = rows, .n = outputs, .k = features, .transpose_b = true, .bias = bias, .type = type});
    };
    struct input_projection {
        std::size_t input;
        ops::operand const* weight;
        std::int64_t rows;
    };
    std::array<input_projection, 3> const projections{{{0, qw, queries}, {1, kw, keys}, {2, vw, keys}}};
    auto const features_of = [&](input_projection const& p) { return s.touched(op.inputs[p.input].axes[2]); };
    if (!s.backward()) {
        for (auto const& p : projections) project(p.rows, rows_of(*p.weight), features_of(p));
        append_attention_core(out, core);
        project(queries, results, wide);
        return out;
    }
    auto const gradients = [&](std::int64_t rows, std::int64_t outputs, std::int64_t features, bool data) {
        if (data) out.emplace_back(matmul{.m = rows, .n = features, .k = outputs, .type = type});
        out.emplace_back(matmul{.m = outputs, .n = features, .k = rows, .transpose_a = true, .type = type});
        if (bias) append_reductions(out, {rows, outputs}, {false, true}, type);
    };
    gradients(queries, results, wide, true);
    append_attention_core(out, core);
    for (auto const& p : projections) gradients(p.rows, rows_of(*p.weight), features_of(p), s.wants(p.input));
    s.expect(y.type == type, "queries and results must have one type");
    return out;
}

} // namespace parsearch::profiler::detail
