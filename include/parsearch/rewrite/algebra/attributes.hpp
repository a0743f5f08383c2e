#pragma once
/// What an operation says about itself, read back from its kind and its axes: the stages that are fused to it, cuts along an axis,
/// permutations, windows of a convolution. Every reading is checked against the axes, so a kind alone is never trusted.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::rewrite {

/// The parts of a fused kind: "linear+add+relu" is linear, then add, then relu.
struct fused_kind {
    std::string base;
    std::vector<std::string> stages{};
    friend bool operator==(fused_kind const&, fused_kind const&) = default;
};

/// Reads a kind. "batch_norm_relu", which `ops::batch_norm` makes, is batch_norm, then relu.
[[nodiscard]] fused_kind parts_of(std::string_view kind);

/// True where a stage of a fused kind reads a further tensor.
[[nodiscard]] constexpr bool reads_another(std::string_view stage) noexcept { return stage == "add" || stage == "multiply"; }

/// How many of the last inputs of `op` belong to its stages, one to each that reads a further tensor.
[[nodiscard]] inline std::size_t stage_inputs(fused_kind const& kind) {
    return static_cast<std::size_t>(std::count_if(kind.stages.begin(), kind.stages.end(), [](auto const& s) { return reads_another(s); }));
}

/// True for one entry per value of one dim: one term of stride 1, nothing cut off.
[[nodiscard]] inline bool is_plain(ops::operation const& op, ops::axis const& a) noexcept {
    return a.terms.size() == 1 && a.terms[0].stride == 1 && a.offset == 0 && a.span == 1 && op.dims[a.terms[0].dim].extent == a.extent;
}

/// True where every axis of `o` is plain, each along a dim of its own.
[[nodiscard]] bool is_plain(ops::operation const& op, ops::operand const& o);

/// True where output and input 0 have the same plain axes, there is one of each, and no weight: y = f(x), element by element.
[[nodiscard]] inline bool is_unary(ops::operation const& op) {
    return op.work == ops::work_class::elementwise && op.inputs.size() == 1 && op.weights.empty() && op.outputs.size() == 1 &&
           op.inputs[0].axes == op.outputs[0].axes && is_plain(op, op.outputs[0]) && op.dims.size() == op.outputs[0].axes.size();
}

/// How much a kind tells of the function that a unary operation computes.
enum class knowledge : std::uint8_t {
    told,      ///< two operations of this kind compute the same function
    numbers,   ///< a function of the element alone, with numbers that the operation does not keep: a factor, a bound, an exponent
    positional ///< depends on where the element stands (a triangular mask), or on chance (dropout)
};

/// Kinds that the library does not know count as `positional`. Both common forms of gelu count as one function: descriptions do not tell them apart.
[[nodiscard]] knowledge knowledge_of(std::string_view kind) noexcept;

/// True for unary kinds with f(a + b) = f(a) + f(b): these may follow partial sums.
[[nodiscard]] constexpr bool is_additive(std::string_view kind) noexcept {
    return kind == "identity" || kind == "negate" || kind == "scale" || kind == "mask";
}

/// An axis in consecutive parts.
struct cut {
    std::size_t axis = 0;
    std::vector<std::int64_t> sizes{};
    friend bool operator==(cut const&, cut const&) = default;
};

namespace detail {
/// How `parts` cut the space of `op`, whose operand `all` is plain; none where they do not cover one axis in order.
[[nodiscard]] std::optional<cut> cut_of(ops::operation const& op, ops::operand const& all, std::span<ops::operand const> parts);
} // namespace detail

/// Which axis a concat joins, and the sizes of its inputs. None where `op` is no concat of inputs alone.
[[nodiscard]] inline std::optional<cut> read_concat(ops::operation const& op) {
    if (op.kind != "concat" || !op.weights.empty() || op.outputs.size() != 1) return std::nullopt;
    return detail::cut_of(op, op.outputs[0], op.inputs);
}

/// Which axis a split cuts, and the sizes of its outputs. None where `op` is no split.
[[nodiscard]] inline std::optional<cut> read_split(ops::operation const& op) {
    if (op.kind != "split" || !op.weights.empty() || op.inputs.size() != 1) return std::nullopt;
    return detail::cut_of(op, op.inputs[0], op.outputs);
}

/// Axis i of the output is axis `result[i]` of the input. None where `op` is no transpose.
[[nodiscard]] std::optional<std::vector<std::int64_t>> read_transpose(ops::operation const& op);

/// True for the same elements, in the same order, under another shape or the same.
[[nodiscard]] inline bool is_reshape(ops::operation const& op) noexcept {
    return op.work == ops::work_class::view && op.inputs.size() == 1 && op.weights.empty() && op.outputs.size() == 1 &&
           op.inputs[0].type == op.outputs[0].type && ops::elements_of(op.inputs[0]) == ops::elements_of(op.outputs[0]);
}

/// One spatial axis of a convolution.
struct window {
    std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1; ///< dilation 1 where the kernel has one position
    friend bool operator==(window const&, window const&) = default;
};

/// The windows of a convolution, one per spatial axis (numbers 2 and on of x, y and the weight). None where `op`, apart from fused stages, is
/// no conv1d or conv2d.
[[nodiscard]] std::optional<std::vector<window>> read_windows(ops::operation const& op);

/// True for operations whose output is a sum of products of inputs and weights that the axes tell: linear, matrix products, einsum, convolutions,
/// and what else says that it is a matrix product. Fused stages do not count.
[[nodiscard]] inline bool is_contraction(ops::operation const& op) {
    auto const base = parts_of(op.kind).base;
    return op.outputs.size() == 1 && (op.work == ops::work_class::matmul || base == "einsum" || base == "conv1d" || base == "conv2d");
}

/// Clears the names of parameters that only one weight of `model` has: none of them is shared, and rules are free to join or cut them.
void forget_unshared(std::span<ops::operation> model);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/algebra/attributes.ipp>
#endif
