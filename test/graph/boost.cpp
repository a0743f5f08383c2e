#include <parsearch/graph/boost.hpp>

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include <doctest/doctest.h>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/graph/described_by.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>

#include "support/refusal.hpp"

using namespace parsearch;

namespace {

/// A user's own description of an operator.
struct layer {
    std::string name;
    std::int64_t width = 4;
    bool joins = false;
    [[nodiscard]] ops::operation describe() const {
        std::vector<ops::tensor> const x{{{4, width}}, {{4, width}}};
        return joins ? ops::add{}.infer(x) : ops::linear{.out = width}.infer(std::span(x).first(1));
    }
};
/// An edge property that the library does not know, and one that derives from what it knows.
struct cable {
    int colour = 0;
};
struct marked_flow : graph::flow {
    int colour = 0;
};

template <class Vertices, class Op, class... Edge> using graph_of = boost::adjacency_list<boost::vecS, Vertices, boost::bidirectionalS, Op, Edge...>;

static_assert(OperatorGraph<graph_of<boost::vecS, ops::operation>>);
static_assert(OperatorGraph<graph_of<boost::listS, ops::operation>>);
static_assert(OperatorGraph<graph_of<boost::vecS, layer, cable>>);
static_assert(OperatorGraph<graph_of<boost::listS, layer, graph::flow>>);
static_assert(OperatorGraph<boost::adjacency_list<boost::listS, boost::listS, boost::bidirectionalS, layer>>);

/// Adds a vertex that carries `op`.
template <class G, class Op> auto put(Op op, G& g) {
    auto const v = add_vertex(g);
    g[v] = std::move(op);
    return v;
}

ops::operation source() {
    ops::operation op{.kind = "source", .work = ops::work_class::source};
    op.outputs.push_back({.name = "y", .axes = {{.extent = 4}, {.extent = 4}}});
    return op;
}

/// source -> a, b; join(b, a), the edges given in that order.
template <class G> void build_layers(G& g) {
    auto const a = put(layer{"a"}, g), b = put(layer{"b"}, g);
    auto const join = put(layer{"join", 4, true}, g);
    add_edge(a, b, g);
    add_edge(b, join, g);
    add_edge(a, join, g);
}

template <class G> void check_layers() {
    G g;
    build_layers(g);
    // "a" has one input and nothing feeds it: refused by name. The rest is read edge by edge, in the order given.
    CHECK(support::refusal([&] { return graph::read_graph(g); }) == "operator 'a' (linear): the graph gives it 0 inputs: it has 1");
    auto const joined = *(operators(g).begin() + 2);
    auto const in = inputs(g, joined);
    REQUIRE(in.size() == 2);
    CHECK(g[in[0].producer].name == "b");
    CHECK(g[in[1].producer].name == "a");
    CHECK(in[0].slot == 0);
    CHECK(&description(g, joined) == &g[joined]);
}

} // namespace

TEST_CASE("boost: a user's struct on vecS and listS, no edge property or a foreign one: inputs in the order of the edges") {
    check_layers<graph_of<boost::vecS, layer>>();
    check_layers<graph_of<boost::listS, layer>>();
    check_layers<graph_of<boost::vecS, layer, cable>>();
    check_layers<boost::adjacency_list<boost::listS, boost::listS, boost::bidirectionalS, layer>>();
}

TEST_CASE("boost: operations as vertices, read with handles") {
    auto const check = [](auto g) {
        auto const x = put(source(), g);
        auto const fc = put(ops::linear{.out = 6}.infer(std::vector<ops::tensor>{{{4, 4}}}), g);
        auto const act = put(ops::relu{}.infer(std::vector<ops::tensor>{{{4, 6}}}), g);
        add_edge(fc, act, g);
        add_edge(x, fc, g);
        auto const read = graph::read_graph(g);
        CHECK(read.graph.names == std::vector<std::string>{"source#0", "linear#1", "relu#2"});
        REQUIRE(read.handles.size() == 3);
        CHECK(read.handles[1] == fc);
        CHECK(read.graph.edges == std::vector<graph::edge>{{0, 0, 1, 0}, {1, 0, 2, 0}});
        CHECK(read.graph.order == std::vector<std::uint32_t>{0, 1, 2});
    };
    check(graph_of<boost::vecS, ops::operation>{});
    check(graph_of<boost::listS, ops::operation>{});
}

TEST_CASE("boost: flow says which output feeds which input") {
    graph_of<boost::vecS, ops::operation, graph::flow> g;
    auto const x = put(source(), g);
    auto const split = put(ops::split{.axis = 1, .sizes = {1, 3}}.infer(std::vector<ops::tensor>{{{4, 4}}}), g);
    auto const join = put(ops::concat{.axis = 1}.infer(std::vector<ops::tensor>{{{4, 3}}, {{4, 1}}}), g);
    add_edge(x, split, graph::flow{0, 0}, g);
    add_edge(split, join, graph::flow{0, 1}, g); // given last first
    add_edge(split, join, graph::flow{1, 0}, g);
    auto const dense = graph::read_graph(g).graph;
    CHECK(dense.edges == std::vector<graph::edge>{{0, 0, 1, 0}, {1, 1, 2, 0}, {1, 0, 2, 1}});
}

TEST_CASE("boost: flows with a gap or a repetition are refused with the operator's name") {
    for (auto const& [first, second, wrong] : {std::tuple{0u, 0u, 0u}, std::tuple{0u, 2u, 2u}, std::tuple{7u, 0u, 7u}}) {
        graph_of<boost::listS, ops::operation, graph::flow> g;
        auto const x = put(source(), g);
        auto const join = put(ops::add{}.infer(std::vector<ops::tensor>{{{4, 4}}, {{4, 4}}}), g);
        add_edge(x, join, graph::flow{0, first}, g);
        add_edge(x, join, graph::flow{0, second}, g);
        CHECK(support::refusal([&] { return graph::read_graph(g); }) ==
              text("operator 'add#1' (add): an edge feeds input ", wrong, " of an operator with 2 in-edges: inputs are numbered from 0, each once"));
    }
}

TEST_CASE("boost: directed graphs work, and where the order of inputs is not known it must be said") {
    using directed = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, layer>;
    using said = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, layer, graph::flow>;
    static_assert(OperatorGraph<directed> && OperatorGraph<said>);
    static_assert(!OperatorGraph<boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, layer>>);
    std::string const rule =
        "the graph does not remember in which order its 2 inputs were added: must have parsearch::graph::flow as its edge bundle, "
        "or as the base of it, or be boost::bidirectionalS with vecS or listS for its edges";
    auto const unordered = [&](auto g) {
        build_layers(g);
        CHECK(inputs(g, std::size_t{1}).size() == 1); // one alone is in order
        CHECK(support::refusal([&] { return inputs(g, std::size_t{2}).size(); }) == rule);
    };
    auto const ordered = [](auto g) {
        auto const a = put(layer{"a"}, g), b = put(layer{"b"}, g), join = put(layer{"join", 4, true}, g);
        auto const feed = [&](auto from, std::uint32_t slot, std::uint32_t input) {
            typename decltype(g)::edge_bundled e;
            e.slot = slot;
            e.input = input;
            add_edge(from, join, e, g);
        };
        feed(a, 0, 1);
        feed(b, 3, 0);
        auto const in = inputs(g, join);
        REQUIRE(in.size() == 2);
        CHECK(in[0].producer == b);
        CHECK(in[0].slot == 3);
        CHECK(in[1].producer == a);
        CHECK(in[1].slot == 0);
    };
    unordered(directed{});
    ordered(said{});
    // Of all containers of edges, only the two that are in order of addition remember it.
    auto const check = [&]<class Edges>(Edges, bool remembers) {
        using plain = boost::adjacency_list<Edges, boost::vecS, boost::bidirectionalS, layer>;
        static_assert(OperatorGraph<plain>);
        if (remembers) check_layers<plain>();
        else unordered(plain{});
        ordered(boost::adjacency_list<Edges, boost::vecS, boost::bidirectionalS, layer, graph::flow>{});
        ordered(boost::adjacency_list<Edges, boost::vecS, boost::bidirectionalS, layer, marked_flow>{});
    };
    check(boost::vecS{}, true);
    check(boost::listS{}, true);
    check(boost::setS{}, false);
    check(boost::multisetS{}, false);
    check(boost::mapS{}, false);
    check(boost::hash_setS{}, false);
    check(boost::hash_multisetS{}, false);
    check(boost::hash_mapS{}, false);
}

TEST_CASE("described_by: a bundle of one's own and one lambda") {
    struct my_layer {
        std::string label;
        ops::operation work;
    };
    struct described {
        std::string name;
        ops::operation operation;
        [[nodiscard]] ops::operation const& describe() const { return operation; }
    };
    graph_of<boost::vecS, my_layer> g;
    auto const x = put(my_layer{"x", source()}, g);
    auto const fc = put(my_layer{"fc", ops::linear{.out = 4}.infer(std::vector<ops::tensor>{{{4, 4}}})}, g);
    add_edge(x, fc, g);
    auto const net = graph::described_by(g, [](my_layer const& l) { return described{l.label, l.work}; });
    static_assert(OperatorGraph<decltype(net)>);
    auto const read = graph::read_graph(net);
    CHECK(read.graph.names == std::vector<std::string>{"x", "fc"});
    CHECK(read.handles == std::vector<std::size_t>{x, fc});
    // Neither an operation nor what it is made of has a name.
    auto const unnamed = graph::described_by(g, &my_layer::work);
    CHECK(graph::read_graph(unnamed).graph.names[1] == "linear#1");
}

TEST_CASE("described_by: operators keep the names that the graph has for them, where the function answers none") {
    struct my_layer {
        std::string name;
        ops::operation work;
    };
    struct renamed {
        char const* name;
        ops::operation operation;
        [[nodiscard]] ops::operation const& describe() const { return operation; }
    };
    struct unnamed {
        ops::operation operation;
        [[nodiscard]] ops::operation const& describe() const { return operation; }
    };
    struct numbered {
        int name = 0; // no text
        ops::operation work;
    };
    auto const fc = ops::linear{.out = 4}.infer(std::vector<ops::tensor>{{{4, 4}}});
    graph_of<boost::vecS, my_layer> g;
    add_edge(put(my_layer{"x", source()}, g), put(my_layer{"fc", fc}, g), g);
    using names = std::vector<std::string>;
    auto const names_by = [](auto const& graph, auto f) { return graph::read_graph(graph::described_by(graph, f)).graph.names; };
    CHECK(names_by(g, &my_layer::work) == names{"x", "fc"});
    CHECK(names_by(g, [](my_layer const& l) { return l.work; }) == names{"x", "fc"});
    CHECK(names_by(g, [](my_layer const& l) { return unnamed{l.work}; }) == names{"x", "fc"});
    CHECK(names_by(g, [](my_layer const& l) { return renamed{"other", l.work}; }) == names{"other", "other"});
    // A description that is answered by value, and taken over.
    auto const by_value = graph::described_by(g, [](my_layer const& l) { return my_layer{l.name + "'", l.work}; });
    CHECK(names_by(by_value, [](my_layer l) { return std::move(l.work); }) == names{"x'", "fc'"});
    static_assert(!std::is_reference_v<operator_description_t<decltype(graph::described_by(by_value, &my_layer::name))>>);
    graph_of<boost::vecS, numbered> other;
    add_edge(put(numbered{1, source()}, other), put(numbered{2, fc}, other), other);
    CHECK(names_by(other, &numbered::work) == names{"source#0", "linear#1"});
    // In messages, too.
    g[1].work.inputs[0].axes[1].extent = 5;
    CHECK(support::refusal([&] { return names_by(g, &my_layer::work); }).starts_with("operator 'fc' (linear): input 0 is output 0 of 'x'"));
}

namespace described_by_test {
template <class F>
concept Describes = requires(graph_of<boost::vecS, layer> const& g, F f) { graph::described_by(g, f); };
static_assert(Describes<decltype(&layer::describe)> && !Describes<int> && !Describes<decltype(&cable::colour)>);
static_assert(!std::is_constructible_v<graph::described_by<graph_of<boost::vecS, layer>, decltype(&layer::describe)>, graph_of<boost::vecS, layer>,
                                       decltype(&layer::describe)>);
} // namespace described_by_test
