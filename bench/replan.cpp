// What is planned after a device has failed, and how soon: of a language model on a cluster, the problem without the device, the nearest plan, the
// first plan that fits, the best after 5 and after 10 seconds, and what it takes to change to it.
//
//   replan [--case NAME]... [--out FILE]
//
// Rows: case, devices, problem_s, nearest_s, nearest_ms (null where it does not fit the memory), first_s, first_ms, five_ms, ten_ms (iterations, each
// the best so far), used (devices after 10 s), before_ms (of all devices after 10 s), moved_gb and moved_s (from that to the plan after 5 s),
// priced_ms (to tell these two).

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/core/error.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/io/names/cluster_name.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/pipeline/part_of_devices.hpp>
#include <parsearch/pipeline/plans/plan_change.hpp>
#include <parsearch/problem/constraints.hpp>
#include <parsearch/problem/problem.hpp>

#include "guarded.hpp"
#include "seconds_since.hpp"
#include "write_file.hpp"

namespace bench {
namespace {

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;

struct replan_case {
    char const* name;
    char const* cluster;
    std::int64_t batch;
    std::uint32_t fails;
};
// Llama 2 7B, sequences of 4,096 tokens, bf16, Adam.
constexpr std::array cases{replan_case{"16 devices", "2x8xh100", 64, 5}, replan_case{"64 devices", "8x8xh100", 256, 21},
                           replan_case{"128 devices", "16x8xh100", 512, 100}, replan_case{"1024 devices", "128x8xh100", 1024, 100}};

using clock = std::chrono::steady_clock;
struct planned {
    pipeline::part_result best;
    double first_s = 0;               ///< when the first plan that fits was there
    std::optional<double> first_ms{}; ///< what its iteration takes
};

planned plan_in(ps::parallelization const& problem, pipeline::partition_options const& options, pipeline::placed_plan const& start = {}) {
    planned out;
    std::mt19937_64 rng{1};
    auto const began = clock::now();
    out.best = pipeline::partition_part(problem, start, rng, options, [&](pipeline::simulated_pipeline const& p) {
        if (out.first_ms || !p.cost || !p.simulator.fits()) return;
        out.first_s = seconds_since(began);
        out.first_ms = ps::to_seconds(*p.cost) * 1e3;
    });
    return out;
}

double milliseconds(planned const& p) {
    if (p.best.found.reason == ps::stop_reason::nothing_feasible) throw ps::invalid_input("no plan fits the memory");
    return ps::to_seconds(p.best.found.cost) * 1e3;
}

nlohmann::json row_of(replan_case const& c) {
    auto const cluster = ps::io::make_named_cluster(c.cluster).cluster;
    auto const model = ps::models::llama({.layers = 32,
                                          .hidden = 4096,
                                          .heads = 32,
                                          .kv_heads = 32,
                                          .feed_forward = 11008,
                                          .sequence = 4096,
                                          .vocabulary = 32000,
                                          .tied = false,
                                          .batch = c.batch,
                                          .type = ps::ops::dtype::bf16});
    ps::cost::roofline const oracle{cluster};
    auto const whole = ps::make_problem(model, cluster, oracle, {.simulation = {.optimizer = ps::sim::optimizer::adam}});
    auto const before = plan_in(whole, {.time = std::chrono::seconds(10)});

    auto const began = clock::now();
    auto const left = with_topology(whole, cluster, oracle, ps::constraints_of<decltype(model), decltype(cluster)>{}.leave_out(c.fails));
    auto const problem_s = seconds_since(began);
    // As a scheduler would: a plan at once, then a good one.
    auto const failed = clock::now();
    pipeline::plan_change const change(whole, before.best.plan(), left, 1);
    auto const nearest = plan_in(left, {.evaluations = 1}, change.start());
    auto const nearest_s = seconds_since(failed);
    auto const first = plan_in(left, {.time = std::chrono::milliseconds(500)}), five = plan_in(left, {.time = std::chrono::seconds(5)}),
               ten = plan_in(left, {.time = std::chrono::seconds(10)});
    auto const asked = clock::now();
    auto const moved = change.to(five.best.plan());
    auto const priced_s = seconds_since(asked);
    std::array const in_order{milliseconds(first), milliseconds(five), milliseconds(ten)}; // each as good as those before: a scheduler keeps the best
    auto const five_ms = std::min(in_order[0], in_order[1]), ten_ms = std::min(five_ms, in_order[2]);
    bool const fits = nearest.best.found.reason != ps::stop_reason::nothing_feasible;
    return {{"case", c.name},
            {"devices", left.topology().size()},
            {"problem_s", problem_s},
            {"nearest_s", nearest_s},
            {"nearest_ms", fits ? nlohmann::json(milliseconds(nearest)) : nlohmann::json()},
            {"first_s", first.first_s},
            {"first_ms", first.first_ms.value()},
            {"five_ms", five_ms},
            {"ten_ms", ten_ms},
            {"used", ten.best.devices.size()},
            {"before_ms", milliseconds(before)},
            {"moved_gb", static_cast<double>(moved.bytes) / 1e9},
            {"moved_s", ps::to_seconds(moved.time)},
            {"priced_ms", priced_s * 1e3}};
}

int run(int argc, char** argv) {
    std::vector<std::string> names;
    std::string out = "out/bench/replan.json";
    CLI::App app{"What is planned after a device has failed, and how soon."};
    app.add_option("--case", names, "cases, by name; all of them without");
    app.add_option("--out", out, "the rows")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    for (auto const& name : names)
        if (std::ranges::find(cases, name, &replan_case::name) == cases.end()) throw ps::invalid_input("there is no case '", name, "'");
    auto rows = nlohmann::json::array();
    fmt::print(
        "| devices left | problem, s | nearest plan, s | its iteration, ms | first plan, s | its iteration, ms | after 5 s, ms | after 10 s, ms "
        "| on devices | before, ms | moves, GB | in, s |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (auto const& c : cases) {
        if (!names.empty() && std::ranges::find(names, c.name) == names.end()) continue;
        rows.push_back(row_of(c));
        auto const& r = rows.back();
        auto const number = [&](char const* name) { return r[name].get<double>(); };
        auto const nearest = r["nearest_ms"].is_null() ? std::string("does not fit") : fmt::format("{:.1f}", number("nearest_ms"));
        fmt::print("| {} | {:.2f} | {:.2f} | {} | {:.2f} | {:.1f} | {:.1f} | {:.1f} | {} | {:.1f} | {:.0f} | {:.3f} |\n",
                   r["devices"].get<std::size_t>(), number("problem_s"), number("nearest_s"), nearest, number("first_s"), number("first_ms"),
                   number("five_ms"), number("ten_ms"), r["used"].get<std::size_t>(), number("before_ms"), number("moved_gb"), number("moved_s"));
    }
    write_rows(out, rows);
    return 0;
}
} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
