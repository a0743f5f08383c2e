#pragma once
// Several jobs on one cluster: each on servers with a fabric of their own, or all on one network of switches.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/core/random.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/plans/placement.hpp>

#include "measure.hpp"

namespace bench {

// Equal shares of `servers` servers with `degree` interfaces of `gbps` each.
struct job_mix {
    std::vector<workload> jobs;
    std::uint32_t servers = 0, degree = 0;
    double gbps = 0;

    [[nodiscard]] auto each() const { return static_cast<std::uint32_t>(servers / jobs.size()); }
    [[nodiscard]] cell of(std::size_t job, std::string_view wiring) const { return {jobs[job], each(), degree, gbps, wiring}; }
};

// Networks that all jobs share, and whether a job's servers are neighbours there or drawn, as those of a cluster after some weeks.
struct shared_network {
    std::string_view wiring;
    bool neighbours;
};
inline constexpr std::array<shared_network, 3> shared_networks{{{"fat tree", true}, {"fat tree", false}, {"ideal switch", true}}};

inline nlohmann::json row_of(job_mix const& mix, std::string network) {
    return {{"servers", mix.servers},
            {"jobs", mix.jobs.size()},
            {"degree", mix.degree},
            {"gbps", mix.gbps},
            {"network", std::move(network)},
            {"alone_ms", nlohmann::json::array()},
            {"together_ms", nlohmann::json::array()}};
}

// The servers wired for each job apart: nothing is shared.
inline nlohmann::json on_own_fabrics(job_mix const& mix, effort const& much) {
    auto row = row_of(mix, "own fabrics");
    for (std::size_t n = 0; n < mix.jobs.size(); ++n) {
        auto const time = measure(mix.of(n, "found"), much)["iteration_ms"];
        row["alone_ms"].push_back(time);
        row["together_ms"].push_back(time);
    }
    return row;
}

// A strategy searched for each job alone on its servers, then the steps of all at once.
inline nlohmann::json on_shared(job_mix const& mix, shared_network const& shared, effort const& much) {
    auto row = row_of(mix, fmt::format("{}, {}", shared.wiring, shared.neighbours ? "neighbours" : "scattered"));
    auto const network = fixed_network({mix.jobs.front(), mix.servers, mix.degree, mix.gbps, shared.wiring}, much.seed);
    std::mt19937_64 rng(much.seed);
    std::vector<std::uint32_t> order(mix.servers);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    if (!shared.neighbours) // D. Knuth, The Art of Computer Programming 2, 3.4.2, algorithm P: std::shuffle differs between platforms
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[ps::uniform_index(rng, i)]);
    std::vector<ps::pipeline::job> jobs;
    std::vector<ps::pipeline::pipeline_plan> plans;
    for (std::size_t n = 0; n < mix.jobs.size(); ++n) {
        auto whole = mix.of(n, shared.wiring);
        auto const graph = whole.model.make(whole.batch());
        whole.servers = mix.servers;
        auto const placed = problem_of(whole, graph).on(network);
        std::vector<std::size_t> on;
        for (auto s = n * mix.each(); s < (n + 1) * mix.each(); ++s)
            for (std::size_t gpu = 0; gpu < 4; ++gpu) on.push_back(std::size_t{order[s]} * 4 + gpu);
        std::ranges::sort(on);
        auto const part = ps::on_devices(placed.problem, on);
        auto found = searcher{}(part, ps::data_parallel(part), rng, {.time = {}, .evaluations = much.evaluations, .stop = {}});
        plans.push_back({.how = ps::pipeline::unpipelined(part.graph()), .strategy = std::move(found.best)});
        jobs.push_back({fmt::format("{} {}", n, mix.jobs[n].name), placed.problem, 1, {}, std::move(on)});
    }
    for (auto const& placed : ps::pipeline::time_together(jobs, plans)) {
        row["alone_ms"].push_back(ms(placed.alone));
        row["together_ms"].push_back(ms(placed.together));
    }
    return row;
}

// By network, the first of which is that of own fabrics. Throws where no strategy of a job fits its devices.
inline std::vector<nlohmann::json> measure_jobs(job_mix const& mix, effort const& much) {
    auto names = nlohmann::json::array();
    for (auto const& j : mix.jobs) names.push_back(j.name);
    std::vector<nlohmann::json> rows{on_own_fabrics(mix, much)};
    for (auto const& shared : shared_networks) rows.push_back(on_shared(mix, shared, much));
    for (auto& row : rows) {
        row["models"] = names;
        double product = 1, most = 0;
        for (std::size_t n = 0; n < mix.jobs.size(); ++n) {
            auto const &mine = row["together_ms"][n], &own = rows.front()["together_ms"][n];
            if (mine.is_null() || own.is_null()) throw std::runtime_error(fmt::format("no strategy of {} fits", mix.jobs[n].name));
            auto const ratio = mine.get<double>() / own.get<double>();
            product *= ratio;
            most = std::max(most, ratio);
        }
        row["over_own_fabrics"] = std::pow(product, 1.0 / static_cast<double>(mix.jobs.size()));
        row["most_over_own_fabrics"] = most;
    }
    return rows;
}

inline void print_jobs(nlohmann::json const& r) {
    auto const each = [&](char const* key) {
        std::string out;
        for (auto const& time : r[key]) out += fmt::format("{:>9.2f}", time.get<double>());
        return out;
    };
    fmt::print("{:>7}{:>3}{:>6g}  {:<26}alone ms{}, together{}: {:.2f} times own fabrics in the mean, {:.2f} at most\n", r["servers"].get<int>(),
               r["degree"].get<int>(), r["gbps"].get<double>(), r["network"].get<std::string>(), each("alone_ms"), each("together_ms"),
               r["over_own_fabrics"].get<double>(), r["most_over_own_fabrics"].get<double>());
    std::fflush(stdout);
}

} // namespace bench
