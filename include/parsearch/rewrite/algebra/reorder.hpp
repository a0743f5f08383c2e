#pragma once
/// Functions of single elements and transposes before or behind what only moves elements, and moves that join or cancel.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/rewrite/algebra/outcome.hpp>

namespace parsearch::rewrite {

/// A move and the operations that now stand in front of it, one per input, or behind it, one per output.
struct reordering {
    ops::operation move;
    std::vector<ops::operation> others{};
};

namespace detail {
/// True where each output element of `op` is an element of one of its inputs, whatever these are.
[[nodiscard]] bool only_moves(ops::operation const& op);

[[nodiscard]] inline std::vector<ops::tensor> tensors_of(std::span<ops::operand const> operands) {
    std::vector<ops::tensor> out;
    for (auto const& o : operands) out.push_back(ops::tensor_of(o));
    return out;
}

/// Why `function` may not change places with `move`, of which `touched` are the operands that it applies to now; empty where it may.
[[nodiscard]] std::string immovable(ops::operation const& function, ops::operation const& move, std::span<ops::operand const> touched);
} // namespace detail

/// f(move(x, ...)) = move(f(x), ...): `function`, behind every output of `move` (concat, split, slice, transpose, flip, expand, tile, reshape),
/// in front of every input of it instead. Of several outputs all must be followed by functions of the same kind, which tells all about them
/// (`knowledge_of`); `function` is any of them.
[[nodiscard]] outcome<reordering> hoisted(ops::operation const& move, ops::operation const& function);

/// The inverse of `hoisted`: `function`, in front of every input of `move`, behind every output of it instead. Of several inputs all must be
/// made by functions of the same kind, which tells all about them.
[[nodiscard]] outcome<reordering> sunk(ops::operation const& function, ops::operation const& move);

/// Transposes of one permutation in front of every input of a concat or split, behind every output of it instead; the axis follows.
/// `transposition` is any of them.
[[nodiscard]] outcome<reordering> sunk_transpose(ops::operation const& transposition, ops::operation const& move);

/// One concat instead of two along one axis, where the output of `inner` is input `slot` of `outer`: the inputs of `inner` take its place.
[[nodiscard]] outcome<ops::operation> flattened_concat(ops::operation const& inner, ops::operation const& outer, std::size_t slot);

/// One split instead of two along one axis, where `inner` cuts output `slot` of `outer`: its parts take that output's place.
[[nodiscard]] outcome<ops::operation> flattened_split(ops::operation const& outer, std::size_t slot, ops::operation const& inner);

/// True where `second`, which reads all outputs of `first` in order, gives back the inputs of `first` in order: a concat of the complete parts of a
/// split, a split of a concat into what was joined, a transpose back, a reshape back.
[[nodiscard]] bool cancel(ops::operation const& first, ops::operation const& second);

/// Two transposes as one, or two views as one reshape. Transposes that give back the input are refused: they `cancel`.
[[nodiscard]] outcome<ops::operation> composed(ops::operation const& first, ops::operation const& second);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/algebra/reorder.ipp>
#endif
