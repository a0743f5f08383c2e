// How fast graphs are priced by their best parallelization under an additive cost (rewrite::graph_pricer), and how good it is when it is simulated:
// the networks of Unger et al. (Unity, OSDI 2022) on Summit, weak scaling. Per network and number of GPUs: seconds of the first price, of the same
// again and of the graph with one operator changed; simulated iteration times of what is found with several ways to count synchronisation, of data
// parallelism, of the best of the experts and of what mcmc finds in some seconds. Memory is left out of the times, as tables of recommendation models
// fit nowhere under data parallelism; the last columns say what is found within the memory of a GPU. Prints a table and writes the rows as JSON.
//
//   pricing [--model NAME] [--devices N] [--seconds N] ...     (see --help)

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/joint/graph_pricer.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include "guarded.hpp"
#include "unity_networks.hpp"

namespace bench {
namespace {

namespace ps = parsearch;

struct request {
    double seconds = 10;
    std::uint64_t seed = 1;
    std::vector<std::string> models{unity_networks.begin(), unity_networks.end()};
    std::vector<std::uint32_t> devices{6, 24, 96, 192};
    std::string out = "out/bench/pricing.json";
};

double ms(ps::picoseconds t) { return ps::to_seconds(t) * 1e3; }

template <class F> double seconds_of(F const& f) {
    auto const begin = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The graph with one operator of twice the weights and work: the one with weights that is in the middle.
ps::graph::dense_graph changed(ps::graph::dense_graph g) {
    std::vector<std::size_t> weighted;
    for (auto const op : g.order)
        if (auto const& o = g.operations[op];
            !o.weights.empty() && (o.work == ps::ops::work_class::matmul || o.work == ps::ops::work_class::convolution))
            weighted.push_back(op);
    auto& o = g.operations[weighted.at(weighted.size() / 2)];
    auto& w = o.weights.front();
    w.axes.insert(w.axes.begin(), {.extent = 2});
    w.parameter.clear();
    w.gradient_flops *= 2;
    for (auto& in : o.inputs) in.gradient_flops *= 2;
    o.flops *= 2;
    o.multiply_adds *= 2;
    return ps::graph::read_graph(g).graph;
}

nlohmann::json measure(std::string const& model, std::uint32_t gpus, request const& asked) {
    auto const cluster = ps::topology::summit(gpus / 6);
    auto const problem = ps::make_problem(unity_network(model, gpus), cluster, ps::cost::roofline{cluster},
                                          {.simulation = {.memory = ps::sim::memory_policy::ignore}});
    auto const& g = problem.graph();
    auto const capacity = problem.topology().devices.front().memory;
    nlohmann::json row{{"model", model}, {"devices", gpus}, {"operators", g.size()}};

    ps::rewrite::graph_pricer pricer(problem);
    row["first_seconds"] = seconds_of([&] { (void)pricer.price(g); });
    auto const made = pricer.tables_made();
    row["tables"] = made;
    row["table_bytes"] = pricer.remembered();
    double again = std::numeric_limits<double>::infinity();
    for (int n = 0; n < 10; ++n) again = std::min(again, seconds_of([&] { (void)pricer.price(g); }));
    row["again_seconds"] = again;
    auto const other = changed(g);
    row["changed_seconds"] = seconds_of([&] { (void)pricer.price(other); });
    row["changed_tables"] = pricer.tables_made() - made;
    row["with_graph_seconds"] = seconds_of([&] { (void)ps::with_graph(problem, other); });

    auto evaluate = problem.simulator();
    auto const fits = [&](ps::space::flat_strategy const& s) {
        return ps::sim::most_memory(ps::sim::memory_by_device(g, problem.workload()->classes, gpus, problem.options(), s)) <= capacity;
    };
    auto best = ps::picoseconds::max();
    for (auto const& counting : ps::rewrite::usual_countings) {
        auto const found = pricer.price(g, counting);
        auto const simulated = evaluate(found.strategy);
        row["found"].push_back({{"share", counting.share},
                                {"first", counting.first},
                                {"cost_ms", ms(found.cost)},
                                {"lower_bound_ms", ms(found.lower_bound)},
                                {"optimal", found.optimal},
                                {"simulated_ms", ms(simulated)},
                                {"fits", fits(found.strategy)}});
        best = std::min(best, simulated);
    }
    row["found_ms"] = ms(best);
    auto expert = ps::picoseconds::max();
    for (auto const& start : problem.named_starts()) {
        auto const t = evaluate(start.strategy);
        row["experts"].push_back({{"name", start.name}, {"simulated_ms", ms(t)}, {"fits", fits(start.strategy)}});
        if (start.name == "data_parallel") row["data_parallel_ms"] = ms(t);
        if (t < expert) row["expert"] = start.name;
        expert = std::min(expert, t);
    }
    row["expert_ms"] = ms(expert);

    std::mt19937_64 rng{asked.seed};
    ps::search::mcmc_options options;
    options.time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(asked.seconds));
    auto const walked = ps::search::mcmc(problem, ps::data_parallel(problem), rng, options);
    row["mcmc_ms"] = ms(walked.cost);
    row["mcmc_seconds"] = walked.stats.seconds;

    ps::rewrite::graph_pricer limited(problem, {.memory_limit = capacity});
    auto within = ps::picoseconds::max();
    bool any = false;
    row["limited_first_seconds"] = seconds_of([&] { (void)limited.price(g); });
    row["limited_again_seconds"] = seconds_of([&] { (void)limited.price(g); });
    for (auto const& counting : ps::rewrite::usual_countings)
        if (auto const found = limited.price(g, counting); found.fits) {
            within = std::min(within, evaluate(found.strategy));
            any = true;
        }
    row["limited_ms"] = any ? nlohmann::json(ms(within)) : nlohmann::json(nullptr);
    auto fitting = ps::picoseconds::max();
    for (auto const& start : problem.named_starts())
        if (fits(start.strategy)) fitting = std::min(fitting, evaluate(start.strategy));
    row["limited_expert_ms"] = fitting == ps::picoseconds::max() ? nlohmann::json(nullptr) : nlohmann::json(ms(fitting));
    return row;
}

void print_head() {
    fmt::print("{:<13}{:>5}{:>6}{:>9}{:>10}{:>11}{:>8}{:>9} |{:>11}{:>11}{:>11}{:>11}  {:<18} |{:>11}{:>11}\n", "model", "GPUs", "ops", "first s",
               "again ms", "changed ms", "tables", "KiB", "found ms", "data ms", "expert ms", "mcmc ms", "expert", "within", "expert");
}
void print(nlohmann::json const& r) {
    auto const number = [](nlohmann::json const& v) { return v.is_null() ? std::string("-") : fmt::format("{:.3f}", v.get<double>()); };
    fmt::print("{:<13}{:>5}{:>6}{:>9.3f}{:>10.2f}{:>11.2f}{:>8}{:>9.0f} |{:>11}{:>11}{:>11}{:>11}  {:<18} |{:>11}{:>11}\n",
               r["model"].get<std::string>(), r["devices"].get<int>(), r["operators"].get<int>(), r["first_seconds"].get<double>(),
               r["again_seconds"].get<double>() * 1e3, r["changed_seconds"].get<double>() * 1e3, r["tables"].get<int>(),
               r["table_bytes"].get<double>() / 1024, number(r["found_ms"]), number(r["data_parallel_ms"]), number(r["expert_ms"]),
               number(r["mcmc_ms"]), r["expert"].get<std::string>(), number(r["limited_ms"]), number(r["limited_expert_ms"]));
    std::fflush(stdout);
}

int run(int argc, char** argv) {
    request asked;
    CLI::App app{"Measures how fast graphs are priced, and what the strategies found are worth when simulated."};
    add_network_options(app, asked);
    app.add_option("--seconds", asked.seconds, "of each mcmc search")->capture_default_str()->check(CLI::NonNegativeNumber);
    app.add_option("--seed", asked.seed, "of mcmc")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    print_head();
    measure_networks(
        asked.models, asked.devices, asked.out, [&](std::string const& model, std::uint32_t gpus) { return measure(model, gpus, asked); }, print);
    return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
