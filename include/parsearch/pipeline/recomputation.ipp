#pragma once
// Recomputation: segments whose activations are computed again, and the memory that they need.

#include <parsearch/pipeline/recomputation.hpp>

namespace parsearch::pipeline::detail {

PARSEARCH_INLINE std::vector<bool> computed_again(graph::dense_graph const& g, pipelining const& how) {
    std::vector<bool> out(g.size(), false);
    std::set<stage_segment> segments;
    for (std::size_t op = 0; op < g.size(); ++op)
        if (g.trains[op] && how.computes_again(op)) segments.insert(segment_at(how, op));
    for (std::size_t op = 0; op < g.size() && !segments.empty(); ++op) out[op] = how.computes_again(op) && segments.contains(segment_at(how, op));
    return out;
}

} // namespace parsearch::pipeline::detail

namespace parsearch::pipeline {

PARSEARCH_INLINE std::vector<bool> offloading_stages(graph::dense_graph const& g, pipelining const& how) {
    std::vector<bool> out(how.stages, false);
    for (std::size_t op = 0; op < g.size(); ++op)
        if (how.offloads(op) && g.operations[op].work != ops::work_class::source) out[how.stage[op]] = true;
    return out;
}

PARSEARCH_INLINE std::vector<std::uint32_t> reading_parts(graph::dense_graph const& g, pipelining const& how) {
    auto const again = detail::computed_again(g, how);
    auto const by_segment = offloading_stages(g, how);
    std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::uint32_t> numbers; // by stage, segment, and whether it is computed again
    std::vector<std::uint32_t> out;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const s = how.stage[op];
        bool const apart = again[op] || (s < how.stages && by_segment[s]);
        auto const part = std::tuple(s, apart ? how.segment_of(op) : 0, bool{again[op]});
        out.push_back(numbers.try_emplace(part, static_cast<std::uint32_t>(numbers.size())).first->second);
    }
    if (numbers.size() < 2) out.clear();
    return out;
}

PARSEARCH_INLINE segment_keepers kept_again(graph::dense_graph const& g, pipelining const& how, std::vector<bool> const& again) {
    segment_keepers out(how);
    sim::for_kept_tensors(
        g, [&](std::uint32_t op, graph::edge const* e) { return again[op] && !(e && detail::enters(g, how, *e)); },
        [&](auto const& keepers) { out.add(keepers); });
    return out;
}

} // namespace parsearch::pipeline
