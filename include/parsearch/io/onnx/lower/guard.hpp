#pragma once
/// What must hold of a node before the ONNX library infers its shapes: that library divides and indexes by what files say, unchecked.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <parsearch/io/onnx/file/proto.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx::detail {

/// Refuses what makes the ONNX library's arithmetic divide by zero or run out of 64 bits.
inline void check_ranges(node const& n) {
    constexpr std::int64_t far = std::int64_t{1} << 31;
    auto const in_range = [&](std::string const& name, std::int64_t x, std::int64_t least, std::int64_t most) {
        if (x < least || x > most) throw invalid_input(shown(n), ": attribute '", name, "' holds ", x, ": must be in [", least, ", ", most, ']');
    };
    auto const rank = static_cast<std::int64_t>(max_rank);
    for (auto const& [name, a] : n.attributes) {
        bool const axis = name.starts_with("axis") || name.starts_with("axes") || name == "perm" || name == "batch_dims" || name == "batch_axis" ||
                          name == "time_axis";
        bool const step =
            name == "strides" || name == "dilations" || name == "kernel_shape" || name == "blocksize" || name == "group" || name == "hidden_size";
        bool const pad = name == "pads" || name == "output_padding" || name == "output_shape";
        auto const least = axis ? -rank : step ? 1 : -far, most = axis ? rank : far;
        if (!axis && !step && !pad) continue;
        if (auto const* const v = std::get_if<std::vector<std::int64_t>>(&a)) {
            if (v->size() > 2 * max_rank)
                throw invalid_input(shown(n), ": attribute '", name, "' has ", v->size(), " entries: at most ", 2 * max_rank, " make sense");
            for (auto const x : *v) in_range(name, x, least, most);
        } else if (auto const* const x = std::get_if<std::int64_t>(&a)) in_range(name, *x, least, most);
        else throw invalid_input(shown(n), ": attribute '", name, "' must be an integer or a list of integers");
    }
}

/// Whether an operator slides a window over the axes behind the first two of its input.
[[nodiscard]] inline bool has_window(std::string_view type) {
    for (auto const t : {"Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "MaxPool", "AveragePool", "LpPool"})
        if (type == t) return true;
    return false;
}

/// Refuses windows of other ranks than their input, and inputs of too few axes.
inline void check_ranks(network const& net, node const& n) {
    if (!n.domain.empty()) return;
    auto const rank = [&](std::size_t i) { return i < n.inputs.size() && n.inputs[i] != no_value ? net[n.inputs[i]].shape.extents.size() : 0; };
    auto const at_least = [&](std::size_t i, std::size_t least) {
        if (rank(i) < least) throw invalid_input(shown(n), ": input ", i, " has ", rank(i), " axes: must have ", least, " or more");
    };
    if (has_window(n.type)) {
        at_least(0, 3);
        auto const spatial = rank(0) - 2;
        if (n.type.find("Conv") != std::string::npos) {
            std::size_t const weight = n.type == "QLinearConv" ? 3 : 1;
            if (rank(weight) != rank(0))
                throw invalid_input(shown(n), ": input ", weight, " has ", rank(weight), " axes: must have ", rank(0), " as input 0");
        }
        for (auto const* const name : {"kernel_shape", "strides", "dilations", "output_padding", "pads"}) {
            if (!has_attribute(n, name)) continue;
            auto const size = attribute_of(n, name, std::vector<std::int64_t>{}).size();
            auto const must = std::string_view(name) == "pads" ? 2 * spatial : spatial;
            bool const needed = std::string_view(name) == "kernel_shape"; // what is empty otherwise has its default
            if (size != must && (size != 0 || needed))
                throw invalid_input(shown(n), ": attribute '", name, "' has ", size, " entries: must have ", must);
        }
        if (auto const size = attribute_of(n, "output_shape", std::vector<std::int64_t>{}).size(); size != 0 && size != spatial && size != rank(0))
            throw invalid_input(shown(n), ": attribute 'output_shape' has ", size, " entries: must have ", spatial);
    } else if (n.type.starts_with("Global") || n.type == "DepthToSpace" || n.type == "SpaceToDepth" || n.type.ends_with("Normalization")) {
        if (n.type != "LayerNormalization") at_least(0, 2);
        if (n.type == "LayerNormalization") {
            auto const axis = attribute_of(n, "axis", std::int64_t{-1}), r = static_cast<std::int64_t>(rank(0));
            if (axis < -r || axis >= r) throw invalid_input(shown(n), ": axis ", axis, " is outside of [", -r, ", ", r, ")");
        }
    } else if (n.type == "GatherND") {
        auto const batch = attribute_of(n, "batch_dims", std::int64_t{0});
        auto const least = static_cast<std::int64_t>(std::min(rank(0), rank(1)));
        if (batch < 0 || batch >= least) throw invalid_input(shown(n), ": attribute 'batch_dims' is ", batch, ": must be in [0, ", least, ')');
        auto const reach = net[n.inputs[1]].shape.extents.back();
        if (reach < 1 || reach + batch > static_cast<std::int64_t>(rank(0)))
            throw invalid_input(shown(n), ": input 1 holds indices of ", reach, " axes, input 0 has ", rank(0));
    } else if (n.type == "MaxRoiPool") {
        at_least(0, 4);
        at_least(1, 2);
    } else if (n.type == "LSTM" || n.type == "GRU" || n.type == "RNN") {
        for (std::size_t i = 0; i < 3; ++i) at_least(i, 3);
    }
}

} // namespace parsearch::io::onnx::detail
