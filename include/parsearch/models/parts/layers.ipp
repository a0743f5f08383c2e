#pragma once
// What the models of the zoo are put together from: checks of options, chains of operators, the loss.

#include <parsearch/models/parts/layers.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/softmax.hpp>

namespace parsearch::models::detail {

PARSEARCH_INLINE tensor_ref normalized_conv(operator_graph& g, std::string const& name, tensor_ref x, ops::conv2d conv, bool activate) {
    conv.bias = false;
    chain net{g, x};
    net.then(name + ".conv", conv).then(name + ".norm", ops::batch_norm{});
    if (activate) net.then(name + ".relu", relu);
    return net.end;
}

PARSEARCH_INLINE void add_loss(operator_graph& g, tensor_ref logits, std::string const& suffix) {
    auto shape = g.shape(logits).extents;
    shape.pop_back();
    auto const labels = g.input("labels" + suffix, {std::move(shape), ops::dtype::i64});
    g.add("loss" + suffix, ops::cross_entropy{}, logits, labels);
}

} // namespace parsearch::models::detail
