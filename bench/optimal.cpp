// Optima of simulated makespans with proof, after the study of the FlexFlow paper (Jia, Zaharia, Aiken, MLSys 2019, section 8.4): LeNet and an
// RNNLM of two steps on 2 and 4 devices of one node. `exact` proves the optimum, from data parallelism and knowing nothing else; then `mcmc`
// looks for it from data parallelism, the expert's strategy (one weird trick) and a random strategy. Prints a table and writes the rows as JSON;
// fails where something is not proved or not found.
//
//   optimal [--seconds N] [--evaluations N] [--model NAME] [--devices N] [--discipline NAME] ...     (see --help)

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/rnnlm.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include "write_file.hpp"

namespace bench {
namespace {

namespace ps = parsearch;
using strategy = ps::space::flat_strategy;

struct request {
    double seconds = 600;
    std::uint64_t evaluations = 1'000'000, seed = 1;
    int chains = 10;
    std::vector<std::string> models;
    std::vector<std::uint32_t> devices{2, 4};
    std::vector<std::string> disciplines{"fifo"};
    std::string out = "out/bench/optimal.json";
};

// One start of `mcmc`: a chain per seed, one after the other, until one finds the optimum.
struct chain {
    std::string start;
    bool found = false;
    int chains = 0;
    std::uint64_t evaluations = 0; // of all chains, until the optimum was met
    double seconds = 0, best_ms = 0;
};

struct row {
    std::string model, discipline, placements;
    std::size_t devices = 0, operators = 0;
    double log10_space = 0, optimum_ms = 0, bound_ms = 0, root_bound_ms = 0, data_parallel_ms = 0, seconds = 0;
    std::uint64_t nodes = 0, evaluations = 0;
    bool proved = false;
    std::vector<chain> chains;

    [[nodiscard]] bool held() const {
        for (auto const& c : chains)
            if (!c.found) return false;
        return proved;
    }
};

double ms(ps::picoseconds t) { return ps::to_seconds(t) * 1e3; }

template <class P> strategy random_strategy(P const& problem, std::uint64_t seed) {
    std::mt19937_64 rng{seed};
    strategy s;
    for (std::size_t op = 0; op < problem.size(); ++op)
        s.push_back(ps::search::choice(problem.space(), op, ps::uniform_index(rng, problem.space()[op].size())));
    return s;
}

template <class P> chain run_chains(P const& problem, std::string name, strategy const& start, ps::picoseconds optimum, request const& asked) {
    chain out{.start = std::move(name)};
    auto best = problem.evaluator()(start);
    out.evaluations = 1;
    out.found = best <= optimum; // the start is optimal: nothing to look for
    for (; !out.found && out.chains < asked.chains; ++out.chains) {
        std::mt19937_64 rng{asked.seed + static_cast<std::uint64_t>(out.chains)};
        std::stop_source met;
        auto const watch = ps::search::on<ps::search::improved>([&](auto const& e) {
            if (e.cost <= optimum) met.request_stop();
        });
        if (out.chains == 0) out.evaluations = 0; // the first chain prices the start itself
        ps::search::mcmc_options options;
        options.evaluations = asked.evaluations;
        options.stop = met.get_token();
        auto const found = ps::search::mcmc(problem, start, rng, options, watch);
        out.evaluations += found.stats.evaluations;
        out.seconds += found.stats.seconds;
        best = std::min(best, found.cost);
        out.found = best <= optimum;
    }
    out.best_ms = ms(best);
    return out;
}

row study(std::string const& model, ps::graph::operator_graph const& graph, std::uint32_t devices, ps::sim::discipline discipline,
          request const& asked) {
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = devices, .device = ps::topology::p100_sxm});
    auto const problem = ps::make_problem(graph, cluster, ps::cost::roofline{cluster}, {.simulation = {.discipline = discipline}});
    row r{.model = model,
          .discipline = std::string(name_of(discipline)),
          .placements = "strided",
          .devices = devices,
          .operators = problem.size(),
          .chains = {}};
    for (std::size_t op = 0; op < problem.size(); ++op) r.log10_space += std::log10(static_cast<double>(problem.space()[op].size()));
    auto const start = ps::data_parallel(problem);
    r.data_parallel_ms = ms(problem.evaluator()(start));
    r.root_bound_ms = ms(*ps::search::root_bound<strategy>(problem));
    std::mt19937_64 rng{asked.seed};
    auto const limit = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(asked.seconds));
    ps::search::exact_options options;
    options.time = limit;
    auto const proof = ps::search::exact(problem, start, rng, options);
    r.proved = proof.ended == ps::stop_reason::proved_optimal;
    r.optimum_ms = ms(proof.cost);
    r.bound_ms = ms(*proof.lower_bound);
    r.nodes = proof.stats.nodes;
    r.evaluations = proof.stats.evaluations;
    r.seconds = proof.stats.seconds;
    r.chains.push_back(run_chains(problem, "data parallel", start, proof.cost, asked));
    r.chains.push_back(run_chains(problem, "expert", ps::one_weird_trick(problem), proof.cost, asked));
    r.chains.push_back(run_chains(problem, "random", random_strategy(problem, asked.seed), proof.cost, asked));
    return r;
}

nlohmann::json json_of(row const& r) {
    auto chains = nlohmann::json::array();
    for (auto const& c : r.chains)
        chains.push_back({{"start", c.start},
                          {"found", c.found},
                          {"chains", c.chains},
                          {"evaluations", c.evaluations},
                          {"seconds", c.seconds},
                          {"best_ms", c.best_ms}});
    return {{"model", r.model},
            {"devices", r.devices},
            {"discipline", r.discipline},
            {"placements", r.placements},
            {"operators", r.operators},
            {"log10_space", r.log10_space},
            {"optimum_ms", r.optimum_ms},
            {"lower_bound_ms", r.bound_ms},
            {"root_bound_ms", r.root_bound_ms},
            {"data_parallel_ms", r.data_parallel_ms},
            {"nodes", r.nodes},
            {"evaluations", r.evaluations},
            {"seconds", r.seconds},
            {"proved", r.proved},
            {"mcmc", std::move(chains)}};
}

void print(row const& r) {
    fmt::print("{:<6} {} devices {:<8} {} operators, 1e{:.1f} strategies: {} {:.6f} ms (bound {:.6f}, at the root {:.6f}, data parallel {:.6f}), {} "
               "nodes, {} evaluations, {:.2f} s\n",
               r.model, r.devices, r.discipline, r.operators, r.log10_space, r.proved ? "optimum" : "NOT PROVED", r.optimum_ms, r.bound_ms,
               r.root_bound_ms, r.data_parallel_ms, r.nodes, r.evaluations, r.seconds);
    for (auto const& c : r.chains)
        fmt::print("    mcmc from {:<14} {} {:.6f} ms, {} chains, {} evaluations, {:.2f} s\n", c.start, c.found ? "found" : "NOT FOUND", c.best_ms,
                   c.chains, c.evaluations, c.seconds);
    std::fflush(stdout);
}

int run(request const& asked) {
    auto rows = nlohmann::json::array();
    bool held = true;
    auto const wants = [](auto const& list, auto const& value) { return list.empty() || std::find(list.begin(), list.end(), value) != list.end(); };
    for (auto const& [name, graph] :
         {std::pair{std::string("lenet"), ps::models::lenet({})}, std::pair{std::string("rnnlm"), ps::models::rnnlm({.steps = 2})}})
        for (auto const devices : asked.devices)
            for (auto const discipline : {ps::sim::discipline::fifo, ps::sim::discipline::in_order}) {
                if (!wants(asked.models, name) || !wants(asked.disciplines, std::string(name_of(discipline)))) continue;
                auto const r = study(name, graph, devices, discipline, asked);
                print(r);
                held = held && r.held();
                rows.push_back(json_of(r));
            }
    write_rows(asked.out, rows);
    return held ? 0 : 1;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) {
    bench::request asked;
    CLI::App app{"Optima of simulated makespans, proved by exact search and looked for by mcmc."};
    app.add_option("--seconds", asked.seconds, "wall time of each proof")->check(CLI::Range(0.001, 86400.0))->capture_default_str();
    app.add_option("--evaluations", asked.evaluations, "of each chain of mcmc")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--chains", asked.chains, "of each start, one after the other until one meets the optimum")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--seed", asked.seed, "of the first chain")->capture_default_str();
    app.add_option("--model", asked.models, "lenet, rnnlm; both without")->check(CLI::IsMember({"lenet", "rnnlm"}));
    app.add_option("--devices", asked.devices, "GPUs of the node")->check(CLI::Range(1, 16))->capture_default_str();
    app.add_option("--discipline", asked.disciplines, "of resources")->check(CLI::IsMember({"fifo", "in_order"}))->capture_default_str();
    app.add_option("--out", asked.out, "JSON file of the rows")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        return bench::run(asked);
    } catch (std::exception const& e) {
        fmt::print(stderr, "optimal: {}\n", e.what());
        return 2;
    }
}
