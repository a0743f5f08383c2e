// The delta simulator beside the full one, and a simulator of plans that has seen others beside a new one: random proposals, each compared in its
// cost and, once committed, in the ready time, start and end of every task, in the task graph, memory and traffic. Prints Markdown; the first
// mismatch ends it with exit code 1. Draws depend on the cell's seed alone: the same on every machine and for every number of threads.
//
//   proof [proposals per cell] [--of strategies|plans] [--threads N] [--cell NAME] [--list]     (default 10000, every cell)

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "guarded.hpp"
#include "proof/cells.hpp"

namespace proof {
namespace {

// 1,234,567
std::string grouped(std::uint64_t n) {
    auto s = fmt::format("{}", n);
    for (auto i = static_cast<std::ptrdiff_t>(s.size()) - 3; i > 0; i -= 3) s.insert(static_cast<std::size_t>(i), 1, ',');
    return s;
}

// A row for the cells of a network and its devices: they differ in discipline and movement and follow each other.
void print(std::vector<cell> const& cells, std::vector<counts> const& rows, section of) {
    bool const told = of != section::networks;
    fmt::print(
        "| network | devices | {}drawn, compared task by task | asked for | committed | rolled back | over the bound | comparisons | tasks compared "
        "| largest |\n|---|---|{}---|---|---|---|---|---|---|---|\n",
        of == section::special ? "special | "
        : told                 ? "all have | "
                               : "",
        told ? "---|" : "");
    auto const same_row = [](cell const& a, cell const& b) {
        return a.in == b.in && a.network == b.network && a.devices == b.devices && a.about == b.about;
    };
    for (std::size_t i = 0, next = 0; i < cells.size(); i = next) {
        auto const& c = cells[i];
        counts r;
        for (next = i; next < cells.size() && same_row(cells[next], c); ++next) r += rows[next];
        if (c.in != of) continue;
        fmt::print("| {} | {} | {}{} | {} | {} | {} | {} | {} | {} | {} |\n", c.network, c.devices, told ? c.about + " | " : "", grouped(r.random),
                   grouped(r.proposals), grouped(r.committed), grouped(r.rolled_back), grouped(r.over), grouped(r.comparisons), grouped(r.tasks),
                   grouped(r.largest));
    }
}

void print(std::vector<cell> const& cells, std::vector<counts> const& rows) {
    counts all;
    for (auto const& r : rows) all += r;
    fmt::print(
        "{} cells, {} proposals drawn, {} asked for: {} committed, {} rolled back, {} over the bound. {} comparisons of {} tasks, {} schedules "
        "held against the definition. Mismatches: 0.\n",
        cells.size(), grouped(all.random), grouped(all.proposals), grouped(all.committed), grouped(all.rolled_back), grouped(all.over),
        grouped(all.comparisons), grouped(all.tasks), grouped(all.by_definition));
    for (auto const of : {section::networks, section::special, section::plans}) {
        if (std::ranges::none_of(cells, [&](auto const& c) { return c.in == of; })) continue;
        fmt::print("\n## {}\n\n", title_of(of));
        print(cells, rows, of);
    }
}

// Cells in parallel, the largest first. Where one fails, the others stop.
std::optional<std::string> run_all(std::vector<cell> const& cells, std::uint64_t proposals, unsigned threads, std::vector<counts>& rows) {
    std::vector<std::size_t> order(cells.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return cells[a].devices > cells[b].devices; });
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> stop = false;
    std::mutex mutex;
    std::optional<std::string> failure;
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < threads; ++i)
        workers.emplace_back([&] {
            for (std::size_t n = next++; n < order.size() && !stop; n = next++) {
                auto const& c = cells[order[n]];
                auto const begin = std::chrono::steady_clock::now();
                std::string what;
                try {
                    rows[order[n]] = c.run(proposals * c.times, stop);
                } catch (std::exception const& e) {
                    what = e.what();
                }
                std::chrono::duration<double> const took = std::chrono::steady_clock::now() - begin;
                std::scoped_lock const lock(mutex);
                if (what.empty()) {
                    auto const& r = rows[order[n]];
                    fmt::print(stderr, "{:<75} {:>8.1f} s  {:>6} tasks on average{}\n", c.name, took.count(),
                               r.comparisons ? r.tasks / r.comparisons : 0, stop ? " (stopped)" : "");
                } else {
                    stop = true;
                    if (!failure) failure = c.name + ": " + what;
                }
            }
        });
    workers.clear();
    return failure;
}

int run(int argc, char** argv) {
    std::uint64_t proposals = 10'000;
    unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    std::string only, of;
    bool list = false;
    CLI::App app{"Compares the delta simulator with the full one, and a simulator of plans that has seen others with a new one, task by task."};
    app.add_option("proposals", proposals, "drawn per cell, at least")->capture_default_str()->check(CLI::Range(1, 1'000'000'000));
    app.add_option("--threads", threads, "cells at once")->capture_default_str()->check(CLI::Range(1, 1024));
    app.add_option("--of", of, "only cells of these")->check(CLI::IsMember({"strategies", "plans"}));
    app.add_option("--cell", only, "only the cells whose name contains this");
    app.add_flag("--list", list, "the names of the cells");
    CLI11_PARSE(app, argc, argv);
    auto cells = all_cells();
    std::erase_if(
        cells, [&](auto const& c) { return c.name.find(only) == std::string::npos || (!of.empty() && (of == "plans") != (c.in == section::plans)); });
    if (cells.empty()) throw ps::invalid_input("no cell's name contains '", only, "': --list lists them");
    if (list) {
        for (auto const& c : cells) fmt::print("{}\n", c.name);
        return 0;
    }
    std::vector<counts> rows(cells.size());
    if (auto const failure = run_all(cells, proposals, threads, rows)) {
        fmt::print(stderr, "MISMATCH {}\n", *failure);
        return 1;
    }
    print(cells, rows);
    return 0;
}

} // namespace
} // namespace proof

int main(int argc, char** argv) { return bench::guarded(proof::run, argc, argv); }
