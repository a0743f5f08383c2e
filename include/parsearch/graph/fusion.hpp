#pragma once
/// Which operators share a kernel, and so do not pass their tensors through memory.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::graph {

/// Which neighbours share a kernel.
enum class fusion : std::uint8_t {
    none,
    dropout, ///< a dropout and the sum behind it, as in hand-written kernels of residual connections
    compiled ///< what compilers fuse (torch.compile, XLA): elementwise operators (activations, sums, products, dropouts, rotary positions), views,
             ///< and normalizations of rows, with each other and behind any normalization
};
inline constexpr std::array<fusion, 3> fusions{fusion::none, fusion::dropout, fusion::compiled};
[[nodiscard]] constexpr std::string_view name_of(fusion f) noexcept {
    constexpr std::array<std::string_view, 3> names{"none", "dropout", "compiled"};
    return names[static_cast<std::size_t>(f)];
}

namespace detail {

/// Works element by element or row by row on what the kernel in front of it has made.
[[nodiscard]] inline bool joins_kernels(ops::operation const& op) {
    return op.work == ops::work_class::elementwise || op.work == ops::work_class::view || op.kind == "layer_norm" || op.kind == "rms_norm";
}
} // namespace detail

/// `g` with the operators of each kernel marked: what one reads of another in its kernel is not touched in memory (`touched_bytes` 0), forward or
/// backward. The result of an operator is written where another kernel reads it, where it is kept for backward by itself, or kept by a reader and
/// cannot be made again from what the operator keeps, which are all of its differentiable inputs; what is not written is not kept either. Launches
/// and arithmetic stay those of each operator, and strategies that split operators of a kernel differently are priced as if they did not.
///
/// Two operators share a kernel where they may (see `fusion`) and no path from one to the other passes a third that is in neither: where as many
/// kernels are, at the most, in front of both. Complexity: O(operators + edges).
[[nodiscard]] operator_graph with_fused_kernels(operator_graph const& g, fusion f);

} // namespace parsearch::graph

#ifndef PARSEARCH_COMPILED
#include <parsearch/graph/fusion.ipp>
#endif
