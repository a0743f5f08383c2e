#pragma once
/// From a network to the library's operator graph.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>
#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>

namespace parsearch::io::onnx {

/// A network as an operator graph.
struct translated {
    graph::operator_graph graph;
    std::map<std::string, graph::tensor_ref> tensors; ///< what the values of the network have become, by name: inputs and outputs of nodes
    std::vector<graph::tensor_ref> outputs;           ///< of the network, less those that are no result of an operator
    std::vector<std::string> notes;                   ///< what was taken differently from how the file says it
};

namespace detail {
/// One operator for a node that nothing is known of: not divisible, operands whole, no flops.
inline void replicate(translation& t) {
    auto const* const first = t.known_output(0);
    if (!first) throw invalid_input("the shapes of its outputs are not known");
    ops::operation op{.kind = t.node().type, .work = ops::work_class::memory};
    auto const add_whole = [](std::vector<ops::operand>& operands, std::string name, ops::tensor const& shape) {
        std::vector<ops::axis> axes;
        for (auto const e : shape.extents) axes.push_back(ops::kit::whole(e));
        operands.push_back(
            {.name = std::move(name), .type = shape.type, .axes = std::move(axes), .differentiable = ops::kit::is_floating(shape.type)});
    };
    auto const in = t.all_inputs();
    for (std::size_t i = 0; i < in.size(); ++i) add_whole(op.inputs, text('x', i), in[i].shape);
    std::vector<std::size_t> given;
    for (std::size_t i = 0; i < t.outputs(); ++i)
        if (auto const* const shape = t.known_output(i)) {
            add_whole(op.outputs, text('y', i), *shape);
            given.push_back(i);
        }
    auto const made = t.insert(std::move(op), in);
    for (std::uint32_t i = 0; i < given.size(); ++i) t.output(given[i], made[i]);
    t.note("is unknown: runs whole, without counted work");
}

/// Calls `f`; what it refuses begins with the node.
template <class F> void naming(node const& n, F const& f) {
    try {
        f();
    } catch (invalid_input const& e) {
        std::string const what = e.what(), place = shown(n);
        if (what.starts_with(place)) throw;
        throw invalid_input(place, ": ", what);
    }
}

inline void record_outputs(construction& made, translation const& t) {
    auto const& net = *made.net;
    auto const& n = t.node();
    auto const results = t.results();
    auto const record = [&](std::size_t i, value_id v, graph::tensor_ref tensor) {
        if (auto const shape = made.graph.shape(tensor); !(shape == net[v].shape))
            throw invalid_input("output ", i, " ('", net[v].name, "') has shape ", ops::to_string(shape),
                                " by the operators it was translated to, and ", ops::to_string(net[v].shape), " by the network");
        made.tensors.insert_or_assign(v, tensor);
    };
    for (auto const& [i, tensor] : results) record(i, n.outputs[i], tensor);
    for (std::size_t i = 0; i < n.outputs.size(); ++i)
        if (t.is_read(i) && !results.contains(i))
            throw invalid_input("its translator gives no output ", i, " ('", net[n.outputs[i]].name, "'), which is read");
    if (auto const* const other = t.absorbed()) record(0, other->outputs.at(0), results.at(0));
}
} // namespace detail

/// Translates `net`. Its inputs become graph inputs where they are read, its nodes what their translators make of them, parameters weights
/// that carry their names. Throws `invalid_input`, naming the node, on an operator that `known` has not (unless `replicate_unknown`: then such an
/// operator runs whole, and a note says so), on one whose use is not supported, and where a shape is not the one that `net` gives.
/// Complexity: O((values + nodes) log values).
[[nodiscard]] inline translated translate(network const& net, operators const& known, bool replicate_unknown = false) {
    auto const readers = consumers_of(net);
    detail::construction made{.net = &net, .readers = &readers, .results = {net.outputs.begin(), net.outputs.end()}};
    for (std::uint32_t i = 0; i < net.nodes.size(); ++i) {
        auto const& n = net.nodes[i];
        if (made.absorbed.contains(i)) continue;
        auto const* const f = known.find(n);
        if (!f && !replicate_unknown) throw invalid_input(unknown_operator(n));
        detail::naming(n, [&] {
            translation t(made, n);
            if (f) (*f)(t);
            else detail::replicate(t);
            detail::record_outputs(made, t);
        });
    }
    translated out{.graph = std::move(made.graph), .tensors = {}, .outputs = {}, .notes = std::move(made.notes)};
    for (auto const& [v, tensor] : made.tensors) out.tensors.emplace(net[v].name, tensor);
    for (auto const v : net.outputs)
        if (auto const at = made.tensors.find(v); at != made.tensors.end()) out.outputs.push_back(at->second);
    std::set<std::string> unused;
    for (value_id v = 0; v < net.values.size(); ++v) {
        if (net[v].from == origin::parameter && !made.used.contains(net[v].parameter) && !net.divided.contains(net[v].parameter))
            unused.insert(net[v].parameter);
        if (net[v].from == origin::input && !made.tensors.contains(v)) out.notes.push_back(text("input '", net[v].name, "' is read by no operator"));
    }
    for (auto const& name : unused) out.notes.push_back(text("parameter '", name, "' is used by no operator"));
    return out;
}

/// Infers the shapes of a node's outputs by translating it alone: for operators that shape inference does not know. Answers a shape for
/// each output (of no axes where the translator leaves it out), and nothing where `known` has no translator for the node. The function keeps
/// a copy of `known`.
[[nodiscard]] inline std::function<std::optional<std::vector<ops::tensor>>(network const&, node const&)> shape_by_translation(operators known) {
    return [known = std::move(known)](network const& net, node const& n) -> std::optional<std::vector<ops::tensor>> {
        auto const* const f = known.find(n);
        if (!f) return std::nullopt;
        detail::construction made{.net = &net};
        std::vector<ops::tensor> shapes(n.outputs.size());
        detail::naming(n, [&] {
            translation t(made, n);
            (*f)(t);
            for (auto const& [i, tensor] : t.results()) shapes[i] = made.graph.shape(tensor);
        });
        return shapes;
    };
}

} // namespace parsearch::io::onnx
