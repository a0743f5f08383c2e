#pragma once
/// What stands in a parallel graph: a node, what it is, and which tensors it reads.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/rewrite/parallel/operator_split.hpp>
#include <parsearch/rewrite/parallel/parallel_tensor.hpp>

namespace parsearch::rewrite {

/// A tensor of a graph: output `slot` of node `producer`.
using tensor_ref = tensor_source<std::uint32_t>;

enum class node_kind : std::uint8_t { input, weight, compute, reshard };
[[nodiscard]] constexpr std::string_view name_of(node_kind k) noexcept {
    constexpr std::string_view names[]{"input", "weight", "operator", "resharding"};
    return names[static_cast<std::size_t>(k)];
}

/// What a node is, apart from what it reads: never changed, shared by all graphs that have it.
struct node_content {
    node_kind kind = node_kind::compute;
    std::string name{};                     ///< for people; inputs and weights are the same where it is
    ops::operation operation{};             ///< compute; of inputs and weights one without operands; of resharding empty
    operator_split split{};                 ///< compute
    resharding how = resharding::partition; ///< reshard: this,
    std::uint32_t axis = 0;                 ///< of this axis where it has one,
    std::int32_t degree = 1;                ///< by this
    std::string parameter{};                ///< weight: its parameter tensor's name in the graph that it came from
    std::vector<parallel_tensor> outputs{};

    /// Equal but for the names that say nothing: those of operators.
    friend bool operator==(node_content const& a, node_content const& b) {
        bool const named = a.kind == node_kind::input || a.kind == node_kind::weight;
        return a.kind == b.kind && (!named || (a.name == b.name && a.parameter == b.parameter)) && a.how == b.how && a.axis == b.axis &&
               a.degree == b.degree && a.split == b.split && a.outputs == b.outputs && a.operation == b.operation;
    }
};

/// A node of a `parallel_graph`.
struct node {
    std::shared_ptr<node_content const> content;
    std::uint64_t hash = 0;           ///< of the content
    std::vector<tensor_ref> inputs{}; ///< compute: the operation's inputs, then its weights
    [[nodiscard]] node_content const* operator->() const noexcept { return content.get(); }
};

namespace detail {
struct hasher {
    std::uint64_t state = 0x9e3779b97f4a7c15;
    void add(std::uint64_t x) noexcept;
    void add(std::string_view s) noexcept {
        add(s.size());
        for (auto const c : s) add(static_cast<unsigned char>(c));
    }
    void add(parallel_tensor const& t) noexcept;
};
[[nodiscard]] std::uint64_t hash_of(node_content const& c);
} // namespace detail

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/parallel/graph_node.ipp>
#endif
