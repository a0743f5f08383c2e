#pragma once
/// Plans on some of the devices, where all are a number that a network is not divided among: 1,023 of 1,024, or 5 nodes.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <numeric>
#include <ranges>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/interruption.hpp>
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
/// devices, and none that is worth less than fewer. Nothing where no operator has flops, or no number divides the network.
///
/// What a number is worth follows from how blocks, samples and micro-batches divide among equal stages. The busiest stage has so many of the flops, a
/// device at most so many samples of a micro-batch. Stages wait at the ends as with ZB-H1, which is a third of 1F1B (Qi et al., ICLR 2024), or as
/// with 1F1B where backward may not be cut. Tensor parallelism by a degree that divides a node and what matrices and attentions have to split, and
/// context parallelism, are taken to cost nothing. Complexity: devices, times their divisors, numbers of micro-batches and degrees; and for each
/// number of stages that of `least_load_cuts`.
[[nodiscard]] inline std::vector<device_count> device_counts(parallelization const& problem, partition_options const& options = {}) {
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

/// The result of `partition_part`.
struct part_result {
    std::vector<std::size_t> devices{}; ///< of the problem, ascending
    pipeline_result found{}; ///< a plan on these, numbered from 0: of `on_devices(problem, devices)`; counts and reason of the whole search
};

/// `partition_part(problem, rng, options, observers...)`: as `partition`, on as many devices as are worth most, on full nodes. One stage on 1,023
/// devices splits 1,024 samples over 512 at most. This plans 7 stages of 128 devices.
///
/// Each of `device_counts` is searched, the best first, and then all devices. Each has half of what is left of the budget, and the last has all. A
/// later search is only for what is better than the best before. Numbers on which constraints leave an operator nothing are left out. All devices
/// alone are searched where constraints say on which devices operators may be, and `partition_options::starts` are starts of that search. Observers
/// are told what each search tells; one that ends a search ends all. Throws as `partition`; what ends a later search ends with the best before.
struct partition_part_fn {
    template <RandomBits R, class... Os>
    part_result operator()(parallelization const& problem, R& rng, partition_options const& options = {}, Os&&... observers) const {
        auto const began = std::chrono::steady_clock::now();
        auto const spent = [&] { return std::chrono::steady_clock::now() - began; };
        auto const all = problem.topology().size();
        std::vector<std::size_t> counts;
        if (!problem.space().options().admits)
            for (auto const& c : device_counts(problem, options)) counts.push_back(c.devices);
        if (std::ranges::find(counts, all) == counts.end()) counts.push_back(all);

        part_result best;
        search_stats stats;
        auto ended = stop_reason::exhausted;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            bool const known = !best.devices.empty(), fits = known && best.found.reason != stop_reason::nothing_feasible;
            std::int64_t const share = i + 1 < counts.size() ? 2 : 1;
            auto asked = options;
            if (options.time) asked.time = std::max<std::chrono::nanoseconds>((*options.time - spent()) / share, std::chrono::nanoseconds::zero());
            if (options.evaluations) {
                auto const left = *options.evaluations - std::min(*options.evaluations, stats.evaluations);
                if (known && left == 0) break;
                asked.evaluations = std::max<std::uint64_t>(left / static_cast<std::uint64_t>(share), 1);
            }
            if (known && asked.time && *asked.time == std::chrono::nanoseconds::zero()) break;
            if (fits) asked.bound = std::min(best.found.cost, options.bound.value_or(best.found.cost));
            if (counts[i] < all) asked.starts.clear();
            std::vector<bool> free(all, true);
            auto devices = topology::take_neighbours(problem.topology(), free, counts[i]);
            auto const part = counts[i] < all ? on_devices_if_allowed(problem, devices) : problem;
            if (!part) continue;
            try {
                auto found = partition(*part, {}, rng, asked, observers...);
                add_counts(stats, found.stats);
                stats.improved += found.stats.improved;
                ended = found.ended;
                bool const fits_now = found.reason != stop_reason::nothing_feasible;
                if (!known || (fits_now == fits ? found.cost < best.found.cost : fits_now)) best = {std::move(devices), std::move(found)};
            } catch (interrupted const&) {
                if (!known) throw;
                ended = stop_reason::stop_requested;
            } catch (std::bad_alloc const&) {
                if (!known) throw;
                ended = stop_reason::out_of_memory;
            }
            if (ended == stop_reason::observer || ended == stop_reason::stop_requested || ended == stop_reason::out_of_memory) break;
        }
        stats.seconds = std::chrono::duration<double>(spent()).count();
        best.found.stats = stats;
        best.found.ended = ended;
        if (best.found.reason != stop_reason::nothing_feasible) best.found.reason = ended;
        return best;
    }
};
inline constexpr partition_part_fn partition_part{};

} // namespace parsearch::pipeline
