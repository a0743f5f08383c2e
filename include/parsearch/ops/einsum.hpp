#pragma once
/// Einstein summation: any product of tensors that a letter per axis can write.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// `equation` as in NumPy, in explicit form: "bmk,bkn->bmn". A letter per axis, a comma between operands, each letter of the output once.
/// Spaces are skipped. Each letter is an iteration dim: a letter that the output lacks is a reduction dim; one that indexes the weight is
/// a parameter dim; the first letter of the output, where it is neither, is the sample dim; the others are attributes.
/// All operands are multiplied in one loop nest: with more than two operands, several einsums of two are often cheaper.
struct einsum {
    static constexpr std::string_view kind = "einsum";
    std::string equation{};
    std::vector<std::int64_t> weight{}; ///< extents of the last operand where it is a weight; empty: all operands are inputs
    std::string parameter{};
    /// Inputs: one per operand, less the weight. Throws `invalid_input` on a letter twice in one operand (no diagonals), on an output letter
    /// that no operand has, on extents that disagree, on more than `max_dims` letters.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;

  private:
    struct parts {
        std::vector<std::string> operands;
        std::string result;
    };
    [[nodiscard]] parts parsed() const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/einsum.ipp>
#endif
