#pragma once
// How an operator runs in parallel, and which parallel tensors that takes and makes: the shape rules of all operators at once.

#include <numeric>

#include <parsearch/rewrite/parallel/operator_split.hpp>

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::int32_t blocks_of(ops::operation const& op, ops::axis const& a, std::span<std::int32_t const> degree) {
    std::int64_t blocks = 1;
    bool whole_outside = true; // the dims outside are cut to single entries
    for (auto const& t : outer_first(a)) {
        auto const n = degree[t.dim];
        if (n > 1 && (!whole_outside || (a.terms.size() == 1 && !aligned(a, op.dims[t.dim])))) return 0;
        blocks *= n;
        whole_outside = whole_outside && n == op.dims[t.dim].extent;
    }
    return a.extent % blocks == 0 ? static_cast<std::int32_t>(blocks) : 0;
}

PARSEARCH_INLINE holding holding_in_one(ops::operation const& op, ops::operand const& o, operator_split const& s) {
    holding h{.tensor = {.whole = ops::tensor_of(o)}, .whole = o.axes.size()};
    std::uint32_t inside = 0;
    for (std::size_t a = 0; a < o.axes.size(); ++a) {
        auto const blocks = blocks_of(op, o.axes[a], s.degree);
        h.tensor.degree.push_back(std::max(blocks, 1));
        if (blocks == 0) h.whole = a;
        for (auto const& t : o.axes[a].terms)
            if (blocks > 0) inside |= std::uint32_t{1} << t.dim;
    }
    for (std::size_t d = 0; d < s.degree.size(); ++d)
        if ((inside >> d & 1) == 0) h.outside *= s.degree[d];
    return h;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE void validate(operator_split const& s, ops::operation const& op) {
    if (s.degree.size() != op.dims.size())
        throw invalid_input(op.kind, ": a split of ", s.degree.size(), " degrees: it has ", op.dims.size(), " iteration dims");
    if (s.micro_batches < 1) throw invalid_input(op.kind, ": a split in ", s.micro_batches, " micro-batches: must be at least 1");
    auto const dims = s.micro_batches > 1 ? detail::micro_operation(op, s.micro_batches).dims : op.dims;
    double tasks = 1.0 * s.copies * s.sums;
    for (std::size_t d = 0; d < s.degree.size(); ++d) {
        auto const& dim = dims[d];
        if (ops::repeats_work(dim.kind))
            throw invalid_input(op.kind, ": has the dim '", dim.name, "' that repeats work: in a parallel graph the split says how often");
        if (s.degree[d] < 1 || dim.extent % s.degree[d] != 0 || (s.degree[d] > 1 && dim.kind == ops::dim_kind::fixed))
            throw invalid_input(op.kind, ": dim '", dim.name, "' of extent ", dim.extent, s.micro_batches > 1 ? " in a micro-batch" : "",
                                " is split by ", s.degree[d], ": must be ",
                                dim.kind == ops::dim_kind::fixed ? "1, it is not divisible" : "a divisor");
        tasks *= s.degree[d];
    }
    if (s.copies < 1 || s.sums < 1 || tasks > static_cast<double>(max_parts))
        throw invalid_input(op.kind, ": a split with ", s.copies, " copies and ", s.sums, " partial sums, ", tasks,
                            " tasks: each must be at least 1, and tasks at most ", max_parts);
    if ((s.sums > 1) != (s.summed != 0)) throw invalid_input(op.kind, ": ", s.sums, " partial sums of ", s.summed == 0 ? "no" : "some", " operand");
    if (!ops::linear_in(op, s.summed))
        throw invalid_input(op.kind, ": runs on partial sums of operands in which it is not linear: these must be reduced before");
}

PARSEARCH_INLINE parallel_tensor operand_tensor(ops::operation const& op, operator_split const& s, std::size_t i) {
    auto h = detail::holding_of(op, s, [i](ops::operation const& o) -> ops::operand const& { return operand_of(o, i); });
    bool const summed = i < 64 && (s.summed >> i & 1) != 0;
    h.tensor.copies = static_cast<std::int32_t>(h.outside * s.copies * (summed ? 1 : s.sums));
    h.tensor.sums = summed ? s.sums : 1;
    return h.tensor;
}

PARSEARCH_INLINE parallel_tensor output_tensor(ops::operation const& op, operator_split const& s, std::size_t slot) {
    auto h = detail::holding_of(op, s, [slot](ops::operation const& o) -> ops::operand const& { return o.outputs[slot]; });
    if (h.whole < h.tensor.degree.size())
        throw invalid_input(op.kind, ": its split cuts axis ", h.whole, " of output '", op.outputs[slot].name, "', of shape ",
                            ops::to_string(h.tensor.whole), ", into no equal blocks: that is no parallel tensor");
    h.tensor.copies = s.copies;
    h.tensor.sums = static_cast<std::int32_t>(h.outside * s.sums);
    return h.tensor;
}

PARSEARCH_INLINE operator_split split_for(ops::operation const& op, std::span<parallel_tensor const> operands) {
    if (operands.size() != operands_of(op)) throw invalid_input(op.kind, ": ", operands.size(), " operands: it has ", operands_of(op));
    auto s = unsplit(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
        auto const n = operands[i].micro_batches;
        if (n > 1 && s.micro_batches > 1 && n != s.micro_batches)
            throw invalid_input(op.kind, ": operand '", operand_of(op, i).name, "' held as ", to_string(operands[i]), ": another operand comes in ",
                                s.micro_batches, " micro-batches");
        s.micro_batches = std::max(s.micro_batches, n);
    }
    std::optional<ops::operation> divided;
    if (s.micro_batches > 1) divided = detail::micro_operation(op, s.micro_batches);
    auto const& part = divided ? *divided : op;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        auto const& o = operand_of(op, i);
        auto const& t = operands[i];
        auto const place = [&](auto const&... what) {
            return invalid_input(op.kind, ": operand '", o.name, "' held as ", to_string(t), ": ", what...);
        };
        if (!(t.whole == ops::tensor_of(o)) || t.degree.size() != o.axes.size()) throw place("its shape must be ", ops::to_string(ops::tensor_of(o)));
        for (std::size_t a = 0; a < o.axes.size(); ++a) {
            std::int64_t rest = t.degree[a];
            for (auto const& term : detail::outer_first(o.axes[a])) {
                auto const d = static_cast<std::int32_t>(std::gcd(rest, part.dims[term.dim].extent));
                if (d > 1 && s.degree[term.dim] > 1 && s.degree[term.dim] != d)
                    throw place("dim '", op.dims[term.dim].name, "' is in ", s.degree[term.dim], " parts by another operand");
                s.degree[term.dim] = std::max(s.degree[term.dim], d);
                rest /= d;
                if (d != part.dims[term.dim].extent) break;
            }
            if (rest != 1) throw place("axis ", a, " can not be in ", t.degree[a], " parts");
        }
        if (t.sums > 1) {
            if (i > 63) throw place("partial sums of so many operands are not supported");
            if (s.sums > 1 && s.sums != t.sums) throw place("other operands are ", s.sums, " partial sums");
            s.sums = t.sums;
            s.summed |= std::uint64_t{1} << i;
        }
    }
    validate(s, op); // the number of tasks, before they are counted
    for (std::size_t i = 0; i < operands.size() && s.micro_batches > 1; ++i)
        if (auto const needed = operand_tensor(op, s, i);
            needed.micro_batches != operands[i].micro_batches || needed.sample_axis != operands[i].sample_axis)
            throw invalid_input(op.kind, ": operand '", operand_of(op, i).name, "' held as ", to_string(operands[i]), ": must come in ",
                                needed.micro_batches > 1 ? text(needed.micro_batches, " micro-batches of axis ", needed.sample_axis)
                                                         : std::string("one micro-batch"),
                                ", as it runs in ", s.micro_batches);
    if (!operands.empty()) {
        auto const needed = operand_tensor(op, s, 0).copies;
        if (operands[0].copies % needed != 0)
            throw invalid_input(op.kind, ": operand '", operand_of(op, 0).name, "' held as ", to_string(operands[0]), ": must have a multiple of ",
                                needed, " copies");
        s.copies = operands[0].copies / needed;
    }
    validate(s, op);
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (auto const needed = operand_tensor(op, s, i); !(needed == operands[i]))
            throw invalid_input(op.kind, ": operand '", operand_of(op, i).name, "' held as ", to_string(operands[i]), ": must be ", to_string(needed),
                                " beside the operands before it");
    return s;
}

} // namespace parsearch::rewrite
