#pragma once
/// How an operator runs in parallel, and which parallel tensors that takes and makes: the shape rules of all operators at once.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/ops/kit/replicas.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/rewrite/parallel/parallel_tensor.hpp>

namespace parsearch::rewrite {

/// How an operation runs in parallel: a degree per iteration dim, all of that `copies` times over, and, of operators that are linear, once for each
/// of `sums` partial sums of the operands in `summed`. Tasks: the product of all. They run `micro_batches` times, each time on that part of the
/// samples
/// (`ops::on_samples`), which the degrees divide.
struct operator_split {
    std::vector<std::int32_t> degree;
    std::int32_t copies = 1;
    std::int32_t sums = 1;
    std::uint64_t summed = 0;       ///< bit i: operand i (inputs, then weights) is held as `sums` partial sums
    std::int32_t micro_batches = 1; ///< more: of operators with samples
    friend bool operator==(operator_split const&, operator_split const&) = default;
};

/// `op` in one task.
[[nodiscard]] inline operator_split unsplit(ops::operation const& op) { return {.degree = std::vector<std::int32_t>(op.dims.size(), 1)}; }

/// The number of tasks, in each micro-batch.
[[nodiscard]] inline std::int64_t tasks_of(operator_split const& s) noexcept { return ops::shard_count(s.degree) * s.copies * s.sums; }
/// True where one task does all.
[[nodiscard]] inline bool is_unsplit(operator_split const& s) noexcept { return tasks_of(s) == 1 && s.micro_batches == 1; }

/// The operands of a node of a graph: the operation's inputs, then its weights.
[[nodiscard]] inline std::size_t operands_of(ops::operation const& op) noexcept { return op.inputs.size() + op.weights.size(); }
[[nodiscard]] inline ops::operand const& operand_of(ops::operation const& op, std::size_t i) noexcept {
    return i < op.inputs.size() ? op.inputs[i] : op.weights[i - op.inputs.size()];
}

namespace detail {

/// True where the blocks of an axis along one dim are the blocks of the dim, but for what windows reach beyond.
[[nodiscard]] inline bool aligned(ops::axis const& a, ops::dim const& d) noexcept {
    auto const reached = d.extent * a.terms[0].stride;
    return a.offset <= 0 && (reached > a.extent ? reached - a.extent : a.extent - reached) < a.span + a.terms[0].stride;
}

/// The terms of an axis, those of the largest stride first: the outer dims of a flattened axis.
[[nodiscard]] inline std::vector<ops::term> outer_first(ops::axis const& a) {
    auto terms = a.terms;
    std::ranges::stable_sort(terms, [](auto const& x, auto const& y) { return x.stride > y.stride; });
    return terms;
}

/// Into how many equal blocks the degrees of the dims cut an axis; 0 where that is no cut into blocks.
[[nodiscard]] std::int32_t blocks_of(ops::operation const& op, ops::axis const& a, std::span<std::int32_t const> degree);

/// How `o` is held where tasks split the iteration space by `s.degree`: in blocks along the dims that index it. Axes that are not cut into equal
/// blocks (part of a concatenated axis, inner part of a flattened one) are whole. `outside`: the tasks that hold the same block.
struct holding {
    parallel_tensor tensor{};
    std::int64_t outside = 1;
    std::size_t whole = 0; ///< an axis that is whole for want of equal blocks, or the number of axes
};
[[nodiscard]] holding holding_in_one(ops::operation const& op, ops::operand const& o, operator_split const& s);

/// What `op` does of one of `n` micro-batches. Throws `invalid_input` where it can not be divided.
[[nodiscard]] inline ops::operation micro_operation(ops::operation const& op, std::int32_t n) {
    if (n > 1 && !ops::sample_dim(op))
        throw invalid_input(op.kind, ": runs in ", n, " micro-batches, and has no dim of samples: it needs all of them at once");
    return ops::on_samples(op, {.n = n}, {});
}

/// How the operand of `op` that `pick` answers is held in all micro-batches: as in each, in parts of the axis that samples index. What they do not
/// index is one for all of them: read by each, or added up.
template <class Pick> [[nodiscard]] holding holding_of(ops::operation const& op, operator_split const& s, Pick const& pick) {
    ops::operand const& whole = pick(op);
    if (s.micro_batches == 1) return holding_in_one(op, whole, s);
    auto const part = micro_operation(op, s.micro_batches);
    ops::operand const& in_one = pick(part);
    auto h = holding_in_one(part, in_one, s);
    h.tensor.whole = ops::tensor_of(whole);
    for (std::uint32_t a = 0; a < whole.axes.size(); ++a) {
        if (in_one.axes[a].extent == whole.axes[a].extent) continue;
        if (h.tensor.micro_batches > 1)
            throw invalid_input(op.kind, ": samples index axes ", h.tensor.sample_axis, " and ", a, " of '", whole.name,
                                "': micro-batches are of one");
        h.tensor.micro_batches = s.micro_batches;
        h.tensor.sample_axis = a;
    }
    return h;
}
} // namespace detail

/// Checks that `s` is a split of `op`: micro-batches into which it can be divided, a degree per dim that divides its extent in one of them, partial
/// sums of what the operation is linear in only. Throws `invalid_input` naming operation, value and rule.
void validate(operator_split const& s, ops::operation const& op);

/// How operand `i` is to be held for `s`: in blocks along the dims that index it, with a copy for every task that reads the same block. Axes that
/// the split cuts into no equal blocks are whole: each task is given all of them. What samples do not index, as weights, is read whole in every
/// micro-batch.
[[nodiscard]] parallel_tensor operand_tensor(ops::operation const& op, operator_split const& s, std::size_t i);

/// How output `slot` is held after `s`: a dim that does not index it leaves partial sums, but for samples of other micro-batches: these are added up
/// as they come, as gradients of weights are. Throws `invalid_input` where the split leaves no equal blocks of it: that is no parallel tensor.
[[nodiscard]] parallel_tensor output_tensor(ops::operation const& op, operator_split const& s, std::size_t slot);

/// The split by which `op` runs on operands that are held like this (inputs, then weights). Throws `invalid_input` where there is none, saying what
/// does not fit. Unique: a dim that indexes no operand is not split, and there are the micro-batches in which operands come.
[[nodiscard]] operator_split split_for(ops::operation const& op, std::span<parallel_tensor const> operands);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/parallel/operator_split.ipp>
#endif
