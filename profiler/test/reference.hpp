#pragma once
/// What launches compute, in double precision on the host, over arrays in the order of their axes.

#include <cstdint>
#include <vector>

#include "profiler/launch.hpp"

namespace parsearch::profiler::testing {

using numbers = std::vector<double>;

[[nodiscard]] numbers product(matmul const& m, numbers const& a, numbers const& b, numbers const& bias, double scale = 1);
[[nodiscard]] numbers activated(activation then, numbers x);
/// What the pass writes, of the two other arrays: y of x and w, dx of w and dy (`first`, `second`), dw of x and dy.
[[nodiscard]] numbers convolved(convolution const& c, numbers const& first, numbers const& second);
/// y of x, or dx of x and dy.
[[nodiscard]] numbers pooled(pooling const& p, numbers const& x, numbers const& dy);
/// y of x, or dx of y (`x`) and dy.
[[nodiscard]] numbers softmaxed(softmax const& s, numbers const& x, numbers const& dy);

struct normalized_numbers {
    numbers y{}, mean{}, deviation{}; ///< deviation: one over it
    numbers dx{}, dscale{}, dbias{};
};
/// x[n, channels, inner]; epsilon 1e-5.
[[nodiscard]] normalized_numbers normalized_of(normalization const& n, numbers const& x, numbers const& scale, numbers const& bias,
                                               numbers const& dy);

struct attended {
    numbers o{}, statistics{}, dq{}, dk{}, dv{};
};
[[nodiscard]] attended attend(attention const& a, numbers const& q, numbers const& k, numbers const& v, numbers const& d_o);

/// Weights of one layer: for each gate w[hidden, features], r[hidden, hidden], b[hidden], c[hidden], gates in cuDNN's order.
struct cell_weights {
    std::vector<numbers> w{}, r{}, b{}, c{};
};
[[nodiscard]] int gates_of(cell_kind k) noexcept;
/// y[samples, steps, hidden] of x[samples, steps, features], states zero at first (cuDNN API reference, cudnnRNNMode_t).
[[nodiscard]] numbers recur(recurrent const& r, numbers const& x, cell_weights const& w);

[[nodiscard]] numbers summed(reduction const& r, numbers const& x);
[[nodiscard]] numbers permuted(permutation const& p, numbers const& x);
/// Forward: y of the table. Backward: the table with what is added to it.
[[nodiscard]] numbers looked_up(lookup const& l, numbers const& table, std::vector<std::int32_t> const& indices, numbers const& dy);

} // namespace parsearch::profiler::testing
