#pragma once
// Operators on a part of their samples.

#include <parsearch/core/error.hpp>
#include <parsearch/ops/kit/samples.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation on_samples(operation op, batch_part part, std::string_view name) {
    auto const n = part.n;
    auto const refuse = [&](auto const&... what) {
        throw invalid_input("micro-batches: ", name.empty() ? op.kind : text("operator '", name, "' (", op.kind, ')'), ' ', what...);
    };
    if (n < 1) refuse("is to run in ", n, " micro-batches: must be at least 1");
    if (part.taken < 1 || part.taken > n) refuse("is to do ", part.taken, " of ", n, " parts: must be from 1 to ", n);
    if (part.taken == n) return op;
    auto const k = sample_dim(op);
    if (!k) return op;
    auto& samples = op.dims[*k];
    if (samples.extent % n != 0) refuse("has ", samples.extent, " samples: ", n, " micro-batches must divide them");
    for (auto other = *k + 1; other < op.dims.size(); ++other)
        if (op.dims[other].kind == dim_kind::sample && op.dims[other].extent > 1)
            refuse("has two dims of samples, '", samples.name, "' and '", op.dims[other].name, "': one can be divided");
    auto const shorter = [&](std::int64_t extent) { return extent / n * part.taken; };
    auto const less = [&](double amount) { return amount / static_cast<double>(n) * static_cast<double>(part.taken); };
    auto const shorten = [&](std::vector<operand>& operands, bool weights) {
        for (auto& o : operands) {
            o.gradient_flops = less(o.gradient_flops);
            if (o.touched_bytes > 0) o.touched_bytes = less(o.touched_bytes);
            for (auto& a : o.axes) {
                auto const* const t = detail::term_of(a, *k);
                if (!t) continue;
                if (weights && !o.cache) refuse("has weights '", o.name, "' of which each sample has its own: they can not be divided");
                if (a.offset != 0 || a.extent != t->stride * samples.extent)
                    refuse("has an axis of extent ", a.extent, " in '", o.name, "' that is not ", samples.extent,
                           " equal parts of consecutive samples: it can not be divided");
                a.extent = shorter(a.extent);
            }
        }
    };
    shorten(op.inputs, false);
    shorten(op.weights, true);
    shorten(op.outputs, false);
    samples.extent = shorter(samples.extent);
    for (auto* amount : amounts_of(op)) *amount = less(*amount);
    return op;
}

PARSEARCH_INLINE split_operation on_samples(operation const& op, std::span<std::int32_t const> degrees, std::uint32_t k, std::int64_t size) {
    split_operation out{.op = on_samples(op, {.n = op.dims[k].extent, .taken = size}, {})};
    std::copy(degrees.begin(), degrees.end(), out.degree.begin());
    out.degree[k] = 1;
    return out;
}

} // namespace parsearch::ops
