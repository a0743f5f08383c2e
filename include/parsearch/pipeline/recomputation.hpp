#pragma once
/// Recomputation: segments whose activations are computed again, and the memory that they need.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/sim/memory/kept_tensors.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::pipeline {

namespace detail {

/// A stage and a segment in it.
using stage_segment = std::pair<std::uint32_t, std::uint32_t>;
[[nodiscard]] inline stage_segment segment_at(pipelining const& how, std::size_t op) noexcept { return {how.stage[op], how.segment_of(op)}; }

/// Of each operator, whether its forward runs again: where it computes again, in a segment with another such operator to which a gradient goes back.
[[nodiscard]] std::vector<bool> computed_again(graph::dense_graph const& g, pipelining const& how);

/// Whether edge `e` brings what is computed again something that is not.
[[nodiscard]] inline bool enters(graph::dense_graph const& g, pipelining const& how, graph::edge const& e) {
    return g.operations[e.producer].work == ops::work_class::source || segment_at(how, e.producer) != segment_at(how, e.consumer) ||
           !how.computes_again(e.producer);
}
} // namespace detail

/// By stage, whether any of its operators is offloaded: it runs forward segment by segment, and backward likewise, last first.
[[nodiscard]] std::vector<bool> offloading_stages(graph::dense_graph const& g, pipelining const& how);

/// By operator, a number for its stage and, where it is computed again or in a stage that offloads, its segment: operators of one number receive
/// together what they read alike (a residual that one normalizes and another adds). Empty where all are of one.
[[nodiscard]] std::vector<std::uint32_t> reading_parts(graph::dense_graph const& g, pipelining const& how);

/// Calls `take(keepers)` for each tensor that operators that are computed again, those with `which(op)`, read of others, and from outside of their
/// segments: they keep it. `again`: of each operator, whether it is. Complexity: O(edges).
template <class Which, class Take>
void for_segment_inputs(graph::dense_graph const& g, pipelining const& how, std::vector<bool> const& again, Which const& which, Take const& take) {
    std::vector<sim::keeper> keepers;
    for (std::uint32_t op = 0; op < g.size(); ++op)
        for (std::uint32_t slot = 0; slot < g.operations[op].outputs.size(); ++slot) {
            keepers.clear();
            for (auto const number : g.out(op))
                if (auto const& e = g.edges[number]; e.slot == slot && again[e.consumer] && which(e.consumer) && detail::enters(g, how, e))
                    keepers.push_back({e.consumer, e.input, sim::keeper::part::input});
            if (!keepers.empty()) take(std::span<sim::keeper const>(keepers));
        }
}

/// What segments keep, tensor by tensor.
class segment_keepers {
  public:
    explicit segment_keepers(pipelining const& how) noexcept : how_(&how) {}

    /// Those of one tensor, each for its segment.
    void add(std::span<sim::keeper const> keepers) {
        for (auto const& k : keepers) all_.push_back({detail::segment_at(*how_, k.op), tensors_, k});
        ++tensors_;
    }
    /// Calls `take(device, bytes, segment)` for each device and segment with the sum of its tensors, each at its largest part there. `shards(op)` is
    /// the `sim::shard_memory` of an operator, `devices(op)` the device of each of its shards; `account` is of all devices. Complexity: O(shards of
    /// keepers), and that of sorting these.
    template <class Shards, class Devices, class Take>
    void add_up(sim::memory_account& account, Shards const& shards, Devices const& devices, Take const& take) && {
        auto const tensor = [](entry const& e) { return std::tie(e.segment, e.tensor); };
        std::ranges::sort(all_, {}, tensor);
        std::vector<byte_count> sum(account.size(), 0); // by device
        std::vector<std::uint32_t> touched;
        for (auto from = all_.begin(); from != all_.end();) {
            auto const segment = from->segment;
            auto const to = std::ranges::upper_bound(from, all_.end(), tensor(*from), {}, tensor);
            account.for_largest(
                std::ranges::subrange(from, to) | std::views::transform(&entry::who), shards, devices, [](std::uint32_t) { return 0U; },
                [&](std::uint32_t d, byte_count bytes, std::uint32_t) {
                    if (sum[d] == 0) touched.push_back(d);
                    sum[d] += bytes;
                });
            from = to;
            if (from != all_.end() && from->segment == segment) continue;
            for (auto const d : touched) take(d, std::exchange(sum[d], 0), segment);
            touched.clear();
        }
    }

  private:
    struct entry {
        detail::stage_segment segment;
        std::uint32_t tensor = 0;
        sim::keeper who;
    };

    pipelining const* how_;
    std::vector<entry> all_;
    std::uint32_t tensors_ = 0;
};

/// What each segment that is computed again keeps of one micro-batch while it runs backward, beside its inputs. `again` as above.
[[nodiscard]] segment_keepers kept_again(graph::dense_graph const& g, pipelining const& how, std::vector<bool> const& again);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/recomputation.ipp>
#endif
