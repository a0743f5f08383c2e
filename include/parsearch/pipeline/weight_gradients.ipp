#pragma once
// A backward pass cut in two: gradients of inputs, which others wait for, and gradients of weights, which can be computed later.

#include <parsearch/pipeline/weight_gradients.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE double weight_gradient_share(graph::dense_graph const& g, std::size_t op) {
    auto const& o = g.operations[op];
    if (!g.trains[op] || o.weights.empty()) return 0;
    auto const wanted = g.input_gradients(static_cast<std::uint32_t>(op));
    double inputs = 0, weights = 0;
    bool any = false; // gradient of an input
    for (std::size_t i = 0; i < o.inputs.size(); ++i) {
        if (!o.inputs[i].differentiable || (i < 64 && (wanted >> i & 1) == 0)) continue;
        any = true;
        inputs += o.inputs[i].gradient_flops;
    }
    if (!any) return 1;
    bool const products = o.work == ops::work_class::matmul || o.work == ops::work_class::convolution || o.product_flops > 0;
    if (!products) return 0;
    for (auto const& w : o.weights) weights += w.gradient_flops;
    double const all = o.backward_flops + inputs + weights;
    return all > 0 ? weights / all : 0;
}

} // namespace parsearch::pipeline
