#pragma once
// Pipelines of equal stages, what is estimated of them, and what a device of one keeps of a micro-batch.

#include <algorithm>
#include <numeric>

#include <parsearch/pipeline/equal_stages.hpp>

namespace parsearch::pipeline::detail {

PARSEARCH_INLINE kept_bytes kept_bytes_of(replica_times const& one, std::size_t begin, std::size_t end, equal_stages const& how, bool again) {
    auto const length = end - begin;
    auto const activations = std::span(one.activations).subspan(begin, length);
    auto const crossing = std::span(one.crossing).subspan(begin, length);
    kept_bytes out;
    if (how.offloaded > 0) {
        auto const first = narrow_cuts(std::span(one.busy).subspan(begin, length), crossing, how.segments);
        for (std::size_t i = 0; i < first.size(); ++i) {
            auto const of_segment = activations.subspan(first[i], (i + 1 < first.size() ? first[i + 1] : length) - first[i]);
            auto const bytes = again && !is_among(i, how.kept, how.segments) ? crossing[first[i]]
                                                                             : std::accumulate(of_segment.begin(), of_segment.end(), byte_count{0});
            bool const leaves = is_among(i, how.offloaded, how.segments);
            (leaves ? out.offloaded : out.here) += bytes;
            out.last = leaves ? bytes : 0;
            out.largest = std::max(out.largest, out.last);
        }
        return out;
    }
    out.here = std::accumulate(activations.begin(), activations.end(), byte_count{0});
    if (!again) return out;
    auto const behind = crossing.subspan(1); // places where segments may begin
    auto const inputs = std::min<std::size_t>(how.segments - how.kept - 1, behind.size());
    out.here = crossing.front() + (inputs > 0 ? static_cast<byte_count>(inputs) * std::ranges::min(behind) : 0) + out.here / how.segments * how.kept;
    return out;
}

} // namespace parsearch::pipeline::detail
