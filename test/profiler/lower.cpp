#include "profiler/lower.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/profile.hpp>
#include <parsearch/ops/kit/weighted.hpp>
#include <parsearch/rewrite/algebra/fuse.hpp>

#include "profiler/launch_cost.hpp"
#include "support/operator_types.hpp"
#include "support/operators.hpp"
#include "support/random_operators.hpp"

using namespace parsearch;
using namespace parsearch::profiler;

namespace {

/// Calls `f(op, degrees, rng)` for random applications of every operator and random degrees.
template <class F> void for_random_shards(std::uint64_t seeds, ops::dtype type, F const& f) {
    support::for_each_operator_type([&](auto t) {
        using op_type = typename decltype(t)::type;
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            CAPTURE(seed);
            CAPTURE(op_type::kind);
            std::mt19937_64 rng{seed};
            test::drawer draw(rng);
            auto applied = test::random_application<op_type>::draw(draw);
            for (auto& in : applied.inputs)
                if (ops::kit::is_floating(in.type)) in.type = type;
            auto const op = applied.infer();
            f(op, test::random_degrees(draw, op, 8), rng);
        }
    });
}

double products(lowered const& l) {
    double sum = 0;
    for (auto const& x : l.launches) sum += multiply_adds(x);
    return sum;
}
double bytes(lowered const& l) {
    double sum = 0;
    for (auto const& x : l.launches) sum += traffic_of(x).all();
    return sum;
}
std::string shown(lowered const& l) {
    std::string out = l.reason;
    for (auto const& x : l.launches) out += text("\n  ", to_string(x));
    return out;
}
ops::shard_work whole(ops::operation const& op, ops::pass pass, std::uint64_t wanted = ~std::uint64_t{0}) {
    return ops::work_of(op, std::vector<std::int32_t>(op.dims.size(), 1), pass, wanted);
}
bool is_reason_for(std::string const& kind, std::string const& reason) {
    auto const says = [&](std::string_view s) { return reason.find(s) != std::string::npos; };
    return says("does no work") || (kind == "einsum" && says("operands in one loop nest")) ||
           (kind.starts_with("norm_pool") && says("no library has a pooling of norms")) ||
           (kind.find("pool") != std::string::npos && says("dilated")) || says("padding alone") ||
           (kind == "attention" && says("no multiple of mask"));
}
} // namespace

TEST_CASE("lower: every operator, or a reason that is known; extents are positive, types those of the operands") {
    std::map<std::string, std::size_t> refused, done;
    for (auto const type : {ops::dtype::f32, ops::dtype::bf16})
        for_random_shards(120, type, [&](ops::operation const& op, std::vector<std::int32_t> const& degrees, std::mt19937_64& rng) {
            for (auto const pass : {ops::pass::forward, ops::pass::backward}) {
                auto const work = ops::work_of(op, degrees, pass, uniform_bits(rng));
                auto const l = lower(work);
                CAPTURE(cost::to_string(cost::kernel_of(work)));
                CAPTURE(l.reason);
                REQUIRE(l.launches.empty() == !l.reason.empty());
                if (!l) {
                    REQUIRE(is_reason_for(op.kind, l.reason));
                    if (l.reason.find("does no work") == std::string::npos) ++refused[op.kind];
                    continue;
                }
                ++done[op.kind];
                std::set<ops::dtype> allowed{ops::dtype::i8, ops::dtype::f32, ops::dtype::f16, ops::dtype::i64};
                for (auto const* const operands : {&op.inputs, &op.weights, &op.outputs})
                    for (auto const& o : *operands) allowed.insert(o.type);
                bool has_type = false;
                for (auto const& x : l.launches) {
                    CAPTURE(to_string(x));
                    auto const t = traffic_of(x);
                    REQUIRE(t.read >= 0);
                    REQUIRE(t.all() > 0);
                    std::visit(profiler::detail::overloaded{[&](streaming const& s) {
                                                                REQUIRE(s.reads.size() <= 8);
                                                                REQUIRE(s.writes.size() <= 8);
                                                                REQUIRE(s.flops >= 0);
                                                                for (auto const* const list : {&s.reads, &s.writes})
                                                                    for (auto const& each : *list) {
                                                                        REQUIRE(each.elements > 0);
                                                                        REQUIRE(allowed.contains(each.type));
                                                                        has_type = has_type || each.type == op.outputs[0].type;
                                                                    }
                                                                for (auto const& w : s.writes)
                                                                    for (auto const& r : s.reads) REQUIRE(r.elements <= w.elements);
                                                            },
                                                            [&](optimizer_update const&) { FAIL("no update was asked for"); },
                                                            [&](auto const& y) {
                                                                REQUIRE(allowed.contains(y.type));
                                                                has_type = has_type || y.type == op.outputs[0].type || y.type == op.inputs[0].type;
                                                            }},
                               x);
                }
                REQUIRE(has_type);
            }
        });
    // Kinds that are always refused are named here.
    for (auto const& [kind, n] : refused) {
        CAPTURE(kind);
        bool const known = done[kind] > 0 || kind.starts_with("norm_pool");
        CHECK(known);
    }
    MESSAGE(done.size() << " kinds of operations are lowered");
}

TEST_CASE("lower: products of contractions are those of the operation") {
    std::size_t compared = 0;
    for_random_shards(150, ops::dtype::f32, [&](ops::operation const& op, std::vector<std::int32_t> const& degrees, std::mt19937_64& rng) {
        if (op.multiply_adds == 0) return;
        auto const shards = static_cast<double>(ops::shard_count(degrees));
        auto const forward = lower(ops::work_of(op, degrees, ops::pass::forward));
        auto const wanted = uniform_bits(rng);
        auto const work = ops::work_of(op, degrees, ops::pass::backward, wanted);
        auto const backward = lower(work);
        if (!forward) return;
        CAPTURE(cost::to_string(cost::kernel_of(work)));
        CAPTURE(shown(forward));
        CAPTURE(shown(backward));
        bool const transposed = op.kind.starts_with("conv_transpose");
        if (transposed) { // a shard's halo is computed by both neighbours; what falls into the padding is not in each shard
            CHECK(products(lower(whole(op, ops::pass::forward))) == op.multiply_adds);
            ++compared;
            return;
        }
        if (op.kind == "multi_head_attention" && (op.dims[0].extent / degrees[0] * op.dims[3].extent) % degrees[1] != 0)
            return; // keys are rounded up
        if (op.kind == "einsum" && op.inputs.size() + op.weights.size() == 1) return;
        // A dim of one operand alone is summed before the product.
        auto const sums_alone = [&] {
            for (std::uint32_t k = 0; k < op.dims.size(); ++k) {
                std::size_t in = 0;
                for (auto const* const list : {&op.inputs, &op.weights})
                    for (auto const& o : *list) in += ops::is_indexed_by(o, k);
                if (op.kind == "einsum" && in < 2 && !ops::is_indexed_by(op.outputs[0], k)) return true;
            }
            return false;
        };
        if (sums_alone()) return;
        ++compared;
        CHECK(products(forward) == doctest::Approx(op.multiply_adds / shards));
        if (!backward) return;
        double expected = 0;
        for (std::size_t i = 0; i < op.inputs.size(); ++i)
            if (work.input_gradients >> i & 1) expected += op.multiply_adds;
        for (auto const& w : op.weights) expected += w.axes.size() > 1 || op.kind == "einsum" ? op.multiply_adds : 0;
        if (op.work == ops::work_class::matmul || op.work == ops::work_class::convolution)
            CHECK(products(backward) == doctest::Approx(expected / shards));
    });
    CHECK(compared > 600);
}

TEST_CASE("lower: recurrent layers and attention compute twice as much backward as forward") {
    for (auto const type : {ops::dtype::f32, ops::dtype::bf16}) {
        auto const layer = ops::lstm{.hidden = 96}.infer(std::vector<ops::tensor>{{{8, 20, 64}, type}});
        CHECK(products(lower(whole(layer, ops::pass::forward))) == layer.multiply_adds);
        CHECK(products(lower(whole(layer, ops::pass::backward))) == 2 * layer.multiply_adds);
        auto const cell = ops::lstm_cell{.hidden = 96}.infer(std::vector<ops::tensor>{{{8, 64}, type}, {{8, 96}, type}, {{8, 96}, type}});
        CHECK(products(lower(whole(cell, ops::pass::forward))) == cell.multiply_adds);
        CHECK(products(lower(whole(cell, ops::pass::backward))) == 2 * cell.multiply_adds);
        ops::tensor const q{{4, 128, 12 * 64}, type}, kv{{4, 256, 4 * 64}, type};
        auto const core = ops::attention{.heads = 12, .kv_heads = 4}.infer(std::vector<ops::tensor>{q, kv, kv});
        CHECK(products(lower(whole(core, ops::pass::forward))) == core.multiply_adds);
        CHECK(products(lower(whole(core, ops::pass::backward))) == 2 * core.multiply_adds);
        ops::tensor const x{{4, 128, 768}, type};
        auto const full = ops::multi_head_attention{.heads = 12}.infer(std::vector<ops::tensor>{x, x, x});
        CHECK(products(lower(whole(full, ops::pass::forward))) == full.multiply_adds);
        CHECK(products(lower(whole(full, ops::pass::backward))) == 2 * full.multiply_adds);
        // Heads in four parts: everything is a quarter.
        auto const quarter = ops::work_of(full, std::vector<std::int32_t>{1, 1, 4, 1}, ops::pass::forward);
        CHECK(products(lower(quarter)) == full.multiply_adds / 4);
        auto const queries = ops::work_of(full, std::vector<std::int32_t>{1, 2, 1, 1}, ops::pass::forward);
        CHECK(products(lower(queries)) == full.multiply_adds / 2);
        CHECK(lower(whole(core, ops::pass::forward)).launches.size() == (type == ops::dtype::bf16 ? 1 : 3));
    }
}

TEST_CASE("lower: causal attention is measured as such, but where its queries are split") {
    auto const causal_in = [](ops::operation const& op, std::vector<std::int32_t> const& degrees, ops::pass pass) {
        std::size_t causal = 0, cores = 0;
        for (auto const& l : lower(ops::work_of(op, degrees, pass)).launches)
            if (auto const* const a = std::get_if<attention>(&l)) {
                ++cores;
                causal += a->causal;
            }
        CHECK(cores == 1);
        return causal == 1;
    };
    ops::tensor const x{{4, 128, 768}, ops::dtype::bf16};
    for (bool const causal : {true, false})
        for (auto const pass : {ops::pass::forward, ops::pass::backward}) {
            auto const core = ops::attention{.heads = 12, .causal = causal}.infer(std::vector<ops::tensor>{x, x, x});
            auto const full = ops::multi_head_attention{.heads = 12, .causal = causal}.infer(std::vector<ops::tensor>{x, x, x});
            for (auto const& op : {core, full}) {
                CHECK(causal_in(op, {1, 1, 1, 1}, pass) == causal);
                CHECK(causal_in(op, {2, 1, 4, 1}, pass) == causal);
                CHECK_FALSE(causal_in(op, {1, 2, 1, 1}, pass));
            }
        }
}

TEST_CASE("lower: what streams moves the bytes that the operation counts") {
    std::set<std::string> exact{"linear",
                                "batched_matmul",
                                "concat",
                                "split",
                                "slice",
                                "expand",
                                "tile",
                                "flip",
                                "transpose",
                                "select",
                                "dropout",
                                "cast",
                                "rotary_embedding",
                                "cumulative_sum",
                                "local_response_norm",
                                "average_global_pool",
                                "max_global_pool"};
    for (auto const& f : ops::function_table) exact.insert(std::string(f.name));
    for (auto const& c : ops::combine_table) exact.insert(std::string(c.name));
    std::set<std::string> seen;
    for_random_shards(200, ops::dtype::f32, [&](ops::operation const& op, std::vector<std::int32_t> const& degrees, std::mt19937_64& rng) {
        bool const gate = op.kind.starts_with("top_") && op.kind.ends_with("_gate");
        if (!exact.contains(op.kind) && !gate) return;
        for (auto const pass : {ops::pass::forward, ops::pass::backward}) {
            auto const work = ops::work_of(op, degrees, pass, uniform_bits(rng));
            auto const l = lower(work);
            if (!l || work.bytes == 0) continue;
            // What forward keeps for backward is written in whole bytes.
            double const kept = pass == ops::pass::forward ? op.saved_bytes / static_cast<double>(ops::shard_count(degrees)) : 0;
            auto const ratio = bytes(l) / (work.bytes - (kept - std::floor(kept)));
            CAPTURE(cost::to_string(cost::kernel_of(work)));
            CAPTURE(shown(l));
            if (pass == ops::pass::forward) CHECK(ratio == doctest::Approx(1));
            seen.insert(op.kind);
            // Backward, gradients that are summed are written first; nothing is read of parts that no gradient comes from.
            bool const cuts = op.kind == "concat" || op.kind == "linear" || op.kind == "batched_matmul";
            if (pass == ops::pass::backward && !cuts) CHECK(ratio >= 1 - 1e-12);
        }
    });
    CHECK(seen.size() > 50);
}

TEST_CASE("lower: traffic at sizes of real networks is near what the operation counts") {
    struct sample {
        ops::operation op;
        std::vector<std::int32_t> degrees;
        double least_forward, most_forward, least_backward, most_backward;
    };
    using tensors = std::vector<ops::tensor>;
    auto const h = ops::dtype::bf16;
    ops::tensor const image{{32, 64, 56, 56}, h}, tokens{{8, 512, 1024}, h}, words{{8, 512}, ops::dtype::i64};
    std::vector<sample> samples;
    // The bias of a convolution is added by a launch of its own, which reads and writes the result again, and its gradient reads it again.
    samples.push_back({ops::conv2d{.out = 64, .kernel = {3, 3}, .padding = {1, 1}, .bias = false}.infer(tensors{image}), {}, 0.99, 1.01, 1.0, 1.4});
    samples.push_back({ops::conv2d{.out = 64, .kernel = {3, 3}, .padding = {1, 1}}.infer(tensors{image}), {2, 1, 2, 1, 1}, 1.9, 2.1, 1.3, 1.8});
    samples.push_back({ops::conv2d{.out = 128, .kernel = {1, 1}, .stride = {2, 2}, .bias = false}.infer(tensors{image}), {}, 0.99, 1.05, 1.0, 1.6});
    samples.push_back(
        {ops::conv_transpose2d{.out = 32, .kernel = {2, 2}, .stride = {2, 2}, .bias = false}.infer(tensors{image}), {}, 0.99, 1.01, 1.0, 1.6});
    samples.push_back({ops::linear{.out = 4096}.infer(tensors{tokens}), {2, 1, 2, 1}, 0.99, 1.01, 0.9, 1.7});
    samples.push_back({ops::layer_norm{}.infer(tensors{tokens}), {8, 1, 1}, 0.99, 1.01, 0.99, 1.01});
    samples.push_back({ops::rms_norm{}.infer(tensors{tokens}), {}, 0.99, 1.01, 0.99, 1.01});
    samples.push_back({ops::batch_norm{}.infer(tensors{image}), {4, 1, 1, 1}, 0.99, 1.01, 0.99, 1.01});
    samples.push_back({ops::group_norm{.groups = 8}.infer(tensors{image}), {}, 0.95, 1.05, 0.9, 1.1});
    samples.push_back({ops::softmax{}.infer(tensors{tokens}), {}, 0.99, 1.01, 0.99, 1.01});
    // Launches convert nothing through memory.
    samples.push_back({ops::cross_entropy{}.infer(tensors{{{4096, 32000}, h}, {{4096}, ops::dtype::i64}}), {}, 0.2, 0.3, 0.25, 0.35});
    samples.push_back({ops::embedding{.entries = 50000, .features = 1024, .type = h}.infer(tensors{words}), {}, 0.99, 1.01, 0.9, 1.1});
    samples.push_back({ops::embedding{.entries = 50000, .features = 1024, .type = h}.infer(tensors{words}), {1, 1, 1, 8}, 0.9, 1.1, 0.29, 1.1});
    samples.push_back({ops::pool2d{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}.infer(tensors{image}), {}, 0.5, 1.0, 0.9, 2.0});
    samples.push_back({ops::pool2d{.mode = ops::pool_mode::average, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}.infer(tensors{image}),
                       {},
                       0.99,
                       1.05,
                       0.99,
                       1.05});
    samples.push_back({ops::attention{.heads = 16}.infer(tensors{tokens, tokens, tokens}), {1, 1, 4, 1}, 0.99, 1.05, 0.8, 1.05});
    samples.push_back({ops::lstm{.hidden = 1024}.infer(tensors{tokens}), {}, 0.7, 1.01, 0.7, 1.2});
    samples.push_back({ops::reduce{.mode = ops::reduction_mode::mean, .axes = {1}}.infer(tensors{tokens}), {}, 0.99, 1.01, 0.99, 1.01});
    for (auto& sample : samples) {
        if (sample.degrees.empty()) sample.degrees.assign(sample.op.dims.size(), 1);
        for (auto const pass : {ops::pass::forward, ops::pass::backward}) {
            auto const work = ops::work_of(sample.op, sample.degrees, pass);
            auto const l = lower(work);
            auto const ratio = bytes(l) / work.bytes;
            CAPTURE(cost::to_string(cost::kernel_of(work)));
            CAPTURE(shown(l));
            CHECK(ratio >= (pass == ops::pass::forward ? sample.least_forward : sample.least_backward));
            CHECK(ratio <= (pass == ops::pass::forward ? sample.most_forward : sample.most_backward));
        }
    }
}

TEST_CASE("lower: what is asked of the libraries") {
    using tensors = std::vector<ops::tensor>;
    auto const h = ops::dtype::f16;
    auto const fc = ops::linear{.out = 48}.infer(tensors{{{8, 16, 32}, h}});
    CHECK(lower(whole(fc, ops::pass::forward)).launches ==
          std::vector<launch>{matmul{.m = 128, .n = 48, .k = 32, .transpose_b = true, .bias = true, .type = h}});
    CHECK(lower(whole(fc, ops::pass::backward)).launches == std::vector<launch>{matmul{.m = 128, .n = 32, .k = 48, .type = h},
                                                                                matmul{.m = 48, .n = 32, .k = 128, .transpose_a = true, .type = h},
                                                                                reduction{.outer = 1, .summed = 128, .inner = 48, .type = h}});
    CHECK(lower(whole(fc, ops::pass::backward, 0)).launches.size() == 2); // nobody wants the input's gradient
    CHECK(lower(ops::work_of(fc, std::vector<std::int32_t>{2, 1, 4, 2}, ops::pass::forward)).launches ==
          std::vector<launch>{matmul{.m = 64, .n = 12, .k = 16, .transpose_b = true, .bias = true, .type = h}});
    auto const scores = ops::batched_matmul{.transpose_b = true}.infer(tensors{{{4, 12, 64, 32}, h}, {{4, 12, 80, 32}, h}});
    CHECK(lower(whole(scores, ops::pass::forward)).launches ==
          std::vector<launch>{matmul{.batch = 48, .m = 64, .n = 80, .k = 32, .transpose_b = true, .type = h}});
    CHECK(lower(whole(scores, ops::pass::backward)).launches ==
          std::vector<launch>{matmul{.batch = 48, .m = 64, .n = 32, .k = 80, .type = h},
                              matmul{.batch = 48, .m = 80, .n = 32, .k = 64, .transpose_a = true, .type = h}});
    // Experts: the expert is the batch, and is not outermost in the tokens and the result.
    auto const experts = ops::einsum{.equation = "sech,eho->seco", .weight = {4, 32, 48}}.infer(tensors{{{8, 4, 10, 32}, h}});
    CHECK(lower(whole(experts, ops::pass::forward)).launches ==
          std::vector<launch>{permutation{.extents = {8, 4, 10, 32}, .order = {1, 0, 2, 3}, .type = h},
                              matmul{.batch = 4, .m = 80, .n = 48, .k = 32, .type = h},
                              permutation{.extents = {4, 8, 10, 48}, .order = {1, 0, 2, 3}, .type = h}});
    auto const swapped = ops::einsum{.equation = "mk,kn->nm"}.infer(tensors{{{6, 8}, h}, {{8, 10}, h}});
    CHECK(lower(whole(swapped, ops::pass::forward)).launches ==
          std::vector<launch>{matmul{.m = 10, .n = 6, .k = 8, .transpose_a = true, .transpose_b = true, .type = h}});
    auto const turned = ops::transpose{.permutation = {0, 2, 1}}.infer(tensors{{{2, 3, 5}, h}});
    CHECK(lower(whole(turned, ops::pass::forward)).launches == std::vector<launch>{permutation{.extents = {2, 3, 5}, .order = {0, 2, 1}, .type = h}});
    CHECK(lower(whole(turned, ops::pass::backward)).launches ==
          std::vector<launch>{permutation{.extents = {2, 5, 3}, .order = {0, 2, 1}, .type = h}});
    auto const biased = ops::with_weights(ops::add{}.infer(tensors{{{8, 4, 16}, h}, {{16}, h}}), {{.input = 1, .name = "bias"}});
    CHECK(lower(whole(biased, ops::pass::forward)).launches ==
          std::vector<launch>{streaming{.reads = {{512, h}, {16, h}}, .writes = {{512, h}}, .flops = 1}});
    auto const of_bias = lower(whole(biased, ops::pass::backward, 0));
    CHECK(of_bias.launches == std::vector<launch>{reduction{.outer = 1, .summed = 32, .inner = 16, .type = h}});
    ops::shard_work const update{.op = &fc, .pass = ops::pass::update, .flops = 100, .bytes = 600};
    CHECK(lower(update).launches == std::vector<launch>{optimizer_update{.sets = {{.flops = 100, .bytes = 600}}}});
}

TEST_CASE("lower: stages that are fused to an operator end its product, or run in one launch behind it") {
    using tensors = std::vector<ops::tensor>;
    auto const h = ops::dtype::f16;
    auto const i8 = ops::dtype::i8;
    auto const then = [](ops::operation op, auto const& stage) { return *rewrite::fused(op, stage.infer(tensors{ops::tensor_of(op.outputs[0])})); };
    auto const plus = [](ops::operation op, auto const& stage) {
        auto const y = ops::tensor_of(op.outputs[0]);
        return *rewrite::fused(op, stage.infer(tensors{y, y}), 0);
    };
    auto const forward = [](ops::operation const& op) { return lower(whole(op, ops::pass::forward)).launches; };
    auto const backward = [](ops::operation const& op) { return lower(whole(op, ops::pass::backward)).launches; };
    auto const fc = ops::linear{.out = 48}.infer(tensors{{{8, 16, 32}, h}});
    std::int64_t const size = 128 * 48;
    stream const y{size, h};
    auto product = matmul{.m = 128, .n = 48, .k = 32, .transpose_b = true, .bias = true, .then = activation::relu, .type = h};

    auto const relu = then(fc, ops::relu{});
    CHECK(forward(relu) == std::vector<launch>{product});
    auto gradients = backward(fc);
    gradients.insert(gradients.begin(), streaming{.reads = {y, y}, .writes = {y}, .flops = 1});
    CHECK(backward(relu) == gradients);
    // What relu makes is kept, and there already.
    CHECK(forward(then(relu, ops::dropout{})) == std::vector<launch>{product, streaming{.reads = {y}, .writes = {{size, i8}, y}, .flops = 2}});

    product.then = activation::gelu;
    auto const all = plus(then(then(fc, ops::gelu{}), ops::dropout{}), ops::add{});
    REQUIRE(all.kind == "linear+gelu+dropout+add");
    CHECK(forward(all) == std::vector<launch>{product, streaming{.reads = {y, y}, .writes = {{size, i8}, y}, .flops = 3}});
    gradients.front() = streaming{.reads = {y, y, {size, i8}}, .writes = {y, y}, .flops = 10};
    CHECK(backward(all) == gradients);
    CHECK(lower(whole(all, ops::pass::backward, 1)).launches.front() ==
          launch{streaming{.reads = {y, y, {size, i8}}, .writes = {y}, .flops = 10}}); // nobody wants that of the sum's other input

    product.then = activation::none;
    CHECK(forward(then(fc, ops::unary{.function = ops::function::tanh})) ==
          std::vector<launch>{product, streaming{.reads = {y}, .writes = {y}, .flops = 1}});
    gradients.front() = streaming{.reads = {y}, .writes = {y}, .flops = 0};
    CHECK(backward(plus(fc, ops::add{})) == gradients);
    gradients.front() = streaming{.reads = {y, y, y}, .writes = {y, y}, .flops = 2};
    CHECK(backward(plus(fc, ops::multiply{})) == gradients);
    // A shard.
    CHECK(lower(ops::work_of(relu, std::vector<std::int32_t>{2, 1, 4, 1}, ops::pass::forward)).launches ==
          std::vector<launch>{matmul{.m = 64, .n = 12, .k = 32, .transpose_b = true, .bias = true, .then = activation::relu, .type = h}});

    // A stream that a convolution ends with takes them up.
    auto const conv = ops::conv2d{.out = 8, .kernel = {3, 3}, .padding = {1, 1}}.infer(tensors{{{2, 4, 6, 6}, h}});
    auto const plain = forward(conv);
    stream const c{576, h};
    REQUIRE(plain.size() == 2);
    CHECK(forward(then(plus(conv, ops::add{}), ops::relu{})) ==
          std::vector<launch>{plain[0], streaming{.reads = {c, {8, h}, c}, .writes = {c}, .flops = 3}});
    CHECK(forward(then(conv, ops::gelu{})) == std::vector<launch>{plain[0], streaming{.reads = {c, {8, h}}, .writes = {c, c}, .flops = 5}});
    auto const norm = ops::batch_norm{}.infer(tensors{{{2, 8, 6, 6}, h}});
    CHECK(forward(plus(then(norm, ops::relu{}), ops::add{})).size() == 2);
    CHECK(forward(then(ops::pool2d{.kernel = {2, 2}}.infer(tensors{{{2, 8, 6, 6}, h}}), ops::relu{})).size() == 2);
    // One launch writes no more arrays than it can.
    auto masked = conv;
    for (int i = 0; i < 8; ++i) masked = then(masked, ops::dropout{});
    for (auto const& l : forward(masked))
        if (auto const* const one = std::get_if<streaming>(&l)) CHECK(one->writes.size() <= max_streams);
    // Elementwise operators are one launch of all.
    auto const sum = ops::add{}.infer(tensors{{{8, 16}, h}, {{8, 16}, h}});
    stream const s{128, h};
    CHECK(forward(then(sum, ops::relu{})) == std::vector<launch>{streaming{.reads = {s, s}, .writes = {s}, .flops = 2}});
    CHECK(forward(plus(ops::dropout{}.infer(tensors{{{8, 16}, h}}), ops::add{})) ==
          std::vector<launch>{streaming{.reads = {s, s}, .writes = {s, {128, i8}}, .flops = 3}});

    auto own = relu;
    own.kind = "linear+my_op";
    CHECK(lower(whole(own, ops::pass::forward)).reason == "kind 'linear+my_op': stage 'my_op' has no lowering");
    CHECK(lower(whole(own, ops::pass::forward), unknown_kinds::stream).launches ==
          std::vector<launch>{product, streaming{.reads = {y}, .writes = {y}, .flops = 0}});
    own.kind = "my_op+relu";
    CHECK(lower(whole(own, ops::pass::forward)).reason == "kind 'my_op' has no lowering");
    own.kind = "linear+add+add";
    CHECK(lower(whole(own, ops::pass::forward)).reason == "kind 'linear+add+add': has fewer inputs than its stages read");
}

TEST_CASE("lower: an update is timed among others like it, and runs with those of all weights") {
    auto const sets_of = [](launch const& l) { return std::get<optimizer_update>(l).sets; };
    auto const timed = [](std::int64_t bytes) { return profiler::to_be_timed({optimizer_update{.sets = {{.flops = 3, .bytes = bytes}}}}); };
    for (auto const& [bytes, kernels] : std::vector<std::array<std::int64_t, 2>>{
             {0, 64}, {28, 64}, {4 << 20, 64}, {(4 << 20) + 28, 63}, {100 << 20, 2}, {200 << 20, 1}, {std::int64_t{1} << 40, 1}}) {
        CAPTURE(bytes);
        auto const t = timed(bytes);
        CHECK(t.kernels == kernels);
        REQUIRE(t.launches.size() == 1);
        CHECK(sets_of(t.launches[0]) == std::vector<updated_weights>(static_cast<std::size_t>(kernels), {.flops = 3, .bytes = bytes}));
    }
    std::vector<launch> const product{matmul{}, softmax{}};
    CHECK(profiler::to_be_timed(product).launches == product);
    CHECK(profiler::to_be_timed(product).kernels == 1);
    CHECK(profiler::to_be_timed({}).launches.empty());

    auto const update = [](std::int64_t bytes) { return std::vector<launch>{optimizer_update{.sets = {{.flops = 1, .bytes = bytes}}}}; };
    auto const joined = profiler::with_joined_updates({product, update(28), update(56), update(84)});
    REQUIRE(joined.size() == 2);
    CHECK(joined[0] == product);
    CHECK(sets_of(joined[1].front()) == std::vector<updated_weights>{{1, 28}, {1, 56}, {1, 84}});
    // A launch does not hold more than memory may; no kernel is moved past another.
    auto const large = profiler::most_updated_bytes;
    auto const several = profiler::with_joined_updates({update(large - 28), update(28), update(28), product, update(large + 28), update(28)});
    REQUIRE(several.size() == 5);
    CHECK(sets_of(several[0].front()).size() == 2);
    CHECK(sets_of(several[1].front()).size() == 1);
    CHECK(several[2] == product);
    CHECK(sets_of(several[3].front()).size() == 1);
    CHECK(sets_of(several[4].front()).size() == 1);
    CHECK(profiler::with_joined_updates({}).empty());
}

TEST_CASE("lower: what has no honest launch has a reason") {
    using tensors = std::vector<ops::tensor>;
    ops::tensor const x{{4, 8, 8, 8}, ops::dtype::f32};
    auto own = ops::relu{}.infer(tensors{x});
    own.kind = "my_op";
    CHECK(lower(whole(own, ops::pass::forward)).reason == "kind 'my_op' has no lowering");
    // Names like those of the library's are a user's own.
    for (auto const* const kind : {"roi_pool2d", "my_max_pool2d", "max_pool2d_", "lp_pool1d", "reduce_median", "reduce_", "resize_lanczos",
                                   "stochastic_global_pool", "top_secret_gate", "top__gate", "top_gate"}) {
        own.kind = kind;
        CHECK(lower(whole(own, ops::pass::forward)).reason == text("kind '", kind, "' has no lowering"));
    }
    own.kind = "my_op";
    auto const streamed = lower(whole(own, ops::pass::forward), unknown_kinds::stream);
    CHECK(bytes(streamed) == whole(own, ops::pass::forward).bytes);
    auto fake = ops::relu{}.infer(tensors{x});
    fake.kind = "linear";
    CHECK(lower(whole(fake, ops::pass::forward)).launches.size() == 1); // a product of one operand is a copy
    fake.kind = "conv2d";
    CHECK(lower(whole(fake, ops::pass::forward)).reason == "kind 'conv2d': must have x, weight and y");
    fake.kind = "gather";
    CHECK(lower(whole(fake, ops::pass::forward)).reason.find("fewer operands") != std::string::npos);
    CHECK(lower(whole(ops::einsum{.equation = "ab,bc,cd->ad"}.infer(tensors{{{2, 3}}, {{3, 4}}, {{4, 5}}}), ops::pass::forward))
              .reason.find("3 operands") != std::string::npos);
    CHECK(lower(whole(ops::pool2d{.mode = ops::pool_mode::norm, .kernel = {2, 2}}.infer(tensors{x}), ops::pass::forward)).reason.find("norms") !=
          std::string::npos);
    CHECK(lower(whole(ops::pool2d{.kernel = {2, 2}, .dilation = {2, 2}}.infer(tensors{x}), ops::pass::forward)).reason.find("dilated") !=
          std::string::npos);
    CHECK(lower(whole(ops::flatten{}.infer(tensors{x}), ops::pass::forward)).reason == "kind 'flatten' does no work");
    CHECK(lower(whole(ops::relu{}.infer(tensors{x}), ops::pass::backward, 0)).reason.find("does no work") != std::string::npos);
    auto integers = ops::batched_matmul{}.infer(tensors{{{4, 8}}, {{8, 4}}});
    for (auto* const list : {&integers.inputs, &integers.outputs})
        for (auto& o : *list) o.type = ops::dtype::i32;
    CHECK(lower(whole(integers, ops::pass::forward)).reason.find("no library multiplies") != std::string::npos);
}
