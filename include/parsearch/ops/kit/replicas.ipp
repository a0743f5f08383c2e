#pragma once
// Operations that run in copies or on partial sums: dims that repeat work.

#include <algorithm>
#include <bit>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/kit/replicas.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE bool linear_in(operation const& op, std::uint64_t summed) {
    if (summed == 0) return true;
    auto const operands = op.inputs.size() + op.weights.size();
    if (operands > 63) return false;
    auto const all = (std::uint64_t{1} << operands) - 1;
    if ((summed & ~all) != 0) return false;
    constexpr std::string_view jointly[]{"add",   "subtract",      "negate",  "scale",   "identity",  "concat",        "split",
                                         "slice", "strided_slice", "reshape", "flatten", "transpose", "reduce_sum",    "reduce_mean",
                                         "mean",  "expand",        "tile",    "pad",     "flip",      "cumulative_sum"};
    if (std::find(std::begin(jointly), std::end(jointly), op.kind) != std::end(jointly)) return summed == all;
    constexpr std::string_view in_each[]{"linear", "batched_matmul",   "einsum",           "conv2d",
                                         "conv1d", "conv_transpose2d", "conv_transpose1d", "multiply"};
    if (std::find(std::begin(in_each), std::end(in_each), op.kind) == std::end(in_each)) return false;
    // A bias is added: it is summed with one of the factors.
    bool const bias = op.kind != "multiply" && op.kind != "einsum" && operands == 3;
    auto const last = std::uint64_t{1} << (operands - 1);
    auto const factors = bias ? summed & ~last : summed;
    return std::has_single_bit(factors) && (!bias || (summed & last) != 0);
}

PARSEARCH_INLINE bool adds_up(operation const& op) {
    constexpr std::string_view otherwise[]{"reduce_max",     "reduce_min",         "reduce_product",  "reduce_l2",
                                           "reduce_log_sum", "reduce_log_sum_exp", "max_global_pool", "norm_global_pool"};
    auto const base = std::string_view(op.kind).substr(0, op.kind.find('+')); // "reduce_max+negate" is fused
    return std::find(std::begin(otherwise), std::end(otherwise), base) == std::end(otherwise);
}

PARSEARCH_INLINE void add_replica_dim(operation& op, dim_kind kind, std::int64_t n) {
    std::string_view const name = kind == dim_kind::copies ? "copies" : "sums";
    auto const refuse = [&](auto const&... what) { throw invalid_input(op.kind, ": ", n, ' ', name, ": ", what...); };
    if (n < 1 || n > max_replicas) refuse("must be from 1 to ", max_replicas);
    if (replica_dim(op, kind)) refuse("it has a dim of this kind already");
    if (op.dims.size() == max_dims) refuse("it has ", max_dims, " iteration dims, and can have no more");
    op.dims.push_back({std::string(name), n, kind});
}

PARSEARCH_INLINE operation with_sums(operation op, std::int64_t n, std::uint64_t summed) {
    if (summed == 0 || (op.inputs.size() < 64 && summed >> op.inputs.size() != 0) || !linear_in(op, summed))
        throw invalid_input(op.kind, ": partial sums of the inputs of mask ", summed, ": must be some of its ", op.inputs.size(),
                            " inputs, in which it is linear");
    add_replica_dim(op, dim_kind::sums, n);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) op.inputs[i].summed = i < 64 && (summed >> i & 1) != 0;
    return op;
}

PARSEARCH_INLINE operation without_replicas(operation op) {
    for (auto const k : {dim_kind::copies, dim_kind::sums})
        if (auto const d = replica_dim(op, k)) {
            op.dims.erase(op.dims.begin() + static_cast<std::ptrdiff_t>(*d));
            auto const renumber = [&](std::vector<operand>& operands) {
                for (auto& o : operands) {
                    o.summed = o.summed && k != dim_kind::sums;
                    for (auto& a : o.axes)
                        for (auto& t : a.terms) t.dim -= t.dim > *d;
                }
            };
            renumber(op.inputs);
            renumber(op.weights);
            renumber(op.outputs);
        }
    return op;
}

} // namespace parsearch::ops
