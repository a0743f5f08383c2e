// What pipelines are worth: networks that fit their devices and networks that do not. Per network, simulated iteration times of the best expert's
// strategy that fits; with the optimizer's state shared and activations computed again; with micro-batches, whose gradients add up; and with stages.
// Beside them how the best runs, how idle it leaves its devices, its fullest device, and the seconds of the search. Prints a table and writes the
// rows as JSON.
//
//   pipeline [--network NAME] ...     (see --help)

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/bert.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/models/vgg.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "guarded.hpp"
#include "write_file.hpp"

namespace bench {
namespace {

namespace ps = parsearch;
namespace models = parsearch::models;

struct workload {
    std::string name, machine;
    std::function<ps::topology::cluster()> cluster;
    std::function<ps::graph::operator_graph()> network;
};

ps::graph::operator_graph gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t sequence, std::int64_t batch) {
    return models::gpt(
        {.layers = layers, .hidden = hidden, .heads = heads, .sequence = sequence, .vocabulary = 51200, .batch = batch, .type = ps::ops::dtype::f16});
}

// Nodes of four V100 with one interface of 10 Gb/s each.
ps::topology::cluster slow_network() {
    return ps::topology::nodes(
        {.count = 4, .gpus_per_node = 4, .device = ps::topology::v100_sxm, .nic = ps::link_description{{1.25e9}, std::chrono::microseconds(10)}});
}

// GPT sizes: Radford et al., 2019 (1.5 billion parameters), Brown et al., 2020 (6.7), Narayanan et al., SC 2021, table 1 (18 and 39).
std::vector<workload> const workloads{
    {"resnet50", "2x8 H100", [] { return ps::topology::dgx_h100(2); }, [] { return models::resnet({.batch = 1024}); }},
    {"vgg16", "2x6 V100", [] { return ps::topology::summit(2); }, [] { return models::vgg({.batch = 768}); }},
    {"bert_large", "2x6 V100", [] { return ps::topology::summit(2); }, [] { return models::bert({.batch = 192, .type = ps::ops::dtype::f16}); }},
    {"bert_large", "4x4, 10G", slow_network, [] { return models::bert({.batch = 256, .type = ps::ops::dtype::f16}); }},
    {"gpt_1.5b", "4x4, 10G", slow_network, [] { return gpt(48, 1600, 25, 1024, 128); }},
    {"gpt_1.5b", "2x6 V100", [] { return ps::topology::summit(2); }, [] { return gpt(48, 1600, 25, 1024, 96); }},
    {"gpt_1.5b", "8x6 V100", [] { return ps::topology::summit(8); }, [] { return gpt(48, 1600, 25, 1024, 384); }},
    {"gpt_6.7b", "1x8 H100", [] { return ps::topology::dgx_h100(1); }, [] { return gpt(32, 4096, 32, 2048, 64); }},
    {"gpt_6.7b", "8x6 V100", [] { return ps::topology::summit(8); }, [] { return gpt(32, 4096, 32, 2048, 192); }},
    {"gpt_18b", "4x8 A100", [] { return ps::topology::dgx_a100(4); }, [] { return gpt(40, 6144, 48, 2048, 256); }},
    {"gpt_39b", "8x8 A100", [] { return ps::topology::dgx_a100(8); }, [] { return gpt(48, 8192, 64, 2048, 256); }},
};

struct request {
    std::vector<std::string> networks{};
    double time = 0;
    std::string out = "out/bench/pipeline.json";
};

nlohmann::json ms(ps::picoseconds t) {
    return t == ps::cost_traits<ps::picoseconds>::infinity() ? nlohmann::json() : nlohmann::json(ps::to_seconds(t) * 1e3);
}

nlohmann::json measure(workload const& w, request const& asked) {
    auto const cluster = w.cluster();
    auto const problem = ps::make_problem(w.network(), cluster, ps::cost::roofline{cluster},
                                          {.simulation = {.optimizer = ps::sim::optimizer::adam, .memory = ps::sim::memory_policy::reject}});
    nlohmann::json row{{"network", w.name}, {"machine", w.machine}, {"devices", problem.topology().size()}, {"operators", problem.graph().size()}};
    auto const limited = [&](std::uint64_t stages, std::uint64_t micro_batches, bool frugal) {
        ps::pipeline::partition_options o{
            .max_stages = stages, .max_micro_batches = micro_batches, .recomputation = frugal, .sharded_optimizer = frugal};
        if (asked.time > 0) o.time = std::chrono::nanoseconds(static_cast<std::int64_t>(asked.time * 1e9));
        std::mt19937_64 unused;
        return ps::pipeline::partition(problem, {}, unused, o);
    };
    row["expert_ms"] = ms(limited(1, 1, false).cost);
    row["frugal_ms"] = ms(limited(1, 1, true).cost);
    row["micro_batches_ms"] = ms(limited(1, 64, true).cost);
    auto const found = limited(64, 64, true);
    auto const& how = found.best.how;
    row["pipeline_ms"] = ms(found.cost);
    row["seconds"] = found.stats.seconds;
    row["simulated"] = found.stats.evaluations;
    row["stages"] = how.stages;
    row["interleaved"] = how.interleaved;
    row["micro_batches"] = how.micro_batches;
    row["order"] = name_of(how.order);
    row["segments"] = how.segment.empty() ? 1 : 1 + *std::max_element(how.segment.begin(), how.segment.end());
    row["recomputing_stages"] = std::count(how.recompute.begin(), how.recompute.end(), true);
    row["sharded_optimizer"] = how.sharded >= ps::pipeline::sharded_states::optimizer;
    row["tensor_parallel"] = found.best.tensor_parallel;
    auto const simulated = simulate(problem, found.best);
    row["idle_share"] = simulated.idle_share();
    row["tasks"] = simulated.tasks.size();
    row["fullest_bytes"] = simulated.peak_memory();
    return row;
}

// Milliseconds, or that nothing fits.
std::string shown(nlohmann::json const& time) { return time.is_null() ? "none fits" : fmt::format("{:.1f}", time.get<double>()); }

void print_head() {
    fmt::print("{:<12}{:<10}{:>5} |{:>11}{:>11}{:>11}{:>11} |{:>7}{:>6}{:>7}{:>8}{:>9}{:>8} |{:>6}{:>7}{:>10}{:>8}\n", "network", "machine", "ops",
               "expert ms", "frugal ms", "micro ms", "stages ms", "stages", "micro", "order", "tensor", "computes", "sharded", "idle", "GB",
               "simulated", "s");
}
void print(nlohmann::json const& r) {
    auto const& tensor = r["tensor_parallel"];
    auto const degrees = std::minmax_element(tensor.begin(), tensor.end());
    auto const shown_degrees = tensor.empty()                      ? "-"
                               : *degrees.first == *degrees.second ? degrees.first->dump()
                                                                   : fmt::format("{}-{}", degrees.first->dump(), degrees.second->dump());
    fmt::print("{:<12}{:<10}{:>5} |{:>11}{:>11}{:>11}{:>11} |{:>7}{:>6}{:>7}{:>8}{:>9}{:>8} |{:>5.0f}%{:>7.1f}{:>10}{:>8.1f}\n",
               r["network"].get<std::string>(), r["machine"].get<std::string>(), r["operators"].get<int>(), shown(r["expert_ms"]),
               shown(r["frugal_ms"]), shown(r["micro_batches_ms"]), shown(r["pipeline_ms"]), r["stages"].get<int>(), r["micro_batches"].get<int>(),
               r["order"].get<std::string>(), shown_degrees, r["recomputing_stages"].get<int>(), r["sharded_optimizer"].get<bool>() ? "yes" : "no",
               100 * r["idle_share"].get<double>(), r["fullest_bytes"].get<double>() / 1e9, r["simulated"].get<int>(), r["seconds"].get<double>());
    std::fflush(stdout);
}

int run(int argc, char** argv) {
    request asked;
    CLI::App app{"Measures what pipelines are worth."};
    std::vector<std::string> known;
    for (auto const& w : workloads)
        if (std::ranges::find(known, w.name) == known.end()) known.push_back(w.name);
    app.add_option("--network", asked.networks, "networks (default: all)")->check(CLI::IsMember(known));
    app.add_option("--time", asked.time, "seconds for each search (default: until it ends by itself)")->check(CLI::Range(0.0, 1e6));
    app.add_option("--out", asked.out, "the rows, as JSON")->capture_default_str()->take_last();
    CLI11_PARSE(app, argc, argv);
    print_head();
    nlohmann::json rows = nlohmann::json::array();
    for (auto const& w : workloads) {
        if (!asked.networks.empty() && std::ranges::find(asked.networks, w.name) == asked.networks.end()) continue;
        rows.push_back(measure(w, asked));
        print(rows.back());
        write_rows(asked.out, rows);
    }
    fmt::print("{} rows; wrote {}\n", rows.size(), asked.out);
    return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
