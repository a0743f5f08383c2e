// What a network that is wired for its traffic is worth: the networks of layers of TopoOpt (W. Wang et al., NSDI 2023) on servers of four A100 with 4
// or 8 interfaces each. Per model, servers, interfaces and rate, a strategy is searched on an ideal switch of the same bandwidth, a fat tree of
// similar price, a random regular network, a fully connected one, and on fabrics that are found together with the strategy: in rounds, and by joint
// moves. Prints a table, and how fast fabrics are found; writes the rows as JSON and a page.
//
//   fabric [--full] [--models NAME...] [--servers N...] [--degrees D...] [--rates B...] [--render FILE] ...     (see --help)
//   fabric --delays US... [--models NAME...] ...   with servers that are rewired within the iteration, where that takes so long
//   fabric --jobs NAME... [--servers N...] ...     these on equal parts of the servers: each with a fabric of its own, or all on a shared fat tree

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/search/threads/thread_team.hpp>

#include "fabric/floors.hpp"
#include "fabric/jobs.hpp"
#include "fabric/measure.hpp"
#include "fabric/page.hpp"
#include "fabric/print.hpp"
#include "fabric/rewiring.hpp"
#include "guarded.hpp"
#include "write_file.hpp"

namespace bench {
namespace {

struct request {
    std::vector<std::string> models, jobs;
    std::vector<std::uint32_t> servers{16}, degrees{4, 8};
    std::vector<double> rates{10, 25, 40, 100, 200}, delays;
    effort much{.evaluations = 5000, .rounds = 5, .seed = 1};
    std::uint64_t threads = 0, proposals = 10'000;
    bool full = false;
    std::string floors = "also", out = "out/bench/fabric", render;
};

std::vector<cell> cells_of(workload const& model, std::uint32_t servers, request const& asked) {
    std::vector<cell> out;
    for (auto const degree : asked.degrees)
        for (auto const gbps : asked.rates)
            for (auto const wiring : wirings) out.push_back({model, servers, degree, gbps, wiring});
    return out;
}

// The rows of cells, several cells at once.
std::vector<nlohmann::json> measure_all(std::vector<cell> const& cells, effort const& much, ps::search::thread_team& team) {
    std::vector<nlohmann::json> rows(cells.size());
    std::vector<std::exception_ptr> failures(cells.size());
    auto task = [&](std::size_t n) noexcept {
        try {
            rows[n] = measure(cells[n], much);
        } catch (...) {
            failures[n] = std::current_exception();
        }
    };
    team.run(cells.size(), task);
    for (auto const& failure : failures)
        if (failure) std::rethrow_exception(failure);
    return rows;
}

void write_all(comparison const& made, std::string const& out) {
    write_rows(out + ".json", json_of(made));
    write_file(out + ".html", [&](auto& stream) { write_page(stream, json_of(made)); });
}

void run_cells(comparison& made, request const& asked, std::size_t threads) {
    ps::search::thread_team team(threads);
    print_head();
    for (auto const servers : asked.servers)
        for (auto const& model : workloads()) {
            if (std::find(asked.models.begin(), asked.models.end(), model.name) == asked.models.end()) continue;
            auto const rows = measure_all(cells_of(model, servers, asked), asked.much, team);
            for (auto const& row : rows) print(row);
            made.rows.insert(made.rows.end(), rows.begin(), rows.end());
            write_all(made, asked.out); // an interrupted comparison leaves what it has
        }
    print_speedups(made.rows);
}

void run_jobs(request const& asked) {
    job_mix mix;
    for (auto const& name : asked.jobs)
        for (auto const& model : workloads())
            if (model.name == name) mix.jobs.push_back(model);
    comparison made{.much = asked.much};
    for (auto const servers : asked.servers)
        for (auto const degree : asked.degrees)
            for (auto const gbps : asked.rates) {
                mix = {mix.jobs, servers, degree, gbps};
                if (servers % mix.jobs.size() != 0 || mix.each() < 3)
                    throw std::invalid_argument(
                        fmt::format("{} servers for {} jobs: must be equal parts of three at least", servers, mix.jobs.size()));
                for (auto& row : measure_jobs(mix, asked.much)) {
                    print_jobs(row);
                    made.rows.push_back(std::move(row));
                }
                write_rows(asked.out + ".json", json_of(made));
            }
    fmt::print("\nwrote {}.json\n", asked.out);
}

void run_rewiring(request const& asked) {
    comparison made{.much = asked.much};
    for (auto const servers : asked.servers)
        for (auto const& model : workloads()) {
            if (std::find(asked.models.begin(), asked.models.end(), model.name) == asked.models.end()) continue;
            for (auto const degree : asked.degrees)
                for (auto const gbps : asked.rates) {
                    made.rows.push_back(measure_rewiring({model, servers, degree, gbps, {}}, asked.delays, asked.much));
                    print_rewiring(made.rows.back());
                    write_rows(asked.out + ".json", json_of(made));
                }
        }
    fmt::print("\nwrote {}.json\n", asked.out);
}

void run_comparison(request const& asked) {
    comparison made{.much = asked.much};
    auto const threads = ps::search::threads_of(asked.threads);
    if (asked.floors != "only") run_cells(made, asked, threads);
    if (asked.floors != "none") {
        fmt::print("\nHow fast fabrics are found\n");
        made.floors.push_back(finder_floor(128, 8, 0.05, asked.much.seed));
        made.floors.push_back(finder_floor(1024, 8, 2, asked.much.seed));
        made.floors.push_back(co_optimization_floor(5, asked.proposals, asked.much.seed, threads));
        write_all(made, asked.out);
    }
    fmt::print("\nwrote {0}.json and {0}.html\n", asked.out);
}

int run(int argc, char** argv) {
    request asked;
    for (auto const& m : workloads()) asked.models.push_back(m.name);
    CLI::App app{"Compares networks of servers, among them fabrics wired for their traffic."};
    app.add_flag("--full", asked.full, "on 128 servers, too");
    app.add_option("--models", asked.models, "only these")->capture_default_str()->check(CLI::IsMember(asked.models));
    app.add_option("--jobs", asked.jobs, "of these models, on equal parts of the servers: each with a fabric of its own, or all on a shared fat tree")
        ->check(CLI::IsMember(asked.models));
    app.add_option("--servers", asked.servers, "numbers of servers of four GPUs")->capture_default_str()->check(CLI::Range(3, 1024));
    app.add_option("--degrees", asked.degrees, "interfaces of each server")->capture_default_str()->check(CLI::Range(2, 64));
    app.add_option("--rates", asked.rates, "of an interface, Gb/s")->capture_default_str()->check(CLI::Range(10.0, 200.0));
    app.add_option("--delays", asked.delays, "microseconds of a rewiring within the iteration: found fabrics alone, and what rewiring them gains")
        ->check(CLI::Range(0.0, 1e9));
    app.add_option("--evaluations", asked.much.evaluations, "of each search, for a found fabric of all rounds together")
        ->capture_default_str()
        ->check(CLI::Range(1, 1'000'000'000));
    app.add_option("--rounds", asked.much.rounds, "of fabric and strategy in turn from each start, at most")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    app.add_option("--seed", asked.much.seed, "of all draws")->capture_default_str();
    app.add_option("--threads", asked.threads, "searches at once, 0: as many as the machine has; the results are the same")
        ->capture_default_str()
        ->check(CLI::Range(0, 1024));
    app.add_option("--floors", asked.floors, "whether the times of the finder and of co-optimization are measured")
        ->capture_default_str()
        ->check(CLI::IsMember({"also", "none", "only"}));
    app.add_option("--proposals", asked.proposals, "of each of the five rounds of the timed co-optimization")
        ->capture_default_str()
        ->check(CLI::Range(4, 1'000'000'000));
    app.add_option("--render", asked.render, "writes the page of the rows in this file, and measures nothing")->check(CLI::ExistingFile);
    // The last one counts: bench/run names files before the user may.
    app.add_option("--out", asked.out, "where to write: this with .json and .html")->capture_default_str()->take_last();
    CLI11_PARSE(app, argc, argv);
    if (asked.full) asked.servers = {16, 128};

    if (!asked.jobs.empty()) {
        run_jobs(asked);
        return 0;
    }
    if (!asked.delays.empty()) {
        run_rewiring(asked);
        return 0;
    }
    if (asked.render.empty()) {
        run_comparison(asked);
        return 0;
    }
    auto const made = nlohmann::json::parse(std::ifstream(asked.render));
    write_file(asked.out + ".html", [&](auto& stream) { write_page(stream, made); });
    fmt::print("wrote {}.html\n", asked.out);
    return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
