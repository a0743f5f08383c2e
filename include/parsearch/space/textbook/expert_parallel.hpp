#pragma once
/// Parallelism of the experts of mixtures, after GShard.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>

namespace parsearch::space {

namespace detail {

/// Two operators name the axes of one tensor by dims of their own: the other's dim along the axis of dim `k`.
[[nodiscard]] inline std::optional<std::uint32_t> matching_dim(ops::operand const& from, ops::operand const& to, std::uint32_t k) {
    for (std::size_t a = 0; a < from.axes.size(); ++a)
        if (auto const &x = from.axes[a].terms, &y = to.axes[a].terms; x.size() == 1 && y.size() == 1 && x[0].dim == k) return y[0].dim;
    return std::nullopt;
}

/// The experts' dim of each operator of a mixture's experts: the products, what follows their outputs elementwise, and views that
/// only they read.
[[nodiscard]] std::vector<std::optional<std::uint32_t>> expert_dims(graph::dense_graph const& g);
} // namespace detail

/// How many experts each mixture of `g` has; of several the greatest common divisor; 1 where there are none.
[[nodiscard]] std::int64_t experts_of(graph::dense_graph const& g);

/// Of each operator, whether `with_experts_split` may split it.
[[nodiscard]] inline std::vector<bool> has_experts(graph::dense_graph const& g) {
    std::vector<bool> out;
    for (auto const& k : detail::expert_dims(g)) out.push_back(k.has_value());
    return out;
}

/// `s`, a strategy on `devices` devices, but the experts of each mixture are split over `degree` neighbours (over the largest common divisor of their
/// number and `degree`), so that tokens travel to their experts and back, and only devices with the same experts exchange their gradients.
/// Source: Lepikhin et al., GShard, ICLR 2021, section 3.2. Throws `invalid_input` where `degree` does not divide `devices`.
[[nodiscard]] flat_strategy with_experts_split(graph::dense_graph const& g, flat_strategy s, std::size_t devices, std::size_t degree,
                                               bool uneven = false);

/// Data parallelism, and experts as `with_experts_split` has them.
[[nodiscard]] inline flat_strategy expert_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t degree, bool uneven = false) {
    return with_experts_split(g, data_parallel(g, devices, uneven), devices, degree, uneven);
}

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/textbook/expert_parallel.ipp>
#endif
