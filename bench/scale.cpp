// How long plans take to simulate at the sizes of Megatron-LM's table (Narayanan et al., SC 2021, table 1: GPT, DGX A100, 1F1B, blocks computed
// again), with twice the devices, layers or micro-batches of one of them, and far larger: the first simulation, and the same again by one that has
// seen it. Each is simulated as one of as many replicas as there are, and but for the largest on all devices, too, which must take the same time.
//
//   scale [--case NAME]... [--out FILE]
//
// Each row is measured in a process of its own, whose memory it tells: case, devices, replicas, micro_batches, layers, tasks (of all replicas; the
// barriers of their all-reduces are counted for each), scheduled, problem_s, first_s, again_s, peak_bytes, iteration_ps, iteration_s; of all devices
// all_first_s, all_again_s, all_peak_bytes. Ends with 1 where the times of a replica and of all devices differ.

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/io/names/cluster_name.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/plans/one_replica.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/problem/problem.hpp>

#include "guarded.hpp"
#include "seconds_since.hpp"
#include "write_file.hpp"

namespace bench {
namespace {

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;

struct scale_case {
    char const* name;
    std::int32_t layers, hidden, heads;
    std::uint32_t tensor, stages, devices;
    std::int64_t batch, micro_batch;
    bool as_a_part = false; // alone

    [[nodiscard]] std::uint32_t data() const { return devices / tensor / stages; }
    // Of which at least two nodes are left.
    [[nodiscard]] std::uint32_t replicas() const {
        auto const nodes = devices / 8;
        for (auto n = data(); n > 1; --n)
            if (data() % n == 0 && nodes % n == 0 && nodes / n >= 2) return n;
        return 1;
    }
};
constexpr std::array cases{
    scale_case{"1.7B", 24, 2304, 24, 1, 1, 32, 512, 16},
    scale_case{"3.6B", 30, 3072, 32, 2, 1, 64, 512, 16},
    scale_case{"7.5B", 36, 4096, 32, 4, 1, 128, 512, 16},
    scale_case{"18B", 40, 6144, 48, 8, 1, 256, 1024, 8},
    scale_case{"39B", 48, 8192, 64, 8, 2, 512, 1536, 4},
    scale_case{"76B", 60, 10240, 80, 8, 4, 1024, 1792, 2},
    scale_case{"145B", 80, 12288, 96, 8, 8, 1536, 2304, 2},
    scale_case{"310B", 96, 16384, 128, 8, 16, 1920, 2160, 1},
    scale_case{"530B", 105, 20480, 128, 8, 35, 2520, 2520, 1},
    scale_case{"1T", 128, 25600, 160, 8, 64, 3072, 3072, 1},
    scale_case{"76B, twice the micro-batches", 60, 10240, 80, 8, 4, 1024, 3584, 2},
    scale_case{"76B, twice the layers", 120, 10240, 80, 8, 4, 1024, 1792, 2},
    scale_case{"76B, twice the devices", 60, 10240, 80, 8, 4, 2048, 3584, 2},
    scale_case{"405B", 126, 16384, 128, 8, 16, 16384, 2048, 1, true},
    scale_case{"1T, 16,384 devices", 128, 25600, 160, 8, 64, 16384, 8192, 1, true},
    scale_case{"10T", 192, 65536, 512, 8, 64, 131072, 16384, 1, true},
};

// On all devices, or one of the replicas.
nlohmann::json row_of(scale_case const& c, bool all) {
    auto began = std::chrono::steady_clock::now();
    auto const cluster = ps::io::make_named_cluster(fmt::format("{}x8xa100", c.devices / 8)).cluster;
    auto const whole = ps::make_problem(ps::models::gpt({.layers = c.layers,
                                                         .hidden = c.hidden,
                                                         .heads = c.heads,
                                                         .sequence = 2048,
                                                         .vocabulary = 51200,
                                                         .batch = c.batch,
                                                         .type = ps::ops::dtype::f16}),
                                        cluster, ps::cost::roofline{cluster}, {.simulation = {.optimizer = ps::sim::optimizer::adam}});
    auto const replicas = all ? 1 : c.replicas();
    auto const problem = replicas > 1 ? pipeline::one_replica(whole, replicas) : ps::parallelization(whole);
    auto const problem_s = seconds_since(began);
    auto const micro_batches = static_cast<std::uint32_t>(c.batch / c.micro_batch / c.data());
    pipeline::detail::stage_builder build(problem);
    auto candidate = build.balanced(c.stages, 1, micro_batches, {.tensor = c.tensor});
    candidate.recompute.assign(c.stages, true);
    candidate.segments = static_cast<std::uint32_t>(c.layers) / c.stages;
    auto const plan = build.plan(candidate);
    pipeline::pipeline_simulator simulator(problem);
    began = std::chrono::steady_clock::now();
    auto const time = simulator.simulate(plan.how, plan.strategy);
    auto const first_s = seconds_since(began);
    auto again_s = first_s;
    for (int i = 0; i < 5; ++i) {
        began = std::chrono::steady_clock::now();
        simulator.simulate(plan.how, plan.strategy);
        again_s = std::min(again_s, seconds_since(began));
    }
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return {{"case", c.name},
            {"devices", c.devices},
            {"replicas", replicas},
            {"micro_batches", micro_batches},
            {"layers", c.layers},
            {"tasks", replicas * simulator.all_tasks()},
            {"scheduled", simulator.scheduled_tasks()},
            {"problem_s", problem_s},
            {"first_s", first_s},
            {"again_s", again_s},
            {"peak_bytes", static_cast<std::int64_t>(use.ru_maxrss) * 1024},
            {"iteration_ps", time.count()},
            {"iteration_s", static_cast<double>(time.count()) * 1e-12}};
}

// The row of `c`, measured by a child.
nlohmann::json in_a_process(scale_case const& c, bool all) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw ps::invalid_input("no pipe to a child: ", std::strerror(errno));
    std::fflush(stdout); // or the child has it, too
    auto const child = fork();
    if (child < 0) throw ps::invalid_input("no child: ", std::strerror(errno));
    if (child == 0) {
        close(ends[0]);
        try {
            auto const text = row_of(c, all).dump();
            _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
        } catch (std::exception const& e) {
            fmt::print(stderr, "{}: {}\n", c.name, e.what());
            _exit(1);
        }
    }
    close(ends[1]);
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = read(ends[0], part.data(), part.size())) > 0;) text.append(part.data(), static_cast<std::size_t>(n));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) throw ps::invalid_input("case ", c.name, ": its process ended with ", status);
    return nlohmann::json::parse(text);
}

int run(int argc, char** argv) {
    std::vector<std::string> names;
    std::string out = "out/bench/scale.json";
    CLI::App app{"How long plans take to simulate at the sizes of Megatron-LM's table, and at twice the size."};
    app.add_option("--case", names, "cases, by name; all of them without");
    app.add_option("--out", out, "the rows")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    for (auto const& name : names)
        if (std::ranges::find(cases, name, &scale_case::name) == cases.end()) throw ps::invalid_input("there is no case '", name, "'");
    auto rows = nlohmann::json::array();
    fmt::print("| case | devices | replicas | layers | micro-batches | tasks | scheduled | first, s | again, s | problem, s | GB "
               "| all: first, s | all: again, s | all: GB |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    bool same = true;
    for (auto const& c : cases) {
        if (!names.empty() && std::ranges::find(names, c.name) == names.end()) continue;
        rows.push_back(in_a_process(c, false));
        auto& r = rows.back();
        fmt::print("| {} | {} | {} | {} | {} | {} | {} | {:.3f} | {:.4f} | {:.2f} | {:.2f} | ", c.name, c.devices, c.replicas(), c.layers,
                   r["micro_batches"].get<int>(), r["tasks"].get<std::uint64_t>(), r["scheduled"].get<std::uint64_t>(), r["first_s"].get<double>(),
                   r["again_s"].get<double>(), r["problem_s"].get<double>(), r["peak_bytes"].get<double>() / 1e9);
        if (c.as_a_part) {
            fmt::print(" | | |\n");
            continue;
        }
        auto const all = in_a_process(c, true);
        r["all_first_s"] = all["first_s"];
        r["all_again_s"] = all["again_s"];
        r["all_peak_bytes"] = all["peak_bytes"];
        fmt::print("{:.3f} | {:.3f} | {:.2f} |\n", all["first_s"].get<double>(), all["again_s"].get<double>(), all["peak_bytes"].get<double>() / 1e9);
        if (all["iteration_ps"] == r["iteration_ps"]) continue;
        same = false;
        fmt::print(stderr, "{}: one replica takes {} ps, all devices take {} ps\n", c.name, r["iteration_ps"].get<std::int64_t>(),
                   all["iteration_ps"].get<std::int64_t>());
    }
    write_rows(out, rows);
    return same ? 0 : 1;
}
} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
