#pragma once
/// Batch norm followed by ReLU.

#include <algorithm>
#include <cstdint>
#include <utility>

#include <parsearch/io/onnx/network/match.hpp>

namespace parsearch::io::onnx::patterns {

/// At a Relu that alone reads a BatchNormalization.
inline bool recognise_batch_norm_relu(rewriting& net, std::uint32_t n) {
    auto const result = net[n].outputs[0];
    claim c(net);
    c.add(n);
    auto const* const norm = c.take(input_of(net[n], 0), "BatchNormalization");
    if (!norm || !c.closed(result)) return false;
    auto made = recognised("BatchNormalizationRelu", norm->name, norm->inputs, result);
    net.replace(c.nodes(), std::move(made));
    return true;
}

} // namespace parsearch::io::onnx::patterns
