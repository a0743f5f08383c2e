#include <parsearch/ops/kit/replicas.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/ops/softmax.hpp>

#include "support/refusal.hpp"

using namespace parsearch;

namespace {
ops::operation linear(bool bias = false) { return ops::linear{.out = 8, .bias = bias}.infer(std::vector<ops::tensor>{{{4, 6}}}); }
ops::operation sum() { return ops::add{}.infer(std::vector<ops::tensor>{{{4, 6}}, {{4, 6}}}); }
} // namespace

TEST_CASE("replicas: what operations are linear in") {
    CHECK(ops::linear_in(linear(), 0b01));
    CHECK(ops::linear_in(linear(), 0b10));
    CHECK_FALSE(ops::linear_in(linear(), 0b11));
    CHECK_FALSE(ops::linear_in(linear(true), 0b001)); // the bias would be added to each
    CHECK(ops::linear_in(sum(), 0b11));
    CHECK_FALSE(ops::linear_in(sum(), 0b01));
    CHECK_FALSE(ops::linear_in(ops::relu{}.infer(std::vector<ops::tensor>{{{4, 6}}}), 1));
    CHECK(ops::linear_in(ops::relu{}.infer(std::vector<ops::tensor>{{{4, 6}}}), 0));
}

TEST_CASE("replicas: copies do all the work each, and hold no partial sums") {
    auto const op = ops::with_copies(linear(), 4); // s, o, k, copies
    ops::validate(op, "op");
    REQUIRE(op.dims.size() == 4);
    std::vector<std::int32_t> const once{2, 1, 3, 1}, copied{2, 1, 3, 4};
    CHECK(ops::shard_count(copied) == 24);
    CHECK(ops::work_shards(op, copied) == 6);
    CHECK(ops::partial_sums(op, op.outputs[0], copied) == 3);
    for (auto const p : {ops::pass::forward, ops::pass::backward}) {
        auto const a = ops::work_of(op, once, p), b = ops::work_of(op, copied, p),
                   plain = ops::work_of(linear(), std::vector<std::int32_t>{2, 1, 3}, p);
        CHECK(a.flops == plain.flops);
        CHECK(b.flops == plain.flops);
        CHECK(a.bytes == plain.bytes);
        CHECK(b.bytes == plain.bytes);
    }
    CHECK(ops::without_replicas(op) == linear());
}

TEST_CASE("replicas: shards along the partial sums' dim do all of the work, and leave partial sums") {
    auto const op = ops::with_sums(sum(), 4, 0b11); // s, j, sums
    ops::validate(op, "op");
    CHECK(op.inputs[0].summed);
    CHECK(op.inputs[1].summed);
    std::vector<std::int32_t> const degrees{2, 1, 4};
    CHECK(ops::work_shards(op, degrees) == 2);
    CHECK(ops::partial_sums(op, op.outputs[0], degrees) == 4);
    CHECK(ops::without_replicas(op) == sum());
    auto const both = ops::with_sums(ops::with_copies(sum(), 2), 4, 0b11);
    CHECK(ops::partial_sums(both, both.outputs[0], std::vector<std::int32_t>{1, 1, 2, 4}) == 4);
    CHECK(ops::without_replicas(both) == sum());
    auto const factor = ops::with_sums(linear(), 2, 0b1);
    CHECK(factor.inputs[0].summed);
    CHECK(ops::without_replicas(factor) == linear());
}

TEST_CASE("replicas: dims before others are taken out, terms renumbered") {
    auto op = linear();
    auto const plain = op;
    op.dims.insert(op.dims.begin(), {"copies", 3, ops::dim_kind::copies});
    for (auto* const operands : {&op.inputs, &op.weights, &op.outputs})
        for (auto& o : *operands)
            for (auto& a : o.axes)
                for (auto& t : a.terms) ++t.dim;
    ops::validate(op, "op");
    CHECK(ops::without_replicas(op) == plain);
}

TEST_CASE("replicas: what is refused") {
    auto const says = [](auto const& make, std::vector<std::string> const& parts) {
        auto const why = support::refusal(make);
        INFO(why);
        return !why.empty() && std::all_of(parts.begin(), parts.end(), [&](auto const& part) { return why.find(part) != std::string::npos; });
    };
    auto const invalid = [](ops::operation const& op) {
        return [&op] {
            ops::validate(op, "x");
            return 0;
        };
    };
    CHECK(says([] { return ops::with_copies(linear(), 0); }, {"linear", "0 copies", "from 1 to 1048576"}));
    CHECK(says([] { return ops::with_copies(ops::with_copies(linear(), 2), 2); }, {"2 copies", "already"}));
    CHECK(says([] { return ops::with_sums(linear(), 2, 0); }, {"mask 0", "some of its 1 inputs"}));
    CHECK(says([] { return ops::with_sums(linear(), 2, 0b10); }, {"mask 2", "some of its 1 inputs"})); // a weight
    CHECK(says([] { return ops::with_sums(sum(), 2, 0b01); }, {"mask 1", "in which it is linear"}));
    auto many = linear();
    while (many.dims.size() < ops::max_dims) many.dims.push_back({"d", 1, ops::dim_kind::fixed});
    CHECK(says([&] { return ops::with_copies(many, 2); }, {"10 iteration dims", "no more"}));

    auto op = ops::with_copies(sum(), 2);
    op.dims.push_back({"again", 2, ops::dim_kind::copies});
    CHECK(says(invalid(op), {"'x'", "2 dims of copies", "at most one"}));
    op = ops::with_copies(sum(), 2);
    op.inputs[0].axes[0].terms = {{2, 1}};
    CHECK(says(invalid(op), {"'x'", "dim 'copies'", "must index nothing"}));
    op = sum();
    op.inputs[0].summed = true;
    CHECK(says(invalid(op), {"'x'", "0 dims of partial sums", "must be one"}));
    op = ops::with_sums(sum(), 2, 0b11);
    for (auto& i : op.inputs) i.summed = false;
    CHECK(says(invalid(op), {"'x'", "1 dims of partial sums", "none is"}));
    op = ops::with_sums(sum(), 2, 0b11);
    op.outputs[0].summed = true;
    CHECK(says(invalid(op), {"'x'", "output", "inputs alone"}));
}

TEST_CASE("replicas: partial results that are no sums") {
    auto const reduced = [](ops::reduction_mode m) { return ops::reduce{.mode = m, .axes = {1}}.infer(std::vector<ops::tensor>{{{4, 6}}}); };
    CHECK(ops::adds_up(reduced(ops::reduction_mode::sum)));
    CHECK(ops::adds_up(linear()));
    auto max = reduced(ops::reduction_mode::max);
    CHECK_FALSE(ops::adds_up(max));
    max.kind += "+negate";
    CHECK_FALSE(ops::adds_up(max));
}
