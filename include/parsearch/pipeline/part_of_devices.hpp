#pragma once
/// Plans on some of the devices, where all are a number that a network is not divided among: 1,023 of 1,024, or 5 nodes.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <ranges>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/stage_cuts.hpp>
#include <parsearch/pipeline/stage_places.hpp>
#include <parsearch/problem/on_devices.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/space/textbook/context_parallel.hpp>
#include <parsearch/topology/neighbours.hpp>

namespace parsearch::pipeline {

/// Devices that a plan may have, and how many of them would do as much if they shared all work equally and never waited.
struct device_count {
    std::size_t devices;
    double worth;
    friend bool operator==(device_count const&, device_count const&) = default;
};

/// Numbers of devices from half of all to all that are worth nine tenths of the best at least, the best first; of those worth the same the fewest
/// devices, and none that is worth less than fewer. What a number is worth follows from how samples, micro-batches and blocks divide: in the best of
/// its plans the busiest stage has so many of the operations, a device at most so many samples of a micro-batch, and stages wait at the ends for a
/// third of what they do with 1F1B (Qi et al., ICLR 2024, ZB-H1). Tensor parallelism within nodes and context parallelism are taken to cost nothing.
/// Complexity: devices, times their divisors, numbers of micro-batches and degrees.
[[nodiscard]] inline std::vector<device_count> device_counts(parallelization const& problem, partition_options const& options = {}) {
    validate(options);
    auto const& g = problem.graph();
    std::vector<std::uint32_t> order;
    for (auto const op : g.order)
        if (g.operations[op].work != ops::work_class::source) order.push_back(op);
    stage_places const places(g, order, options.cuts_anywhere);
    plan_rules const rules(problem, options);
    bool const uneven = problem.space().options().uneven;
    auto const positions = options.context_parallel ? static_cast<std::size_t>(space::positions_of(g)) : 1;
    std::map<std::uint32_t, std::size_t> on; // devices by node
    for (auto const n : problem.topology().node) ++on[n];
    auto const per_node = std::ranges::max(on | std::views::values);

    auto const even_part = [](std::size_t things, std::size_t parts) { // of the largest part
        return static_cast<double>(things) / static_cast<double>((things + parts - 1) / parts * parts);
    };
    // How evenly `group` devices share `samples` samples of a micro-batch.
    auto const of_group = [&](std::size_t group, std::size_t samples) {
        double best = 0;
        for (std::size_t tensor = 1; tensor <= std::min(group, per_node); ++tensor) {
            if (group % tensor != 0 || per_node % tensor != 0) continue;
            for (std::size_t context = 1; context <= group / tensor; ++context) {
                if (group / tensor % context != 0 || (context > 1 && positions % (context * tensor) != 0)) continue;
                auto const replicas = group / tensor / context;
                if (replicas > samples || (samples % replicas != 0 && !uneven) || (context > 1 && replicas != samples)) continue;
                best = std::max(best, even_part(samples, replicas));
            }
        }
        return best;
    };
    std::vector<std::int64_t> flops;
    for (auto const op : order) flops.push_back(static_cast<std::int64_t>(g.operations[op].flops));
    auto const flops_of = [&](std::size_t begin, std::size_t end) {
        return std::accumulate(flops.begin() + static_cast<std::ptrdiff_t>(begin), flops.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
    };
    std::vector<double> evenness{0, 1}; // of stages, by their number
    auto const& between_blocks = places.of(2);
    while (evenness.size() <= std::min<std::uint64_t>({options.max_stages, problem.topology().size(), between_blocks.size() + 1})) {
        auto const stages = evenness.size();
        auto first = balanced_cuts(std::vector(stages, flops), std::vector<std::int64_t>(order.size()), between_blocks);
        first.push_back(order.size());
        double most = 0;
        for (std::size_t s = 0; s < stages; ++s) most = std::max(most, flops_of(first[s], first[s + 1]));
        evenness.push_back(most > 0 ? flops_of(0, order.size()) / most / static_cast<double>(stages) : 0);
    }
    auto const worth = [&](std::size_t devices) {
        double best = 0;
        for (std::size_t stages = 1; stages < evenness.size(); ++stages) {
            if (devices % stages != 0) continue;
            for (std::uint64_t m = 1; m <= rules.most_micro_batches(); ++m) {
                if (!rules.divide_samples(m)) continue;
                auto const rounds = static_cast<double>(m), waits = static_cast<double>(stages - 1) / 3;
                best = std::max(best, evenness[stages] * rounds / (rounds + waits) * of_group(devices / stages, rules.samples() / m));
            }
        }
        return best * static_cast<double>(devices);
    };
    auto const all = problem.topology().size();
    std::vector<device_count> out;
    for (auto n = (all + 1) / 2; n <= all; ++n)
        if (auto const w = worth(n); out.empty() || w > out.back().worth) out.push_back({n, w});
    std::ranges::reverse(out);
    std::erase_if(out, [&](auto const& c) { return c.worth < 0.9 * out.front().worth; });
    return out;
}

/// The result of `partition_part`.
struct part_result {
    std::vector<std::size_t> devices{}; ///< of the problem, ascending
    pipeline_result found{};            ///< a plan on these, numbered from 0: of `on_devices(problem, devices)`
};

/// `partition_part(problem, rng, options, observers...)`: as `partition`, on as many devices as are worth most, neighbours on full nodes. Where 1,024
/// devices are left with 1,023, `partition` has but 512 that divide 1,024 samples, and this 7 stages on 128 each.
///
/// Each of `device_counts` is searched, the best first, and then all devices, with half of what is left of the budget, the last with all; a later one
/// only for what is better than the best before. All devices alone where constraints say on which devices operators may be. Observers are told what
/// `partition` of each tells. Throws as `partition`.
struct partition_part_fn {
    template <RandomBits R, class... Os>
    part_result operator()(parallelization const& problem, R& rng, partition_options const& options = {}, Os&&... observers) const {
        auto const began = std::chrono::steady_clock::now();
        auto const all = problem.topology().size();
        std::vector<std::size_t> counts;
        for (auto const& c : device_counts(problem, options)) counts.push_back(c.devices);
        if (problem.space().options().admits) counts.clear();
        if (std::ranges::find(counts, all) == counts.end()) counts.push_back(all);
        part_result best;
        auto left = options.evaluations;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            std::int64_t const share = i + 1 < counts.size() ? 2 : 1;
            auto asked = options;
            if (options.time) {
                auto const rest = *options.time - (std::chrono::steady_clock::now() - began);
                asked.time = std::max(rest / share, std::chrono::nanoseconds::zero());
            }
            if (left) asked.evaluations = std::max<std::uint64_t>(*left / static_cast<std::uint64_t>(share), 1);
            bool const known = !best.devices.empty(), fits = known && best.found.reason != stop_reason::nothing_feasible;
            if (known && (options.stop.stop_requested() || (options.time && asked.time->count() == 0) || left == 0)) break;
            if (fits) asked.bound = std::min(best.found.cost, options.bound.value_or(best.found.cost));
            std::vector<bool> free(all, true);
            auto devices = topology::take_neighbours(problem.topology(), free, counts[i]);
            auto found = partition(devices.size() == all ? problem : on_devices(problem, devices), {}, rng, asked, observers...);
            if (left) *left -= std::min(*left, found.stats.evaluations);
            bool const fits_now = found.reason != stop_reason::nothing_feasible;
            if (!known || (fits_now == fits ? found.cost < best.found.cost : fits_now)) best = {std::move(devices), std::move(found)};
        }
        return best;
    }
};
inline constexpr partition_part_fn partition_part{};

} // namespace parsearch::pipeline
