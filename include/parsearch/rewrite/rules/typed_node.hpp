#pragma once
/// Nodes of a parallel graph in the vocabulary of rules: their type and parameters, and nodes made from these.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::rewrite {

/// A node as rules name it: a type of `op_type` and the value of each of its parameters. Axes are counted from 0, the outermost.
struct typed_node {
    std::string_view type;
    std::vector<std::pair<std::string_view, std::int64_t>> parameters{};
    /// The value of `key`, none where the type has no such parameter.
    [[nodiscard]] std::optional<std::int64_t> get(std::string_view key) const {
        for (auto const& [k, v] : parameters)
            if (k == key) return v;
        return {};
    }
};

/// Keys whose values are axes: rules may count these from the end, -1 being the innermost.
[[nodiscard]] inline bool is_axis(std::string_view key) noexcept { return key == op_key::parallel_dim || key == op_key::axis; }

namespace detail {
struct named_type {
    std::string_view kind, type;
};

} // namespace detail

/// Node `n` of `g` in the vocabulary of rules; none where it has no word for it. A linear layer and a convolution are of their type with any
/// number of operands: a bias is the third. Sums and products are of tensors of one shape.
[[nodiscard]] std::optional<typed_node> typed(parallel_graph const& g, std::uint32_t n);

/// Adds to `g` a node of `type` that reads `operands`; answers its number. `parts`: the extents of the outputs of a split along its axis. Throws
/// `invalid_input` where a parameter is missing, there is no such type, or operands do not fit.
std::uint32_t add_typed(parallel_graph& g, typed_node const& t, std::vector<tensor_ref> operands, std::span<std::int64_t const> parts = {});

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/typed_node.ipp>
#endif
