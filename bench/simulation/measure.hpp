#pragma once
/// Clocks: of a chain, of a full pass, of building a task graph, of a proposal before it is simulated.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/search/mcmc.hpp>
#include <parsearch/sim/task/assemble.hpp>

#include "proposals.hpp"
#include "rows.hpp"

namespace bench {

inline double quantile(std::vector<double>& values, double part) {
    auto const at = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}
inline double median(std::vector<double>& values) { return quantile(values, 0.5); }

// What `f(i)` answers for i = 0, 1, ..., for some time and at least so often.
template <class F> auto repeat(double seconds, std::size_t at_least, F const& f) {
    std::vector<decltype(f(std::size_t{}))> out;
    auto const end = steady::now() + duration_of(seconds);
    while (out.size() < at_least || steady::now() < end) out.push_back(f(out.size()));
    return out;
}

// The clock of one chain: it starts after the warm-up, and stops the chain when its time is up.
class chain_clock {
  public:
    std::vector<double> latency_us; // of each proposal measured, kept or dropped
    std::uint64_t accepted = 0;
    steady::time_point first, last; // of what is measured
    std::stop_source stop;

    explicit chain_clock(double seconds) : seconds_(seconds) {}

    void begin() {
        began_ = steady::now();
        if (begun_++ == 0) {
            first = began_;
            latency_us.reserve(std::size_t{1} << 16);
        }
        if (!warm_ && begun_ > 1 && began_ - first >= duration_of(seconds_ / 4)) {
            warm_ = true;
            first = began_;
        }
    }
    void end(bool kept) {
        last = steady::now();
        if (!warm_) return;
        latency_us.push_back(microseconds(last - began_));
        accepted += kept;
        if (last - first >= duration_of(seconds_) && latency_us.size() >= at_least) stop.request_stop();
    }

  private:
    static constexpr std::size_t at_least = 12; // however slow they are
    double seconds_;
    steady::time_point began_;
    std::uint64_t begun_ = 0;
    bool warm_ = false;
};

// An evaluator on the clock. Without `abort` every proposal is priced to its end, whatever its bound.
template <class E> class clocked_evaluator {
  public:
    clocked_evaluator(E evaluator, chain_clock& clock, bool abort) : evaluator_(std::move(evaluator)), clock_(&clock), abort_(abort) {}

    ps::picoseconds operator()(strategy const& s) { return evaluator_(s); }
    ps::picoseconds reset(strategy const& s) { return evaluator_.reset(s); }
    std::optional<ps::picoseconds> propose(std::span<ps::change<configuration> const> changes, ps::picoseconds bound) {
        clock_->begin();
        if (abort_) return evaluator_.propose(changes, bound);
        auto cost = evaluator_.propose(changes, ps::picoseconds::max());
        if (cost && *cost > bound) cost.reset();
        return cost;
    }
    void commit() {
        evaluator_.commit();
        clock_->end(true);
    }
    void roll_back() {
        evaluator_.roll_back();
        clock_->end(false);
    }

  private:
    E evaluator_;
    chain_clock* clock_;
    bool abort_;
};

// `P` with its evaluator on the clock.
template <class P> struct clocked_problem {
    P const* problem;
    chain_clock* clock;
    bool abort;

    [[nodiscard]] auto const& space() const { return problem->space(); }
    [[nodiscard]] auto evaluator() const { return clocked_evaluator(problem->evaluator(), *clock, abort); }
    [[nodiscard]] auto moves() const { return problem->moves(); }
};

// The simulator that prices whole strategies.
template <class P> auto full_simulator(P const& problem) {
    if constexpr (requires { problem.simulator(); }) return problem.simulator();
    else return problem.evaluator();
}

struct pass_figures {
    double tasks = 0; // on average
    double us = 0;    // the median
    double ns_per_task = 0;
};

// The delta simulator's pass over the whole task graph with no help from what it knows, strategies in turn.
template <class P> pass_figures full_pass(P const& problem, std::vector<strategy> const& strategies, double seconds) {
    auto simulator = problem.evaluator();
    double tasks = 0, sum = 0;
    std::vector<double> all;
    repeat(seconds, strategies.size(), [&](std::size_t i) {
        simulator.reset(strategies[i % strategies.size()]);
        auto const size = static_cast<double>(simulator.scheduled_tasks());
        // The first pass after a change finds its buffers cold, so both count.
        for (int n = 0; n < 2; ++n) {
            auto const begin = steady::now();
            simulator.simulate_whole();
            all.push_back(microseconds(steady::now() - begin));
            tasks += size;
            sum += all.back();
        }
        return 0;
    });
    auto const n = static_cast<double>(all.size());
    return {.tasks = tasks / n, .us = median(all), .ns_per_task = 1e3 * sum / tasks};
}

// Building the task graph anew from its plan, the median.
template <class P> double rebuild_us(P const& problem, std::vector<strategy> const& strategies, double seconds) {
    auto simulator = full_simulator(problem);
    auto const& w = simulator.input();
    ps::sim::assembler assembler(w.graph, w.topology.kind, static_cast<std::uint32_t>(w.topology.links.size()));
    ps::sim::task_graph tasks;
    auto us = repeat(seconds, strategies.size() + 1, [&](std::size_t i) {
        simulator.simulate(strategies[i % strategies.size()]);
        auto const begin = steady::now();
        assembler.run(simulator.plan(), w.options.training, w.options.overlap, tasks);
        return microseconds(steady::now() - begin);
    });
    return median(us);
}

// What a proposal costs before it is simulated, the median: nothing is below a bound of 0, so that only its plan is made and undone.
template <class P> double patch_us(P const& problem, strategy const& start, double seconds, std::mt19937_64 rng) {
    auto evaluator = problem.evaluator();
    evaluator.reset(start);
    auto mix = ps::search::moves_of(problem);
    std::vector<ps::change<configuration>> changes;
    auto us = repeat(seconds, 16, [&](std::size_t) {
        do changes.clear();
        while (!mix(problem.space(), start, rng, changes) || changes_nothing(start, changes));
        auto const begin = steady::now();
        (void)evaluator.propose(changes, ps::picoseconds::zero());
        evaluator.roll_back();
        return microseconds(steady::now() - begin);
    });
    return median(us);
}

// Chains in parallel, one per thread: fills in the row's figures of proposals.
template <class P> void run_chains(P const& problem, strategy const& start, std::optional<double> temperature, request const& asked, row& r) {
    std::vector<chain_clock> clocks;
    for (unsigned i = 0; i < r.threads; ++i) clocks.emplace_back(asked.seconds);
    std::vector<std::future<void>> chains;
    for (unsigned i = 0; i < r.threads; ++i)
        chains.push_back(std::async(std::launch::async, [&, i] {
            std::mt19937_64 rng{asked.seed + i};
            ps::search::mcmc_options options;
            options.stop = clocks[i].stop.get_token();
            options.temperature = temperature;
            (void)ps::search::mcmc(clocked_problem<P>{&problem, &clocks[i], r.abort}, start, rng, options);
        }));
    for (auto& chain : chains) chain.get();
    std::vector<double> us;
    double per_second = 0;
    r.accepted = 0;
    for (auto const& c : clocks) {
        if (c.latency_us.empty()) continue;
        us.insert(us.end(), c.latency_us.begin(), c.latency_us.end());
        per_second += static_cast<double>(c.latency_us.size()) / std::chrono::duration<double>(c.last - c.first).count();
        *r.accepted += c.accepted;
    }
    r.evaluations = us.size();
    if (us.empty()) return;
    r.proposals_per_s = per_second;
    r.delta_us_mean = std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size());
    r.delta_us_p90 = quantile(us, 0.9);
    r.delta_us_median = median(us);
    r.delta_over_full_median = *r.delta_us_median / r.full_us;
}

} // namespace bench
