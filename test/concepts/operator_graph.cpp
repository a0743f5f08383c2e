#include <parsearch/concepts/operator_graph.hpp>

#include <cstdint>
#include <forward_list>
#include <istream>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

namespace operator_graph_test {

using sources = std::vector<tensor_source<int>>;

/// A model by members.
struct members {
    std::vector<int> operators() const { return {1, 2}; }
    sources inputs(int op) const { return op == 2 ? sources{{1, 0}} : sources{}; }
    std::string description(int) const { return "member"; }
};

/// A model that knows nothing of the library, and three functions beside it.
struct foreign {
    struct node {
        std::string name;
        std::vector<std::pair<node const*, int>> from;
    };
    std::forward_list<std::unique_ptr<node>> nodes;
};
inline std::vector<foreign::node const*> operators(foreign const& g) {
    std::vector<foreign::node const*> out;
    for (auto const& n : g.nodes) out.push_back(n.get());
    return out;
}
inline std::vector<tensor_source<foreign::node const*>> inputs(foreign const&, foreign::node const* n) {
    std::vector<tensor_source<foreign::node const*>> out;
    for (auto const& [producer, port] : n->from) out.push_back({producer, static_cast<std::uint32_t>(port)});
    return out;
}
inline std::string const& description(foreign const&, foreign::node const* n) { return n->name; }

/// A model by the adaptor, for types whose namespace is not ours.
struct adapted {};

/// One thing wrong with each.
struct without_operators {
    sources inputs(int) const;
    int description(int) const;
};
struct operators_no_range : members {
    int operators() const;
};
struct operators_single_pass : members {
    std::ranges::basic_istream_view<int, char> operators() const;
};
struct operators_not_const : members {
    std::vector<int> operators();
};
struct without_inputs {
    std::vector<int> operators() const;
    int description(int) const;
};
struct inputs_no_range : members {
    int inputs(int) const;
};
struct inputs_without_slot : members {
    struct source {
        int producer;
    };
    std::vector<source> inputs(int) const;
};
struct inputs_without_producer : members {
    struct source {
        int slot;
    };
    std::vector<source> inputs(int) const;
};
struct inputs_of_others : members {
    std::vector<tensor_source<std::string>> inputs(int) const;
};
struct without_description {
    std::vector<int> operators() const;
    sources inputs(int) const;
};
struct void_description : members {
    void description(int) const;
};
struct not_hashable {
    bool operator==(not_hashable const&) const = default;
};
struct handle_not_hashable {
    std::vector<not_hashable> operators() const;
    std::vector<tensor_source<not_hashable>> inputs(not_hashable) const;
    int description(not_hashable) const;
};

/// Says which of several ways was taken.
struct both_ways : members {};
inline std::string description(both_ways const&, int) { return "adl"; }
struct adl_and_adaptor {};
inline std::vector<int> operators(adl_and_adaptor const&) { return {1}; }

} // namespace operator_graph_test

template <> struct parsearch::operator_graph_adaptor<operator_graph_test::adapted> {
    using graph = operator_graph_test::adapted;
    static std::vector<int> operators(graph const&) { return {7}; }
    static std::vector<tensor_source<int>> inputs(graph const&, int) { return {}; }
    static char const* description(graph const&, int) { return "adapted"; }
};
template <> struct parsearch::operator_graph_adaptor<operator_graph_test::adl_and_adaptor> {
    static std::vector<int> operators(operator_graph_test::adl_and_adaptor const&) { return {2}; }
};

namespace operator_graph_test {

static_assert(OperatorGraph<members> && OperatorGraph<foreign> && OperatorGraph<adapted>);
static_assert(OperatorGraph<members const>, "constness of the graph does not matter");
static_assert(!OperatorGraph<int> && !OperatorGraph<void> && !OperatorGraph<std::vector<int>>);
static_assert(!HasOperators<without_operators> && !OperatorGraph<without_operators>);
static_assert(!HasOperators<operators_no_range>);
static_assert(!HasOperators<operators_single_pass>, "operators are passed more than once");
static_assert(!HasOperators<operators_not_const>, "a graph is only read");
static_assert(HasOperators<without_inputs> && HasDescription<without_inputs>);
static_assert(!HasInputs<without_inputs> && !OperatorGraph<without_inputs>);
static_assert(!HasInputs<inputs_no_range> && !HasInputs<inputs_without_slot> && !HasInputs<inputs_without_producer>);
static_assert(!HasInputs<inputs_of_others>, "a producer must convert to the handle");
static_assert(HasInputs<without_description> && !HasDescription<without_description> && !OperatorGraph<without_description>);
static_assert(HasInputs<void_description> && !HasDescription<void_description> && !OperatorGraph<void_description>);
static_assert(HasInputs<handle_not_hashable> && HasDescription<handle_not_hashable> && !OperatorGraph<handle_not_hashable>);

static_assert(std::is_same_v<operator_handle_t<foreign>, foreign::node const*>);
static_assert(std::is_same_v<input_source_t<members>, tensor_source<int>>);
static_assert(
    std::is_same_v<decltype(parsearch::description(std::declval<foreign const&>(), std::declval<foreign::node const* const&>())), std::string const&>,
    "a reference is passed on as such");

/// What an algorithm does with a graph: names of the producers of every operator.
template <OperatorGraph G> std::string edges(G const& g) {
    std::string out;
    for (auto const& op : parsearch::operators(g))
        for (auto const& in : parsearch::inputs(g, op))
            out += std::string(parsearch::description(g, operator_handle_t<G>(in.producer))) + std::to_string(in.slot) + ">" +
                   std::string(parsearch::description(g, op)) + " ";
    return out;
}
} // namespace operator_graph_test

TEST_CASE("operator graph: members, functions found by ADL, and the adaptor all serve an algorithm") {
    using namespace operator_graph_test;
    CHECK(edges(members{}) == "member0>member ");
    CHECK(edges(adapted{}) == "");
    CHECK(std::string_view(parsearch::description(adapted{}, 7)) == "adapted");
    foreign g;
    g.nodes.push_front(std::make_unique<foreign::node>(foreign::node{"a", {}}));
    auto const* a = g.nodes.front().get();
    g.nodes.push_front(std::make_unique<foreign::node>(foreign::node{"b", {{a, 1}, {a, 1}}}));
    CHECK(edges(g) == "a1>b a1>b ");
    CHECK(&parsearch::description(g, a) == &a->name);
}

TEST_CASE("operator graph: a member wins over ADL, ADL over the adaptor") {
    using namespace operator_graph_test;
    CHECK(parsearch::description(both_ways{}, 0) == "member");
    CHECK(operator_graph_test::description(both_ways{}, 0) == "adl");
    CHECK(parsearch::operators(adl_and_adaptor{}) == std::vector{1});
}

TEST_CASE("operator graph: sources compare by producer and slot") {
    using source = tensor_source<int>;
    CHECK(source{1, 2} == source{1, 2});
    CHECK_FALSE(source{1, 2} == source{1, 3});
    CHECK_FALSE(source{1, 2} == source{2, 2});
}
