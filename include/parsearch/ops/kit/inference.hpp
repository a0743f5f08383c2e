#pragma once
/// What the built-in operators share when they infer their operation: checks of inputs and options, dims, axes, weights.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops::kit {

/// The largest extent or option, so that sums and small multiples stay far from the end of 64 bits.
inline constexpr std::int64_t largest_extent = std::int64_t{1} << 40;
/// The most elements of a tensor: its bytes fit 62 bits.
inline constexpr double most_elements = 5e17;

/// Elements, as a double: the unit that flops are counted in.
[[nodiscard]] inline double elements(tensor const& t) noexcept {
    double n = 1;
    for (auto const e : t.extents) n *= static_cast<double>(e);
    return n;
}

/// "input 0 of shape f32[64,3]": the beginning of a message.
[[nodiscard]] inline std::string shown(std::span<tensor const> inputs, std::size_t i) {
    return text("input ", i, " of shape ", to_string(inputs[i]));
}

/// Checks the number of inputs and that each has a sensible extent.
void expect_inputs(std::span<tensor const> inputs, std::size_t least, std::size_t most);
inline void expect_inputs(std::span<tensor const> inputs, std::size_t count) { expect_inputs(inputs, count, count); }

void expect_rank(std::span<tensor const> inputs, std::size_t i, std::size_t least, std::size_t most);
inline void expect_rank(std::span<tensor const> inputs, std::size_t i, std::size_t rank) { expect_rank(inputs, i, rank, rank); }
inline void expect_least_rank(std::span<tensor const> inputs, std::size_t i, std::size_t least) { expect_rank(inputs, i, least, ~std::size_t{0}); }

/// Checks that axis `axis` of input `i` has the extent that `why` asks for.
inline void expect_extent(std::span<tensor const> inputs, std::size_t i, std::size_t axis, std::int64_t extent, std::string_view why) {
    if (inputs[i].extents[axis] != extent) throw invalid_input(shown(inputs, i), ": axis ", axis, " must have extent ", extent, ", ", why);
}

[[nodiscard]] constexpr bool is_floating(dtype t) noexcept { return t <= dtype::bf16; }

/// Checks that inputs `first`, ..., `last` have one floating-point type.
void expect_floating(std::span<tensor const> inputs, std::size_t first, std::size_t last);
/// Checks that all inputs have one type.
inline void expect_one_type(std::span<tensor const> inputs) {
    for (std::size_t i = 1; i < inputs.size(); ++i)
        if (inputs[i].type != inputs[0].type) throw invalid_input(shown(inputs, i), ": must have the type of ", shown(inputs, 0));
}
/// Checks that input `i` holds indices.
inline void expect_indices(std::span<tensor const> inputs, std::size_t i) {
    if (inputs[i].type != dtype::i64 && inputs[i].type != dtype::i32) throw invalid_input(shown(inputs, i), ": indices must have type i64 or i32");
}

/// `value` where it is between `least` and 2^40.
inline std::int64_t checked(std::string_view option, std::int64_t value, std::int64_t least = 1) {
    if (value < least || value > largest_extent) throw invalid_input("option ", option, " is ", value, ": must be between ", least, " and 2^40");
    return value;
}

/// The product of checked values. Throws where a tensor could not have that extent.
template <class... T> [[nodiscard]] std::int64_t checked_product(std::string_view what, T... factors) {
    if ((1.0 * ... * static_cast<double>(factors)) > static_cast<double>(largest_extent))
        throw invalid_input(what, " is ", (1.0 * ... * static_cast<double>(factors)), ": must be at most 2^40");
    return (std::int64_t{1} * ... * factors);
}

/// The number of an axis; negative ones count from the end.
[[nodiscard]] std::size_t axis_number(std::string_view option, std::int64_t axis, std::size_t rank);

/// The name of axis `i` of an activation, by the layouts of practice: sc, sle, schw; beyond four axes s, i, j, m, ...
[[nodiscard]] inline std::string axis_name(std::size_t i, std::size_t rank) {
    constexpr std::string_view two = "sc", three = "sle", four = "schw", many = "sijmnpqrtu";
    auto const names = rank <= 2 ? two : rank == 3 ? three : rank == 4 ? four : many;
    return i < names.size() ? std::string(1, names[i]) : text('x', i);
}

/// Axis 0 is the sample axis; the others are attributes unless something says more.
[[nodiscard]] constexpr dim_kind axis_kind(std::size_t i) noexcept { return i ? dim_kind::attribute : dim_kind::sample; }

/// Adds an iteration dim and returns its number.
inline std::uint32_t add_dim(operation& op, std::string name, std::int64_t extent, dim_kind kind) {
    op.dims.push_back({std::move(name), extent, kind});
    return static_cast<std::uint32_t>(op.dims.size() - 1);
}
/// Adds a dim for each of the first `count` of `rank` axes of `t`.
inline void add_axis_dims(operation& op, tensor const& t, std::size_t count, std::size_t rank) {
    for (std::size_t i = 0; i < count; ++i) add_dim(op, axis_name(i, rank), t.extents[i], axis_kind(i));
}

/// An axis that no dim splits.
[[nodiscard]] inline axis whole(std::int64_t extent) { return {.extent = extent}; }
/// An axis of one entry per point of dim `d`, or of `block` of them.
[[nodiscard]] inline axis along(operation const& op, std::uint32_t d, std::int64_t block = 1) {
    return {.extent = op.dims[d].extent * block, .terms = {{d, block}}, .span = block};
}
/// The axes along dims `first`, ..., `first + count - 1`.
[[nodiscard]] inline std::vector<axis> along_dims(operation const& op, std::size_t first, std::size_t count) {
    std::vector<axis> axes;
    for (std::size_t d = first; d < first + count; ++d) axes.push_back(along(op, static_cast<std::uint32_t>(d)));
    return axes;
}

/// Adds an operand. Integers carry no gradient.
inline operand& add_input(operation& op, std::string name, dtype type, std::vector<axis> axes) {
    op.inputs.push_back({.name = std::move(name), .type = type, .axes = std::move(axes), .differentiable = is_floating(type)});
    return op.inputs.back();
}
inline operand& add_output(operation& op, std::string name, dtype type, std::vector<axis> axes) {
    op.outputs.push_back({.name = std::move(name), .type = type, .axes = std::move(axes), .differentiable = is_floating(type)});
    return op.outputs.back();
}
operand& add_weight(operation& op, std::string_view parameter, std::string_view name, dtype type, std::vector<axis> axes, flop_count gradient_flops);

/// What inference keeps for later iterations.
inline void add_cache(operation& op, std::string name, dtype type, std::vector<axis> axes) {
    op.weights.push_back({.name = std::move(name), .type = type, .axes = std::move(axes), .differentiable = false, .cache = true});
}

/// The finished operation, once it is known to stay within the library's limits.
[[nodiscard]] operation finished(operation op);

} // namespace parsearch::ops::kit

namespace parsearch::ops::detail {
using namespace kit;
} // namespace parsearch::ops::detail

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/kit/inference.ipp>
#endif
