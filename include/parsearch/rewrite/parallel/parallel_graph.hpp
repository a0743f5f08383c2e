#pragma once
/// The parallel computation graph: operators, weights, and what reshards the tensors between them, as a value that is cheap to copy and change.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/topological_order.hpp>
#include <parsearch/ops/kit/replicas.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/rewrite/parallel/graph_node.hpp>
#include <parsearch/rewrite/parallel/operator_split.hpp>
#include <parsearch/rewrite/parallel/parallel_tensor.hpp>

namespace parsearch::rewrite {

/// Where a tensor is read: operand number `operand` of node `reader`.
struct tensor_use {
    std::uint32_t reader = 0, operand = 0;
    friend bool operator==(tensor_use const&, tensor_use const&) = default;
};

/// What `description` tells of a node.
struct node_description {
    std::string name;
    ops::operation operation;
    [[nodiscard]] ops::operation const& describe() const noexcept { return operation; }
};

namespace detail {
/// What `f` answers; what it refuses names the operator.
template <class F> auto of_operator(std::string_view name, F const& f) {
    try {
        return f();
    } catch (invalid_input const& e) {
        throw invalid_input("operator '", name, "' of a parallel graph: ", e.what());
    }
}
} // namespace detail

/// A parallel computation graph (Unger et al., Unity, OSDI 2022, section 3). Nodes are graph inputs, weights, operators, each with the split by which
/// it runs, and what reshards a tensor: partition, combine, replicate, reduce, pipeline, batch. Every operand is held as its operator's split asks
/// (checked as nodes are added), so the graph says all about parallelism but the devices and, of micro-batches, the order in which devices launch
/// them.
///
/// A value: a copy costs a pointer per node, and nodes are shared until they change. Nodes keep their number in all copies, and numbers of removed
/// nodes are not used again. `results` are the tensors that the graph is computed for.
///
/// It is a model of `OperatorGraph`: its operators are the graph inputs and the compute nodes; tensors are read past what reshards them, since the
/// operators' splits imply it; operands that come from weight nodes are weights. Operators that run in copies or on partial sums have a dim for these
/// (`ops::dim_kind`), of as many as there are.
class parallel_graph {
  public:
    /// Adds a graph input, a weight, in one part.
    tensor_ref add_input(std::string name, ops::tensor shape) { return add_source(node_kind::input, std::move(name), std::move(shape), {}); }
    tensor_ref add_weight(std::string name, ops::tensor shape, std::string parameter = {}) {
        return add_source(node_kind::weight, std::move(name), std::move(shape), std::move(parameter));
    }
    /// `name`, or with the first number behind it that makes it a name which no node of this kind has.
    [[nodiscard]] std::string unused_name(node_kind kind, std::string name) const;
    /// Adds an operator that runs by the split that its operands imply, or by `split`; returns its number. Throws `invalid_input` where operands are
    /// not held as that takes.
    std::uint32_t add_operator(std::string name, ops::operation op, std::vector<tensor_ref> operands);
    std::uint32_t add_operator(std::string name, ops::operation op, std::vector<tensor_ref> operands, operator_split split);
    /// Adds a node like `n`, of any graph, that reads `inputs`; answers its number. `name`: where it is not to have that of `n`. Throws
    /// `invalid_input` where it reads others than inputs held alike, or is a graph input or weight.
    std::uint32_t add_copy(rewrite::node const& n, std::vector<tensor_ref> inputs, std::string_view name = {});
    /// Adds what reshards `t`. Throws as `resharded` does.
    tensor_ref reshard(tensor_ref t, resharding how, std::size_t axis, std::int32_t degree);
    /// Adds what it takes to hold `t` as `wanted`: `reshardings_between`, and throws as that. What an earlier call made of it is used.
    tensor_ref reshard_to(tensor_ref t, parallel_tensor const& wanted) {
        for (auto const& step : reshardings_between(tensor(t), wanted)) t = reshard_once(t, step.how, step.axis, step.degree);
        return t;
    }

    /// What the graph is computed for.
    [[nodiscard]] std::vector<tensor_ref> const& results() const noexcept { return results_; }
    void set_results(std::vector<tensor_ref> results) {
        for (auto const& t : results) static_cast<void>(tensor(t));
        results_ = std::move(results);
    }

    /// One more than the largest number of a node; whether there is one of this number; it.
    [[nodiscard]] std::uint32_t bound() const noexcept { return static_cast<std::uint32_t>(nodes_.size()); }
    [[nodiscard]] bool contains(std::uint32_t n) const noexcept { return n < nodes_.size() && nodes_[n]; }
    [[nodiscard]] rewrite::node const& operator[](std::uint32_t n) const {
        if (!contains(n)) throw invalid_input("node ", n, " is not in the graph, which counts to ", bound());
        return *nodes_[n];
    }
    /// The number of nodes.
    [[nodiscard]] std::size_t size() const noexcept {
        return static_cast<std::size_t>(std::ranges::count_if(nodes_, [](auto const& n) { return n != nullptr; }));
    }
    /// How tensor `t` is held. Throws `invalid_input` where there is none such.
    [[nodiscard]] parallel_tensor const& tensor(tensor_ref t) const;
    /// Where the tensors of each node are read, by node, output, then reader. Complexity: O(V + E).
    [[nodiscard]] std::vector<std::vector<std::pair<std::uint32_t, tensor_use>>> uses() const;
    /// The nodes such that each stands behind what it reads; the smallest number first among those that may be next. Empty where there is a cycle.
    [[nodiscard]] std::vector<std::uint32_t> order() const;
    /// The tensor that `t` is made of by resharding alone.
    [[nodiscard]] tensor_ref source(tensor_ref t) const {
        while ((*this)[t.producer]->kind == node_kind::reshard) t = (*this)[t.producer].inputs[0];
        return t;
    }

    /// Whoever reads `from`, the results too, now reads `to`, which must be held alike. Throws `invalid_input` where it is not. May make a cycle,
    /// which `order` tells.
    void redirect(tensor_ref from, tensor_ref to);
    /// Calls operator `n` by `name`, or with a number behind it where that is taken. Throws `invalid_input` where `n` is no operator.
    void rename(std::uint32_t n, std::string name);
    /// Removes what no result needs, but for graph inputs. Complexity: O(V + E).
    void prune();

    /// The model of `OperatorGraph`: see above.
    [[nodiscard]] std::vector<std::uint32_t> operators() const;
    [[nodiscard]] std::vector<tensor_ref> inputs(std::uint32_t n) const;
    /// Complexity: O(operands + V + E), for who else reads the weights. Throws `invalid_input` where an operator has no place for the dims of its
    /// copies and partial sums.
    [[nodiscard]] node_description description(std::uint32_t n) const { return description(n, readers()); }
    /// The same in O(operands), of many operators: `readers` is what `readers()` answers of this graph.
    [[nodiscard]] node_description description(std::uint32_t n, std::span<std::uint32_t const> readers) const;
    /// How many operands each node is, resharded or not. Complexity: O(V + E).
    [[nodiscard]] std::vector<std::uint32_t> readers() const;

    /// The same for equal graphs. Complexity: O(V + E).
    [[nodiscard]] std::uint64_t hash() const;
    /// Nodes of the same values, as often, read in the same places, whatever their numbers and operators' names. No hash decides. Complexity:
    /// O((V + E) log V).
    friend bool operator==(parallel_graph const& a, parallel_graph const& b);

  private:
    tensor_ref add_source(node_kind kind, std::string name, ops::tensor shape, std::string parameter);
    std::uint32_t insert_operator(std::string name, ops::operation op, std::vector<tensor_ref> operands, operator_split split);
    std::uint32_t insert(node_content c, std::vector<tensor_ref> inputs) {
        auto const hash = detail::hash_of(c);
        nodes_.push_back(std::make_shared<rewrite::node const>(std::make_shared<node_content const>(std::move(c)), hash, std::move(inputs)));
        return bound() - 1;
    }
    tensor_ref reshard_once(tensor_ref t, resharding how, std::size_t axis, std::int32_t degree);

    std::vector<std::shared_ptr<rewrite::node const>> nodes_; // none: removed
    std::vector<tensor_ref> results_;
};

bool operator==(parallel_graph const& a, parallel_graph const& b);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/parallel/parallel_graph.ipp>
#endif
