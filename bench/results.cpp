// The table of docs/results.md: what the search finds for the six networks and two clusters of the FlexFlow paper (Jia, Zaharia,
// Aiken, MLSys 2019, section 8), beside data parallelism. Prints Markdown. Searches end by evaluations, so the figures are the
// same on every run, machine and number of threads.
//
//   results [evaluations per search]     (default 1500)

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "flexflow_networks.hpp"

namespace ps = parsearch;

namespace {

// As frameworks synchronise gradients today.
constexpr ps::sim::simulation_options today{};

struct row {
    bench::flexflow_network const* net = nullptr;
    std::uint32_t nodes = 0;
    bool p100 = false, as_flexflow = false;
    double data_parallel = 0, expert = 0, found = 0, moved_before = 0, moved_after = 0; // ms, GB
};

// Data parallelism, the expert strategy (layers over the node for recurrent networks, one weird trick for the others), and the
// best of a chain from each of the two.
void fill(row& r, std::uint64_t evaluations) {
    auto const cluster = r.p100 ? ps::topology::p100_cluster(r.nodes) : ps::topology::k80_cluster(r.nodes);
    auto const problem = ps::make_problem(r.net->make(r.net->batch_per_device * r.nodes * 4), cluster, ps::cost::roofline{cluster},
                                          {.simulation = r.as_flexflow ? bench::as_flexflow_does : today});
    auto const milliseconds = [](ps::sim::report const& report) { return ps::to_seconds(report.makespan) * 1e3; };
    std::vector<ps::space::flat_strategy> const starts{ps::data_parallel(problem),
                                                       r.net->recurrent ? ps::operation_parallel(problem) : ps::one_weird_trick(problem)};
    auto const before = ps::simulate(problem, starts[0]);
    r.data_parallel = milliseconds(before);
    r.expert = milliseconds(ps::simulate(problem, starts[1]));
    r.moved_before = before.bytes_moved() / 1e9;
    std::mt19937_64 rng{42};
    auto best = ps::search::mcmc(problem, starts[0], rng, {.evaluations = evaluations / 2});
    if (auto other = ps::search::mcmc(problem, starts[1], rng, {.evaluations = evaluations / 2}); other.cost < best.cost) best = std::move(other);
    auto const after = ps::simulate(problem, best.best);
    if (after.makespan != best.cost) throw ps::invalid_input(r.net->name, ": what was found does not fit the memory: a larger cluster is needed");
    r.found = milliseconds(after);
    r.moved_after = after.bytes_moved() / 1e9;
}

void print(std::vector<row> const& rows, bool as_flexflow) {
    std::printf(
        "| network | cluster | devices | data parallel, ms | expert, ms | found, ms | speed-up | GB moved, data parallel | GB moved, found |\n"
        "|---|---|---|---|---|---|---|---|---|\n");
    for (auto const& r : rows)
        if (r.as_flexflow == as_flexflow)
            std::printf("| %s | %s | %u | %.1f | %.1f | %.1f | %.2f | %.1f | %.1f |\n", r.net->name, r.p100 ? "P100" : "K80", r.nodes * 4,
                        r.data_parallel, r.expert, r.found, r.data_parallel / r.found, r.moved_before, r.moved_after);
}

} // namespace

int main(int argc, char** argv) {
    std::uint64_t evaluations = 1500;
    if (argc > 2 || (argc == 2 && (std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), evaluations).ptr != argv[1] + std::strlen(argv[1]) ||
                                   evaluations < 2))) {
        std::fprintf(stderr, "usage: results [evaluations per search]: a whole number from 2\n");
        return 2;
    }
    auto const networks = bench::flexflow_networks();
    std::vector<row> rows;
    for (bool const as_flexflow : {false, true})
        for (auto const& net : networks)
            for (bool const p100 : {true, false})
                for (std::uint32_t const nodes : {1u, 4u, 16u})
                    rows.push_back({.net = &net, .nodes = nodes, .p100 = p100, .as_flexflow = as_flexflow});

    std::atomic<std::size_t> next = rows.size(); // the largest first
    std::exception_ptr failure;
    std::atomic<bool> failed = false;
    {
        std::vector<std::jthread> workers;
        for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
            workers.emplace_back([&] {
                for (std::size_t n = next.load(); !failed;) {
                    if (n == 0) break;
                    if (!next.compare_exchange_weak(n, n - 1)) continue;
                    try {
                        fill(rows[n - 1], evaluations);
                        std::fprintf(stderr, "%s %s %u: done\n", rows[n - 1].net->name, rows[n - 1].p100 ? "P100" : "K80", rows[n - 1].nodes * 4);
                    } catch (...) {
                        if (!failed.exchange(true)) failure = std::current_exception();
                    }
                    n = next.load();
                }
            });
    }
    if (failure) std::rethrow_exception(failure);

    std::printf("## Gradients all-reduced over rings, overlapping with backward\n\n");
    print(rows, false);
    std::printf("\n## Gradients through parameter servers after backward, pairwise messages\n\n");
    print(rows, true);
}
