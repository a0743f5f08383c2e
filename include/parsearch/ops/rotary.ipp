#pragma once
// Rotary position embedding.

#include <parsearch/ops/rotary.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation rotary_embedding::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 3);
    kit::expect_floating(inputs, 0, 2);
    kit::checked("heads", heads);
    if (tables != attention_layout::by_head && tables != attention_layout::by_position)
        throw invalid_input("option tables is ", name_of(tables), ": must be by_head or by_position");
    auto const x = detail::read_heads(inputs, 0, layout, heads);
    operation op{.kind = std::string(kind), .work = work_class::elementwise};
    kit::add_dim(op, "s", x.samples, dim_kind::sample);
    kit::add_dim(op, "l", x.length, dim_kind::attribute);
    kit::add_dim(op, "heads", heads, dim_kind::attribute);
    double const n = kit::elements(inputs[0]);
    auto const axes = detail::head_axes(op, layout, 0, 1, 2, 1, x.size);
    kit::add_input(op, "x", inputs[0].type, axes).gradient_flops = 3 * n;
    auto const full = detail::head_axes(op, tables, 0, 1, 2, 1, x.size);
    for (std::size_t i = 1; i < 3; ++i) {
        auto const& e = inputs[i].extents;
        kit::expect_rank(inputs, i, 1, 4);
        std::vector<axis> broadcast;
        for (std::size_t a = 0; a < e.size(); ++a) {
            auto const& whole_axis = full[4 - e.size() + a];
            bool const halved = a + 1 == e.size() && e[a] * 2 == x.size;
            if (e[a] != whole_axis.extent && e[a] != 1 && !halved)
                throw invalid_input(kit::shown(inputs, i), ": axis ", a, " must have extent ", whole_axis.extent, " or 1: it is broadcast to ",
                                    name_of(tables));
            broadcast.push_back(e[a] == whole_axis.extent ? whole_axis : kit::whole(e[a]));
        }
        auto& table = kit::add_input(op, i == 1 ? "cos" : "sin", inputs[i].type, std::move(broadcast));
        table.saved = true;
        table.gradient_flops = 2 * n; // product and sum; not wanted where the table is fixed
    }
    kit::add_output(op, "y", inputs[0].type, axes);
    op.flops = 3 * n; // two products, a sum
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
