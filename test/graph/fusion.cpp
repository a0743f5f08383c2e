#include <parsearch/graph/fusion.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/shard.hpp>

using namespace parsearch;
using graph::fusion;
using graph::with_fused_kernels;

namespace {

ops::operation const& find(graph::operator_graph const& g, std::string_view name) {
    for (std::size_t op = 0; op < g.size(); ++op)
        if (g[op].name == name) return g[op].operation;
    FAIL("no operator ", name);
    return g[0].operation;
}
/// Bytes that a pass of a whole operator moves, in tensors of `unit` bytes.
double moved(graph::operator_graph const& g, std::string_view name, ops::pass pass, double unit) {
    auto const& op = find(g, name);
    return ops::work_of(op, std::vector<std::int32_t>(op.dims.size(), 1), pass).bytes / unit;
}
double forward(graph::operator_graph const& g, std::string_view name, double unit) { return moved(g, name, ops::pass::forward, unit); }
double backward(graph::operator_graph const& g, std::string_view name, double unit) { return moved(g, name, ops::pass::backward, unit); }

constexpr double unit = 64 * 32 * 4; // bytes of a tensor of the graphs below

/// gate and up -> silu -> product -> down, as in a gated perceptron.
graph::operator_graph gated() {
    graph::operator_graph g;
    auto const x = g.input("x", {{64, 32}});
    auto const gate = g.add("gate", ops::linear{.out = 32, .bias = false}, x), up = g.add("up", ops::linear{.out = 32, .bias = false}, x);
    auto const silu = g.add("silu", ops::unary{ops::function::silu}, gate);
    auto const product = g.add("product", ops::multiply{}, silu, up);
    g.add("down", ops::linear{.out = 32, .bias = false}, product);
    return g;
}
} // namespace

TEST_CASE("a chain of elementwise operators goes through memory once, and what is not written is not kept") {
    auto const plain = gated(), fused = with_fused_kernels(plain, fusion::compiled);
    CHECK(fused.size() == plain.size());
    CHECK(forward(plain, "silu", unit) == 2);
    CHECK(forward(plain, "product", unit) == 3);
    CHECK(forward(fused, "silu", unit) == 1);    // reads gate
    CHECK(forward(fused, "product", unit) == 2); // reads up, writes the product
    CHECK(backward(plain, "product", unit) == 5);
    CHECK(backward(plain, "silu", unit) == 3);
    CHECK(backward(fused, "product", unit) == 3); // reads its gradient and up, writes that of up
    CHECK(backward(fused, "silu", unit) == 2);    // reads gate, writes its gradient
    CHECK(find(plain, "product").inputs[0].saved);
    CHECK_FALSE(find(fused, "product").inputs[0].saved); // made again from gate
    CHECK(find(fused, "product").inputs[1].saved);
    CHECK(find(fused, "silu").inputs[0].saved);
    for (auto const* const name : {"x", "gate", "up", "down"}) CHECK(find(fused, name) == find(plain, name));
    for (std::size_t op = 0; op < plain.size(); ++op) {
        CHECK(fused[op].name == plain[op].name);
        CHECK(fused[op].operation.flops == plain[op].operation.flops);
    }
}

TEST_CASE("a result that another kernel reads is written") {
    graph::operator_graph g;
    auto const x = g.input("x", {{64, 32}});
    auto const a = g.add("a", ops::linear{.out = 32, .bias = false}, x);
    auto const gelu = g.add("gelu", ops::gelu{}, a);
    auto const b = g.add("b", ops::linear{.out = 32, .bias = false}, gelu);
    g.add("sum", ops::add{}, gelu, b); // a path from gelu to it passes b: not in the kernel of gelu
    auto const fused = with_fused_kernels(g, fusion::compiled);
    for (std::size_t op = 0; op < g.size(); ++op) CHECK(fused[op].operation == g[op].operation);
}

TEST_CASE("a residual sum and the norm behind it: four tensors forward and four backward, and the sum is kept") {
    graph::operator_graph g;
    auto const x = g.input("x", {{64, 32}});
    auto const a = g.add("a", ops::linear{.out = 32, .bias = false}, x), b = g.add("b", ops::linear{.out = 32, .bias = false}, x);
    auto const sum = g.add("sum", ops::add{}, a, b);
    auto const norm = g.add("norm", ops::rms_norm{.affine = false}, sum);
    auto const c = g.add("c", ops::linear{.out = 32, .bias = false}, norm);
    g.add("next", ops::add{}, sum, c);
    auto const fused = with_fused_kernels(g, fusion::compiled);
    auto const both = [&](auto const& pass, graph::operator_graph const& of) { return pass(of, "sum", unit) + pass(of, "norm", unit); };
    double const statistics = 64 * 4 / unit;
    CHECK(both(forward, g) == doctest::Approx(5 + statistics));
    CHECK(both(forward, fused) == doctest::Approx(4 + statistics)); // reads a and b, writes the sum and its norm
    CHECK(both(backward, g) == doctest::Approx(6 + statistics));
    CHECK(both(backward, fused) == doctest::Approx(4 + statistics)); // reads the sum and two gradients, writes one, or reads one and writes two
    CHECK(find(fused, "norm").inputs[0].saved);
    CHECK(find(fused, "sum").outputs[0].touched_bytes < 0);
}

TEST_CASE("a dropout in the kernel of the sum behind it: both together move a tensor less than twice") {
    graph::operator_graph g;
    auto const x = g.input("x", {{64, 32}});
    auto const a = g.add("a", ops::linear{.out = 32, .bias = false}, x), b = g.add("b", ops::linear{.out = 32, .bias = false}, x);
    auto const dropout = g.add("dropout", ops::dropout{}, a);
    auto const sum = g.add("sum", ops::add{}, dropout, b);
    g.add("norm", ops::layer_norm{}, sum);
    double const mask = 64 * 32 / unit;
    for (auto const f : {fusion::dropout, fusion::compiled}) {
        auto const fused = with_fused_kernels(g, f);
        CHECK(forward(fused, "dropout", unit) == doctest::Approx(1 + mask));
        CHECK(forward(fused, "sum", unit) == doctest::Approx(2));
        CHECK(backward(fused, "dropout", unit) == doctest::Approx(1 + mask));
        CHECK(backward(fused, "sum", unit) == doctest::Approx(2));
        CHECK((find(fused, "norm") == find(g, "norm")) == (f == fusion::dropout));
    }
}

TEST_CASE("a batch norm is read whole before it is written: what is in front of it is not in its kernel, what is behind it is") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 4, 16, 16}});
    auto const a = g.add("a", ops::conv2d{.out = 4, .kernel = {3, 3}, .padding = {1, 1}}, x);
    auto const first = g.add("first", ops::gelu{}, a);
    auto const norm = g.add("norm", ops::batch_norm{}, first);
    auto const relu = g.add("relu", ops::relu{}, norm);
    g.add("b", ops::conv2d{.out = 4, .kernel = {3, 3}, .padding = {1, 1}}, relu);
    auto const fused = with_fused_kernels(g, fusion::compiled);
    CHECK(find(fused, "first") == find(g, "first"));
    CHECK(find(fused, "norm").inputs[0].touched_bytes < 0);
    CHECK(find(fused, "norm").outputs[0].touched_bytes == 0);
    CHECK(find(fused, "relu").inputs[0].touched_bytes == 0);
    CHECK(find(fused, "relu").outputs[0].saved); // and written
    CHECK(find(fused, "relu").outputs[0].touched_bytes < 0);
}

TEST_CASE("networks: fused kernels never move more, nor keep more; none is the same") {
    struct network {
        graph::operator_graph graph;
        bool has_dropout = false;
    };
    for (auto const& [g, has_dropout] :
         {network{models::llama(
              {.layers = 2, .hidden = 64, .heads = 4, .kv_heads = 2, .feed_forward = 96, .sequence = 16, .vocabulary = 50, .batch = 4})},
          network{models::gpt({.layers = 2, .hidden = 64, .heads = 4, .sequence = 16, .vocabulary = 50, .batch = 4, .dropout = 0.1}), true},
          network{models::resnet({.batch = 2})}}) {
        auto const same = with_fused_kernels(g, fusion::none);
        for (std::size_t op = 0; op < g.size(); ++op) CHECK(same[op].operation == g[op].operation);
        for (auto const f : {fusion::dropout, fusion::compiled}) {
            auto const fused = with_fused_kernels(g, f);
            double less = 0;
            for (std::size_t op = 0; op < g.size(); ++op) {
                auto const& before = g[op].operation;
                auto const& after = fused[op].operation;
                for (auto const pass : {ops::pass::forward, ops::pass::backward}) {
                    std::vector<std::int32_t> const whole(before.dims.size(), 1);
                    auto const change = ops::work_of(before, whole, pass).bytes - ops::work_of(after, whole, pass).bytes;
                    CHECK(change >= 0);
                    less += change;
                }
                for (std::size_t i = 0; i < before.inputs.size(); ++i) CHECK(before.inputs[i].saved >= after.inputs[i].saved);
                CHECK(before.outputs[0].saved == after.outputs[0].saved);
                ops::validate(after, g[op].name);
            }
            CHECK((less > 0) == (f == fusion::compiled || has_dropout));
        }
    }
}
