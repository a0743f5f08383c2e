#pragma once
/// Tensor parallelism, after Megatron-LM.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

namespace detail {

/// Dim `k` split among `group` neighbouring devices, samples over `data` such groups.
[[nodiscard]] configuration split_in_groups(ops::operation const& op, std::uint32_t k, std::int32_t group, std::int64_t data, bool uneven = false);

} // namespace detail

/// Tensor parallelism among `degree` neighbouring devices, data parallelism over the rest: matrix products and convolutions split
/// by output features and, where the input is split by features already, by reduction; attention and recurrent layers by heads
/// or hidden units; embeddings by vocabulary; what lies between follows its input or is split along the sequence.
/// Source: Shoeybi et al., Megatron-LM, 2019, section 3; Korthikanti et al., 2022, section 4.2 (sequence parallelism).
/// Throws `invalid_input` where `degree` does not divide `devices`.
[[nodiscard]] flat_strategy tensor_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t degree, bool uneven = false);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/textbook/tensor_parallel.ipp>
#endif
