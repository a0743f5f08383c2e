#include <parsearch/io/onnx/patterns/token_lists.hpp>

#include <string>

#include <doctest/doctest.h>

#include "support/onnx_patterns.hpp"

using namespace support;

namespace {

/// Experts for 6 tokens of 2 samples that are one list of 12. `gemm`: the router is one with bias or not, else a MatMul.
struct listed : primitives {
    value_id tokens, list, scores, gates, result;
    explicit listed(std::string const& router = "Gemm") {
        tokens = linear(input("x", {2, 6, 4}), 4);
        list = reshape(tokens, {12, 4});
        if (router == "MatMul") scores = linear(list, 8);
        else scores = node("Gemm", {list, parameter("router", {8, 4})}, {12, 8}, {{"transB", std::int64_t{1}}});
        gates = node("TopKGate", {softmax(scores)}, {12, 8}, {{"k", std::int64_t{2}}}, ops::dtype::f32, "parsearch");
        auto const up = parameter("up", {8, 10, 4}), down = parameter("down", {8, 4, 5});
        auto const y = node("Experts", {list, gates, up, down}, {12, 4}, {{"k", std::int64_t{2}}}, ops::dtype::f32, "parsearch");
        result = reshape(y, {2, 6, 4});
    }
    /// What is translated after recognition.
    support::onnx::translated recognised(std::vector<value_id> outputs) {
        net.outputs = std::move(outputs);
        support::onnx::recognise(net);
        support::onnx::remove_dead(net);
        auto made = support::onnx::translate(net, support::onnx::builtin_operators());
        (void)parsearch::graph::read_graph(made.graph);
        return made;
    }
};
std::string kinds(parsearch::graph::operator_graph const& g) {
    std::string out;
    for (std::size_t i = 0; i < g.size(); ++i)
        if (g[i].operation.work != ops::work_class::source) out += (out.empty() ? "" : " ") + g[i].operation.kind;
    return out;
}
constexpr auto experts = "moe_dispatch reshape einsum einsum silu multiply einsum moe_combine";

} // namespace

TEST_CASE("a list of tokens around experts is told by sample, the router too") {
    for (auto const* const router : {"Gemm", "MatMul"}) {
        listed p(router);
        auto const made = p.recognised({p.result});
        CHECK(kinds(made.graph) == std::string("linear linear softmax top_2_gate ") + experts);
        CHECK(made.notes.empty());
        for (std::size_t i = 0; i < made.graph.size(); ++i)
            if (made.graph[i].operation.kind == "top_2_gate") CHECK(made.graph.shape({i, 0}).extents == shape{2, 6, 8});
        CHECK(totals_of(made.graph).parameters == 4 * 4 + 8 * 4 + 8 * 10 * 4 + 8 * 4 * 5);
    }
}

TEST_CASE("a router whose scores are wanted elsewhere stays one of a list; experts are told by sample all the same") {
    listed p;
    auto const made = p.recognised({p.result, p.scores});
    CHECK(kinds(made.graph) == std::string("linear reshape linear softmax top_2_gate reshape ") + experts);
}

TEST_CASE("a list of tokens that is wanted as one stays") {
    listed p;
    auto const made = p.recognised({p.result, p.net.nodes[p.net.nodes.size() - 2].outputs[0]});
    CHECK(made.notes.size() == 1);
    CHECK(made.notes.at(0).find("tokens are not told by sample") != std::string::npos);
}
