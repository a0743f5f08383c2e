// How long the search takes until its final strategy, with every proposal simulated anew and with the delta simulator, after table 4 of the FlexFlow
// paper (Jia, Zaharia, Aiken, MLSys 2019): its six networks on nodes of four P100. Both runs are the same seeded search by mcmc, and must end with
// the same strategy, cost and trajectory: exits with 1 where they do not. Beside what mcmc finds: data parallelism, the best of the experts, the
// layer-wise dynamic program over an additive cost, and a policy gradient. Says what it finds and writes the rows as JSON.
//
//   search_time [--evaluations N] [--network NAME] [--devices N] ...     (see --help)

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include "flexflow_networks.hpp"
#include "guarded.hpp"
#include "search_time/policy_gradient.hpp"
#include "seconds_since.hpp"
#include "write_file.hpp"

namespace bench {
namespace {

using strategy = ps::space::flat_strategy;

struct request {
    std::uint64_t evaluations = 1500, seed = 42;
    std::size_t candidates = 24;
    std::vector<std::string> networks;
    std::vector<std::uint32_t> devices{4, 16, 64};
    std::uint32_t learning = 16; // most devices of the policy gradient: each of its strategies is new from end to end
    std::string out = "out/bench/search_time.json";
};

// The same problem, every strategy priced by a full simulation.
struct fully_simulated : ps::parallelization {
    [[nodiscard]] ps::sim::simulator evaluator() const { return simulator(); }
};

struct timed_search {
    ps::search_result<strategy, ps::picoseconds> found;
    double seconds_to_final = 0;
    std::uint64_t evaluations_to_final = 0;

    [[nodiscard]] bool same_as(timed_search const& other) const {
        return found.best == other.found.best && found.cost == other.found.cost && found.stats.trajectory == other.found.stats.trajectory;
    }
    [[nodiscard]] nlohmann::json json() const {
        return {{"seconds_to_final", seconds_to_final},
                {"seconds", found.stats.seconds},
                {"proposals_per_s", static_cast<double>(found.stats.proposals) / found.stats.seconds}};
    }
};

template <class P> timed_search timed_mcmc(P const& problem, strategy const& start, request const& asked) {
    ps::search::mcmc_options options;
    options.evaluations = asked.evaluations;
    std::mt19937_64 rng{asked.seed};
    double seconds = 0;
    std::uint64_t evaluations = 0;
    auto const begin = std::chrono::steady_clock::now();
    auto found = ps::search::mcmc(problem, start, rng, options, ps::search::on<ps::search::improved>([&](auto const& e) {
                                      seconds = seconds_since(begin);
                                      evaluations = e.evaluation;
                                  }));
    return {std::move(found), seconds, evaluations};
}

// What a strategy takes, simulated whole; null where it does not fit the memory.
nlohmann::json simulated_ms(ps::parallelization const& problem, strategy const& s) {
    if (!problem.feasible(s)) return nullptr;
    return ps::to_seconds(problem.simulator()(s)) * 1e3;
}

struct rows {
    nlohmann::json times = nlohmann::json::array(), strategies = nlohmann::json::array();
    bool same = true; // both simulators made the same search in every row
};

void measure(flexflow_network const& net, std::uint32_t devices, request const& asked, rows& out) {
    auto const cluster = ps::topology::p100_cluster(devices / 4);
    auto const problem =
        ps::make_problem(net.make(net.batch_per_device * devices), cluster, ps::cost::roofline{cluster}, {.simulation = as_flexflow_does});
    auto const start = ps::data_parallel(problem);

    auto const delta = timed_mcmc(problem, start, asked);
    auto const full = timed_mcmc(fully_simulated{problem}, start, asked);
    bool const same = full.same_as(delta);
    out.same = out.same && same;
    nlohmann::json time{{"network", net.name},
                        {"devices", devices},
                        {"operators", problem.size()},
                        {"evaluations", delta.found.stats.evaluations},
                        {"evaluations_to_final", delta.evaluations_to_final},
                        {"full", full.json()},
                        {"delta", delta.json()},
                        {"same", same}};
    fmt::print("{:<13}{:>4} devices: {} evaluations, the last improvement at {}: full {:.2f} of {:.2f} s, delta {:.2f} of {:.2f} s{}\n", net.name,
               devices, delta.found.stats.evaluations, delta.evaluations_to_final, full.seconds_to_final, full.found.stats.seconds,
               delta.seconds_to_final, delta.found.stats.seconds, same ? "" : ": NOT THE SAME SEARCH");
    std::fflush(stdout);
    out.times.push_back(std::move(time));

    auto evaluate = problem.evaluator();
    auto expert = start;
    for (auto const& s : problem.starts())
        if (evaluate(s) < evaluate(expert)) expert = s;
    std::mt19937_64 rng{asked.seed};
    auto const begin = std::chrono::steady_clock::now();
    auto const layerwise = ps::search::dominator_dp(problem.surrogate(asked.candidates), start, rng);
    auto const layerwise_seconds = seconds_since(begin);
    nlohmann::json found{{"network", net.name},
                         {"devices", devices},
                         {"data_parallel_ms", simulated_ms(problem, start)},
                         {"expert_ms", simulated_ms(problem, expert)},
                         {"layerwise_ms", simulated_ms(problem, layerwise.best)},
                         {"layerwise_proved", layerwise.reason == ps::stop_reason::proved_optimal},
                         {"layerwise_seconds", layerwise_seconds},
                         {"mcmc_ms", simulated_ms(problem, delta.found.best)}};
    if (devices <= asked.learning) {
        auto const learned = policy_gradient(problem, start, alike_operators(problem), rng, {.evaluations = asked.evaluations});
        found["policy_gradient_ms"] = simulated_ms(problem, learned.best);
        found["policy_gradient_seconds"] = learned.stats.seconds;
    }
    auto const shown = [&](char const* key) { return found.contains(key) ? found[key].dump() : "-"; };
    fmt::print("    ms: data parallel {}, expert {}, layer-wise {}, policy gradient {}, mcmc {}\n", shown("data_parallel_ms"), shown("expert_ms"),
               shown("layerwise_ms"), shown("policy_gradient_ms"), shown("mcmc_ms"));
    std::fflush(stdout);
    out.strategies.push_back(std::move(found));
}

// A check of CLI11: four GPUs make a node.
std::string whole_nodes(std::string const& given) {
    auto const n = CLI::Range(4, 1024)(given);
    return !n.empty() ? n : std::stoul(given) % 4 != 0 ? std::string("must be a multiple of 4") : std::string();
}

int run(int argc, char** argv) {
    auto const networks = flexflow_networks();
    std::vector<std::string> names;
    for (auto const& net : networks) names.emplace_back(net.name);
    request asked;
    CLI::App app{"Measures how long searches take until their final strategy with full and with delta simulation, and compares what searches find."};
    app.add_option("--evaluations", asked.evaluations, "of each search")->check(CLI::Range(2, 1000000000))->capture_default_str();
    app.add_option("--seed", asked.seed, "of all draws")->capture_default_str();
    app.add_option("--candidates", asked.candidates, "configurations per operator of the layer-wise search")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--network", asked.networks, "only these")->check(CLI::IsMember(names));
    app.add_option("--devices", asked.devices, "numbers of P100, multiples of 4")->capture_default_str()->check(whole_nodes);
    app.add_option("--learning", asked.learning, "most devices on which a policy gradient is tried: it is slow on many")->capture_default_str();
    app.add_option("--out", asked.out, "the rows, as JSON")->capture_default_str()->take_last();
    CLI11_PARSE(app, argc, argv);
    rows out;
    for (auto const& net : networks)
        for (auto const devices : asked.devices) {
            if (!asked.networks.empty() && std::ranges::find(asked.networks, net.name) == asked.networks.end()) continue;
            measure(net, devices, asked, out);
            write_rows(asked.out, nlohmann::json{{"times", out.times}, {"strategies", out.strategies}});
        }
    if (!out.same) fmt::print(stderr, "error: full and delta simulation did not make the same search\n");
    return out.same ? 0 : 1;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
