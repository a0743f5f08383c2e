#pragma once
/// What a pattern of the reference's rule files computes, on small tensors of integers.
///
/// The files do not say what their operators mean. The meaning below was found from the 640 rules of Unity's file themselves: of the readings that
/// were tried (docs/rules.md) it is the one under which all 640 hold, with data and degrees equal, on inputs of the extents in `fixture`.
/// Each part of it that differs from what one would expect is held by rules that are false without it.
///
/// A tensor has three dims, the outermost first, each with an extent and a degree of parallelism. Activations x1, x2, x3 are [replica, sample,
/// channel], weights x4, x5, x6 [replica, out, in]. With d the degree of an operator, on dim a:
/// - PARTITION: degree * d; extents and data stay. The degree must go on dividing the extent. COMBINE: degree / d, which must be whole.
/// - REPLICATE: extent and degree * d. The copies of each element are neighbours: out[i] = in[i / d].
/// - REDUCE: extent / d, which must be whole, and the sum of neighbours: out[i] = in[i * d] + ... + in[i * d + d - 1]. Degree / d, but at least 1:
///   it sums along a dim that is not partitioned at all as well (in 208 of the 640 rules).
/// - RELU: each element. EW_ADD, EW_MUL: operands of equal extents and degrees.
/// - CONCAT: operands of equal degrees, and equal extents but along the axis. SPLIT: the parts that the last CONCAT along the axis joined, of
///   whatever extents, where operators between kept them; else equal parts.
/// - LINEAR(x, w): out[p, s, o] = sum over the channels c of part p of x[0, s, c] * w[0, o, c]. Of either replica dim it reads the first entry,
///   whatever the others hold. The degree of the samples must be that of w's replica dim, the degree of the outs that of x's replica dim, and the
///   degrees of the channels equal; out has the degrees [channel's, sample's, out's], and the channels' degree many partial sums as its first dim.
///   (No rule of the file partitions channels: this last point follows the paper, not the file.) PM_ACTI 2 is a relu of the result, 0 none.
///
/// Numbers are those of 64 bits, taken modulo 2^64.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::rewrite {

inline constexpr std::size_t dense_dims = 3;

/// A tensor of integers with the degrees of parallelism of its dims, the outermost first.
struct dense_tensor {
    std::array<std::int32_t, dense_dims> extents{1, 1, 1}, degrees{1, 1, 1};
    std::vector<std::int64_t> data{}; ///< row by row
    /// Along each dim, the extents that were last concatenated; empty where none were. No part of the value.
    std::array<std::vector<std::int32_t>, dense_dims> parts{};

    [[nodiscard]] std::size_t size() const noexcept {
        return static_cast<std::size_t>(extents[0]) * static_cast<std::size_t>(extents[1]) * static_cast<std::size_t>(extents[2]);
    }
    friend bool operator==(dense_tensor const& a, dense_tensor const& b) {
        return a.extents == b.extents && a.degrees == b.degrees && a.data == b.data;
    }
};

/// What an operator of a pattern does, ready to run: see `instructions_of`.
enum class action : std::uint8_t { partition, combine, replicate, reduce, relu, add, multiply, concat, split, linear };

/// Other readings of operators than the one above, to see which rules they make false: none is meant but for that.
struct reading {
    bool replicate_blocks = false;   ///< the copies of a tensor lie side by side: out[i] = in[i % extent]
    bool reduce_blocks = false;      ///< the sum of d blocks side by side: out[i] = in[i] + in[i + extent / d] + ...
    bool reduce_partitioned = false; ///< a Reduce takes only a dim whose degree is divisible
    bool split_equally = false;      ///< a Split makes equal parts, whatever was concatenated
    friend bool operator==(reading const&, reading const&) = default;
};

struct instruction {
    action does = action::relu;
    std::int32_t axis = 0;   ///< of partition, combine, replicate, reduce, concat, split
    std::int32_t number = 0; ///< degree; of split its outputs; of linear 1 where a relu follows
    reading as{};
    friend bool operator==(instruction const&, instruction const&) = default;
};

/// Why an operator does not take its operands.
enum class illegal : std::uint8_t { no, indivisible_extent, indivisible_degree, other_extents, other_degrees, too_large };
[[nodiscard]] constexpr std::string_view reason_of(illegal i) noexcept {
    constexpr std::string_view names[]{"legal",    "an extent is not divisible", "a degree is not divisible", "extents differ", "degrees differ",
                                       "too large"};
    return names[static_cast<std::size_t>(i)];
}

/// How an operator of a pattern runs where its variables are `b`. Throws `invalid_input` naming type and key on a type that is not among those above,
/// another number of inputs, a parameter that is missing, unknown, without a number or out of range.
[[nodiscard]] instruction instruction_of(pattern_operator const& o, bindings const& b, reading const& as = {});

namespace detail {
inline constexpr std::size_t most_elements = std::size_t{1} << 20;

[[nodiscard]] inline std::int64_t wrapped(std::uint64_t v) noexcept { return static_cast<std::int64_t>(v); }
[[nodiscard]] inline std::uint64_t bits(std::int64_t v) noexcept { return static_cast<std::uint64_t>(v); }

/// Elements before and behind dim `a`: the data are `before` times extents[a] times `behind`.
struct strides {
    std::size_t before = 1, behind = 1;
    strides(dense_tensor const& t, std::size_t a) {
        for (std::size_t i = 0; i < dense_dims; ++i) (i < a ? before : behind) *= i == a ? 1 : static_cast<std::size_t>(t.extents[i]);
    }
};

} // namespace detail

/// Runs one operator: appends its outputs to `out`, or nothing where it does not take its operands. As many operands as its type takes; their degrees
/// divide their extents, which are positive. O(elements), of linear times channels.
[[nodiscard]] illegal run(instruction const& op, std::span<dense_tensor const* const> in, std::vector<dense_tensor>& out);

/// The outputs of each operator of a pattern, or why there are none.
struct interpretation {
    std::vector<std::vector<dense_tensor>> outputs{};
    illegal problem = illegal::no;
    std::size_t where = 0; ///< the operator that does not take its operands
};

/// Runs `p` where input -1 - i is given[i] and variables are `b`. Throws `invalid_input` where the pattern is not well formed, an operator has no
/// instruction, an input is missing, or data, extents and degrees of one do not fit each other.
[[nodiscard]] interpretation interpret(pattern const& p, std::span<dense_tensor const> given, bindings const& b = {}, reading const& as = {});

/// The extents of the inputs x1 to x6 on which all rules of Unity's file hold, all of degree 1: x is [1, 2, 4], w is [1, 4, 4].
inline constexpr std::array<std::array<std::int32_t, dense_dims>, 6> fixture{{{1, 2, 4}, {1, 2, 4}, {1, 2, 4}, {1, 4, 4}, {1, 4, 4}, {1, 4, 4}}};

/// Whether a rule holds on given inputs.
enum class trial : std::uint8_t { holds, source_illegal, target_illegal, extents_differ, degrees_differ, data_differ };
[[nodiscard]] constexpr std::string_view name_of(trial o) noexcept {
    constexpr std::string_view names[]{"holds", "source illegal", "target illegal", "extents differ", "degrees differ", "data differ"};
    return names[static_cast<std::size_t>(o)];
}
namespace detail {
/// The value of tensor `t` of a side of `r`: an output of the operators', or an input's.
template <class Value>
[[nodiscard]] Value const& mapped_value(rule const& r, std::vector<std::vector<Value>> const& outputs, std::span<Value const> given,
                                        pattern_tensor t) {
    if (!t.is_input()) return outputs[static_cast<std::size_t>(t.op)][static_cast<std::size_t>(t.slot)];
    auto const number = static_cast<std::size_t>(-(std::int64_t{t.op} + 1));
    if (number >= given.size()) throw invalid_input("rule '", r.name, "': input ", to_string(t), " is not given");
    return given[number];
}
} // namespace detail

/// Whether both sides of `r` are legal on `given`, and all mapped outputs equal in extents, degrees and data. Throws as `interpret` and `check`.
[[nodiscard]] trial try_rule(rule const& r, std::span<dense_tensor const> given, bindings const& b = {}, reading const& as = {});

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/lab/rules/interpret.ipp>
#endif
