#pragma once
/// Plans that runtimes know by a few numbers: degrees of tensor, context, expert, pipeline and data parallelism. What is none of these is refused.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/io/exports/exported_plan.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::io {

/// A plan in numbers. tensor * context * data is the number of devices of a group.
struct textbook_plan {
    std::uint32_t tensor = 1, context = 1, heads = 1, experts = 1, data = 1;
    std::uint32_t groups = 1; ///< of devices; `interleaved` stages on each
    std::uint32_t interleaved = 1;
    std::int64_t samples = 0, micro_batch = 0; ///< of an iteration; of one micro-batch on one replica
    std::vector<std::uint32_t> layers{};       ///< of each stage: its operators of attention
    bool recomputes = false;                   ///< all stages do
    std::uint32_t segments = 0;                ///< of the stage with most that are computed again
};

namespace detail {

/// Whether some stage has a layer.
[[nodiscard]] inline bool has_layers(std::vector<std::uint32_t> const& layers) {
    return std::ranges::any_of(layers, [](auto n) { return n > 0; });
}
inline void refuse_no_layers(textbook_plan const& t, std::string_view runtime) {
    if (!has_layers(t.layers)) throw takes_no_such(runtime, "no operator is attention: it trains transformers");
}

/// The degree of tensor parallelism of a strategy that says none: of the first operator that is not as in data parallelism, the least that makes it
/// as it is; 1 where there is no such operator or degree.
[[nodiscard]] std::uint32_t tensor_of(exported_plan const& p, std::vector<exported_stage> const& stages);
/// The same of experts, with that degree of tensor parallelism: of the first operator of a mixture.
[[nodiscard]] std::uint32_t experts_over(exported_plan const& p, std::vector<exported_stage> const& stages, std::uint32_t tensor);
} // namespace detail

/// The numbers of a plan. Throws `invalid_input` naming the first operator whose configuration is not that of the strategy which the numbers stand
/// for (`space::split_among_neighbours` on the devices of its stage), or where stages differ in their degree of tensor parallelism or in computing
/// again, a stage begins within a layer, or a replica has a part of a sample. `runtime`: for messages. Complexity: linear in operators and shards.
[[nodiscard]] textbook_plan textbook_of(exported_plan const& p, std::string_view runtime);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/exports/textbook_plan.ipp>
#endif
