#include <parsearch/rewrite/parallel/operator_split.hpp>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/lab/reference/reference.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/ops/softmax.hpp>

#include "support/cases.hpp"
#include "support/random_network.hpp"
#include "support/random_split.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
template <class Op> ops::operation made(Op const& op, std::vector<ops::tensor> const& in) { return op.infer(in); }
ops::operation const plain_linear = made(ops::linear{.out = 6, .bias = false}, {{{8, 4}}}); // dims s, o, k
operator_split by(std::vector<std::int32_t> degree, std::int32_t copies = 1) { return {.degree = std::move(degree), .copies = copies}; }
} // namespace

TEST_CASE("split: a linear layer in samples, outputs and the dim it sums over") {
    auto const s = by({2, 3, 4});
    validate(s, plain_linear);
    CHECK(tasks_of(s) == 24);
    CHECK(to_string(operand_tensor(plain_linear, s, 0)) == "f32[8/2,4/4] 3 copies"); // each block of x for every block of outputs
    CHECK(to_string(operand_tensor(plain_linear, s, 1)) == "f32[6/3,4/4] 2 copies");
    CHECK(to_string(output_tensor(plain_linear, s, 0)) == "f32[8/2,6/3] 4 sums");
}

TEST_CASE("split: copies of the operator, and partial sums that pass through it") {
    auto const copied = by({2, 1, 1}, 3);
    CHECK(to_string(operand_tensor(plain_linear, copied, 0)) == "f32[8/2,4] 3 copies");
    CHECK(to_string(output_tensor(plain_linear, copied, 0)) == "f32[8/2,6] 3 copies");
    operator_split const passed{.degree = {1, 1, 2}, .sums = 3, .summed = 1};
    validate(passed, plain_linear);
    CHECK(to_string(operand_tensor(plain_linear, passed, 0)) == "f32[8,4/2] 3 sums");
    CHECK(to_string(operand_tensor(plain_linear, passed, 1)) == "f32[6,4/2] 3 copies");
    CHECK(to_string(output_tensor(plain_linear, passed, 0)) == "f32[8,6] 6 sums");
}

TEST_CASE("split: in micro-batches, weights and what samples do not index are read whole by each") {
    operator_split const s{.degree = {2, 3, 2}, .micro_batches = 4};
    validate(s, plain_linear);
    CHECK(tasks_of(s) == 12); // in each micro-batch
    CHECK_FALSE(is_unsplit({.degree = {1, 1, 1}, .micro_batches = 4}));
    CHECK(to_string(operand_tensor(plain_linear, s, 0)) == "f32[8/2,4/2] 3 copies 4 micro-batches of axis 0");
    CHECK(to_string(operand_tensor(plain_linear, s, 1)) == "f32[6/3,4/2] 2 copies");
    CHECK(to_string(output_tensor(plain_linear, s, 0)) == "f32[8/2,6/3] 2 sums 4 micro-batches of axis 0");
    CHECK(support::refusal([] {
              validate({.degree = {4, 1, 1}, .micro_batches = 4}, plain_linear);
              return 0;
          }) == "linear: dim 's' of extent 2 in a micro-batch is split by 4: must be a divisor");
    auto const biased = made(ops::add{}, {{{8, 4}}, {{1, 4}}}); // of a position: the same for all samples
    operator_split const each{.degree = {2, 1}, .micro_batches = 2};
    CHECK(to_string(operand_tensor(biased, each, 1)) == "f32[1,4] 2 copies");
    CHECK(split_for(biased, std::vector{operand_tensor(biased, each, 0), operand_tensor(biased, each, 1)}) == each);
    // Samples along another axis, in a flattened one, and of a result that is one for all.
    auto const turned = made(ops::transpose{.permutation = {1, 0}}, {{{8, 6}}});
    CHECK(to_string(operand_tensor(turned, {.degree = {1, 1}, .micro_batches = 2}, 0)).find(" 2 micro-batches of axis ") != std::string::npos);
    auto const flat = made(ops::reshape{.shape = {24, 2}}, {{{8, 3, 2}}});
    CHECK(to_string(output_tensor(flat, {.degree = std::vector<std::int32_t>(flat.dims.size(), 1), .micro_batches = 4}, 0)) ==
          "f32[24,2] 4 micro-batches of axis 0");
    auto summing = plain_linear;
    summing.outputs[0].axes.erase(summing.outputs[0].axes.begin());
    CHECK(to_string(output_tensor(summing, {.degree = {2, 1, 1}, .micro_batches = 2}, 0)) ==
          "f32[6] 2 sums"); // of the tasks; micro-batches are added up
}

TEST_CASE("split: what can not be divided into micro-batches refuses them") {
    auto const in = [](ops::operation const& op, std::vector<parallel_tensor> held) { return support::refusal([&] { return split_for(op, held); }); };
    auto const piped = [](ops::tensor t, std::size_t axis, std::int32_t n) {
        return resharded(in_one_part(std::move(t)), resharding::pipeline, axis, n);
    };
    CHECK(in(made(ops::reduce{.axes = {0}}, {{{8, 4}}}), {piped({{8, 4}}, 0, 2)}) ==
          "reduce_sum: runs in 2 micro-batches, and has no dim of samples: it needs all of them at once");
    CHECK(in(plain_linear, {piped({{8, 4}}, 1, 2), in_one_part({{6, 4}})}) ==
          "linear: operand 'x' held as f32[8,4] 2 micro-batches of axis 1: must come in 2 micro-batches of axis 0, as it runs in 2");
    CHECK(in(plain_linear, {piped({{8, 4}}, 0, 2), piped({{6, 4}}, 0, 2)}) ==
          "linear: operand 'weight' held as f32[6,4] 2 micro-batches of axis 0: must come in one micro-batch, as it runs in 2");
    auto const add = made(ops::add{}, {{{8, 4}}, {{8, 4}}});
    CHECK(in(add, {piped({{8, 4}}, 0, 2), in_one_part({{8, 4}})}) ==
          "add: operand 'x1' held as f32[8,4]: must come in 2 micro-batches of axis 0, as it runs in 2");
    CHECK(in(add, {piped({{8, 4}}, 0, 2), piped({{8, 4}}, 0, 4)}) ==
          "add: operand 'x1' held as f32[8,4] 4 micro-batches of axis 0: another operand comes in 2 micro-batches");
    CHECK(in(made(ops::concat{.axis = 0}, {{{8, 4}}, {{8, 4}}}), {piped({{8, 4}}, 0, 2), piped({{8, 4}}, 0, 2)})
              .find("micro-batches: concat has an axis of extent") == 0);
    CHECK(support::refusal([] {
              validate({.degree = {1, 1, 1}, .micro_batches = 3}, plain_linear);
              return 0;
          }) == "micro-batches: linear has 8 samples: 3 micro-batches must divide them");
    CHECK(support::refusal([] {
              validate({.degree = {1, 1, 1}, .micro_batches = 0}, plain_linear);
              return 0;
          }) == "linear: a split in 0 micro-batches: must be at least 1");
}

TEST_CASE("split: axes that are cut into no equal blocks") {
    auto const joined = made(ops::concat{.axis = 1}, {{{8, 2}}, {{8, 4}}});
    auto const s = by({2, 3});
    CHECK(to_string(operand_tensor(joined, s, 0)) == "f32[8/2,2] 3 copies"); // each task is given all of the axis
    CHECK(to_string(output_tensor(joined, s, 0)) == "f32[8/2,6/3]");
    auto const parts = made(ops::split{.axis = 1, .sizes = {2, 4}}, {{{8, 6}}});
    CHECK(support::refusal([&] { return output_tensor(parts, s, 1); }) ==
          "split: its split cuts axis 1 of output 'y1', of shape f32[8,4], into no equal blocks: that is no parallel tensor");
    auto const conv = made(ops::conv2d{.out = 4, .kernel = {3, 3}, .padding = {1, 1}}, {{{8, 2, 6, 6}}});
    CHECK(to_string(operand_tensor(conv, by({1, 2, 3, 1, 1}), 0)) == "f32[8,2,6/3,6] 2 copies"); // windows reach beyond
}

TEST_CASE("split: bad ones are refused") {
    CHECK(support::refusal([] {
              validate(by({2, 3}), plain_linear);
              return 0;
          }) == "linear: a split of 2 degrees: it has 3 iteration dims");
    CHECK(support::refusal([] {
              validate(by({3, 1, 1}), plain_linear);
              return 0;
          }) == "linear: dim 's' of extent 8 is split by 3: must be a divisor");
    CHECK(support::refusal([] {
              validate(by({1, 1, 1}, 0), plain_linear);
              return 0;
          }).find("linear: a split with 0 copies") == 0);
    CHECK(support::refusal([] {
              validate({.degree = {1, 1, 1}, .sums = 2}, plain_linear);
              return 0;
          }) == "linear: 2 partial sums of no operand");
    CHECK(support::refusal([] {
              validate({.degree = {1, 1, 1}, .sums = 2, .summed = 3}, plain_linear);
              return 0;
          }) == "linear: runs on partial sums of operands in which it is not linear: these must be reduced before");
}

TEST_CASE("split: operands that do not go together are refused") {
    auto x = in_one_part({{8, 4}}), w = in_one_part({{6, 4}});
    x.degree = {2, 1};
    CHECK(support::refusal([&] {
              return split_for(plain_linear, std::vector{x, w});
          }) == "linear: operand 'weight' held as f32[6,4]: must be f32[6,4] 2 copies beside the operands before it");
    w.copies = 2;
    CHECK(split_for(plain_linear, std::vector{x, w}) == by({2, 1, 1}));
    x.degree = {2, 2};
    w.degree = {1, 4};
    CHECK(support::refusal([&] {
              return split_for(plain_linear, std::vector{x, w});
          }) == "linear: operand 'weight' held as f32[6,4/4] 2 copies: dim 'k' is in 2 parts by another operand");
    CHECK(support::refusal([&] { return split_for(plain_linear, std::vector{x}); }) == "linear: 1 operands: it has 2");
    CHECK(support::refusal([&] { return split_for(plain_linear, std::vector{w, w}); }).find("its shape must be f32[8,4]") != std::string::npos);
}

TEST_CASE("split: operands and split imply each other, on random operators") {
    constexpr std::uint64_t seed = 1;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    int compared = 0, split = 0, in_micro_batches = 0;
    for (int n = 0; n < support::cases(2000); ++n) {
        auto const g = graph::read_graph(support::random_network(rng, 8, 0)).graph;
        for (auto const& op : g.operations) {
            if (op.work == ops::work_class::source) continue;
            auto s = support::random_split(op, rng);
            if (bernoulli(rng, 0.2)) s.copies = 3;
            if (bernoulli(rng, 0.5)) {
                s.micro_batches = 2;
                try {
                    validate(s, op);
                } catch (invalid_input const&) {
                    s.micro_batches = 1; // no samples, or fewer than both ask
                }
            }
            std::vector<parallel_tensor> held;
            std::uint32_t seen = 0;
            for (std::size_t i = 0; i < operands_of(op); ++i) {
                held.push_back(operand_tensor(op, s, i));
                CHECK(parts_of(held.back()) == tasks_of(s)); // each task reads one part of each operand
                for (std::size_t a = 0; a < held.back().degree.size(); ++a)
                    if (held.back().degree[a] > 1)
                        for (auto const& t : operand_of(op, i).axes[a].terms) seen |= std::uint32_t{1} << t.dim;
            }
            // Dims whose blocks no operand shows are not to be found out.
            bool shown = s.micro_batches == 1 || std::ranges::any_of(held, [](auto const& t) { return t.micro_batches > 1; });
            for (std::size_t d = 0; d < op.dims.size(); ++d) shown = shown && (s.degree[d] == 1 || (seen >> d & 1) != 0);
            if (!shown) continue;
            CHECK(split_for(op, held) == s);
            ++compared;
            in_micro_batches += s.micro_batches > 1;
            split += tasks_of(s) > 1;
        }
    }
    CHECK(compared > support::cases(4000));
    CHECK(split > support::cases(2000));
    CHECK(in_micro_batches > support::cases(1000));
}

namespace {

/// An operator as a function of the shapes of its operands, weights too: the same for whole tensors and for blocks.
struct sized_operator {
    std::vector<ops::tensor> operands;
    std::function<ops::operation(std::vector<ops::tensor> const&)> at;
};
template <class Op> sized_operator of_inputs(Op op, std::vector<ops::tensor> operands) {
    return {std::move(operands), [op](auto const& t) { return op.infer(t); }};
}
std::vector<sized_operator> sized_operators() {
    auto const layer = [](bool bias) {
        return [bias](std::vector<ops::tensor> const& t) { return ops::linear{.out = t[1].extents[0], .bias = bias}.infer(std::vector{t[0]}); };
    };
    auto const conv = [](std::vector<ops::tensor> const& t) {
        return ops::conv2d{.out = t[1].extents[0], .kernel = {1, 1}, .bias = false}.infer(std::vector{t[0]});
    };
    return {{{{{4, 6}}, {{8, 6}}}, layer(false)},
            {{{{4, 2, 6}}, {{8, 6}}}, layer(false)},
            {{{{4, 6}}, {{8, 6}}, {{8}}}, layer(true)},
            {{{{4, 6, 2, 2}}, {{8, 6, 1, 1}}}, conv},
            of_inputs(ops::batched_matmul{}, {{{2, 4, 6}}, {{2, 6, 8}}}),
            of_inputs(ops::batched_matmul{.transpose_b = true}, {{{2, 4, 6}}, {{2, 8, 6}}}),
            of_inputs(ops::add{}, {{{4, 6}}, {{4, 6}}}),
            of_inputs(ops::multiply{}, {{{4, 6}}, {{4, 6}}}),
            of_inputs(ops::relu{}, {{{4, 6}}}),
            of_inputs(ops::transpose{.permutation = {1, 2, 0}}, {{{4, 6, 2}}}),
            of_inputs(ops::concat{.axis = 0}, {{{4, 6}}, {{2, 6}}}),
            of_inputs(ops::reduce{.axes = {1}}, {{{4, 6, 2}}})};
}

/// The number of block `task` of an axis: of the tasks' places along the dims that index it, the outer first.
std::int64_t block_of(ops::axis const& a, operator_split const& s, std::vector<std::int64_t> const& task) {
    std::int64_t n = 0;
    for (auto const& t : rewrite::detail::outer_first(a)) n = n * s.degree[t.dim] + task[t.dim];
    return n;
}

} // namespace

TEST_CASE("split: tasks that compute on their blocks alone make the whole result, on random splits") {
    constexpr std::uint64_t seed = 6;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    auto const all = sized_operators();
    std::vector<int> summed(all.size()), reduced(all.size());
    for (int n = 0; n < support::cases(3000); ++n) {
        auto const which = uniform_index(rng, all.size());
        auto const& o = all[which];
        auto const op = o.at(o.operands);
        auto s = unsplit(op);
        for (std::size_t d = 0; d < op.dims.size(); ++d)
            if (auto const degree = static_cast<std::int32_t>(1 + uniform_index(rng, 3)); op.dims[d].extent % degree == 0 && op.kind != "concat")
                s.degree[d] = degree;
        if (op.kind == "concat" && bernoulli(rng, 0.5)) s.degree[1] = 2; // along the joined axis there are no blocks
        if (auto const mask = uniform_index(rng, 1U << operands_of(op)); mask != 0 && linear_in(op, mask)) {
            s.sums = 3;
            s.summed = mask;
            ++summed[which];
        }
        validate(s, op);
        // The whole operands, and each as the partial sums that it is held as.
        std::vector<reference::array> whole;
        std::vector<std::vector<reference::array>> parts;
        for (std::size_t i = 0; i < operands_of(op); ++i) {
            auto const held = operand_tensor(op, s, i);
            CHECK(parts_of(held) == tasks_of(s));
            whole.push_back(reference::filled(o.operands[i].extents));
            for (std::int32_t k = 0; k < held.sums; ++k) {
                auto const part = reference::random_array(o.operands[i].extents, rng);
                for (std::size_t e = 0; e < part.values.size(); ++e) whole[i].values[e] = reference::sum(whole[i].values[e], part.values[e]);
                parts.resize(i + 1);
                parts[i].push_back(part);
            }
        }
        auto const run = [](ops::operation const& what, std::vector<reference::array> const& operands) {
            std::vector<reference::array> const x(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(what.inputs.size()));
            std::vector<reference::array> const w(operands.begin() + static_cast<std::ptrdiff_t>(what.inputs.size()), operands.end());
            return reference::outputs_of(what, x, w)[0];
        };
        auto const expected = run(op, whole);
        auto const made = output_tensor(op, s, 0);
        reduced[which] += made.sums > 1;
        auto found = reference::filled(expected.extents);
        for (std::int64_t task = 0; task < ops::shard_count(s.degree); ++task)
            for (std::int32_t sum = 0; sum < s.sums; ++sum) {
                std::vector<std::int64_t> at(op.dims.size());
                for (auto [d, rest] = std::pair{op.dims.size(), task}; d-- > 0; rest /= s.degree[d]) at[d] = rest % s.degree[d];
                std::vector<reference::array> blocks;
                std::vector<ops::tensor> shapes;
                for (std::size_t i = 0; i < operands_of(op); ++i) {
                    auto const held = operand_tensor(op, s, i);
                    blocks.push_back(parts[i][held.sums > 1 ? static_cast<std::size_t>(sum) : 0]);
                    for (std::size_t a = 0; a < held.degree.size(); ++a) {
                        auto const size = blocks[i].extents[a] / held.degree[a];
                        blocks[i] = reference::part(blocks[i], a, block_of(operand_of(op, i).axes[a], s, at) * size, size);
                    }
                    shapes.push_back({.extents = blocks[i].extents});
                    if (i == 2 && at.back() != 0) blocks[i] = reference::filled(blocks[i].extents); // one of the tasks of a sum adds the bias
                }
                auto block = run(o.at(shapes), blocks);
                // Back to its place, zeros around it; what has the same place is added up.
                for (std::size_t a = 0; a < made.degree.size(); ++a) {
                    auto const size = block.extents[a];
                    block = reference::part(block, a, -block_of(op.outputs[0].axes[a], s, at) * size, size * made.degree[a]);
                }
                REQUIRE(block.extents == found.extents);
                for (std::size_t e = 0; e < block.values.size(); ++e) found.values[e] = reference::sum(found.values[e], block.values[e]);
            }
        INFO(op.kind);
        CHECK(found == expected);
    }
    int with_sums = 0, with_reductions = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        with_sums += summed[i] > 0;
        with_reductions += reduced[i] > 0;
    }
    CHECK(with_sums >= 9);
    CHECK(with_reductions >= 9);
}
