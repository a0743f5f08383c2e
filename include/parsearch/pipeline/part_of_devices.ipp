#pragma once
// Plans on some of the devices, where all are a number that a network is not divided among: 1,023 of 1,024, or 5 nodes.

#include <map>
#include <numeric>

#include <parsearch/pipeline/part_of_devices.hpp>
#include <parsearch/space/textbook/context_parallel.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE std::vector<device_count> device_counts(parallelization const& problem, partition_options const& options) {
    validate(options);
    auto const& g = problem.graph();
    auto const all = problem.topology().size();
    plan_rules const rules(problem, options);

    std::vector<std::uint32_t> order;
    for (auto const op : g.order)
        if (g.operations[op].work != ops::work_class::source) order.push_back(op);
    auto const places = stage_places(g, order, options.cuts_anywhere).of(2);
    std::vector<double> before{0}; // flops before each place where a stage may begin, and in all
    double flops = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (std::ranges::binary_search(places, i)) before.push_back(flops);
        flops += g.operations[order[i]].flops;
    }
    before.push_back(flops);
    if (!(flops > 0)) return {};
    constexpr double whole = 1e15;
    auto const load = [&](std::size_t, std::size_t begin, std::size_t end) {
        return static_cast<std::int64_t>((before[end] - before[begin]) / flops * whole);
    };
    auto const parts = before.size() - 1;
    std::vector<double> evenness{0}; // of stages, by their number
    while (evenness.size() <= std::min<std::uint64_t>({options.max_stages, all, parts})) {
        auto const stages = evenness.size();
        auto first = least_load_cuts(parts, stages, load);
        first.push_back(parts);
        std::int64_t most = 1;
        for (std::size_t s = 0; s < stages; ++s) most = std::max(most, load(s, first[s], first[s + 1]));
        evenness.push_back(whole / static_cast<double>(most) / static_cast<double>(stages));
    }

    std::map<std::uint32_t, std::size_t> on; // devices by node
    for (auto const n : problem.topology().node) ++on[n];
    auto splittable = std::ranges::max(on | std::views::values);
    for (auto const& op : g.operations)
        for (auto const& d : op.dims)
            if (op.work == ops::work_class::matmul && d.kind == ops::dim_kind::parameter)
                splittable = std::gcd(splittable, static_cast<std::size_t>(d.extent));
    if (std::ranges::any_of(g.operations, [](auto const& op) { return op.work == ops::work_class::attention; }))
        splittable = std::gcd(splittable, static_cast<std::size_t>(space::splittable_heads(g)));
    auto const positions = options.context_parallel ? static_cast<std::size_t>(space::positions_of(g)) : 1;

    // How evenly `group` devices share `samples` samples of a micro-batch.
    auto const of_group = [&](std::size_t group, std::size_t samples) {
        double best = 0;
        for (std::size_t tensor = 1; tensor <= std::min(group, splittable); ++tensor) {
            if (group % tensor != 0 || splittable % tensor != 0) continue;
            for (std::size_t context = 1; context <= group / tensor; ++context) {
                if (group / tensor % context != 0 || (context > 1 && positions % (context * tensor) != 0)) continue;
                auto const replicas = group / tensor / context, each = (samples + replicas - 1) / replicas;
                if (replicas > samples || (samples % replicas != 0 && !problem.space().options().uneven)) continue;
                if (context == 1 || replicas == samples) best = std::max(best, static_cast<double>(samples) / static_cast<double>(each * replicas));
            }
        }
        return best;
    };
    double const waiting = rules.may_run(launch_order::zb_h1, sharded_states::none) ? 1.0 / 3 : 1; // of a micro-batch, for each further stage
    auto const worth = [&](std::size_t devices) {
        double best = 0;
        for (std::size_t stages = 1; stages < evenness.size(); ++stages) {
            if (devices % stages != 0) continue;
            for (std::uint64_t m = 1; m <= rules.most_micro_batches(); ++m) {
                if (!rules.divide_samples(m)) continue;
                auto const rounds = static_cast<double>(m), waits = static_cast<double>(stages - 1) * waiting;
                best = std::max(best, evenness[stages] * rounds / (rounds + waits) * of_group(devices / stages, rules.samples() / m));
            }
        }
        return best * static_cast<double>(devices);
    };
    std::vector<device_count> out;
    for (auto n = (all + 1) / 2; n <= all; ++n)
        if (auto const w = worth(n); w > (out.empty() ? 0 : out.back().worth) * (1 + 1e-9)) out.push_back({n, w});
    std::ranges::reverse(out);
    std::erase_if(out, [&](auto const& c) { return c.worth < 0.9 * out.front().worth; });
    return out;
}

} // namespace parsearch::pipeline
