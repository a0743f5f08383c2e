#include <parsearch/ops/mixture_of_experts.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/einsum.hpp>
#include <parsearch/sim/task/movement.hpp>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("top_k_gate: keeps the last axis whole") {
    auto const op = infer(ops::top_k_gate{.k = 2}, {f32({4, 16, 8})});
    CHECK(dims(op) == "s4 l16~ e8!");
    CHECK(op.kind == "top_2_gate");
    CHECK(extents(op.outputs[0]) == shape{4, 16, 8});
    CHECK(op.outputs[0].saved);
    CHECK_FALSE(op.inputs[0].saved);
    CHECK(op.flops == 4 * 16 * (8 * 2 + 2 * 2));
    CHECK(op.inputs[0].gradient_flops == 4 * 16 * 2 * 4);
    CHECK(refusal(ops::top_k_gate{.k = 9}, {f32({4, 16, 8})}) == "option k is 9: must be at most the last extent of input 0 of shape f32[4,16,8]");
    CHECK(refusal(ops::top_k_gate{.k = 0}, {f32({4, 8})}) == "option k is 0: must be between 1 and 2^40");
    CHECK(refusal(ops::top_k_gate{}, {f32({8})}) == "input 0 of shape f32[8]: must have at least 2 axes");
    CHECK(refusal(ops::top_k_gate{}, {i64({4, 8})}) == "input 0 of shape i64[4,8]: must have a floating-point type");
}

TEST_CASE("moe_dispatch: slots of an expert") {
    auto const slots = [](std::int64_t tokens, std::int64_t experts, ops::moe_dispatch const& op) {
        return infer(op, {f32({1, tokens, 3}), f32({1, tokens, experts})}).dims[2].extent;
    };
    CHECK(slots(64, 8, {.experts_per_token = 2, .capacity_factor = 1}) == 16);
    CHECK(slots(64, 8, {.experts_per_token = 2, .capacity_factor = 1.25}) == 20);
    CHECK(slots(60, 8, {.experts_per_token = 1, .capacity_factor = 1}) == 8); // 7.5
    CHECK(slots(4, 128, {.experts_per_token = 1, .capacity_factor = 1}) == 1);
    CHECK(slots(64, 8, {.experts_per_token = 8, .capacity_factor = 1e6}) == 64); // a token takes one slot of an expert
}

TEST_CASE("moe_dispatch: a shard of some experts touches only their tokens") {
    auto const op = infer(ops::moe_dispatch{.experts_per_token = 2, .capacity_factor = 1.25}, {f32({4, 64, 32}), f32({4, 64, 8})});
    CHECK(dims(op) == "s4 e8~ c20! h32~");
    CHECK(op.work == ops::work_class::memory);
    CHECK(extents(op.outputs[0]) == shape{4, 8, 20, 32});
    CHECK(replicated_by(op, op.inputs[0]) == "e");
    CHECK(replicated_by(op, op.inputs[1]) == "h");
    CHECK(op.inputs[0].differentiable);
    CHECK_FALSE(op.inputs[1].differentiable);
    CHECK_FALSE(op.inputs[0].saved);
    CHECK(op.saved_bytes == 4 * 4 * 8 * 20);
    // What a shard holds of x is all tokens; what it reads and writes are its slots, and the gates of its experts.
    std::vector<std::int32_t> const experts{1, 8, 1, 1};
    CHECK(shard_extents(op, op.inputs[0], experts, 3) == shape{4, 64, 32});
    CHECK(shard_extents(op, op.inputs[1], experts, 3) == shape{4, 64, 1});
    CHECK(ops::work_of(op, experts, ops::pass::forward).bytes == 4.0 * (2 * 4 * 20 * 32 + 4 * 64 + 4 * 20)); // and a number per slot
    CHECK(ops::work_of(op, experts, ops::pass::backward).flops == 4 * 20 * 32);
    // Whole, a token is read once for each of its experts, but no more than there are tokens counts as read.
    CHECK(ops::work_of(op, std::vector<std::int32_t>{1, 1, 1, 1}, ops::pass::forward).bytes ==
          4.0 * (4 * 64 * 32 + 4 * 8 * 20 * 32 + 4 * 64 * 8 + 4 * 8 * 20));
    CHECK(refusal(ops::moe_dispatch{}, {f32({4, 64, 32}), f32({4, 32, 8})}) ==
          "input 1 of shape f32[4,32,8]: axis 1 must have extent 64, that of input 0");
    CHECK(refusal(ops::moe_dispatch{.experts_per_token = 9}, {f32({4, 64, 32}), f32({4, 64, 8})}) ==
          "option experts_per_token is 9: must be at most the 8 experts of input 1 of shape f32[4,64,8]");
    CHECK(refusal(ops::moe_dispatch{.capacity_factor = 0}, {f32({4, 64, 32}), f32({4, 64, 8})}) ==
          "option capacity_factor is 0: must be above 0 and at most 1e6");
    CHECK(refusal(ops::moe_dispatch{}, {f32({4, 64}), f32({4, 64, 8})}) == "input 0 of shape f32[4,64]: must have 3 axes");
}

TEST_CASE("moe_combine: experts are summed over") {
    auto const op = infer(ops::moe_combine{}, {f32({4, 8, 20, 32}), f32({4, 64, 8})});
    CHECK(dims(op) == "s4 l64~ h32~ e8+");
    CHECK(extents(op.outputs[0]) == shape{4, 64, 32});
    CHECK(ops::partial_sums(op, op.outputs[0], std::vector<std::int32_t>{2, 1, 1, 4}) == 4);
    CHECK(replicated_by(op, op.inputs[0]) == "l");
    CHECK(replicated_by(op, op.inputs[1]) == "h");
    CHECK(op.inputs[0].saved);
    CHECK(op.inputs[1].saved);
    CHECK(op.flops == 2 * 4 * 8 * 20 * 32);
    CHECK(ops::work_of(op, std::vector<std::int32_t>{1, 1, 1, 8}, ops::pass::forward).bytes == 4.0 * (4 * 20 * 32 + 4 * 64 + 4 * 64 * 32));
    CHECK(refusal(ops::moe_combine{}, {f32({4, 8, 20, 32}), f32({4, 64, 7})}) ==
          "input 1 of shape f32[4,64,7]: axis 2 must have extent 8, the number of experts of input 0");
    CHECK(refusal(ops::moe_combine{}, {f32({4, 8, 20, 32}), f32({3, 64, 8})}) ==
          "input 1 of shape f32[3,64,8]: axis 0 must have extent 4, that of input 0");
}

TEST_CASE("experts: an einsum whose weight has the experts as a parameter dim; samples to experts is an all-to-all") {
    auto const dispatch = infer(ops::moe_dispatch{.experts_per_token = 2, .capacity_factor = 1}, {f32({8, 64, 32}), f32({8, 64, 4})});
    auto const experts = infer(ops::einsum{.equation = "sech,eho->seco", .weight = {4, 32, 128}}, {f32({8, 4, 32, 32})});
    auto const combine = infer(ops::moe_combine{}, {f32({8, 4, 32, 128}), f32({8, 64, 4})});
    CHECK(dims(experts) == "s8 e4* c32~ o128* h32+");
    std::vector<std::int32_t> const samples{4, 1, 1, 1}, by_expert{1, 4, 1, 1, 1};
    CHECK(shard_extents(experts, experts.weights[0], by_expert, 1) == shape{1, 32, 128});
    auto const there = sim::find_overlaps(dispatch, dispatch.outputs[0], samples, experts, experts.inputs[0], by_expert);
    REQUIRE(there.exchanges.size() == 1);
    CHECK(there.exchanges[0].forward == collective_kind::all_to_all);
    CHECK(there.exchanges[0].backward == collective_kind::all_to_all);
    CHECK(there.exchanges[0].elements == 8 * 4 * 32 * 32);
    auto const back = sim::find_overlaps(experts, experts.outputs[0], by_expert, combine, combine.inputs[0], samples);
    REQUIRE(back.exchanges.size() == 1);
    CHECK(back.exchanges[0].forward == collective_kind::all_to_all);
    CHECK(back.exchanges[0].elements == 8 * 4 * 32 * 128);
    // Groups of two among four devices: two exchanges.
    std::vector<std::int32_t> const pairs{2, 2, 1, 1, 1};
    auto const grouped = sim::find_overlaps(dispatch, dispatch.outputs[0], samples, experts, experts.inputs[0], pairs);
    REQUIRE(grouped.exchanges.size() == 2);
    CHECK(grouped.exchanges[0].forward == collective_kind::all_to_all);
}
