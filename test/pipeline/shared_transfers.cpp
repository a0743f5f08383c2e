#include <parsearch/pipeline/shared_transfers.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/all_operators.hpp>

namespace ps = parsearch;
namespace ops = parsearch::ops;
namespace pipeline = parsearch::pipeline;
namespace space = parsearch::space;

TEST_CASE("shared_transfers: the first reader of a stage carries for those that read the same parts on the same devices") {
    ps::graph::operator_graph net;
    auto const x = net.input("x", {{4, 6}});
    auto const a = net.add("a", ops::relu{}, x);
    auto const b = net.add("b", ops::relu{}, a);
    net.add("c", ops::add{}, b, a);
    net.add("d", ops::relu{}, a);
    auto const g = ps::graph::read_graph(net).graph; // edges: x to a, a to b, b and a to c, a to d
    std::vector<space::configuration> s;
    for (auto const& op : g.operations) s.push_back(space::whole(op));
    using numbers = std::vector<std::uint32_t>;
    pipeline::pipelining how{.stage = {0, 0, 1, 1, 1}, .stages = 2};
    CHECK(pipeline::shared_transfers(g, how, s) == numbers{0, 1, 2, 1, 1});
    s[4].start = 1; // elsewhere
    CHECK(pipeline::shared_transfers(g, how, s) == numbers{0, 1, 2, 1, 4});
    s[4] = space::whole(g.operations[4]);
    for (auto const op : {2, 3, 4}) s[static_cast<std::size_t>(op)].degree[0] = 2; // samples
    CHECK(pipeline::shared_transfers(g, how, s) == numbers{0, 1, 2, 1, 1});
    s[4].degree[0] = 1;
    s[4].degree[1] = 2; // another part
    CHECK(pipeline::shared_transfers(g, how, s) == numbers{0, 1, 2, 1, 4});
    for (auto& c : s) c = space::whole(g.operations[1]);
    s[0] = space::whole(g.operations[0]);
    how.stage = {0, 0, 0, 1, 1};
    CHECK(pipeline::shared_transfers(g, how, s) == numbers{0, 1, 2, 3, 3}); // b and a cross to c, a to d
    how = pipeline::unpipelined(g);
    CHECK(pipeline::shared_transfers(g, how, s) == numbers{0, 1, 2, 3, 4});
}
