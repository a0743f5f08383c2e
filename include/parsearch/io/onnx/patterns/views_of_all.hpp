#pragma once
/// Nodes that answer what they are given: left out, so that patterns need not look through them.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx::patterns {

/// Whether `n` answers its first input as it is: a slice of all, an expansion or a reshape to the shape that it has.
[[nodiscard]] inline bool is_view_of_all(network const& net, node const& n) {
    if (!n.domain.empty() || n.inputs.empty() || n.inputs[0] == no_value || n.outputs.size() != 1 || n.outputs[0] == no_value) return false;
    if (net[n.inputs[0]].from != origin::computed || !(net[n.inputs[0]].shape == net[n.outputs[0]].shape)) return false;
    if (n.type == "Expand" || n.type == "Reshape" || n.type == "Identity") return true;
    if (n.type != "Slice") return false;
    if (n.inputs.size() < 5 || n.inputs[4] == no_value) return true; // by steps of 1
    auto const* const steps = integers_of(net, n.inputs[4]);
    return steps && std::all_of(steps->begin(), steps->end(), [](auto step) { return step > 0; });
}

/// Takes such nodes out where the graph does not give their outputs out. Complexity: O(values + inputs of nodes).
inline void remove_views_of_all(network& net) {
    std::vector<value_id> stands_for(net.values.size());
    for (value_id v = 0; v < stands_for.size(); ++v) stands_for[v] = v;
    std::vector<bool> is_output(net.values.size());
    for (auto const v : net.outputs)
        if (v != no_value) is_output[v] = true;
    std::vector<node> kept;
    for (auto& n : net.nodes) {
        for (auto& v : n.inputs)
            if (v != no_value) v = stands_for[v];
        if (is_view_of_all(net, n) && !is_output[n.outputs[0]]) stands_for[n.outputs[0]] = n.inputs[0];
        else kept.push_back(std::move(n));
    }
    net.nodes = std::move(kept);
    renumber_producers(net);
}

} // namespace parsearch::io::onnx::patterns
