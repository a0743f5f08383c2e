#pragma once
/// Siblings that read the same tensors as one operation, and an operation in parts along a parameter dim.

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>
#include <parsearch/rewrite/algebra/outcome.hpp>

namespace parsearch::rewrite {

/// Operations joined to one along dim `dim`. Part i has `sizes[i]` values of it; `weights` and `outputs` say how the joined operands are cut into
/// those of the parts: `ops::split{.axis = outputs[0].axis, .sizes = outputs[0].sizes}` gives what the parts made.
struct merging {
    ops::operation operation;
    std::uint32_t dim = 0;
    std::vector<std::int64_t> sizes{};
    std::vector<cut> weights{}, outputs{};
};

/// An operation cut into several along a parameter dim; `weights` and `outputs` say how its operands are cut.
struct parting {
    std::vector<ops::operation> parts{};
    std::vector<cut> weights{}, outputs{};
};

namespace detail {

/// The only axis of `o` that dim `d` indexes, in consecutive blocks of its stride and alone; none where there is no such axis.
[[nodiscard]] inline std::optional<std::size_t> blocks_along(ops::operation const& op, ops::operand const& o, std::uint32_t d) {
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
[[nodiscard]] inline outcome<std::vector<std::size_t>> part_axes(ops::operation const& op, std::uint32_t d) {
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
[[nodiscard]] inline std::string indivisible(ops::operation const& op, bool several) {
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

/// True where two operands are indexed the same way, but for the extents of axes along dim `d`.
[[nodiscard]] inline bool alike(ops::operand const& a, ops::operand const& b, std::optional<std::uint32_t> d) {
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

/// The dim along which `a` and `b` differ in extent: none where they are alike in all dims. Refuses where they differ in anything else.
[[nodiscard]] inline outcome<std::optional<std::uint32_t>> differing_dim(ops::operation const& a, ops::operation const& b) {
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

/// Sets the extent of dim `d`, and of the axes along it.
inline void resize(ops::operation& op, std::uint32_t d, std::int64_t extent) {
    for (auto* operands : {&op.inputs, &op.weights, &op.outputs})
        for (auto& o : *operands)
            for (auto& a : o.axes)
                for (auto const& t : a.terms)
                    if (t.dim == d) a.extent += t.stride * (extent - op.dims[d].extent);
    op.dims[d].extent = extent;
}

/// Adds the work of `more` to `op`, operand by operand, of which both have as many.
inline void add_work(ops::operation& op, ops::operation const& more) {
    auto const amounts = ops::amounts_of(op);
    auto const added = ops::amounts_of(more);
    for (std::size_t i = 0; i < amounts.size(); ++i) *amounts[i] += *added[i];
    for (std::size_t i = 0; i < op.inputs.size(); ++i) op.inputs[i].gradient_flops += more.inputs[i].gradient_flops;
    for (std::size_t i = 0; i < op.weights.size(); ++i) {
        op.weights[i].gradient_flops += more.weights[i].gradient_flops;
        if (op.weights[i].touched_bytes >= 0) op.weights[i].touched_bytes += more.weights[i].touched_bytes;
    }
}

/// The part of the work that belongs to `size` of `whole` equal shares.
inline void scale_work(ops::operation& op, std::int64_t size, std::int64_t whole) {
    auto const share = [&](double& v) { v = v / static_cast<double>(whole) * static_cast<double>(size); };
    for (auto* amount : ops::amounts_of(op)) share(*amount);
    for (auto& in : op.inputs) share(in.gradient_flops);
    for (auto& w : op.weights) {
        share(w.gradient_flops);
        if (w.touched_bytes >= 0) share(w.touched_bytes);
    }
}

/// How operands with axes `axes` along dim `d` are cut when it is cut into `sizes`.
[[nodiscard]] inline std::vector<cut> cuts(std::span<ops::operand const> operands, std::span<std::size_t const> axes,
                                           std::span<std::int64_t const> sizes) {
    std::vector<cut> out;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        out.push_back({.axis = axes[i], .sizes = {sizes.begin(), sizes.end()}});
        for (auto& n : out.back().sizes) n *= operands[i].axes[axes[i]].terms[0].stride;
    }
    return out;
}

/// True where the sizes, all at least 1, add up to an extent that the library allows.
[[nodiscard]] inline bool may_add_up(std::span<std::int64_t const> sizes) {
    double all = 0;
    for (auto const n : sizes) all += static_cast<double>(n);
    return all <= static_cast<double>(ops::kit::largest_extent);
}
} // namespace detail

/// Siblings as one operation: linears or convolutions of one input, products or einsums of the same inputs, lookups of the same indices, with the
/// same fused functions behind them, that differ in the extent of one parameter dim at most. This dim must index every weight and every output in
/// consecutive blocks of one axis, and no input. Extents, work and gradient flops are added; inputs are read, and kept, once. Where the siblings are
/// equal in all extents, the first dim that fits is joined. The merged weights are those of the siblings behind each other; they may not be shared
/// parameters (see `forget_unshared`). The result is what the operator's own `infer` gives for the sum of the extents.
/// The caller knows that the siblings read the same tensors in the same order.
[[nodiscard]] inline outcome<merging> merged(std::span<ops::operation const> siblings) {
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

/// The inverse of `merged`: `op` cut into parts of the given sizes along parameter dim `d`, which all read its inputs. Work is divided in proportion.
/// Unlike in `merged`, fused functions may have numbers that their kind does not tell: the parts have the same.
[[nodiscard]] inline outcome<parting> parted(ops::operation const& op, std::uint32_t d, std::span<std::int64_t const> sizes) {
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
