#pragma once
// Pooling: windows in one and two spatial dimensions, and global.

#include <parsearch/ops/pool.hpp>

namespace parsearch::ops::detail {

PARSEARCH_INLINE operation pooling(std::span<tensor const> inputs, std::string_view kind, pool_mode mode, bool ceil_mode,
                                   std::span<window const> windows) {
    expect_inputs(inputs, 1);
    expect_rank(inputs, 0, 2 + windows.size());
    expect_floating(inputs, 0, 0);
    auto const& x = inputs[0];
    operation op{.kind = text(name_of(mode), '_', kind), .work = work_class::pooling};
    auto const s = add_dim(op, "s", x.extents[0], dim_kind::sample);
    auto const c = add_dim(op, "c", x.extents[1], dim_kind::attribute);
    std::vector<axis> x_axes{along(op, s), along(op, c)}, y_axes = x_axes;
    double outputs = elements({.extents = {x.extents[0], x.extents[1]}}), per_output = 1;
    for (std::size_t i = 0; i < windows.size(); ++i) {
        auto const name = spatial_name(i, windows.size());
        auto const n = window_positions(x.extents[2 + i], windows[i], name, ceil_mode);
        if (windows[i].padding >= windows[i].span())
            throw invalid_input("option padding is ", windows[i].padding, " along ", name, ": must be less than the window spans (",
                                windows[i].span(), "), or the first window holds nothing");
        auto const d = add_dim(op, std::string(name), n, dim_kind::attribute);
        x_axes.push_back(window_axis(x.extents[2 + i], d, windows[i]));
        y_axes.push_back(along(op, d));
        outputs *= static_cast<double>(n);
        per_output *= static_cast<double>(windows[i].kernel);
    }
    op.flops = outputs * per_output * (mode == pool_mode::norm ? 2 : 1);
    // Backward of a maximum adds each gradient where its 64-bit index says; that of an average spreads it over the window.
    auto& in = add_input(op, "x", x.type, std::move(x_axes));
    in.gradient_flops = mode == pool_mode::max ? outputs : op.flops;
    in.saved = mode == pool_mode::norm;
    if (mode == pool_mode::max) op.saved_bytes = outputs * static_cast<double>(size_of(dtype::i64));
    add_output(op, "y", x.type, std::move(y_axes)).saved = mode == pool_mode::norm;
    return finished(std::move(op));
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation global_pool::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    kit::expect_least_rank(inputs, 0, 3);
    kit::expect_floating(inputs, 0, 0);
    constexpr std::array modes{reduction_mode::max, reduction_mode::mean, reduction_mode::l2};
    reduce spatial{.mode = modes[static_cast<std::size_t>(mode)], .keep = true};
    auto const rank = static_cast<std::int64_t>(inputs[0].extents.size());
    for (std::int64_t a = 2; a < rank; ++a) spatial.axes.push_back(a);
    auto op = spatial.infer(inputs);
    op.kind = text(name_of(mode), '_', kind);
    op.work = work_class::pooling;
    return op;
}

} // namespace parsearch::ops
