#include <parsearch/graph/dense_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>

#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace dense_graph_test {
enum class layer : std::uint8_t { in = 10, fc = 20, act = 30 };
struct place {
    int block = 0, row = 0;
    friend bool operator==(place const&, place const&) = default;
    friend std::ostream& operator<<(std::ostream& out, place const& p) { return out << p.block << '.' << p.row; }
};
struct kind_of_layer {
    int number = 0;
    friend bool operator==(kind_of_layer const&, kind_of_layer const&) = default;
    friend std::string to_string(kind_of_layer const& k) { return k.number < 2 ? "early" : "late"; }
};
} // namespace dense_graph_test
template <> struct std::hash<dense_graph_test::place> {
    std::size_t operator()(dense_graph_test::place const& p) const { return std::hash<int>{}(100 * p.block + p.row); }
};
template <> struct std::hash<dense_graph_test::kind_of_layer> {
    std::size_t operator()(dense_graph_test::kind_of_layer const& k) const { return std::hash<int>{}(k.number); }
};

namespace {

/// A chain of `operations` whose handles are `handles`; an empty name is none.
template <class Handle> struct chain {
    struct node {
        std::string name;
        ops::operation operation;
        [[nodiscard]] ops::operation const& describe() const { return operation; }
    };
    std::vector<Handle> handles;
    std::vector<std::string> names = std::vector<std::string>(handles.size());
    std::optional<Handle> unknown{}; ///< instead of the last producer
    [[nodiscard]] std::vector<Handle> const& operators() const { return handles; }
    [[nodiscard]] std::vector<tensor_source<Handle>> inputs(Handle const& h) const {
        auto const at = number(h);
        if (at == 0) return {};
        return {{at + 1 == handles.size() && unknown ? *unknown : handles[at - 1], 0}};
    }
    [[nodiscard]] node description(Handle const& h) const;
    [[nodiscard]] std::size_t number(Handle const& h) const {
        return static_cast<std::size_t>(std::find(handles.begin(), handles.end(), h) - handles.begin());
    }
};

/// A graph as tables; handles are any numbers.
struct table_graph {
    struct node {
        std::string name;
        ops::operation operation;
        [[nodiscard]] ops::operation const& describe() const { return operation; }
    };
    std::vector<int> handles;
    std::vector<node> nodes; ///< by position in `handles`
    std::vector<std::vector<tensor_source<int>>> sources;

    void add(int handle, std::string name, ops::operation op, std::vector<tensor_source<int>> in) {
        handles.push_back(handle);
        nodes.push_back({std::move(name), std::move(op)});
        sources.push_back(std::move(in));
    }
    [[nodiscard]] std::vector<int> const& operators() const { return handles; }
    [[nodiscard]] std::vector<tensor_source<int>> const& inputs(int h) const { return sources[at(h)]; }
    [[nodiscard]] node const& description(int h) const { return nodes[at(h)]; }

  private:
    [[nodiscard]] std::size_t at(int h) const { return static_cast<std::size_t>(std::find(handles.begin(), handles.end(), h) - handles.begin()); }
};
static_assert(OperatorGraph<table_graph>);

ops::operation source(std::vector<std::int64_t> const& shape = {4, 4}) {
    ops::operation op{.kind = "source", .work = ops::work_class::source};
    op.outputs.push_back({.name = "y", .differentiable = false});
    for (auto const e : shape) op.outputs[0].axes.push_back({.extent = e});
    return op;
}
ops::operation linear(std::int64_t out = 4, std::string parameter = {}, std::int64_t in = 4) {
    return ops::linear{.out = out, .bias = false, .parameter = std::move(parameter)}.infer(std::vector<ops::tensor>{{{4, in}}});
}
ops::operation relu() { return ops::relu{}.infer(std::vector<ops::tensor>{{{4, 4}}}); }
template <class Handle> typename chain<Handle>::node chain<Handle>::description(Handle const& h) const {
    auto const at = number(h);
    return {names[at], at == 0 ? source() : at % 2 ? linear() : relu()};
}
template <class Handle> std::vector<std::string> names_of(chain<Handle> const& g) { return graph::read_graph(g).graph.names; }
ops::operation add() { return ops::add{}.infer(std::vector<ops::tensor>{{{4, 4}}, {{4, 4}}}); }
std::string refused(table_graph const& g) {
    return support::refusal([&] { return graph::read_graph(g); });
}

} // namespace

TEST_CASE("dense_graph: numbers, edges both ways, topological order with ties by number") {
    table_graph g; // named last first
    g.add(70, "sum", add(), {{30, 0}, {50, 0}});
    g.add(50, "right", relu(), {{10, 0}});
    g.add(30, "left", linear(), {{10, 0}});
    g.add(10, "x", source(), {});
    auto const [dense, handles] = graph::read_graph(g);
    CHECK(handles == std::vector<int>{70, 50, 30, 10});
    CHECK(dense.names == std::vector<std::string>{"sum", "right", "left", "x"});
    CHECK(dense.edges == std::vector<graph::edge>{{2, 0, 0, 0}, {1, 0, 0, 1}, {3, 0, 1, 0}, {3, 0, 2, 0}});
    CHECK(dense.in(0).size() == 2);
    CHECK(dense.in(3).empty());
    CHECK(std::vector<std::uint32_t>(dense.out(3).begin(), dense.out(3).end()) == std::vector<std::uint32_t>{2, 3});
    CHECK(dense.out(0).empty());
    CHECK(dense.order == std::vector<std::uint32_t>{3, 1, 2, 0});
}

TEST_CASE("dense_graph: gradients flow from weights on, and through nothing that has none") {
    table_graph g;
    g.add(0, "x", source(), {});
    g.add(1, "before", relu(), {{0, 0}});
    g.add(2, "fc", linear(), {{1, 0}});
    g.add(3, "after", relu(), {{2, 0}});
    g.add(4, "sum", add(), {{1, 0}, {3, 0}});
    auto const dense = graph::read_graph(g).graph;
    CHECK(dense.trains == std::vector<bool>{false, false, true, true, true});
    CHECK(dense.input_gradients(2) == 0);
    CHECK(dense.input_gradients(3) == 1);
    CHECK(dense.input_gradients(4) == 2); // of its second input only
    CHECK_FALSE(dense.carries_gradient(dense.in(2)[0]));
    CHECK(dense.carries_gradient(dense.in(4)[1]));
}

TEST_CASE("dense_graph: sharing names the smallest operator, through chains of parameters") {
    table_graph g;
    g.add(0, "x", source(), {});
    g.add(1, "a", linear(4, "p"), {{0, 0}});
    g.add(2, "b", linear(4, "q"), {{0, 0}});
    g.add(3, "c", linear(4, "p"), {{0, 0}});
    auto both = linear(4, "q");
    both.weights.push_back(linear(4, "p").weights[0]);
    g.add(4, "d", linear(), {{0, 0}});
    CHECK(graph::read_graph(g).graph.sharing == std::vector<std::uint32_t>{0, 1, 2, 1, 4});
    g.add(5, "e", both, {{0, 0}});
    CHECK(graph::read_graph(g).graph.sharing == std::vector<std::uint32_t>{0, 1, 1, 1, 4, 1});
}

TEST_CASE("dense_graph: several components, several outputs, several edges between two operators") {
    table_graph g;
    g.add(0, "x", source(), {});
    g.add(1, "halves", ops::split{.axis = 1, .sizes = {2, 2}}.infer(std::vector<ops::tensor>{{{4, 4}}}), {{0, 0}});
    g.add(2, "joined", ops::concat{.axis = 1}.infer(std::vector<ops::tensor>{{{4, 2}}, {{4, 2}}, {{4, 2}}}), {{1, 1}, {1, 0}, {1, 1}});
    g.add(3, "y", source(), {});
    g.add(4, "alone", linear(), {{3, 0}});
    auto const dense = graph::read_graph(g).graph;
    CHECK(dense.edges == std::vector<graph::edge>{{0, 0, 1, 0}, {1, 1, 2, 0}, {1, 0, 2, 1}, {1, 1, 2, 2}, {3, 0, 4, 0}});
    CHECK(dense.out(1).size() == 3);
    CHECK(dense.order.size() == 5);
}

TEST_CASE("dense_graph: random networks, the order and both sides of the edges agree") {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const dense = graph::read_graph(support::random_network(rng)).graph;
        std::vector<std::size_t> position(dense.size());
        for (std::size_t i = 0; i < dense.size(); ++i) position[dense.order[i]] = i;
        std::size_t out = 0;
        for (std::uint32_t op = 0; op < dense.size(); ++op) {
            REQUIRE(dense.in(op).size() == dense.operations[op].inputs.size());
            for (auto const& e : dense.in(op)) {
                REQUIRE(e.consumer == op);
                REQUIRE(position[e.producer] < position[op]);
            }
            for (auto const e : dense.out(op)) REQUIRE(dense.edges[e].producer == op);
            out += dense.out(op).size();
        }
        REQUIRE(out == dense.edges.size());
    }
}

TEST_CASE("dense_graph: operators without a name are called by kind and handle, where all can be told apart so") {
    using names = std::vector<std::string>;
    using dense_graph_test::kind_of_layer, dense_graph_test::layer, dense_graph_test::place;
    CHECK(names_of(chain<int>{{0, 1, 2}}) == names{"source#0", "linear#1", "relu#2"});
    CHECK(names_of(chain<int>{{100, 200, -3}}) == names{"source#100", "linear#200", "relu#-3"});
    CHECK(names_of(chain<char>{{'x', 'w', '\t'}}) == names{"source#x", "linear#w", "relu#9"});
    CHECK(names_of(chain<layer>{{layer::in, layer::fc, layer::act}}) == names{"source#10", "linear#20", "relu#30"});
    CHECK(names_of(chain<place>{{{0, 0}, {3, 1}, {3, 2}}}) == names{"source#0.0", "linear#3.1", "relu#3.2"});
    int here[3];
    CHECK(names_of(chain<int*>{{here, here + 2, here + 1}}) == names{"source#0", "linear#1", "relu#2"});
    CHECK(names_of(chain<std::string>{{"x", "fc", "act"}}) == names{"x", "fc", "act"});
    CHECK(names_of(chain<int>{{7, 8, 9}, {"in", "", "out"}}) == names{"in", "linear#8", "out"});
    // Names that would be those of others.
    CHECK(names_of(chain<kind_of_layer>{{{0}, {1}, {2}}}) == names{"source#early", "linear#early", "relu#late"});
    CHECK(names_of(chain<kind_of_layer>{{{0}, {1}, {2}, {3}, {4}}}) == names{"source#0", "linear#1", "relu#2", "linear#3", "relu#4"});
    CHECK(names_of(chain<int>{{7, 8, 9}, {"linear#8", "", ""}}) == names{"linear#8", "linear#1", "relu#2"});
}

TEST_CASE("dense_graph: handles that come twice and unknown producers are printed") {
    using dense_graph_test::layer, dense_graph_test::place;
    auto const said = [](auto const& g) { return support::refusal([&] { return graph::read_graph(g); }); };
    CHECK(said(chain<layer>{{layer::in, layer::fc, layer::in}}) ==
          "operators(graph) names operator number 0 (its handle is 10) again as number 2: each must appear once");
    CHECK(said(chain<place>{{{0, 0}, {3, 1}}, {"", ""}, place{4, 4}}) ==
          "operator 'linear#3.1' (linear): input 0 comes from an operator that operators(graph) does not name (its handle is 4.4)");
    int here[2];
    CHECK(said(chain<int*>{{here}, {""}, {}}) == "");
    CHECK(said(chain<int*>{{here, here + 1, here}}) == "operators(graph) names operator number 0 again as number 2: each must appear once");
}

TEST_CASE("dense_graph: cycles are refused with the operators on them") {
    table_graph g;
    g.add(0, "x", source(), {});
    g.add(1, "behind", relu(), {{4, 0}});
    g.add(2, "one", add(), {{0, 0}, {4, 0}});
    g.add(3, "two", relu(), {{2, 0}});
    g.add(4, "three", relu(), {{3, 0}});
    auto const message = refused(g);
    CHECK(message.find("cycle in the operator graph: '") == 0);
    for (auto const* name : {"'one'", "'two'", "'three'"}) CHECK(message.find(name) != std::string::npos);
    CHECK(message.find("behind") == std::string::npos);
    CHECK(message.find("'x'") == std::string::npos);
    CHECK(message.find("'one' -> 'two' -> 'three'") + message.find("'two' -> 'three' -> 'one'") + message.find("'three' -> 'one' -> 'two'") !=
          3 * std::string::npos); // in the direction of the data
    table_graph self;
    self.add(0, "loop", relu(), {{0, 0}});
    CHECK(refused(self) == "cycle in the operator graph: 'loop' -> 'loop': an operator graph is acyclic");
}

TEST_CASE("dense_graph: what does not fit is refused with the operator's name") {
    table_graph g;
    g.add(0, "x", source(), {});
    auto const with = [&](ops::operation op, std::vector<tensor_source<int>> in) {
        auto copy = g;
        copy.add(1, "bad", std::move(op), std::move(in));
        return refused(copy);
    };
    CHECK(refused({}) == "the operator graph has no operators: at least one is needed");
    CHECK(with(relu(), {{9, 0}}) == "operator 'bad' (relu): input 0 comes from an operator that operators(graph) does not name (its handle is 9)");
    CHECK(with(relu(), {}) == "operator 'bad' (relu): the graph gives it 0 inputs: it has 1");
    CHECK(with(relu(), {{0, 0}, {0, 0}}) == "operator 'bad' (relu): the graph gives it 2 inputs: it has 1");
    CHECK(with(relu(), {{0, 3}}) == "operator 'bad' (relu): input 0 is output 3 of 'x', which has only 1 outputs");
    CHECK(with(linear(4, "", 5), {{0, 0}}) == "operator 'bad' (linear): input 0 is output 0 of 'x' of shape f32[4,4]: must be f32[4,5]");
    CHECK(with(ops::embedding{.entries = 4, .features = 2}.infer(std::vector<ops::tensor>{{{4, 4}, ops::dtype::i64}}), {{0, 0}}) ==
          "operator 'bad' (embedding): input 0 is output 0 of 'x' of shape f32[4,4]: must be i64[4,4]");
    auto malformed = relu();
    malformed.dims[0].extent = 0;
    CHECK(with(malformed, {{0, 0}}).find("operator 'bad' (relu): dim '") == 0);
    auto twice = g;
    twice.add(0, "again", source(), {});
    CHECK(refused(twice) == "operators(graph) names operator number 0 (its handle is 0) again as number 1: each must appear once");
    auto unkind = relu();
    unkind.kind.clear();
    CHECK(with(unkind, {{0, 0}}) == "operator 'bad' (): its kind is empty: operators that differ must have kinds that differ");
    auto alike = relu();
    alike.dims[1].name = alike.dims[0].name;
    CHECK(with(alike, {{0, 0}}) ==
          "operator 'bad' (relu): dims 0 and 1 are both named '" + alike.dims[0].name + "': each dim must have a name of its own");
    auto nameless = relu();
    nameless.dims[1].name.clear();
    CHECK(with(nameless, {{0, 0}}) == "operator 'bad' (relu): dim 1 has an empty name: each dim must have a name of its own");
    auto fed = source();
    fed.dims = relu().dims;
    fed.inputs = relu().inputs;
    CHECK(with(fed, {{0, 0}}) == "operator 'bad' (source): a graph input with 1 inputs and 0 weights: must have neither");
}

TEST_CASE("dense_graph: one parameter has one shape") {
    table_graph g;
    g.add(0, "x", source(), {});
    g.add(1, "first", linear(4, "w"), {{0, 0}});
    g.add(2, "second", linear(6, "w"), {{0, 0}});
    auto const message = refused(g);
    CHECK(message.find("operator 'second' (linear): parameter 'w") == 0);
    CHECK(message.find("of shape f32[6,4] is shared with 'first', where it has shape f32[4,4]: must be equal") != std::string::npos);
}
