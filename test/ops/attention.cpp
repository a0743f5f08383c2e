#include <parsearch/ops/attention.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("multi_head_attention: parameters and multiply-adds of a self-attention") {
    auto const x = f32({2, 10, 12});
    auto const op = infer(ops::multi_head_attention{.heads = 3, .parameter = "a"}, {x, x, x});
    CHECK(dims(op) == "s2 lq10~ heads3* lk10!");
    CHECK(op.work == ops::work_class::attention);
    CHECK(extents(op.outputs[0]) == shape{2, 10, 12});
    CHECK(ops::parameters_of(op) == 4 * (12 * 12 + 12)); // as torch.nn.MultiheadAttention(12, 3)
    CHECK(op.multiply_adds == 2.0 * 10 * 4 * 12 * 12 + 2 * (2.0 * 3 * 10 * 10 * 4));
    CHECK(op.weights.size() == 8);
    for (auto const& w : op.weights) CHECK(w.parameter == "a." + w.name);
    // All gradients and the inside of backward: twice the matrix products of forward.
    double backward = op.backward_flops;
    for (auto const& o : op.inputs) backward += o.gradient_flops;
    for (auto const& o : op.weights)
        if (o.axes.size() == 2) backward += o.gradient_flops;
    CHECK(backward == 4 * op.multiply_adds + 5 * 2 * 3 * 10 * 10);
}

TEST_CASE("multi_head_attention: heads split the projections and leave partial sums") {
    auto const x = f32({2, 10, 12});
    auto const op = infer(ops::multi_head_attention{.heads = 3}, {x, x, x});
    std::vector<std::int32_t> const by_head{1, 1, 3, 1}, by_query{1, 2, 1, 1};
    CHECK(ops::partial_sums(op, op.outputs[0], by_head) == 3);
    CHECK(ops::partial_sums(op, op.outputs[0], by_query) == 1);
    CHECK(op.weights[0].name == "q_weight");
    CHECK(shard_interval(op, op.weights[0], 0, by_head, 1) == ops::interval{4, 8});
    CHECK(op.weights[6].name == "out_weight");
    CHECK(shard_interval(op, op.weights[6], 1, by_head, 2) == ops::interval{8, 12});
    CHECK(replicated_by(op, op.weights[6]) == "s lq");
    CHECK(replicated_by(op, op.inputs[0]) == "heads");
    CHECK(replicated_by(op, op.inputs[1]) == "lq heads"); // every query needs all keys
    CHECK(shard_extents(op, op.inputs[1], by_query, 1) == shape{2, 10, 12});
    CHECK(shard_extents(op, op.inputs[0], by_query, 1) == shape{2, 5, 12});
}

TEST_CASE("multi_head_attention: grouped heads, other widths, cross attention") {
    ops::multi_head_attention const grouped{.heads = 8, .kv_heads = 2, .head_size = 4, .out = 6, .bias = false};
    auto const op = infer(grouped, {f32({2, 5, 12}), f32({2, 7, 10}), f32({2, 7, 9})});
    CHECK(dims(op) == "s2 lq5~ heads2* lk7!");
    CHECK(extents(op.weights[0]) == shape{32, 12});
    CHECK(extents(op.weights[1]) == shape{8, 10});
    CHECK(extents(op.weights[2]) == shape{8, 9});
    CHECK(extents(op.weights[3]) == shape{6, 32});
    CHECK(extents(op.outputs[0]) == shape{2, 5, 6});
    CHECK(op.multiply_adds == 2.0 * 5 * 32 * 12 + 2.0 * 7 * 8 * 10 + 2.0 * 7 * 8 * 9 + 2.0 * 5 * 32 * 6 + 2 * (2.0 * 8 * 5 * 7 * 4));
    // One of the two groups: 16 of the 32 query rows, 4 of the 8 key rows.
    CHECK(shard_interval(op, op.weights[0], 0, {1, 1, 2, 1}, 1) == ops::interval{16, 32});
    CHECK(shard_interval(op, op.weights[1], 0, {1, 1, 2, 1}, 1) == ops::interval{4, 8});
}

TEST_CASE("multi_head_attention: without flash scores go through memory; flash leaves out those that a causal mask hides") {
    auto const x = f32({2, 10, 12});
    double const scores = 2 * 3 * 10 * 10, bytes = scores * 4;
    ops::multi_head_attention options{.heads = 3};
    auto const flash = infer(options, {x, x, x});
    options.flash = false;
    auto const plain = infer(options, {x, x, x});
    CHECK(plain.flops == flash.flops);
    CHECK(plain.saved_bytes - flash.saved_bytes == bytes - 2 * 3 * 10 * 4);
    CHECK(plain.intermediate_bytes - flash.intermediate_bytes == 3 * bytes);
    CHECK(plain.backward_intermediate_bytes - flash.backward_intermediate_bytes == 6 * bytes);
    options.dropout = 0.1;
    auto const dropped = infer(options, {x, x, x});
    CHECK(dropped.saved_bytes - plain.saved_bytes == bytes + scores); // what is left, and a mask
    CHECK(dropped.intermediate_bytes - plain.intermediate_bytes == bytes);
    CHECK(dropped.backward_intermediate_bytes - plain.backward_intermediate_bytes == bytes);
    options.dropout = 0;
    options.causal = true;
    auto masked = infer(options, {x, x, x});
    CHECK(masked.variant == "causal");
    masked.variant.clear();
    CHECK(masked == plain);
    CHECK(infer(ops::attention{.heads = 3, .causal = true}, {x, x, x}).variant == "causal");
    CHECK(infer(ops::attention{.heads = 3}, {x, x, x}).variant.empty());
    options.flash = true;
    auto const causal = infer(options, {x, x, x});
    CHECK(causal.multiply_adds == flash.multiply_adds);
    CHECK(flash.flops - causal.flops == (4 * 4 + 6) * scores * 9 / 20); // 55 of 100 scores are left
    CHECK(flash.backward_flops - causal.backward_flops == (8 * 4 + 5) * scores * 9 / 20);
    CHECK(causal.product_flops == flash.product_flops);
    CHECK(refusal(ops::multi_head_attention{.heads = 3, .dropout = 1}, {x, x, x}) == "option dropout is 1: must be at least 0 and below 1");
}

TEST_CASE("multi_head_attention: the projections are matrix products, and what is between them goes through memory") {
    auto const x = f32({2, 10, 12});
    auto const op = infer(ops::multi_head_attention{.heads = 3, .bias = false}, {x, x, x});
    double const projections = 2.0 * 10 * 4 * 12 * 12, between = 2 * 10 * 12 * 4;
    CHECK(op.product_flops == 2 * projections);
    std::vector<std::int32_t> const by_head{1, 1, 3, 1};
    auto const forward = ops::work_of(op, by_head, ops::pass::forward);
    CHECK(forward.product_flops == doctest::Approx(2 * projections / 3));
    CHECK(forward.flops - forward.product_flops == doctest::Approx((4 * 4 + 6) * 2.0 * 10 * 10));
    auto const backward = ops::work_of(op, by_head, ops::pass::backward);
    CHECK(backward.product_flops == doctest::Approx(4 * projections / 3));
    // Without the gradient of the inputs three of the eight products are left out.
    CHECK(ops::work_of(op, by_head, ops::pass::backward, 0).product_flops == doctest::Approx(4 * projections / 3 * 5 / 8));
    CHECK(op.intermediate_bytes == 4 * between);
    CHECK(op.backward_intermediate_bytes == 12 * between);
}

TEST_CASE("amounts of products, and variants, that break a rule are refused") {
    auto const x = f32({2, 10, 12});
    auto const sound = infer(ops::multi_head_attention{.heads = 3}, {x, x, x});
    auto const said = [](ops::operation const& op) { return support::refusal([&] { ops::validate(op, "it"); }); };
    auto op = sound;
    op.product_flops = op.flops * 2;
    CHECK(said(op).find("operator 'it' (multi_head_attention): product_flops is ") == 0);
    CHECK(said(op).find(": must be at most flops, ") != std::string::npos);
    op = sound;
    op.work = ops::work_class::matmul;
    CHECK(said(op).find("must be 0 where work is matmul, whose flops all are") != std::string::npos);
    op = sound;
    op.product_flops = 0;
    CHECK(said(op).find("must be 0 where product_flops is") != std::string::npos);
    op = sound;
    op.intermediate_bytes = -1;
    CHECK(said(op).find("intermediate_bytes is -1: must be finite and not negative") != std::string::npos);
    op = sound;
    op.variant = "window=512";
    CHECK(said(op).find("variant is 'window=512': must be of small letters, blanks and commas") != std::string::npos);
}

TEST_CASE("attention: the core splits by head without partial sums") {
    auto const op = infer(ops::attention{.heads = 6, .kv_heads = 3}, {f32({2, 5, 24}), f32({2, 7, 12}), f32({2, 7, 15})});
    CHECK(dims(op) == "s2 lq5~ heads3~ lk7!");
    CHECK(extents(op.outputs[0]) == shape{2, 5, 30});
    CHECK(op.multiply_adds == 2.0 * 6 * 5 * 7 * (4 + 5));
    CHECK(op.weights.empty());
    std::vector<std::int32_t> const by_head{1, 1, 3, 1};
    CHECK(shard_interval(op, op.inputs[0], 2, by_head, 1) == ops::interval{8, 16});
    CHECK(shard_interval(op, op.inputs[1], 2, by_head, 1) == ops::interval{4, 8});
    CHECK(shard_interval(op, op.inputs[2], 2, by_head, 2) == ops::interval{10, 15});
    CHECK(shard_interval(op, op.outputs[0], 2, by_head, 2) == ops::interval{20, 30});
    CHECK(ops::partial_sums(op, op.outputs[0], by_head) == 1);
    double backward = op.backward_flops;
    for (auto const& o : op.inputs) backward += o.gradient_flops;
    CHECK(backward == 4 * op.multiply_adds + 5 * 2 * 6 * 5 * 7);
}

TEST_CASE("attention: layouts are permutations of the same operands") {
    using enum ops::attention_layout;
    ops::attention op{.heads = 6, .kv_heads = 3};
    auto const packed_op = infer(op, {f32({2, 5, 24}), f32({2, 7, 12}), f32({2, 7, 15})});
    op.layouts = {by_head, transposed, by_position, length_first};
    auto const mixed = infer(op, {f32({2, 6, 5, 4}), f32({2, 3, 4, 7}), f32({2, 7, 3, 5})});
    CHECK(mixed.dims == packed_op.dims);
    CHECK(mixed.flops == packed_op.flops);
    CHECK(mixed.multiply_adds == packed_op.multiply_adds);
    CHECK(mixed.backward_flops == packed_op.backward_flops);
    CHECK(extents(mixed.outputs[0]) == shape{5, 2, 30});
    std::vector<std::int32_t> const degrees{2, 5, 3, 1};
    for (std::int64_t n = 0; n < 30; ++n) {
        auto const b = ops::shard_box(packed_op, degrees, n);
        for (std::size_t i = 0; i < 3; ++i) CHECK(ops::shard_elements(mixed.inputs[i], b) == ops::shard_elements(packed_op.inputs[i], b));
    }
    CHECK(shard_extents(mixed, mixed.inputs[0], degrees, 0) == shape{1, 2, 1, 4});
    CHECK(shard_extents(mixed, mixed.inputs[1], degrees, 0) == shape{1, 1, 4, 7});
    CHECK(shard_extents(mixed, mixed.inputs[2], degrees, 0) == shape{1, 7, 1, 5});
    CHECK(shard_extents(mixed, mixed.outputs[0], degrees, 0) == shape{1, 1, 10});
    CHECK(refusal(op, {f32({2, 5, 5, 4}), f32({2, 3, 4, 7}), f32({2, 7, 3, 5})}) ==
          "input 0 of shape f32[2,5,5,4]: axis 1 must have extent 6, its heads");
    CHECK(refusal(op, {f32({2, 6, 5, 4}), f32({2, 3, 5, 7}), f32({2, 7, 3, 5})}) ==
          "input 1 of shape f32[2,3,5,7]: axis 2 must have extent 4, the head size of input 0");
    CHECK(refusal(op, {f32({2, 6, 5, 4}), f32({2, 3, 4, 7}), f32({2, 8, 3, 5})}) ==
          "input 2 of shape f32[2,8,3,5]: axis 1 must have extent 7, the length of input 1");
}

TEST_CASE("attention: masks are broadcast to the scores") {
    auto const q = f32({2, 5, 12}), k = f32({2, 7, 12});
    ops::attention const op{.heads = 3};
    auto const bare = infer(op, {q, k, k});
    auto const masked = infer(op, {q, k, k, f32({2, 1, 1, 7})});
    CHECK(masked.inputs[3].name == "mask");
    CHECK(masked.inputs[3].saved);
    CHECK(masked.inputs[3].gradient_flops == 2 * 3 * 5 * 7); // summed over heads and queries
    CHECK(masked.flops - bare.flops == 2 * 3 * 5 * 7);
    CHECK(masked.multiply_adds == bare.multiply_adds);
    CHECK(masked.backward_flops == bare.backward_flops);
    CHECK(masked.saved_bytes == bare.saved_bytes);
    CHECK(replicated_by(masked, masked.inputs[3]) == "lq heads");
    auto const biased = infer(op, {q, k, k, f32({3, 5, 7}), i64({5, 1})});
    CHECK(replicated_by(biased, biased.inputs[3]) == "s");
    CHECK(biased.inputs[3].gradient_flops == 2 * 3 * 5 * 7);
    CHECK(infer(op, {q, k, k, f32({2, 3, 5, 7})}).inputs[3].gradient_flops == 0); // passed on as it is
    CHECK_FALSE(biased.inputs[4].differentiable);
    CHECK(replicated_by(biased, biased.inputs[4]) == "s heads");
    auto const joined = infer(op, {q, k, k, f32({6, 5, 7})});
    CHECK(shard_interval(joined, joined.inputs[3], 0, {2, 1, 3, 1}, 5) == ops::interval{3, 6});
    CHECK(refusal(op, {q, k, k, f32({4, 5, 7})}) ==
          "input 3 of shape f32[4,5,7]: axis 0 must have extent 3 or 1: a mask is broadcast to the scores, [2,3,5,7]");
    CHECK(refusal(op, {q, k, k, f32({1, 1, 1, 5, 7})}) == "input 3 of shape f32[1,1,1,5,7]: must have at most 4 axes");
}

TEST_CASE("attention: refusals") {
    auto const q = f32({2, 5, 12}), k = f32({2, 7, 12});
    ops::multi_head_attention const mha{.heads = 3};
    CHECK(refusal(ops::multi_head_attention{}, {q, k, k}) == "option heads is 0: must be between 1 and 2^40");
    CHECK(refusal(ops::multi_head_attention{.heads = 5}, {q, k, k}) ==
          "input 0 of shape f32[2,5,12]: option heads is 5: must divide axis 2 where head_size is not given");
    CHECK(refusal(ops::multi_head_attention{.heads = 3, .kv_heads = 2}, {q, k, k}) == "option kv_heads is 2: must divide option heads (3)");
    CHECK(refusal(ops::multi_head_attention{.heads = 3, .causal = true}, {q, k, k}) ==
          "input 1 of shape f32[2,7,12]: axis 1 must have extent 5, the length of input 0 (option causal)");
    CHECK(refusal(mha, {q, k}) == "2 inputs: must have 3");
    CHECK(refusal(mha, {q, k, f32({2, 6, 12})}) == "input 2 of shape f32[2,6,12]: axis 1 must have extent 7, the length of input 1");
    CHECK(refusal(mha, {q, f32({1, 7, 12}), k}) == "input 1 of shape f32[1,7,12]: axis 0 must have extent 2, the samples of input 0");
    std::int64_t const huge = std::int64_t{1} << 30;
    CHECK(refusal(ops::multi_head_attention{.heads = huge, .head_size = huge}, {q, k, k}).find("heads * head_size is 1152921504606846976") == 0);
    CHECK(refusal(ops::attention{.heads = 5}, {q, k, k}) == "input 0 of shape f32[2,5,12]: axis 2 must be a multiple of its 5 heads");
    CHECK(refusal(ops::attention{.heads = 3}, {q, f32({2, 7, 6}), k}) ==
          "input 1 of shape f32[2,7,6]: axis 2 must have extent 12, the key/value heads times the head size of input 0");
}

TEST_CASE("attention: a step of decoding reads what is cached, and adds its own keys and values") {
    // 4 samples, 6 heads in 2 groups of 5 elements, 11 positions cached.
    ops::attention const step{.heads = 6, .kv_heads = 2, .causal = true, .cache = true, .cached = 11};
    auto const op = infer(step, {f32({4, 1, 30}), f32({4, 1, 10}), f32({4, 1, 10})});
    CHECK(dims(op) == "s4 lq1~ heads2~ lk1! past11+");
    CHECK(op.kind == "cached_attention");
    CHECK(ops::keeps_cache(op));
    CHECK(!ops::has_parameters(op));
    CHECK(ops::parameters_of(op) == 0);
    REQUIRE(op.weights.size() == 4);
    for (auto const& w : op.weights) CHECK(w.cache);
    CHECK(op.weights[0].name == "past_k");
    CHECK(extents(op.weights[0]) == shape{4, 2, 11, 5});
    CHECK(op.weights[3].name == "new_v");
    CHECK(extents(op.weights[3]) == shape{4, 2, 1, 5});
    CHECK(op.multiply_adds == 4.0 * 6 * 12 * (5 + 5));
    CHECK(op.flops == 4.0 * 6 * 12 * (2 * 10 + 6)); // 12 keys for each query
    // Samples and heads have caches of their own; parts of the past leave partial sums.
    std::vector<std::int32_t> const split{2, 1, 2, 1, 3};
    CHECK(ops::partial_sums(op, op.outputs[0], split) == 3);
    CHECK(shard_extents(op, op.weights[0], split, 0) == shape{2, 1, 4, 5});
    CHECK(shard_extents(op, op.weights[2], split, 0) == shape{2, 1, 1, 5});
    auto const work = ops::work_of(op, split, ops::pass::forward);
    CHECK(work.bytes >= 4.0 * 2 * (2 * 4 * 5 + 2 * 5)); // both caches, once
}

TEST_CASE("attention: a prefill keeps each token's keys and values beside its query, a chunk sees what is cached and its own") {
    auto const tokens = f32({2, 8, 12}), keys = f32({2, 8, 4});
    ops::attention const prefill{.heads = 3, .kv_heads = 1, .causal = true, .cache = true};
    auto const op = infer(prefill, {tokens, keys, keys});
    CHECK(dims(op) == "s2 lq8~ heads1~ lk8!");
    REQUIRE(op.weights.size() == 2);
    CHECK(extents(op.weights[0]) == shape{2, 1, 8, 4});
    CHECK(shard_extents(op, op.weights[0], {1, 4, 1, 1}, 1) == shape{2, 1, 2, 4});
    auto const plain = infer(ops::attention{.heads = 3, .kv_heads = 1, .causal = true}, {tokens, keys, keys});
    CHECK(op.flops == plain.flops);
    auto chunk = prefill;
    chunk.cached = 24;
    auto const later = infer(chunk, {tokens, keys, keys});
    CHECK(later.flops == doctest::Approx(plain.flops * (24 + 4.5) / 4.5));
    // The same with projections inside, whose work is that of the new tokens.
    auto const x = f32({2, 8, 12});
    ops::multi_head_attention const whole{.heads = 3, .causal = true, .cache = true, .cached = 24};
    auto const joined = infer(whole, {x, x, x});
    CHECK(dims(joined) == "s2 lq8~ heads3* lk8! past24+");
    CHECK(ops::has_parameters(joined));
    CHECK(joined.kind == "cached_multi_head_attention");
    CHECK(ops::parameters_of(joined) == 4 * (12 * 12 + 12));
    CHECK(joined.multiply_adds == 4 * 2.0 * 8 * 12 * 12 + 2 * (2.0 * 3 * 8 * 32 * 4));
    CHECK(joined.weights.size() == 8 + 4);
}

TEST_CASE("attention: caches that can not be are refused") {
    auto const x = f32({2, 8, 12});
    auto const refused = [&](auto const& op, auto const&... more) { return support::refusal([&] { return infer(op, {x, x, x, more...}); }); };
    CHECK(refused(ops::attention{.heads = 3, .cached = 4}) == "option cached is 4: must be 0 where option cache is false");
    CHECK(refused(ops::attention{.heads = 3, .cache = true, .cached = -1}) == "option cached is -1: must be between 0 and 2^40");
    CHECK(refused(ops::attention{.heads = 3, .cache = true}, f32({8, 8})) == "option cache is true, with 1 masks: must have none");
    CHECK(refused(ops::multi_head_attention{.heads = 3, .cached = 4}) == "option cached is 4: must be 0 where option cache is false");
    CHECK(support::refusal([&] {
              return infer(ops::attention{.heads = 3, .cache = true}, {f32({2, 1, 12}), x, x});
          }) == "option cache is true, with 1 queries and 8 new keys: must be as many, since a token has one of each");
}
