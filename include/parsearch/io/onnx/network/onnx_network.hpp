#pragma once
/// A network as an ONNX file describes it, once shapes are concrete and shape arithmetic is folded away: what patterns are
/// recognised in and operators are translated from. Knows nothing of protobuf.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::io::onnx {

/// The number of a value of a network, or `no_value` for an optional input or output that is left out.
using value_id = std::uint32_t;
inline constexpr value_id no_value = ~value_id{0};

/// The elements of a small tensor, row major: integers (booleans are 0 and 1) or floating-point numbers.
struct constant {
    std::variant<std::vector<std::int64_t>, std::vector<double>> elements;
    [[nodiscard]] std::size_t size() const noexcept {
        return std::visit([](auto const& v) { return v.size(); }, elements);
    }
    /// Element `i` as a number.
    [[nodiscard]] double number(std::size_t i) const noexcept {
        return std::visit([&](auto const& v) { return static_cast<double>(v[i]); }, elements);
    }
    friend bool operator==(constant const&, constant const&) = default;
};

/// Where a value comes from.
enum class origin : std::uint8_t {
    input,     ///< a graph input: data
    parameter, ///< trained: a floating-point initialiser, or a one-to-one view of it (transposed, reshaped)
    fixed,     ///< known before the iteration and not trained: a constant, an integer initialiser, what is folded from these
    computed   ///< an output of a node
};

/// A tensor of the network.
struct value {
    std::string name;
    origin from = origin::computed;
    ops::tensor shape{};                        ///< concrete extents; scalars have none
    std::string parameter{};                    ///< of a parameter: the initialiser's name, the same for all views of it
    std::shared_ptr<constant const> contents{}; ///< of a fixed value: its elements, where they are in the file and few
    std::uint32_t producer = ~std::uint32_t{0}; ///< of a computed value: the node
};

/// An attribute of a node. Tensors are given as constants with their extents.
struct tensor_attribute {
    std::vector<std::int64_t> extents;
    constant contents;
    friend bool operator==(tensor_attribute const&, tensor_attribute const&) = default;
};
using attribute =
    std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>, tensor_attribute>;

/// An application of an operator.
struct node {
    std::string name;         ///< unique
    std::string domain;       ///< empty: the ONNX operator set; "parsearch": what patterns are replaced by
    std::string type;         ///< "Conv", "MatMul", ...
    std::int64_t version = 0; ///< of the operator set that the model imports for the domain
    std::vector<value_id> inputs, outputs;
    std::map<std::string, attribute, std::less<>> attributes;
};

/// "node 'conv1' (Conv)": the beginning of a message.
[[nodiscard]] inline std::string shown(node const& n) {
    return text("node '", n.name, "' (", n.domain.empty() ? "" : n.domain, n.domain.empty() ? "" : ".", n.type, ')');
}

/// Attribute `name` of `n` as a `T`; `otherwise` where the node has none. Throws `invalid_input` where it is of another kind.
template <class T> [[nodiscard]] T attribute_of(node const& n, std::string_view name, T otherwise) {
    auto const at = n.attributes.find(name);
    if (at == n.attributes.end()) return otherwise;
    if (auto const* const v = std::get_if<T>(&at->second)) return *v;
    throw invalid_input(shown(n), ": attribute '", name, "' has another kind than the operator's definition says");
}
[[nodiscard]] inline bool has_attribute(node const& n, std::string_view name) { return n.attributes.contains(name); }

/// Nodes in topological order (inputs of a node are produced by nodes before it) and the values between them.
struct network {
    std::vector<value> values;
    std::vector<node> nodes;
    std::vector<value_id> outputs;   ///< of the graph
    std::set<std::string> divided{}; ///< parameters that are cut or joined: what is made of them are parameters of their own

    [[nodiscard]] value const& operator[](value_id v) const noexcept { return values[v]; }

    /// Adds a value and returns its number.
    value_id add(value v) {
        values.push_back(std::move(v));
        return static_cast<value_id>(values.size() - 1);
    }
    /// The node that computes `v`, or nothing.
    [[nodiscard]] node const* producer_of(value_id v) const noexcept {
        return v != no_value && values[v].from == origin::computed ? &nodes[values[v].producer] : nullptr;
    }
};

/// Numbers the producers of all computed values anew; to be called when nodes were added, removed or moved.
inline void renumber_producers(network& net) {
    for (std::uint32_t i = 0; i < net.nodes.size(); ++i)
        for (auto const v : net.nodes[i].outputs)
            if (v != no_value) net.values[v].producer = i;
}

/// The nodes that read each value, in order; a node is listed once for each time it reads it. Graph outputs are not counted.
[[nodiscard]] inline std::vector<std::vector<std::uint32_t>> consumers_of(network const& net) {
    std::vector<std::vector<std::uint32_t>> readers(net.values.size());
    for (std::uint32_t i = 0; i < net.nodes.size(); ++i)
        for (auto const v : net.nodes[i].inputs)
            if (v != no_value) readers[v].push_back(i);
    return readers;
}

/// The only element of a fixed value whose contents are known, as a number; nothing where it is not such a scalar.
[[nodiscard]] inline std::optional<double> scalar_of(network const& net, value_id v) {
    if (v == no_value || net[v].from != origin::fixed || !net[v].contents || net[v].contents->size() != 1) return std::nullopt;
    return net[v].contents->number(0);
}

/// The elements of a fixed value of integers whose contents are known; nothing otherwise.
[[nodiscard]] inline std::vector<std::int64_t> const* integers_of(network const& net, value_id v) {
    if (v == no_value || net[v].from != origin::fixed || !net[v].contents) return nullptr;
    return std::get_if<std::vector<std::int64_t>>(&net[v].contents->elements);
}

/// Removes the nodes none of whose outputs is read or is an output of the graph, again and again.
inline void remove_dead(network& net) {
    std::vector<bool> needed(net.values.size());
    for (auto const v : net.outputs) needed[v] = true;
    std::vector<node> kept;
    for (auto n = net.nodes.rbegin(); n != net.nodes.rend(); ++n) {
        bool live = false;
        for (auto const v : n->outputs) live = live || (v != no_value && needed[v]);
        if (!live) continue;
        for (auto const v : n->inputs)
            if (v != no_value) needed[v] = true;
        kept.push_back(std::move(*n));
    }
    net.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
    renumber_producers(net);
}

} // namespace parsearch::io::onnx
