#pragma once
/// The two products of an attention, MatMul or Einsum: which operand is what, and what its axes hold.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <parsearch/io/onnx/network/match.hpp>
#include <parsearch/io/onnx/patterns/heads.hpp>

namespace parsearch::io::onnx::patterns {

/// An operand or result of a product, and what each of its axes holds.
struct product_operand {
    value_id value = no_value;
    std::vector<role> axes;
};
/// queries, keys -> scores [samples, heads, queries, keys], or with samples and heads as one axis.
struct score_product {
    product_operand queries, keys;
};
/// Probabilities of the same axes, values -> result.
struct context_product {
    value_id probabilities = no_value;
    product_operand values, result;
};

namespace detail {

/// The letters of an Einsum of two operands, and of its result: four each, no letter twice.
[[nodiscard]] inline std::optional<std::array<std::string, 3>> letters_of(node const& n) {
    if (n.type != "Einsum" || n.inputs.size() != 2) return std::nullopt;
    std::array<std::string, 3> out;
    std::size_t part = 0;
    for (char const c : attribute_of(n, "equation", std::string())) {
        if (c == ',' || c == '>') {
            if (++part > 2) return std::nullopt;
        } else if (c == '.') return std::nullopt;
        else if (c != ' ' && c != '-') {
            if (out[part].find(c) != std::string::npos) return std::nullopt;
            out[part] += c;
        }
    }
    for (auto const& letters : out)
        if (letters.size() != 4) return std::nullopt;
    return out;
}

/// The roles of `letters`, where `known` are those of samples, heads and a length, and there is one more; nothing where one is missing.
[[nodiscard]] inline std::optional<std::vector<role>> roles_of(std::string const& letters, char samples, char heads, char length) {
    std::vector<role> out;
    for (char const c : letters) out.push_back(c == samples ? role::samples : c == heads ? role::heads : c == length ? role::length : role::size);
    for (auto const r : {role::samples, role::heads, role::length, role::size})
        if (std::count(out.begin(), out.end(), r) != 1) return std::nullopt;
    return out;
}
[[nodiscard]] inline char letter_of_size(std::string const& letters, std::vector<role> const& roles) {
    return letters[static_cast<std::size_t>(std::find(roles.begin(), roles.end(), role::size) - roles.begin())];
}

/// The axes of an operand of a MatMul. `together`: what an axis of samples and heads is taken for.
[[nodiscard]] inline std::vector<role> matrix_axes(std::size_t rank, role together, role row, role column) {
    if (rank == 3) return {together, row, column};
    return {role::samples, role::heads, row, column};
}
} // namespace detail

/// Reads the product that makes scores. `together`: what one axis for samples and heads is taken for.
[[nodiscard]] inline std::optional<score_product> read_score_product(rewriting const& net, node const& n, role together) {
    if (n.type == "MatMul") {
        auto const rank = net.extents(n.outputs[0]).size();
        return score_product{{n.inputs[0], detail::matrix_axes(rank, together, role::length, role::size)},
                             {n.inputs[1], detail::matrix_axes(rank, together, role::size, role::length)}};
    }
    auto const letters = detail::letters_of(n);
    if (!letters) return std::nullopt;
    auto const& scores = (*letters)[2];
    for (std::size_t q = 0; q < 2; ++q) {
        auto const queries = detail::roles_of((*letters)[q], scores[0], scores[1], scores[2]),
                   keys = detail::roles_of((*letters)[1 - q], scores[0], scores[1], scores[3]);
        if (queries && keys && detail::letter_of_size((*letters)[q], *queries) == detail::letter_of_size((*letters)[1 - q], *keys))
            return score_product{{n.inputs[q], *queries}, {n.inputs[1 - q], *keys}};
    }
    return std::nullopt;
}

/// Reads the product that makes the result. `first`: the input that is the probabilities; of an Einsum it may be the second.
[[nodiscard]] inline std::optional<context_product> read_context_product(rewriting const& net, node const& n, role together, std::size_t first = 0) {
    if (n.type == "MatMul") {
        auto const axes = detail::matrix_axes(net.extents(n.outputs[0]).size(), together, role::length, role::size);
        return context_product{n.inputs[0], {n.inputs[1], axes}, {n.outputs[0], axes}};
    }
    auto const letters = detail::letters_of(n);
    if (!letters) return std::nullopt;
    auto const &p = (*letters)[first], &v = (*letters)[1 - first], &y = (*letters)[2];
    auto const values = detail::roles_of(v, p[0], p[1], p[3]), result = detail::roles_of(y, p[0], p[1], p[2]);
    if (!values || !result || detail::letter_of_size(v, *values) != detail::letter_of_size(y, *result)) return std::nullopt;
    return context_product{n.inputs[first], {n.inputs[1 - first], *values}, {n.outputs[0], *result}};
}

} // namespace parsearch::io::onnx::patterns
