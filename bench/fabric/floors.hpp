#pragma once
// How fast fabrics are found: the finder alone, and with strategies for them.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <parsearch/core/random.hpp>

#include "measure.hpp"

namespace bench {

// An all-reduce by all servers, others by random groups of 2 to 16 of them, and up to 400 MB / n from each server to each other.
inline fabric::demand mixed_traffic(std::uint32_t servers, std::uint64_t seed) {
    fabric::demand out(servers);
    ps::split_mix rng(seed);
    std::vector<std::uint32_t> all(servers);
    for (std::uint32_t s = 0; s < servers; ++s) all[s] = s;
    out.add_all_reduce(all, 100'000'000);
    for (std::uint32_t g = 0; g < servers / 4; ++g) {
        auto const size = 2 + ps::uniform_index(rng, 15);
        for (std::size_t i = 0; i < size; ++i) std::swap(all[i], all[i + static_cast<std::size_t>(ps::uniform_index(rng, servers - i))]);
        out.add_all_reduce(std::span<std::uint32_t const>(all.data(), size), 10'000'000);
    }
    for (std::uint32_t a = 0; a < servers; ++a)
        for (std::uint32_t b = 0; b < servers; ++b)
            if (a != b) out.add(a, b, static_cast<ps::byte_count>(ps::uniform_index(rng, 400'000'000 / servers)));
    return out;
}

// Wall time, and that of all processors together: what a loaded machine leaves of them stretches the former.
class effort_watch {
  public:
    [[nodiscard]] double seconds() const { return watch_.seconds(); }
    [[nodiscard]] double processor_seconds() const { return static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC; }

  private:
    stopwatch watch_;
    std::clock_t begin_ = std::clock();
};

inline nlohmann::json floor_of(std::string what, effort_watch const& watch, double at_most) {
    auto const seconds = watch.seconds(), processor_seconds = watch.processor_seconds();
    fmt::print("  {:<7}{:<100}{:>9.3f} s, at most {:g}; {:.3f} s of processors\n", seconds <= at_most ? "met" : "MISSED", what, seconds, at_most,
               processor_seconds);
    std::fflush(stdout);
    return {{"what", std::move(what)}, {"seconds", seconds}, {"processor_seconds", processor_seconds}, {"at_most", at_most}};
}

inline nlohmann::json finder_floor(std::uint32_t servers, std::uint32_t degree, double at_most, std::uint64_t seed) {
    auto const traffic = mixed_traffic(servers, seed);
    effort_watch const watch;
    auto const found = fabric::topology_finder(traffic, servers, degree);
    return floor_of(fmt::format("topology finder, {} servers, {} interfaces, {} links", servers, degree, found.links.size()), watch, at_most);
}

// Four chains at once, each a quarter of the proposals, from the cheapest start. Building blocks of tasks does not profit from speculation.
struct four_chains {
    std::uint64_t proposals = 0, threads = 0;
    template <class P, class R> auto operator()(P const& problem, strategy start, R& rng) const {
        auto const one = [](char const* name) {
            return ps::search::member(name, ps::search::mcmc, ps::search::mcmc_options{.problem_starts = false});
        };
        return ps::search::portfolio_of(one("first"), one("second"), one("third"),
                                        one("fourth"))(problem, cheapest_start(problem, std::move(start)).first, rng,
                                                       {.evaluations = proposals, .slice = proposals / 4, .concurrent = true, .threads = threads});
    }
};

// DLRM as for 128 servers, on these.
inline nlohmann::json co_optimization_floor(std::uint64_t rounds, std::uint64_t proposals, std::uint64_t seed, std::uint64_t threads) {
    auto const models = workloads();
    auto const& model = *std::find_if(models.begin(), models.end(), [](auto const& m) { return m.name == "dlrm_128"; });
    cell const c{.model = model, .servers = 128, .degree = 4, .gbps = 100, .wiring = "found"};
    auto row = row_of(c);
    auto const problem = problem_of(c);
    std::mt19937_64 rng(seed);
    effort_watch const watch;
    auto const found = co_optimized(problem, c, {.rounds = rounds}, four_chains{proposals, threads}, rng, row);
    auto out = floor_of(fmt::format("DLRM and a fabric, 128 servers of 4 GPUs, {} of {} rounds of {} proposals, {} threads: {:.1f} ms",
                                    row["rounds"].size(), rounds, proposals, threads, ms(found.cost)),
                        watch, 120);
    out["row"] = std::move(row);
    return out;
}

} // namespace bench
