#pragma once
/// Reads any `OperatorGraph` once into dense arrays, checked: what searches and simulators run on.

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/handle_text.hpp>
#include <parsearch/core/joined_sets.hpp>
#include <parsearch/core/topological_order.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::graph {

/// Output `slot` of operator `producer` is input number `input` of operator `consumer`.
struct edge {
    std::uint32_t producer = 0, slot = 0, consumer = 0, input = 0;
    friend bool operator==(edge const&, edge const&) = default;
};

/// An operator graph in arrays. Operators are numbered 0..n-1 in the order of `operators(g)`.
struct dense_graph {
    std::vector<std::string> names;
    std::vector<ops::operation> operations;
    std::vector<edge> edges;              ///< by consumer, then input
    std::vector<std::uint32_t> first_in;  ///< edges into operator i: [first_in[i], first_in[i + 1])
    std::vector<std::uint32_t> out_edges; ///< edge numbers by producer
    std::vector<std::uint32_t> first_out; ///< edges out of operator i: out_edges[first_out[i] ... first_out[i + 1])
    std::vector<std::uint32_t> order;     ///< topological, ties by number
    std::vector<bool> trains;             ///< a gradient flows through operator i (it or one before it has weights)
    std::vector<std::uint32_t> sharing;   ///< smallest operator with which operator i shares a parameter (itself where none)

    [[nodiscard]] std::size_t size() const noexcept { return operations.size(); }
    [[nodiscard]] std::span<edge const> in(std::size_t op) const noexcept {
        return std::span(edges).subspan(first_in[op], first_in[op + 1] - first_in[op]);
    }
    [[nodiscard]] std::span<std::uint32_t const> out(std::size_t op) const noexcept {
        return std::span(out_edges).subspan(first_out[op], first_out[op + 1] - first_out[op]);
    }
    /// True where backward sends a gradient along edge `e`.
    [[nodiscard]] bool carries_gradient(edge const& e) const noexcept {
        return trains[e.producer] && operations[e.consumer].inputs[e.input].differentiable && operations[e.producer].outputs[e.slot].differentiable;
    }
    /// Bit i: the gradient of input i of `op` is wanted.
    [[nodiscard]] std::uint64_t input_gradients(std::size_t op) const noexcept;
};

/// A dense graph and the handle of each of its operators in the graph it was read from.
template <class Handle> struct graph_reading {
    dense_graph graph;
    std::vector<Handle> handles;
};

namespace detail {

void order_topologically(dense_graph& g);

void check_edges(dense_graph const& g);

void find_training(dense_graph& g);

/// Joins the operators that share a parameter tensor.
void find_sharing(dense_graph& g);

/// `inputs(g, op)`, with the operator's name where that refuses.
template <class G, class Op> decltype(auto) inputs_of(G const& g, Op const& op, dense_graph const& dense, std::size_t number) {
    try {
        return inputs(g, op);
    } catch (invalid_input const& e) {
        throw invalid_input("operator '", dense.names[number], "' (", dense.operations[number].kind, "): ", e.what());
    }
}

/// The name that the graph gives an operator: that of its description, else its handle where that is text; empty where it gives none.
template <class D, class Handle> std::string given_name(D const& d, Handle const& handle) {
    if constexpr (requires { std::string_view(d.name); })
        if (std::string_view const name(d.name); !name.empty()) return std::string(name);
    if constexpr (std::convertible_to<Handle const&, std::string_view>) return std::string(std::string_view(handle));
    else return {};
}

/// Names the operators without a name by kind and number, unless their names by kind and handle differ from all others.
void keep_names_apart(dense_graph& g, std::span<std::uint32_t const> without_name);
} // namespace detail

/// Reads and checks `g`. The operator's name, for messages and reports, is its description's member `name`, else its handle where that is text, else
/// its kind, '#' and what `handle_text` prints of its handle; its number where that prints nothing, and of all operators without a name where it does
/// not tell them from all others. Throws `invalid_input` on a cycle, a dangling input, a shape mismatch, a malformed operation, shared parameters of
/// different shapes, always naming the operator. Complexity: O((V + E) log V).
template <OperatorGraph G>
    requires ops::Describable<decltype(parsearch::description(std::declval<G const&>(), std::declval<operator_handle_t<G> const&>()))>
[[nodiscard]] graph_reading<operator_handle_t<G>> read_graph(G const& g) {
    graph_reading<operator_handle_t<G>> out;
    auto& dense = out.graph;
    std::unordered_map<operator_handle_t<G>, std::uint32_t> number;
    std::vector<std::uint32_t> without_name;
    for (auto const& op : operators(g)) {
        if (!number.emplace(op, static_cast<std::uint32_t>(out.handles.size())).second)
            throw invalid_input("operators(graph) names operator number ", number.at(op), said_of_handle(op), " again as number ", out.handles.size(),
                                ": each must appear once");
        out.handles.push_back(op);
        decltype(auto) d = description(g, op);
        dense.operations.push_back(ops::describe(d));
        dense.names.push_back(detail::given_name(d, op));
        if (auto& name = dense.names.back(); name.empty()) {
            without_name.push_back(number.at(op));
            auto const said = handle_text(op);
            name = text(dense.operations.back().kind, '#', said.empty() ? text(without_name.back()) : said);
        }
        ops::validate(dense.operations.back(), dense.names.back());
    }
    if (out.handles.empty()) throw invalid_input("the operator graph has no operators: at least one is needed");
    detail::keep_names_apart(dense, without_name);
    dense.first_out.assign(dense.size() + 1, 0);
    for (std::uint32_t i = 0; i < out.handles.size(); ++i) {
        dense.first_in.push_back(static_cast<std::uint32_t>(dense.edges.size()));
        std::uint32_t input = 0;
        for (auto const& in : detail::inputs_of(g, out.handles[i], dense, i)) {
            auto const producer = number.find(in.producer);
            if (producer == number.end())
                throw invalid_input("operator '", dense.names[i], "' (", dense.operations[i].kind, "): input ", input,
                                    " comes from an operator that operators(graph) does not name", said_of_handle(operator_handle_t<G>(in.producer)));
            if constexpr (std::integral<std::remove_cvref_t<decltype(in.slot)>>)
                if (!std::in_range<std::uint32_t>(in.slot))
                    throw invalid_input("operator '", dense.names[i], "' (", dense.operations[i].kind, "): input ", input, " is output ", in.slot,
                                        " of '", dense.names[producer->second], "', which has no such output");
            dense.edges.push_back({producer->second, static_cast<std::uint32_t>(in.slot), i, input++});
            ++dense.first_out[producer->second + 1];
        }
    }
    dense.first_in.push_back(static_cast<std::uint32_t>(dense.edges.size()));
    for (std::size_t i = 0; i < dense.size(); ++i) dense.first_out[i + 1] += dense.first_out[i];
    dense.out_edges.resize(dense.edges.size());
    auto at = dense.first_out;
    for (std::uint32_t e = 0; e < dense.edges.size(); ++e) dense.out_edges[at[dense.edges[e].producer]++] = e;
    detail::check_edges(dense);
    detail::order_topologically(dense);
    detail::find_training(dense);
    detail::find_sharing(dense);
    return out;
}

/// An operator of a `dense_graph` and its name, as they are in it.
struct dense_operator {
    std::string_view name;
    ops::operation const* operation = nullptr;
    [[nodiscard]] ops::operation const& describe() const noexcept { return *operation; }
};

} // namespace parsearch::graph

namespace parsearch {

/// A dense graph is an operator graph: `names`, `operations`, `edges` and `first_in` count, the rest follows from them when it is read.
template <> struct operator_graph_adaptor<graph::dense_graph> {
    /// The numbers 0..n-1. Throws `invalid_input` where the arrays do not belong together.
    static std::vector<std::uint32_t> operators(graph::dense_graph const& g) {
        bool fits = g.names.size() == g.size() && g.first_in.size() == g.size() + 1 && g.first_in.front() == 0 && g.first_in.back() == g.edges.size();
        for (std::size_t op = 0; fits && op < g.size(); ++op) fits = g.first_in[op] <= g.first_in[op + 1];
        if (!fits)
            throw invalid_input("dense_graph of ", g.size(), " operations, ", g.names.size(), " names, ", g.edges.size(),
                                " edges: 'names' must have ",
                                "one entry per operation, 'first_in' one more, which rise from 0 to the number of edges");
        std::vector<std::uint32_t> out(g.size());
        for (std::uint32_t op = 0; op < out.size(); ++op) out[op] = op;
        return out;
    }
    static std::vector<tensor_source<std::uint32_t>> inputs(graph::dense_graph const& g, std::uint32_t op) {
        std::vector<tensor_source<std::uint32_t>> out;
        for (auto const& e : g.in(op)) out.push_back({e.producer, e.slot});
        return out;
    }
    static graph::dense_operator description(graph::dense_graph const& g, std::uint32_t op) { return {g.names[op], &g.operations[op]}; }
};

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/graph/dense_graph.ipp>
#endif
