#pragma once
/// The library's own operator graph: infers shapes as operators are added.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::graph {

/// A named operator of an `operator_graph`.
struct node {
    std::string name;
    ops::operation operation;
    [[nodiscard]] ops::operation const& describe() const noexcept { return operation; }
};

/// A tensor of an `operator_graph`: an output of one of its operators.
using tensor_ref = tensor_source<std::size_t>;

/// An operator that was added: stands for its first output; `[i]` is output i.
struct added {
    std::size_t op = 0;
    [[nodiscard]] tensor_ref operator[](std::uint32_t slot) const noexcept { return {op, slot}; }
    operator tensor_ref() const noexcept { return {op, 0}; } // NOLINT: conversion is the point
};

/// A model of `OperatorGraph` to build networks with: `auto y = g.add("fc1", ops::linear{.out = 4096}, x);`
/// A value: operators are numbered from 0 in the order in which they are added, after their inputs.
class operator_graph {
  public:
    /// The number of operators; operator number `op`.
    [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
    [[nodiscard]] node const& operator[](std::size_t op) const noexcept { return nodes_[op]; }

    /// The model of `OperatorGraph`.
    [[nodiscard]] auto operators() const noexcept { return std::views::iota(std::size_t{0}, nodes_.size()); }
    [[nodiscard]] std::span<tensor_ref const> inputs(std::size_t op) const noexcept { return inputs_[op]; }
    [[nodiscard]] node const& description(std::size_t op) const noexcept { return nodes_[op]; }

    /// Adds a graph input of the given shape. No task and no gradient belong to it.
    added input(std::string name, ops::tensor shape);

    /// Adds an operator applied to `inputs`. Throws `invalid_input` naming the operator where shapes do not fit.
    template <ops::ShapedOperator Op, std::convertible_to<tensor_ref>... In> added add(std::string name, Op const& op, In const&... in) {
        std::vector<tensor_ref> const list{static_cast<tensor_ref>(in)...};
        return add(std::move(name), op, std::span<tensor_ref const>(list));
    }
    template <ops::ShapedOperator Op> added add(std::string name, Op const& op, std::span<tensor_ref const> in) {
        std::vector<ops::tensor> shapes;
        for (auto const& t : in) shapes.push_back(shape(t, name));
        ops::operation inferred;
        try {
            inferred = op.infer(shapes);
        } catch (invalid_input const& e) {
            throw invalid_input("operator '", name, "' (", Op::kind, "): ", e.what());
        }
        return insert(std::move(name), std::move(inferred), in);
    }

    /// Adds an operator that is described already: an `ops::operation`, or anything that `ops::describe` makes one of.
    template <ops::Describable Op, std::convertible_to<tensor_ref>... In>
        requires(!ops::ShapedOperator<Op>)
    added add(std::string name, Op const& op, In const&... in) {
        std::vector<tensor_ref> const list{static_cast<tensor_ref>(in)...};
        return insert(std::move(name), ops::describe(op), list);
    }

    /// Adds an operation that the caller describes, fed by `inputs` in operand order.
    added insert(std::string name, ops::operation op, std::span<tensor_ref const> in);

    /// Shape of a tensor. Throws `invalid_input` where there is no such output.
    [[nodiscard]] ops::tensor shape(tensor_ref t, std::string_view asked_by = "shape") const {
        if (t.producer >= nodes_.size() || t.slot >= nodes_[t.producer].operation.outputs.size())
            throw invalid_input("operator '", asked_by, "': input is output ", t.slot, " of operator ", t.producer, ", which does not exist");
        return ops::tensor_of(nodes_[t.producer].operation.outputs[t.slot]);
    }

  private:
    std::vector<node> nodes_;
    std::vector<std::vector<tensor_ref>> inputs_;
    std::unordered_set<std::string> names_;
};

} // namespace parsearch::graph

#ifndef PARSEARCH_COMPILED
#include <parsearch/graph/vector_graph.ipp>
#endif
