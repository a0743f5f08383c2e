#pragma once
/// Plans on some of the devices, where all are a number that a network is not divided among: 1,023 of 1,024, or 5 nodes.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/stage_cuts.hpp>
#include <parsearch/pipeline/stage_places.hpp>
#include <parsearch/problem/on_devices.hpp>
#include <parsearch/problem/problem.hpp>
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
[[nodiscard]] std::vector<device_count> device_counts(parallelization const& problem, partition_options const& options = {});

/// The result of `partition_part`.
struct part_result {
    std::vector<std::size_t> devices{}; ///< of the problem, ascending
    pipeline_result found{}; ///< a plan on these, numbered from 0: of `on_devices(problem, devices)`; counts and reason of the whole search
    [[nodiscard]] placed_plan plan() const { return {found.best, devices}; }
};

/// `partition_part(problem, start, rng, options, observers...)`: as `partition`, on as many devices as are worth most, on full nodes. One stage on
/// 1,023 devices splits 1,024 samples over 512 at most. This plans 7 stages of 128 devices.
///
/// `start` is a plan that is known from elsewhere, or left out; it is simulated first, and the answer is never worse. Then each of `device_counts` is
/// searched, the best first, and then all devices. Each has half of what is left of the budget, and the last has all. A later search is only for what
/// is better than the best before. Numbers on which constraints leave an operator nothing are left out. All devices alone are searched where
/// constraints say on which devices operators may be, and `partition_options::starts` are starts of that search. Observers are told what each search
/// tells; one that ends a search ends all. Throws as `partition`; what ends a later search ends with the best before.
struct partition_part_fn {
    template <RandomBits R, class... Os>
    part_result operator()(parallelization const& problem, R& rng, partition_options const& options = {}, Os&&... observers) const {
        return (*this)(problem, placed_plan{}, rng, options, observers...);
    }
    template <RandomBits R, class... Os>
    part_result operator()(parallelization const& problem, placed_plan start, R& rng, partition_options const& options = {},
                           Os&&... observers) const {
        auto const began = std::chrono::steady_clock::now();
        auto const spent = [&] { return std::chrono::steady_clock::now() - began; };
        auto const all = problem.topology().size();
        std::vector<std::vector<std::size_t>> parts; // of the devices
        bool const starts = !start.plan.strategy.empty();
        if (starts) parts.push_back(start.numbers(all));
        auto const add = [&](std::size_t count) {
            std::vector<bool> free(all, true);
            parts.push_back(topology::take_neighbours(problem.topology(), free, count));
        };
        bool adds_all = true;
        if (!problem.space().options().admits)
            for (auto const& c : device_counts(problem, options)) {
                add(c.devices);
                adds_all = adds_all && c.devices != all;
            }
        if (adds_all) add(all);

        part_result best;
        search_stats stats;
        auto ended = stop_reason::exhausted;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            auto& devices = parts[i];
            bool const simulates_start = starts && i == 0;
            bool const known = !best.devices.empty(), fits = known && best.found.reason != stop_reason::nothing_feasible;
            std::int64_t const share = i + 1 < parts.size() ? 2 : 1;
            auto asked = options;
            if (options.time) asked.time = std::max<std::chrono::nanoseconds>((*options.time - spent()) / share, std::chrono::nanoseconds::zero());
            if (options.evaluations) {
                auto const left = *options.evaluations - std::min(*options.evaluations, stats.evaluations);
                if (known && left == 0) {
                    ended = stop_reason::evaluation_budget;
                    break;
                }
                asked.evaluations = std::max<std::uint64_t>(left / static_cast<std::uint64_t>(share), 1);
            }
            if (known && asked.time && *asked.time == std::chrono::nanoseconds::zero()) {
                ended = stop_reason::time_budget;
                break;
            }
            if (fits) asked.bound = std::min(best.found.cost, options.bound.value_or(best.found.cost));
            if (devices.size() < all) asked.starts.clear();
            if (options.surcharge) asked.surcharge = [&](pipeline_plan const& plan, auto const&) { return options.surcharge(plan, devices); };
            auto const part = devices.size() < all ? on_devices_if_allowed(problem, devices) : problem;
            if (!part) continue;
            try {
                auto result = simulates_start ? partition.only(*part, std::move(start.plan), asked, observers...)
                                              : std::optional(partition(*part, {}, rng, asked, observers...));
                if (!result) continue;
                auto& found = *result;
                add_counts(stats, found.stats);
                stats.improved += found.stats.improved;
                ended = found.ended;
                bool const fits_now = found.reason != stop_reason::nothing_feasible;
                if (!known || (fits_now == fits ? found.cost < best.found.cost : fits_now)) best = {devices, std::move(found)};
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

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/part_of_devices.ipp>
#endif
