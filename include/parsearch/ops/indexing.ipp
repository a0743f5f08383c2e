#pragma once
// Operators that read or write where indices say: gather and scatter, by entries of an axis, by elements, by tuples.

#include <parsearch/ops/indexing.hpp>

namespace parsearch::ops::detail {

/// Adds what is read at indexed places: a pass touches `results` elements of it, and backward adds each gradient where it came from.
inline void add_gathered(operation& op, tensor const& data, std::vector<axis> axes, double results) {
    auto& in = add_input(op, "data", data.type, std::move(axes));
    if (in.differentiable) in.gradient_flops = results;
    in.touched_bytes = results * static_cast<double>(size_of(data.type));
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation gather::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 2);
    kit::expect_indices(inputs, 1);
    auto const &data = inputs[0], &indices = inputs[1];
    auto const at = kit::axis_number("axis", axis, data.extents.size()), count = indices.extents.size();
    tensor y = data;
    auto const place = y.extents.begin() + static_cast<std::ptrdiff_t>(at);
    y.extents.insert(y.extents.erase(place), indices.extents.begin(), indices.extents.end());
    auto const rank = y.extents.size();
    operation op{.kind = std::string(kind), .work = work_class::memory};
    kit::add_axis_dims(op, y, rank, rank);
    auto axes = kit::along_dims(op, 0, at);
    axes.push_back(kit::whole(data.extents[at]));
    for (auto& a : kit::along_dims(op, at + count, rank - at - count)) axes.push_back(std::move(a));
    detail::add_gathered(op, data, std::move(axes), kit::elements(y));
    kit::add_input(op, "indices", indices.type, kit::along_dims(op, at, count)).saved = true;
    kit::add_output(op, "y", data.type, kit::along_dims(op, 0, rank));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation gather_elements::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 2);
    kit::expect_indices(inputs, 1);
    auto const &data = inputs[0], &indices = inputs[1];
    auto const rank = data.extents.size(), at = kit::axis_number("axis", axis, rank);
    kit::expect_rank(inputs, 1, rank);
    operation op{.kind = std::string(kind), .work = work_class::memory};
    kit::add_axis_dims(op, indices, rank, rank);
    auto axes = kit::along_dims(op, 0, rank);
    for (std::size_t i = 0; i < rank; ++i) {
        if (i != at && indices.extents[i] > data.extents[i])
            throw invalid_input(kit::shown(inputs, 1), ": axis ", i, " must have at most extent ", data.extents[i], ", that of input 0");
        if (i == at) axes[i] = kit::whole(data.extents[i]);
        else axes[i].extent = data.extents[i];
    }
    detail::add_gathered(op, data, std::move(axes), kit::elements(indices));
    kit::add_input(op, "indices", indices.type, kit::along_dims(op, 0, rank)).saved = true;
    kit::add_output(op, "y", data.type, kit::along_dims(op, 0, rank));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation gather_nd::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 2);
    kit::expect_least_rank(inputs, 1, 1);
    kit::expect_indices(inputs, 1);
    auto const &data = inputs[0], &indices = inputs[1];
    auto const outer = indices.extents.size() - 1, rank = data.extents.size();
    auto const batch = static_cast<std::size_t>(kit::checked("batch_axes", batch_axes, 0));
    if (batch > outer || batch >= rank || indices.extents.back() > static_cast<std::int64_t>(rank - batch))
        throw invalid_input(kit::shown(inputs, 1), ": must have a last axis of at most ", rank, " less ", batch, " batch axes, for ",
                            kit::shown(inputs, 0));
    auto const named = static_cast<std::size_t>(indices.extents.back());
    tensor y{.extents = {indices.extents.begin(), indices.extents.end() - 1}, .type = data.type};
    y.extents.insert(y.extents.end(), data.extents.begin() + static_cast<std::ptrdiff_t>(batch + named), data.extents.end());
    auto const all = y.extents.size();
    operation op{.kind = std::string(kind), .work = work_class::memory};
    kit::add_axis_dims(op, y, all, all);
    for (std::size_t i = 0; i < batch; ++i) kit::expect_extent(inputs, 1, i, data.extents[i], "that of input 0");
    auto axes = kit::along_dims(op, 0, batch);
    for (std::size_t i = batch; i < batch + named; ++i) axes.push_back(kit::whole(data.extents[i]));
    for (auto& a : kit::along_dims(op, outer, all - outer)) axes.push_back(std::move(a));
    detail::add_gathered(op, data, std::move(axes), kit::elements(y));
    auto places = kit::along_dims(op, 0, outer);
    places.push_back(kit::whole(indices.extents.back()));
    kit::add_input(op, "indices", indices.type, std::move(places)).saved = true;
    kit::add_output(op, "y", data.type, kit::along_dims(op, 0, all));
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops

namespace parsearch::ops::detail {

/// The beginning of a scatter of data, indices, updates: the iteration space is data, of which `count` axes from `first` on are not
/// divisible, as any position of them may be named.
PARSEARCH_INLINE operation scatter_space(std::span<tensor const> inputs, std::string_view kind, std::size_t first, std::size_t count) {
    auto const& data = inputs[0];
    if (inputs[2].type != data.type) throw invalid_input(shown(inputs, 2), ": must have the type of ", shown(inputs, 0));
    operation op{.kind = std::string(kind), .work = work_class::memory};
    add_axis_dims(op, data, data.extents.size(), data.extents.size());
    for (std::size_t i = first; i < first + count; ++i) op.dims[i].kind = dim_kind::fixed;
    return op;
}

PARSEARCH_INLINE operation scattered(operation op, std::span<tensor const> inputs, std::vector<axis> indices, std::vector<axis> updates) {
    auto const rank = op.dims.size();
    add_input(op, "data", inputs[0].type, along_dims(op, 0, rank));
    add_input(op, "indices", inputs[1].type, std::move(indices)).saved = true;
    add_input(op, "updates", inputs[2].type, std::move(updates));
    for (auto& in : op.inputs)
        if (in.differentiable) in.gradient_flops = elements(inputs[2]); // places are cleared, and gathered
    add_output(op, "y", inputs[0].type, along_dims(op, 0, rank));
    op.flops = elements(inputs[2]);
    return finished(std::move(op));
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation scatter_elements::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 3);
    kit::expect_indices(inputs, 1);
    auto const &data = inputs[0].extents, &places = inputs[1].extents;
    auto const rank = data.size(), at = kit::axis_number("axis", axis, rank);
    for (std::size_t i = 1; i < 3; ++i) kit::expect_rank(inputs, i, rank);
    auto op = detail::scatter_space(inputs, kind, at, 1);
    std::vector<ops::axis> axes = kit::along_dims(op, 0, rank);
    for (std::size_t i = 0; i < rank; ++i) {
        kit::expect_extent(inputs, 2, i, places[i], "that of input 1");
        if (i != at && places[i] > data[i])
            throw invalid_input(kit::shown(inputs, 1), ": axis ", i, " must have at most extent ", data[i], ", that of input 0");
        if (i == at) axes[i] = kit::whole(places[i]);
        else axes[i].extent = places[i];
    }
    return detail::scattered(std::move(op), inputs, axes, axes);
}

PARSEARCH_INLINE operation scatter_nd::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 3);
    kit::expect_least_rank(inputs, 1, 1);
    kit::expect_indices(inputs, 1);
    auto const &data = inputs[0].extents, &places = inputs[1].extents;
    auto const outer = places.size() - 1;
    if (places.back() > static_cast<std::int64_t>(data.size()))
        throw invalid_input(kit::shown(inputs, 1), ": must have a last axis of at most the ", data.size(), " axes of input 0");
    auto const named = static_cast<std::size_t>(places.back());
    kit::expect_rank(inputs, 2, outer + data.size() - named);
    auto op = detail::scatter_space(inputs, kind, 0, named);
    std::vector<axis> indices, updates;
    for (auto const e : places) indices.push_back(kit::whole(e));
    for (std::size_t i = 0; i < outer; ++i) {
        kit::expect_extent(inputs, 2, i, places[i], "that of input 1");
        updates.push_back(kit::whole(places[i]));
    }
    for (std::size_t i = named; i < data.size(); ++i) {
        kit::expect_extent(inputs, 2, outer + i - named, data[i], "that of input 0");
        updates.push_back(kit::along(op, static_cast<std::uint32_t>(i)));
    }
    return detail::scattered(std::move(op), inputs, std::move(indices), std::move(updates));
}

} // namespace parsearch::ops
