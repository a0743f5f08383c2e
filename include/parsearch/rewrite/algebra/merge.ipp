#pragma once
// Siblings that read the same tensors as one operation, and an operation in parts along a parameter dim.

#include <numeric>

#include <parsearch/rewrite/algebra/merge.hpp>

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::optional<std::size_t> blocks_along(ops::operation const& op, ops::operand const& o, std::uint32_t d) {
    std::optional<std::size_t> found;
    for (std::size_t a = 0; a < o.axes.size(); ++a) {
        auto const& axis = o.axes[a];
        bool indexed = false;
        for (auto const& t : axis.terms) indexed = indexed || t.dim == d;
        if (!indexed) continue;
        if (found || axis.terms.size() != 1 || axis.offset != 0 || axis.span != axis.terms[0].stride ||
            axis.extent != op.dims[d].extent * axis.terms[0].stride)
            return std::nullopt;
        found = a;
    }
    return found;
}

/// The axes of weights, then outputs, along dim `d`, along which `op` may be cut or joined with others.
PARSEARCH_INLINE outcome<std::vector<std::size_t>> part_axes(ops::operation const& op, std::uint32_t d) {
    auto const& dim = op.dims[d];
    if (dim.kind != ops::dim_kind::parameter) return refused("dim '", dim.name, "' of ", op.kind, " is no parameter dim");
    if (op.weights.empty()) return refused(op.kind, " has no weights");
    for (auto const& in : op.inputs)
        if (ops::is_indexed_by(in, d))
            return refused("dim '", dim.name, "' of ", op.kind, " indexes input '", in.name, "': parts would not read the same");
    std::vector<std::size_t> axes;
    for (auto const* operands : {&op.weights, &op.outputs})
        for (auto const& o : *operands) {
            auto const a = blocks_along(op, o, d);
            if (!a) return refused("dim '", dim.name, "' of ", op.kind, " does not count consecutive blocks of one axis of '", o.name, '\'');
            axes.push_back(*a);
        }
    return axes;
}

/// Why no part of `op` is an operation of its own; empty where it may be. `several`: parts of different origin.
PARSEARCH_INLINE std::string indivisible(ops::operation const& op, bool several) {
    auto const kind = parts_of(op.kind);
    if (!is_contraction(op) && kind.base != "embedding" && kind.base != "embedding_bag")
        return text(op.kind, " is no contraction or embedding: its parts may depend on each other");
    for (auto const& s : kind.stages)
        if (auto const k = knowledge_of(s); !reads_another(s) && (k == knowledge::positional || (several && k != knowledge::told)))
            return text(op.kind, ": '", s, "' does not tell its function");
    for (auto const& w : op.weights)
        if (!w.parameter.empty()) return text("weight '", w.name, "' of ", op.kind, " is parameter '", w.parameter, "', which others may share");
    return {};
}

PARSEARCH_INLINE bool alike(ops::operand const& a, ops::operand const& b, std::optional<std::uint32_t> d) {
    if (a.type != b.type || a.differentiable != b.differentiable || a.saved != b.saved || a.axes.size() != b.axes.size() ||
        (a.touched_bytes < 0) != (b.touched_bytes < 0))
        return false;
    for (std::size_t i = 0; i < a.axes.size(); ++i) {
        auto x = a.axes[i];
        for (auto const& t : x.terms)
            if (t.dim == d) x.extent = b.axes[i].extent;
        if (!(x == b.axes[i])) return false;
    }
    return true;
}

PARSEARCH_INLINE outcome<std::optional<std::uint32_t>> differing_dim(ops::operation const& a, ops::operation const& b) {
    if (a.kind != b.kind || a.work != b.work || a.variant != b.variant) return refused(a.kind, " and ", b.kind, " are not of one kind");
    if (a.dims.size() != b.dims.size()) return refused(a.kind, " of ", a.dims.size(), " and of ", b.dims.size(), " dims");
    std::optional<std::uint32_t> d;
    for (std::uint32_t k = 0; k < a.dims.size(); ++k) {
        auto const &x = a.dims[k], &y = b.dims[k];
        if (x.kind != y.kind) return refused("dims '", x.name, "' and '", y.name, "' of ", a.kind, " are not of one kind");
        if (x.extent == y.extent) continue;
        if (d) return refused(a.kind, " differ in dims '", a.dims[*d].name, "' and '", x.name, "': only one may");
        d = k;
    }
    return d;
}

PARSEARCH_INLINE void resize(ops::operation& op, std::uint32_t d, std::int64_t extent) {
    for (auto* operands : {&op.inputs, &op.weights, &op.outputs})
        for (auto& o : *operands)
            for (auto& a : o.axes)
                for (auto const& t : a.terms)
                    if (t.dim == d) a.extent += t.stride * (extent - op.dims[d].extent);
    op.dims[d].extent = extent;
}

PARSEARCH_INLINE void add_work(ops::operation& op, ops::operation const& more) {
    auto const amounts = ops::amounts_of(op);
    auto const added = ops::amounts_of(more);
    for (std::size_t i = 0; i < amounts.size(); ++i) *amounts[i] += *added[i];
    for (std::size_t i = 0; i < op.inputs.size(); ++i) op.inputs[i].gradient_flops += more.inputs[i].gradient_flops;
    for (std::size_t i = 0; i < op.weights.size(); ++i) {
        op.weights[i].gradient_flops += more.weights[i].gradient_flops;
        if (op.weights[i].touched_bytes >= 0) op.weights[i].touched_bytes += more.weights[i].touched_bytes;
    }
}

PARSEARCH_INLINE void scale_work(ops::operation& op, std::int64_t size, std::int64_t whole) {
    auto const share = [&](double& v) { v = v / static_cast<double>(whole) * static_cast<double>(size); };
    for (auto* amount : ops::amounts_of(op)) share(*amount);
    for (auto& in : op.inputs) share(in.gradient_flops);
    for (auto& w : op.weights) {
        share(w.gradient_flops);
        if (w.touched_bytes >= 0) share(w.touched_bytes);
    }
}

PARSEARCH_INLINE std::vector<cut> cuts(std::span<ops::operand const> operands, std::span<std::size_t const> axes,
                                       std::span<std::int64_t const> sizes) {
    std::vector<cut> out;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        out.push_back({.axis = axes[i], .sizes = {sizes.begin(), sizes.end()}});
        for (auto& n : out.back().sizes) n *= operands[i].axes[axes[i]].terms[0].stride;
    }
    return out;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE outcome<merging> merged(std::span<ops::operation const> siblings) {
    if (siblings.size() < 2) return refused(siblings.size(), " operations: at least two can be merged");
    auto const& first = siblings[0];
    std::optional<std::uint32_t> d;
    for (auto const& op : siblings) {
        if (auto why = detail::indivisible(op, true); !why.empty()) return refusal{std::move(why)};
        auto const differing = detail::differing_dim(first, op);
        if (!differing) return refusal{differing.why()};
        if (*differing && d && *d != **differing)
            return refused(first.kind, " differ in dims '", first.dims[*d].name, "' and '", first.dims[**differing].name, "': only one may");
        if (*differing) d = *differing;
    }
    outcome<std::vector<std::size_t>> axes = refused(first.kind, " has no parameter dim");
    if (d) axes = detail::part_axes(first, *d);
    else
        for (std::uint32_t k = 0; k < first.dims.size() && !axes; ++k)
            if (first.dims[k].kind == ops::dim_kind::parameter)
                if (axes = detail::part_axes(first, k); axes) d = k;
    if (!axes) return refusal{axes.why()};

    merging out{.operation = first, .dim = *d, .sizes = {first.dims[*d].extent}};
    for (auto const& op : siblings.subspan(1)) {
        for (auto const operands : {&ops::operation::inputs, &ops::operation::weights, &ops::operation::outputs}) {
            auto const &mine = first.*operands, &others = op.*operands;
            if (mine.size() != others.size())
                return refused(first.kind, " of ", mine.size(), " and of ", others.size(), " operands in the same role");
            for (std::size_t i = 0; i < mine.size(); ++i)
                if (!detail::alike(mine[i], others[i], d))
                    return refused("operands '", mine[i].name, "' ", ops::to_string(ops::tensor_of(mine[i])), " and '", others[i].name, "' ",
                                   ops::to_string(ops::tensor_of(others[i])), " of ", first.kind, " are not indexed the same way");
        }
        if (!detail::part_axes(op, *d)) return refusal{detail::part_axes(op, *d).why()};
        detail::add_work(out.operation, op);
        out.sizes.push_back(op.dims[*d].extent);
    }
    if (!detail::may_add_up(out.sizes)) return refused("dim '", first.dims[*d].name, "' would be longer than 2^40");
    detail::resize(out.operation, *d, std::accumulate(out.sizes.begin(), out.sizes.end(), std::int64_t{0}));
    auto const span = std::span(*axes);
    out.weights = detail::cuts(first.weights, span.first(first.weights.size()), out.sizes);
    out.outputs = detail::cuts(first.outputs, span.subspan(first.weights.size()), out.sizes);
    return out;
}

PARSEARCH_INLINE outcome<parting> parted(ops::operation const& op, std::uint32_t d, std::span<std::int64_t const> sizes) {
    if (d >= op.dims.size()) return refused(op.kind, " has no dim ", d);
    if (auto why = detail::indivisible(op, false); !why.empty()) return refusal{std::move(why)};
    auto const axes = detail::part_axes(op, d);
    if (!axes) return refusal{axes.why()};
    std::int64_t left = op.dims[d].extent;
    for (auto const n : sizes) {
        if (n < 1 || n > left) return refused("parts of dim '", op.dims[d].name, "' must be at least 1 and add up to ", op.dims[d].extent);
        left -= n;
    }
    if (sizes.empty() || left) return refused("parts of dim '", op.dims[d].name, "' must be at least 1 and add up to ", op.dims[d].extent);
    parting out;
    for (auto const n : sizes) {
        auto part = op;
        detail::scale_work(part, n, op.dims[d].extent);
        detail::resize(part, d, n);
        out.parts.push_back(std::move(part));
    }
    out.weights = detail::cuts(op.weights, std::span(*axes).first(op.weights.size()), sizes);
    out.outputs = detail::cuts(op.outputs, std::span(*axes).subspan(op.weights.size()), sizes);
    return out;
}

} // namespace parsearch::rewrite
