#include <parsearch/io/display/dot.hpp>

#include <map>
#include <set>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/hand_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {

auto const cluster = topology::p100_cluster(1);

template <class S> std::string dot_of(graph::operator_graph const& g, S const& make_strategy) {
    auto const p = make_problem(g, cluster, cost::roofline{cluster});
    std::ostringstream out;
    io::write_dot(out, p, make_strategy(p));
    return out.str();
}

bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("dot: nodes, edges and legend; one colour per configuration") {
    graph::operator_graph g;
    auto const x = g.add("fc1", ops::linear{.out = 64}, g.input("x", {{32, 16}}));
    auto const y = g.add("relu", ops::relu{}, x);
    g.add("fc2", ops::linear{.out = 8}, y);
    auto const dot = dot_of(g, [](auto const& p) {
        auto s = data_parallel(p);
        s[3] = support::split(p.graph().operations[3], "o", {0, 1, 2, 3});
        return s;
    });
    CHECK(has(dot, "digraph plan {"));
    CHECK(has(dot, "op0 [shape=ellipse, fillcolor=\"#ffffff\", label=\"x\\ninput\"];"));
    std::map<std::string, std::string> fill; // by label
    std::istringstream lines(dot);
    for (std::string line; std::getline(lines, line);) // opN [fillcolor="F", label="L"];
        if (auto const at = line.find("[fillcolor=\""); at != line.npos) {
            auto const colour = line.substr(at + 12), label = colour.substr(colour.find("label=\"") + 7);
            fill[label.substr(0, label.find('"'))] = colour.substr(0, colour.find('"'));
        }
    REQUIRE(fill.size() == 3);
    CHECK(fill.at("fc1\\nlinear\\ns4 @0+1") == fill.at("relu\\nrelu\\ns4 @0+1"));
    CHECK(fill.at("fc1\\nlinear\\ns4 @0+1") != fill.at("fc2\\nlinear\\no4 @{0,1,2,3}"));
    CHECK(has(dot, "op0 -> op1 [label=\"f32[32,16]\"];"));
    CHECK(has(dot, "op1 -> op2 [label=\"f32[32,64]\"];"));
    CHECK(has(dot, "op2 -> op3 [label=\"f32[32,64]\"];"));
    auto const first = dot.find(fill.at("fc1\\nlinear\\ns4 @0+1") + "\" width"), second = dot.find("o4 @{0,1,2,3}</td>");
    CHECK(first < second); // the configuration of most operators comes first
    CHECK(has(dot, "s4 @0+1</td><td align=\"right\">2</td>"));
}

TEST_CASE("dot: names are escaped") {
    graph::operator_graph g;
    g.add("a\"b\\c\nd\x01\xff<&>", ops::relu{}, g.input("x", {{32, 16}}));
    auto const dot = dot_of(g, [](auto const& p) { return data_parallel(p); });
    CHECK(has(dot, "label=\"a\\\"b\\\\c d\xef\xbf\xbd\xef\xbf\xbd<&>\\nrelu\\ns4 @0+1\""));
    for (char const c : dot) CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
}

TEST_CASE("dot: many configurations have colours of their own") {
    std::set<std::string> fills;
    for (std::size_t i = 0; i < 200; ++i) fills.insert(io::detail::dot_fill(i));
    CHECK(fills.size() == 200);
}

TEST_CASE("dot: a stream that fails is refused") {
    graph::operator_graph g;
    g.add("a", ops::relu{}, g.input("x", {{32, 16}}));
    auto const p = make_problem(g, cluster, cost::roofline{cluster});
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    CHECK(support::refusal([&] { return io::write_dot(out, p, data_parallel(p)), 0; }).find("the graph cannot be written") != std::string::npos);
}
