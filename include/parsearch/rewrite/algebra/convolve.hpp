#pragma once
/// Convolutions in another form: with a larger kernel, and with the batch normalization behind them folded in.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/rewrite/algebra/outcome.hpp>

namespace parsearch::rewrite {

/// A convolution with a larger kernel, and the zeros around the old kernel in it: `border[i]` positions before and behind, on weight axis 2 + i.
struct enlargement {
    ops::operation operation;
    std::vector<std::int64_t> border{};
};

/// `conv` (conv1d or conv2d, with or without fused stages) as a convolution with kernel `kernel` (an extent per spatial axis), so that siblings of
/// different kernels can be merged. Each extent grows by an even number, in steps of the dilation; stride and results stay, and padding grows. Flops
/// are those of the larger kernel: zeros are multiplied like everything else. Outputs and the gradients of x, bias and the old kernel are equal, but
/// the border gets a gradient too: in training it would not stay zero, so training is refused unless `border_stays_zero`, which says that the caller
/// clears that gradient.
[[nodiscard]] outcome<enlargement> enlarged(ops::operation const& conv, std::span<std::int64_t const> kernel, purpose use,
                                            bool border_stays_zero = false);

/// For inference, where a batch normalization is y = x * scale[c] + offset[c]: a convolution or linear layer and the batch normalization of its
/// channels (axis 1) as one, always with bias: weight'[o, ...] = weight[o, ...] * scale[o], bias'[o] = bias[o] * scale[o] + offset[o]. With relu
/// ("batch_norm_relu") it is fused, too. The new weights are parameters of their own. In training the statistics depend on the batch: refused.
[[nodiscard]] outcome<ops::operation> folded(ops::operation const& producer, ops::operation const& norm, purpose use);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/algebra/convolve.ipp>
#endif
