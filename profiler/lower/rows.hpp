#pragma once
/// Operators on rows: softmax, cross entropy, normalizations.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "elementwise.hpp"
#include "shard.hpp"

namespace parsearch::profiler::detail {

/// Over the one dim that is not divisible. Where that is not the innermost, rows are gathered by a permutation before and spread by one after.
[[nodiscard]] inline launches lower_softmax(shard const& s) {
    auto const& op = s.op();
    auto const type = op.outputs[0].type;
    std::size_t along = op.dims.size();
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind == ops::dim_kind::fixed) {
            s.expect(along == op.dims.size(), "must have one dim that is not divisible");
            along = k;
        }
    s.expect(along < op.dims.size(), "must have one dim that is not divisible");
    if (s.backward() && !s.wants(0)) return {};
    launches out;
    std::vector<std::int64_t> extents, permuted;
    std::vector<std::uint32_t> order, back(op.dims.size());
    for (std::uint32_t k = 0; k < op.dims.size(); ++k) {
        extents.push_back(s.extent(k));
        if (k != along) order.push_back(k);
    }
    order.push_back(static_cast<std::uint32_t>(along));
    for (std::uint32_t i = 0; i < order.size(); ++i) {
        back[order[i]] = i;
        permuted.push_back(extents[order[i]]);
    }
    auto const columns = extents[along];
    append_permutation(out, extents, order, type);
    bool const moved = !out.empty();
    if (moved && s.backward()) append_permutation(out, extents, order, type); // y and its gradient
    out.emplace_back(softmax{.backward = s.backward(), .rows = product_of(extents) / columns, .columns = columns, .type = type});
    if (moved) append_permutation(out, permuted, back, type);
    return out;
}

/// Softmax and, of each row, the entry that the label names. Backward scales what is kept of the probabilities.
[[nodiscard]] inline launches lower_cross_entropy(shard const& s) {
    auto const& op = s.op();
    auto const &logits = op.inputs.at(0), &labels = op.inputs.at(1), &loss = op.outputs[0];
    auto const rows = s.elements(loss), size = s.elements(logits);
    launches out;
    if (!s.backward()) {
        out.emplace_back(softmax{.backward = false, .rows = rows, .columns = size / rows, .type = logits.type});
        append_streaming(out, {{rows, labels.type}, {rows, logits.type}}, {{rows, loss.type}}, static_cast<double>(rows));
        return out;
    }
    if (s.wants(0)) append_streaming(out, {{size, logits.type}, {rows, labels.type}, {rows, loss.type}}, {{size, logits.type}}, s.work().flops);
    return out;
}

/// True for the kinds that `normalized_sum` makes.
[[nodiscard]] constexpr bool is_normalized_sum(std::string_view kind) noexcept {
    constexpr std::array<std::string_view, 4> kinds{"add_layer_norm", "add_rms_norm", "dropout_add_layer_norm", "dropout_add_rms_norm"};
    return std::ranges::find(kinds, kind) != kinds.end();
}

/// Statistics over the dims that are not divisible (layer, root mean square), or over all but the channels (batch). Libraries compute the gradients
/// of data and weights in one, also where one is not wanted.
[[nodiscard]] inline launches lower_normalization(shard const& s) {
    auto const& op = s.op();
    auto const& x = op.inputs.at(0);
    auto const size = s.elements(x);
    normalization n{.kind = normalization_kind::layer, .backward = s.backward(), .type = x.type};
    launches out;
    bool const sum = is_normalized_sum(op.kind);
    s.expect(!sum || op.inputs.size() == 2, "must have two inputs");
    if (s.backward() && !s.wants(0) && !(sum && s.wants(1)) && op.weights.empty()) return out;
    if (op.kind.starts_with("batch_norm")) {
        n.kind = normalization_kind::batch;
        n.n = s.extent(std::size_t{0});
        n.channels = s.extent(std::size_t{1});
        n.inner = size / n.n / n.channels;
        bool const relu = op.kind == "batch_norm_relu";
        // What lies between the two is never written by one that fuses them; these are two launches.
        if (relu && s.backward()) append_streaming(out, {{size, x.type}, {size, x.type}}, {{size, x.type}}, static_cast<double>(size));
        out.emplace_back(n);
        if (relu && !s.backward()) append_streaming(out, {{size, x.type}}, {{size, x.type}}, static_cast<double>(size));
        return out;
    }
    if (op.kind.ends_with("rms_norm")) n.kind = normalization_kind::rms;
    // Backward, both that are summed have one gradient, but for what dropout takes; a sum that others read too has theirs beside.
    n.sum = sum && (!s.backward() || op.outputs.size() == 2);
    n.dropout = sum && op.kind.starts_with("dropout") && (!s.backward() || s.wants(0));
    // Groups of channels are rows too: their weights, one for each channel, are read with little traffic either way.
    std::int64_t rows = 1;
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind != ops::dim_kind::fixed) rows *= s.extent(k);
    n.n = rows;
    n.channels = size / rows;
    out.emplace_back(n);
    return out;
}

} // namespace parsearch::profiler::detail
