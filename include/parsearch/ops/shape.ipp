#pragma once
// Operators that only move or rename data: concat, split, slice, flip, reshape, flatten, transpose.

#include <algorithm>
#include <numeric>

#include <parsearch/ops/shape.hpp>

namespace parsearch::ops::detail {

PARSEARCH_INLINE std::vector<axis> part_of(operation const& op, std::size_t at, std::int64_t begin, std::int64_t extent) {
    auto axes = along_dims(op, 0, op.dims.size());
    axes[at].extent = extent;
    axes[at].offset = -begin;
    return axes;
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation concat::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1, ~std::size_t{0});
    kit::expect_one_type(inputs);
    auto const rank = inputs[0].extents.size(), at = kit::axis_number("axis", axis, rank);
    tensor y = inputs[0];
    for (std::size_t i = 1; i < inputs.size(); ++i) {
        kit::expect_rank(inputs, i, rank);
        for (std::size_t a = 0; a < rank; ++a)
            if (a != at) kit::expect_extent(inputs, i, a, y.extents[a], "that of input 0");
        y.extents[at] = kit::checked_product("the joined extent", y.extents[at] + inputs[i].extents[at]);
    }
    operation op{.kind = std::string(kind), .work = work_class::memory};
    kit::add_axis_dims(op, y, rank, rank);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        auto const extent = inputs[i].extents[at];
        kit::add_input(op, text("x", i), y.type, detail::part_of(op, at, begin, extent));
        begin += extent;
    }
    kit::add_output(op, "y", y.type, kit::along_dims(op, 0, rank));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation split::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size(), at = kit::axis_number("axis", axis, rank);
    std::int64_t left = x.extents[at];
    for (auto const n : sizes) left -= std::min(kit::checked("sizes", n), left + 1);
    if (sizes.empty() || left != 0)
        throw invalid_input("option sizes of ", sizes.size(), " parts does not add up to axis ", at, " of ", kit::shown(inputs, 0));
    operation op{.kind = std::string(kind), .work = work_class::memory};
    kit::add_axis_dims(op, x, rank, rank);
    kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank));
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        kit::add_output(op, text("y", i), x.type, detail::part_of(op, at, begin, sizes[i]));
        begin += sizes[i];
    }
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation slice::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size(), at = kit::axis_number("axis", axis, rank);
    auto const extent = x.extents[at];
    auto const from = begin < 0 ? begin + extent : begin, to = end < 0 ? end + extent : end;
    if (from < 0 || to > extent || from >= to)
        throw invalid_input("slice [", begin, ", ", end, ") of axis ", at, " of ", kit::shown(inputs, 0),
                            ": must hold something and lie within the axis");
    kit::checked("step", step);
    tensor y = x;
    y.extents[at] = (to - from - 1) / step + 1;
    operation op{.kind = step == 1 ? std::string(kind) : "strided_slice", .work = work_class::memory};
    kit::add_axis_dims(op, y, rank, rank);
    auto axes = detail::part_of(op, at, -from, extent);
    axes[at].terms[0].stride = step;
    kit::add_input(op, "x", x.type, std::move(axes));
    kit::add_output(op, "y", x.type, kit::along_dims(op, 0, rank));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation flip::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size(), at = kit::axis_number("axis", axis, rank);
    operation op{.kind = std::string(kind), .work = work_class::memory};
    kit::add_axis_dims(op, x, rank, rank);
    op.dims[at].kind = dim_kind::fixed;
    kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank));
    kit::add_output(op, "y", x.type, kit::along_dims(op, 0, rank));
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops

namespace parsearch::ops::detail {

PARSEARCH_INLINE operation reshaped(tensor const& x, std::vector<std::int64_t> const& shape, std::string_view kind) {
    operation op{.kind = std::string(kind), .work = work_class::view};
    std::vector<axis> from, to;
    for (auto const e : x.extents) from.push_back(whole(e));
    for (auto const e : shape) to.push_back(whole(e));
    for (std::size_t i = 0, j = 0; i < from.size() || j < to.size();) {
        // Ones belong to no run.
        if (i < from.size() && from[i].extent == 1) {
            ++i;
            continue;
        }
        if (j < to.size() && to[j].extent == 1) {
            ++j;
            continue;
        }
        auto &a = from[i], &b = to[j];
        auto const common = std::gcd(a.extent, b.extent);
        auto const d = add_dim(op, axis_name(i, from.size()), common, axis_kind(i));
        std::int64_t p = from[i++].extent, q = to[j++].extent;
        while (p != q)
            if (p < q) p *= from[i++].extent;
            else q *= to[j++].extent;
        a = along(op, d, a.extent / common);
        b = along(op, d, b.extent / common);
    }
    add_input(op, "x", x.type, std::move(from));
    add_output(op, "y", x.type, std::move(to));
    return finished(std::move(op));
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation reshape::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    std::int64_t all = 1, known = 1;
    for (auto const e : inputs[0].extents) all *= e;
    auto extents = shape;
    std::int64_t* open = nullptr;
    auto const misfit = [&] {
        std::string list;
        for (auto const e : shape) list += text(list.empty() ? "" : ",", e);
        return invalid_input("option shape is [", list, "]: must have the ", all, " elements of ", kit::shown(inputs, 0),
                             " (one -1 stands for the rest)");
    };
    for (auto& e : extents) {
        if (e == -1 && !open) {
            open = &e;
            continue;
        }
        if (e < 1 || e > all / known) throw misfit();
        known *= e;
    }
    if (all % known || (!open && known != all)) throw misfit();
    if (open) *open = all / known;
    return detail::reshaped(inputs[0], extents, kind);
}

PARSEARCH_INLINE operation flatten::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0].extents;
    auto const first = kit::axis_number("from_axis", from_axis, x.size());
    std::vector<std::int64_t> shape(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(first) + 1);
    for (std::size_t i = first + 1; i < x.size(); ++i) shape.back() *= x[i];
    return detail::reshaped(inputs[0], shape, kind);
}

PARSEARCH_INLINE operation transpose::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    if (permutation.size() != rank)
        throw invalid_input("option permutation names ", permutation.size(), " axes: must name each of ", kit::shown(inputs, 0), " once");
    operation op{.kind = std::string(kind), .work = work_class::memory};
    kit::add_axis_dims(op, x, rank, rank);
    std::vector<bool> seen(rank);
    std::vector<axis> y;
    for (auto const p : permutation) {
        auto const i = kit::axis_number("permutation", p, rank);
        if (seen[i]) throw invalid_input("option permutation names axis ", p, " twice: must name each axis once");
        seen[i] = true;
        y.push_back(kit::along(op, static_cast<std::uint32_t>(i)));
    }
    kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank));
    kit::add_output(op, "y", x.type, std::move(y));
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
