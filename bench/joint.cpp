// What deciding operators and their parallelization together is worth: the networks of Unger et al. (Unity, OSDI 2022) on Summit, weak scaling. Per
// network and number of GPUs, simulated iteration times of data parallelism, of the best of the experts, of the best parallelization of the network
// as it is, of that of the network rewritten first for one device, and of the joint search, without machine mapping and with it; whether what it
// found is of machine mapping, its seconds and those without it, and how many graphs it priced. Memory is left out, as tables of recommendation
// models fit nowhere under data parallelism. Prints a table and writes the rows as JSON.
//
//   joint [--model NAME] [--devices N] ...     (see --help)

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/joint/joint.hpp>
#include <parsearch/rewrite/joint/joint_pipeline.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>
#include <parsearch/topology/nodes.hpp>

#include "guarded.hpp"
#include "unity_networks.hpp"

namespace bench {
namespace {

namespace ps = parsearch;

struct request {
    std::uint64_t seed = 1;
    ps::space::space_options space{};
    std::vector<std::string> models{unity_networks.begin(), unity_networks.end()};
    std::vector<std::uint32_t> devices{6, 24, 96, 192};
    std::string out = "out/bench/joint.json";
    bool pipeline = false;
};

// Over the best system before, on up to 192 V100 (Unity, section 7): throughput, and the minutes that its search took at most there.
std::map<std::string, std::pair<double, double>> const published{{"inception_v3", {1.3, 20}}, {"resnext50", {1.0, 10}},  {"bert_large", {1.0, 10}},
                                                                 {"dlrm", {3.6, 10}},         {"candle_uno", {1.6, 10}}, {"xdl", {1.9, 10}},
                                                                 {"mlp", {2.0, 10}}};

double ms(ps::picoseconds t) { return ps::to_seconds(t) * 1e3; }

nlohmann::json measure(std::string const& model, std::uint32_t gpus, request const& asked) {
    auto const cluster = ps::topology::summit(gpus / 6);
    auto const problem = ps::make_problem(unity_network(model, gpus), cluster, ps::cost::roofline{cluster},
                                          {.space = asked.space, .simulation = {.memory = ps::sim::memory_policy::ignore}});
    nlohmann::json row{{"model", model}, {"devices", gpus}, {"operators", problem.graph().size()}};
    auto evaluate = problem.simulator();
    auto expert = ps::picoseconds::max();
    for (auto const& start : problem.named_starts()) {
        auto const t = evaluate(start.strategy);
        if (start.name == "data_parallel") row["data_parallel_ms"] = ms(t);
        if (t < expert) row["expert"] = start.name;
        expert = std::min(expert, t);
    }
    row["expert_ms"] = ms(expert);

    auto const rules = ps::rewrite::algebraic_rules();
    auto const parallelized = [&](auto const& p) {
        std::mt19937_64 rng(asked.seed);
        return ps::rewrite::joint(p, {}, rng).cost;
    };
    row["parallelized_ms"] = ms(parallelized(problem));
    auto const first = ps::rewrite::rewritten_first(problem, {.rules = rules}).problem;
    row["rewritten_ms"] = ms(first.evaluator()(ps::data_parallel(first)));
    row["sequential_ms"] = ms(parallelized(first));
    std::uint64_t graphs = 0;
    std::mt19937_64 rng(asked.seed), same(asked.seed);
    auto const unmapped = ps::rewrite::joint(problem, {}, same, {.rules = rules, .mapping_views = 0});
    row["unmapped_ms"] = ms(unmapped.cost);
    row["unmapped_seconds"] = unmapped.stats.seconds;
    auto const found = ps::rewrite::joint(problem, {}, rng, {.rules = rules}, [&](ps::rewrite::rewritten_graph const&) { ++graphs; });
    row["joint_ms"] = ms(found.cost);
    row["bound_ms"] = ms(found.best.bound.value());
    row["mapped"] = found.best.mapped;
    row["not_mapped"] = found.best.not_mapped;
    row["seconds"] = found.stats.seconds;
    row["graphs"] = graphs;
    row["evaluations"] = found.stats.evaluations;
    row["rewritten_operators"] = found.best.operators.size();
    row["applied"] = found.best.applied;
    if (asked.pipeline) {
        std::mt19937_64 again(asked.seed);
        auto const whole = ps::rewrite::joint_pipeline(problem, {}, again, {.joint = {.rules = rules}});
        row["pipelined_ms"] = ms(whole.cost);
        row["pipelined_seconds"] = whole.stats.seconds;
        row["stages"] = whole.best.pipeline ? whole.best.pipeline->how.stages : 1;
        row["micro_batches"] = whole.best.pipeline ? whole.best.pipeline->how.micro_batches : 1;
    }
    auto const& [speedup, minutes] = published.at(model);
    row["published_speedup"] = speedup;
    row["published_minutes"] = minutes;
    return row;
}

void print_head() {
    fmt::print("{:<13}{:>5}{:>6}{:>6} |{:>11}{:>11}{:>11}{:>11}{:>12}{:>11}{:>11}{:>7} |{:>8}{:>8}{:>8} |{:>8}{:>8}{:>8} |{:>7}{:>7}\n", "model",
               "GPUs", "ops", "after", "data ms", "expert ms", "plain ms", "first ms", "unmapped ms", "joint ms", "bound ms", "mapped", "/data",
               "/expert", "/first", "graphs", "s", "unmap. s", "paper", "min");
}
void print(nlohmann::json const& r) {
    auto const of = [&](char const* key) { return r[key].get<double>(); };
    double const joint = of("joint_ms");
    fmt::print("{:<13}{:>5}{:>6}{:>6} |{:>11.3f}{:>11.3f}{:>11.3f}{:>11.3f}{:>12.3f}{:>11.3f}{:>11.3f}{:>7} |{:>7.2f}x{:>7.2f}x{:>7.2f}x "
               "|{:>8}{:>8.2f}{:>8.2f} |{:>6.1f}x{:>7.0f}\n",
               r["model"].get<std::string>(), r["devices"].get<int>(), r["operators"].get<int>(), r["rewritten_operators"].get<int>(),
               of("data_parallel_ms"), of("expert_ms"), of("parallelized_ms"), of("sequential_ms"), of("unmapped_ms"), joint, of("bound_ms"),
               r["mapped"].get<bool>() ? "yes" : "no", of("data_parallel_ms") / joint, of("expert_ms") / joint, of("sequential_ms") / joint,
               r["graphs"].get<int>(), of("seconds"), of("unmapped_seconds"), of("published_speedup"), of("published_minutes"));
    if (r.contains("pipelined_ms"))
        fmt::print("{:>24} with a pipeline of {} stages, {} micro-batches: {:.3f} ms, {:.2f}x data parallelism; {:.1f} s\n", "",
                   r["stages"].get<int>(), r["micro_batches"].get<int>(), of("pipelined_ms"), of("data_parallel_ms") / of("pipelined_ms"),
                   of("pipelined_seconds"));
    std::fflush(stdout);
}

int run(int argc, char** argv) {
    request asked;
    CLI::App app{"Measures what deciding operators and their parallelization together is worth."};
    add_network_options(app, asked);
    app.add_option("--seed", asked.seed, "of the search")->capture_default_str();
    app.add_option("--copies", asked.space.copies, "in which operators may run")->capture_default_str();
    app.add_option("--sums", asked.space.sums, "partial sums on which linear operators may run")->capture_default_str();
    app.add_flag("--pipeline", asked.pipeline, "searches pipelines as well");
    CLI11_PARSE(app, argc, argv);
    print_head();
    measure_networks(
        asked.models, asked.devices, asked.out, [&](std::string const& model, std::uint32_t gpus) { return measure(model, gpus, asked); }, print);
    return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
