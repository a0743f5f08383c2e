#include <parsearch/sim/input/shared_reads.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/all_operators.hpp>

using namespace parsearch;

namespace {
using numbers = std::vector<std::uint32_t>;
}

TEST_CASE("shared_reads: edges of a tensor in the order of their readers, apart where no gradient goes back; graph inputs have no groups") {
    graph::operator_graph net;
    auto const x = net.input("x", {{4, 6}});
    auto const a = net.add("a", ops::linear{.out = 6}, x);
    auto const b = net.add("b", ops::relu{}, a);
    auto const c = net.add("c", ops::add{}, b, a);
    auto const d = net.add("d", ops::multiply{}, a, a);
    net.add("e", ops::add{}, c, d);
    net.add("f", ops::relu{}, x);
    auto const g = graph::read_graph(net).graph; // edges: x to a, a to b, b and a to c, a twice to d, c and d to e, x to f
    sim::shared_reads const readers(g);
    REQUIRE(readers.size() == 1);
    CHECK(numbers(readers[0].begin(), readers[0].end()) == numbers{1, 3, 4, 5});
    for (std::uint32_t e = 0; e < g.edges.size(); ++e) CHECK(readers.group_of(e) == (e == 1 || (e >= 3 && e <= 5) ? 0 : sim::shared_reads::none));

    // Edges 1 and 4 are alike, so are 3 and 5.
    numbers found(g.edges.size(), 7);
    numbers first;
    readers.find_carriers(
        0, [](auto p, auto q) { return (p == 1 || p == 4) == (q == 1 || q == 4); }, found, first);
    CHECK(found == numbers{7, 1, 7, 3, 1, 3, 7, 7, 7});
}

TEST_CASE("shared_reads: a reader that gives no gradient is in no group with those that do") {
    graph::operator_graph net;
    auto const a = net.add("a", ops::linear{.out = 6}, net.input("x", {{4, 6}}));
    auto frozen = ops::relu{}.infer(std::vector{net.shape(a)});
    frozen.inputs[0].differentiable = false;
    net.add("b", frozen, a);
    net.add("c", ops::relu{}, a);
    net.add("d", frozen, a);
    net.add("e", ops::relu{}, a);
    auto const g = graph::read_graph(net).graph; // edge 1 to b and so on
    sim::shared_reads const readers(g);
    REQUIRE(readers.size() == 2);
    CHECK(readers.group_of(1) == readers.group_of(3));
    CHECK(readers.group_of(2) == readers.group_of(4));
    CHECK(readers.group_of(1) != readers.group_of(2));
}
