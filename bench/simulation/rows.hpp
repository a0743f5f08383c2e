#pragma once
/// What the benchmark of the simulator measures: workloads, what was asked, and a row of the table.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace bench {

namespace ps = parsearch;

using strategy = ps::space::flat_strategy;
using configuration = ps::space::configuration;
using ps::sim::discipline, ps::sim::movement;
using steady = std::chrono::steady_clock;

inline double microseconds(steady::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }
inline steady::duration duration_of(double seconds) { return std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(seconds)); }

// Proposals per second of FlexFlow release 21.09: its simulator and its MCMC loop built alone with stub operator costs, one thread of a
// 4-core EPYC virtual machine, the same networks at batch 64 per GPU (as 122, 175 and 360 operators; the library's graphs have more, see
// `operators`).
struct flexflow_figure {
    std::string_view workload;
    std::size_t devices;
    double proposals_per_s;
};
inline constexpr std::array flexflow_figures{
    flexflow_figure{"Inception-v3", 4, 2511}, flexflow_figure{"Inception-v3", 16, 480}, flexflow_figure{"Inception-v3", 64, 57},
    flexflow_figure{"ResNet-101", 4, 1775},   flexflow_figure{"ResNet-101", 16, 358},   flexflow_figure{"ResNet-101", 64, 38},
    flexflow_figure{"NMT", 4, 566},           flexflow_figure{"NMT", 16, 78},           flexflow_figure{"NMT", 64, 15.5},
};

struct workload {
    std::string name;
    std::size_t per_node;
    std::vector<std::size_t> devices; // unless --devices says otherwise
    std::function<ps::graph::operator_graph(std::int64_t devices)> make;
};

inline std::string const gpt_name = "GPT-24";

inline std::vector<workload> workloads() {
    using ps::ops::dtype;
    return {
        {"Inception-v3", 4, {4, 16, 64}, [](std::int64_t n) { return ps::models::inception_v3({.batch = 64 * n}); }},
        {"ResNet-101", 4, {4, 16, 64}, [](std::int64_t n) { return ps::models::resnet({.depth = 101, .batch = 64 * n}); }},
        // FlexFlow's steps have weights of their own.
        {"NMT", 4, {4, 16, 64}, [](std::int64_t n) { return ps::models::nmt({.batch = 64 * n, .unroll_shared = false}); }},
        // Eight samples for each of the groups of eight devices that share them.
        {gpt_name,
         8,
         {64, 256, 1024},
         [](std::int64_t n) {
             return ps::models::gpt(
                 {.layers = 24, .hidden = 2048, .heads = 16, .sequence = 1024, .vocabulary = 51200, .batch = n, .type = dtype::bf16});
         }},
    };
}

// Of the full pass alone: task graphs of random strategies, large enough to leave the caches.
inline constexpr double large_graph = 50'000;
inline std::vector<std::pair<std::string, std::size_t>> large_cases() { return {{"Inception-v3", 64}, {"NMT", 16}, {"NMT", 64}, {gpt_name, 64}}; }

struct setting {
    ps::sim::movement movement;
    ps::sim::discipline discipline;
};
inline constexpr setting as_flexflow{movement::pairwise, discipline::fifo}, as_streams{movement::collective, discipline::in_order};

struct request {
    double seconds = 1;
    std::vector<std::string> workloads;
    std::vector<std::size_t> devices;
    bool quick = false, all = false;
    unsigned threads = 1;
    std::uint64_t seed = 42;
    std::string out = "out/bench/simulation.json", against;
};

// One line of the table. What does not apply stays empty: null in JSON.
struct row {
    std::string workload;
    std::size_t devices = 0;
    std::string movement, discipline, space;
    bool abort = true;
    unsigned threads = 1;
    std::size_t operators = 0;
    double tasks = 0; // of the start; of random strategies, the mean
    double full_ns_per_task = 0, full_us = 0, rebuild_us = 0;
    std::optional<double> patch_us, delta_us_median, delta_us_p90, delta_us_mean, delta_over_full_median, proposals_per_s;
    std::optional<std::uint64_t> accepted, evaluations;
    std::optional<double> flexflow_proposals_per_s, over_flexflow;
    std::optional<bool> floor_met;

    [[nodiscard]] bool is(setting const& s) const { return movement == name_of(s.movement) && discipline == name_of(s.discipline); }
};

template <class T> nlohmann::json json_of(std::optional<T> const& value) { return value ? nlohmann::json(*value) : nlohmann::json(nullptr); }

inline nlohmann::json json_of(row const& r) {
    return {{"workload", r.workload},
            {"devices", r.devices},
            {"movement", r.movement},
            {"discipline", r.discipline},
            {"space", r.space},
            {"abort", r.abort},
            {"threads", r.threads},
            {"operators", r.operators},
            {"tasks", r.tasks},
            {"full_ns_per_task", r.full_ns_per_task},
            {"full_us", r.full_us},
            {"rebuild_us", r.rebuild_us},
            {"patch_us", json_of(r.patch_us)},
            {"delta_us_median", json_of(r.delta_us_median)},
            {"delta_us_p90", json_of(r.delta_us_p90)},
            {"delta_us_mean", json_of(r.delta_us_mean)},
            {"delta_over_full_median", json_of(r.delta_over_full_median)},
            {"proposals_per_s", json_of(r.proposals_per_s)},
            {"accepted", json_of(r.accepted)},
            {"evaluations", json_of(r.evaluations)},
            {"flexflow_proposals_per_s", json_of(r.flexflow_proposals_per_s)},
            {"over_flexflow", json_of(r.over_flexflow)},
            {"floor_met", json_of(r.floor_met)}};
}

} // namespace bench
