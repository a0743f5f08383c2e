#pragma once
// Repetition along axes, and padding.

#include <parsearch/ops/broadcast.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation expand::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    for (auto const e : shape) kit::checked("shape", e);
    std::vector<tensor> const both{x, {.extents = shape, .type = x.type}};
    auto const y = detail::broadcast(both);
    operation op{.kind = std::string(kind), .work = work_class::memory};
    kit::add_axis_dims(op, y, y.extents.size(), y.extents.size());
    detail::add_broadcast_inputs(op, inputs, 0, kit::elements(y), false);
    kit::add_output(op, "y", y.type, kit::along_dims(op, 0, y.extents.size()));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation tile::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    if (repeats.size() != rank)
        throw invalid_input("option repeats has ", repeats.size(), " numbers: must have one per axis of ", kit::shown(inputs, 0));
    operation op{.kind = std::string(kind), .work = work_class::memory};
    std::vector<axis> from, to;
    for (std::size_t i = 0; i < rank; ++i) {
        auto const extent = x.extents[i], times = kit::checked("repeats", repeats[i]);
        auto const name = kit::axis_name(i, rank);
        auto const all = kit::checked_product("the repeated extent", extent, times);
        bool const once = times == 1;
        auto const repeat = once ? 0 : kit::add_dim(op, extent == 1 ? name : name + "'", times, kit::axis_kind(i));
        if (extent == 1 && !once) {
            from.push_back(kit::whole(1));
            to.push_back(kit::along(op, repeat));
            continue;
        }
        auto const d = kit::add_dim(op, name, extent, once ? kit::axis_kind(i) : dim_kind::fixed);
        from.push_back(kit::along(op, d));
        to.push_back(kit::along(op, d));
        if (once) continue;
        to.back().extent = all;
        to.back().terms.insert(to.back().terms.begin(), term{repeat, extent});
    }
    double n = 1;
    for (auto const& a : to) n *= static_cast<double>(a.extent);
    auto& in = kit::add_input(op, "x", x.type, std::move(from));
    if (in.differentiable && n > kit::elements(x)) in.gradient_flops = n;
    kit::add_output(op, "y", x.type, std::move(to));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation pad::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    if (before.size() != rank || after.size() != rank)
        throw invalid_input("options before and after have ", before.size(), " and ", after.size(), " numbers: must have one per axis of ",
                            kit::shown(inputs, 0));
    tensor y = x;
    for (std::size_t i = 0; i < rank; ++i) {
        kit::checked("before", before[i], -x.extents[i]);
        kit::checked("after", after[i], -x.extents[i]);
        y.extents[i] += before[i] + after[i];
        if (y.extents[i] < 1)
            throw invalid_input("options before and after leave ", y.extents[i], " of axis ", i, " of ", kit::shown(inputs, 0),
                                ": must leave something");
    }
    operation op{.kind = std::string(kind), .work = work_class::memory};
    kit::add_axis_dims(op, y, rank, rank);
    auto axes = kit::along_dims(op, 0, rank);
    for (std::size_t i = 0; i < rank; ++i) {
        axes[i].extent = x.extents[i];
        axes[i].offset = -before[i];
    }
    kit::add_input(op, "x", x.type, std::move(axes));
    kit::add_output(op, "y", x.type, kit::along_dims(op, 0, rank));
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
