#pragma once
/// What stands in a parallel graph: a node, what it is, and which tensors it reads.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/concepts/operator_graph.hpp>
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
    void add(std::uint64_t x) noexcept { // the finaliser of splitmix64 over what was and what comes
        x ^= state + 0x9e3779b97f4a7c15;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        state = x ^ (x >> 31);
    }
    void add(std::string_view s) noexcept {
        add(s.size());
        for (auto const c : s) add(static_cast<unsigned char>(c));
    }
    void add(parallel_tensor const& t) noexcept {
        for (auto const e : t.whole.extents) add(static_cast<std::uint64_t>(e));
        for (auto const d : t.degree) add(static_cast<std::uint64_t>(d));
        add(static_cast<std::uint64_t>(t.copies) << 32 | static_cast<std::uint32_t>(t.sums));
        if (t.micro_batches > 1) add(static_cast<std::uint64_t>(t.micro_batches) << 32 | t.sample_axis);
    }
};
[[nodiscard]] inline std::uint64_t hash_of(node_content const& c) {
    hasher h;
    h.add(static_cast<std::uint64_t>(c.kind));
    if (c.kind == node_kind::input || c.kind == node_kind::weight) h.add(c.name);
    h.add(c.operation.kind);
    for (auto const& d : c.operation.dims) h.add(static_cast<std::uint64_t>(d.extent));
    for (auto const d : c.split.degree) h.add(static_cast<std::uint64_t>(d));
    if (c.split.micro_batches > 1) h.add(static_cast<std::uint64_t>(c.split.micro_batches));
    h.add(static_cast<std::uint64_t>(c.how) << 32 | c.axis);
    h.add(static_cast<std::uint64_t>(c.degree));
    for (auto const& t : c.outputs) h.add(t);
    return h.state;
}
} // namespace detail

} // namespace parsearch::rewrite
