#pragma once
// The blocks of a pipeline whose weights are shared: what moves for each, and which tasks of a micro-batch that replaces.

#include <algorithm>
#include <set>

#include <parsearch/core/make_set.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/shared_blocks.hpp>

namespace parsearch::pipeline::detail {

PARSEARCH_INLINE void add_up(shared_block::link_times& times) {
    auto const by_resource = [](auto const& t) { return t.first; };
    if (!std::ranges::is_sorted(times, {}, by_resource)) std::ranges::stable_sort(times, {}, by_resource);
    std::size_t n = 0;
    for (auto const& t : times)
        if (n > 0 && times[n - 1].first == t.first) times[n - 1].second = saturating_sum(times[n - 1].second, t.second);
        else times[n++] = t;
    times.resize(n);
}

} // namespace parsearch::pipeline::detail

namespace parsearch::pipeline {

PARSEARCH_INLINE shared_blocks blocks_with_shared_weights(sim::task_graph const& one, sim::iteration_plan const& plan, std::uint32_t devices,
                                                          pipelining const& how, sharing_plan const& sharing) {
    constexpr auto none = shared_block::none;
    bool const parameters = how.sharded >= sharded_states::parameters;
    shared_blocks out{.waits = std::vector<bool>(plan.operators.size(), false), .reduced_with = std::vector<std::uint32_t>(one.size(), none)};
    std::set<std::pair<std::uint32_t, std::uint32_t>> known; // classes and sync groups
    std::pair<std::uint32_t, std::uint32_t> last{none, none};
    for (std::uint32_t t = 0; t < one.size(); ++t) {
        if (!synchronises(one, t)) continue;
        auto const number = plan.class_of[one.label[t].op], group = one.label[t].number;
        auto const& c = plan.classes[number];
        auto const home = how.block_of(c.members.front());
        out.reduced_with[t] = home;
        auto& at_home = out.blocks[home];
        if (at_home.first == none) at_home.first = t;
        if (one.kind[t] == sim::task_kind::barrier)
            for (auto const p : one.before(t))
                if (one.kind[p] == sim::task_kind::backward) at_home.contributors.push_back(p);
        if (std::exchange(last, {number, group}) == std::pair(number, group) || !known.emplace(number, group).second) continue;
        auto const& how_shared = sharing[number][group];
        auto const add_half = [&](shared_block::link_times& to, std::vector<sim::hop> const& hops) {
            for (auto const& h : hops) to.emplace_back(devices + h.link, h.duration / 2 + h.duration % 2);
        };
        add_half(at_home.reduce, how_shared.gradients);
        for (auto const& h : how_shared.across) at_home.once.emplace_back(devices + h.link, h.duration);
        std::set<std::uint32_t> readers;
        for (auto const op : c.members) {
            if (!how_shared.gradients.empty()) out.waits[op] = true;
            readers.insert(how.block_of(op));
        }
        if (!parameters) add_half(at_home.once, how_shared.weights);
        else
            for (auto const b : readers) {
                auto& of_reader = out.blocks[b];
                if (of_reader.first == none) of_reader.first = t;
                add_half(of_reader.gather, how_shared.weights);
            }
    }
    for (auto& [number, b] : out.blocks) {
        for (auto* times : {&b.gather, &b.reduce, &b.once}) detail::add_up(*times);
        make_set(b.contributors);
        for (auto const t : b.contributors) out.reduced_with[t] = number;
    }
    return out;
}

} // namespace parsearch::pipeline
