#pragma once
// Embedding tables, looked up row by row or summed over a bag of rows.

#include <parsearch/ops/embedding.hpp>

namespace parsearch::ops::detail {

PARSEARCH_INLINE operation table_lookup(std::span<tensor const> inputs, std::string_view kind, std::int64_t entries, std::int64_t features,
                                        dtype type, std::string_view parameter, bool bag) {
    expect_indices(inputs, 0);
    checked("entries", entries);
    checked("features", features);
    if (!is_floating(type)) throw invalid_input("option type is ", name_of(type), ": must be a floating-point type");
    auto const& indices = inputs[0];
    auto const rank = indices.extents.size(), kept = rank - (bag ? 1 : 0);
    operation op{.kind = std::string(kind), .work = work_class::memory};
    add_axis_dims(op, indices, kept, rank + 1);
    if (bag) add_dim(op, "b", indices.extents.back(), dim_kind::reduction);
    auto const o = add_dim(op, "o", features, dim_kind::parameter);
    auto const v = add_dim(op, "v", entries, dim_kind::reduction);
    add_input(op, "indices", indices.type, along_dims(op, 0, rank)).saved = true;
    double const gathered = elements(indices) * static_cast<double>(features);
    add_weight(op, parameter, "weight", type, {along(op, v), along(op, o)}, gathered).touched_bytes = gathered * static_cast<double>(size_of(type));
    auto y_axes = along_dims(op, 0, kept);
    y_axes.push_back(along(op, o));
    add_output(op, "y", type, std::move(y_axes));
    if (bag) op.flops = gathered;
    return finished(std::move(op));
}

} // namespace parsearch::ops::detail
