// How fast strategies are priced: proposals per second of MCMC chains, the time of one proposal and of a full pass over the task
// graph, beside FlexFlow's simulator and floors that must hold. Prints a table and writes the rows as JSON; exits with 1, all measured,
// where a floor is missed. A row is one seeded chain from data parallelism (GPT: data times tensor parallelism), which warms up for a
// quarter of the time that is then measured. Proposals per second are those priced over wall time, the search's own work included; a
// proposal's time is from propose to the end of commit or roll_back. Rows "random" measure the full pass alone, on large task graphs.
//
//   simulation [--quick] [--workload NAME] [--devices N] [--against FILE] ...     (see --help)

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "guarded.hpp"
#include "simulation/measure.hpp"
#include "simulation/print.hpp"
#include "simulation/proposals.hpp"
#include "simulation/rows.hpp"

namespace bench {
namespace {

class benchmark {
  public:
    explicit benchmark(request const& r) : asked_(r), rng_(r.seed) {}

    std::vector<row> run() {
        auto const nets = workloads();
        for (auto const& net : nets)
            for (auto const devices : counts_of(net))
                if (wants(net, devices))
                    for (auto const& s : settings_of(net)) search_rows(net, devices, s);
        for (auto const& [name, devices] : large_cases()) {
            auto const& net = *std::find_if(nets.begin(), nets.end(), [&](auto const& n) { return n.name == name; });
            if (wants(net, devices) && contains(counts_of(net), devices))
                for (auto const& s : settings_of(net)) large_row(net, devices, s);
        }
        return std::move(rows_);
    }

  private:
    template <class T> static bool contains(std::vector<T> const& list, T const& value) {
        return std::find(list.begin(), list.end(), value) != list.end();
    }

    [[nodiscard]] bool wants(workload const& net, std::size_t devices) const {
        return (asked_.workloads.empty() || contains(asked_.workloads, net.name)) && devices > 0 && devices % net.per_node == 0;
    }
    [[nodiscard]] std::vector<std::size_t> counts_of(workload const& net) const {
        if (!asked_.devices.empty()) return asked_.devices;
        if (asked_.quick) return {net.devices.front()};
        return net.devices;
    }
    [[nodiscard]] std::vector<setting> settings_of(workload const& net) const {
        std::vector<setting> out{as_streams, {movement::collective, discipline::fifo}};
        if (net.name != gpt_name) out = {as_flexflow, as_streams};
        if (!asked_.all) return out;
        return {as_flexflow, {movement::pairwise, discipline::in_order}, {movement::collective, discipline::fifo}, as_streams};
    }

    // The roofline costs next to nothing to ask, so that it is the simulator that is measured.
    static auto problem_of(workload const& net, std::size_t devices, setting const& s, ps::space::space_options const& space = {},
                           ps::sim::memory_policy memory = ps::sim::memory_policy::penalise) {
        auto const nodes = static_cast<std::uint32_t>(devices / net.per_node);
        auto const cluster = net.name == gpt_name ? ps::topology::dgx_h100(nodes) : ps::topology::p100_cluster(nodes);
        return ps::make_problem(net.make(static_cast<std::int64_t>(devices)), cluster, ps::cost::roofline{cluster},
                                {.space = space, .simulation = {.movement = s.movement, .discipline = s.discipline, .memory = memory}});
    }

    void search_rows(workload const& net, std::size_t devices, setting const& s) {
        if (net.name == gpt_name) {
            auto const problem = problem_of(net, devices, s);
            chain_rows(net, devices, s, "hybrid", problem, ps::search::with_moves(problem, hybrid_move(problem.graph(), devices, 8)),
                       ps::tensor_parallel(problem, 8), {});
            return;
        }
        // FlexFlow's simulator knows no memory limits.
        auto const samples =
            problem_of(net, devices, s, {.attribute = false, .parameter = false, .reduction = false, .placements = ps::space::placements::contiguous},
                       ps::sim::memory_policy::ignore);
        // FlexFlow's alpha: 1 per millisecond.
        chain_rows(net, devices, s, "flexflow", samples, ps::search::with_moves(samples, flexflow_move(samples.graph(), devices, net.per_node)),
                   ps::data_parallel(samples), 1e9);
        auto const problem = problem_of(net, devices, s);
        chain_rows(net, devices, s, "full", problem, problem, ps::data_parallel(problem), {});
    }

    // With and without abort. `searched` is `problem` with the moves to be used.
    template <class P, class M>
    void chain_rows(workload const& net, std::size_t devices, setting const& s, std::string space, P const& problem, M const& searched,
                    strategy const& start, std::optional<double> temperature) {
        auto r = row_of(net, devices, s, std::move(space));
        fill_full(r, problem, strategies_near(searched, start, rng_));
        r.tasks = tasks_of(problem, start);
        r.patch_us = patch_us(searched, start, asked_.seconds / 10, rng_);
        if (r.space == "flexflow" && r.threads == 1)
            for (auto const& f : flexflow_figures)
                if (f.workload == net.name && f.devices == devices) r.flexflow_proposals_per_s = f.proposals_per_s;
        for (bool const abort : {true, false}) {
            r.abort = abort;
            run_chains(searched, start, temperature, asked_, r);
            if (r.flexflow_proposals_per_s && r.proposals_per_s) r.over_flexflow = *r.proposals_per_s / *r.flexflow_proposals_per_s;
            add(r);
        }
    }

    void large_row(workload const& net, std::size_t devices, setting const& s) {
        auto const problem = problem_of(net, devices, s);
        auto r = row_of(net, devices, s, "random");
        fill_full(r, problem,
                  net.name == gpt_name ? random_strategies(hybrid_move(problem.graph(), devices, 8), ps::tensor_parallel(problem, 8), 4, rng_)
                                       : random_strategies(problem.space(), 4, rng_));
        add(r);
    }

    [[nodiscard]] row row_of(workload const& net, std::size_t devices, setting const& s, std::string space) const {
        row r;
        r.workload = net.name;
        r.devices = devices;
        r.movement = name_of(s.movement);
        r.discipline = name_of(s.discipline);
        r.space = std::move(space);
        r.threads = asked_.threads;
        return r;
    }
    template <class P> void fill_full(row& r, P const& problem, std::vector<strategy> const& strategies) const {
        auto const pass = full_pass(problem, strategies, asked_.seconds / 4);
        r.operators = problem.size();
        r.tasks = pass.tasks;
        r.full_us = pass.us;
        r.full_ns_per_task = pass.ns_per_task;
        r.rebuild_us = rebuild_us(problem, strategies, asked_.seconds / 10);
    }
    template <class P> static double tasks_of(P const& problem, strategy const& s) {
        auto simulator = full_simulator(problem);
        simulator.simulate(s);
        return simulator.tasks().size();
    }

    // Written row by row: an interrupted run leaves what it has measured.
    void add(row const& r) {
        if (rows_.empty()) print_head();
        rows_.push_back(r);
        print(r);
        write(rows_, asked_.out);
    }

    request asked_;
    std::mt19937_64 rng_;
    std::vector<row> rows_;
};

int run(int argc, char** argv) {
    request asked;
    std::vector<std::string> names;
    for (auto const& net : workloads()) names.push_back(net.name);
    CLI::App app{"Measures how fast strategies are priced."};
    auto* const seconds = app.add_option("--seconds", asked.seconds, "measured per row, after a quarter as much of warm-up")->capture_default_str();
    seconds->check(CLI::Range(0.001, 3600.0));
    app.add_option("--workload", asked.workloads, "only these")->check(CLI::IsMember(names));
    app.add_option("--devices", asked.devices, "these counts instead of each workload's own, where they fill whole nodes");
    app.add_flag("--all", asked.all, "every movement with every discipline");
    app.add_flag("--quick", asked.quick, "a twentieth of a second per row, the smallest clusters");
    app.add_option("--threads", asked.threads, "chains at once, each with a simulator of its own")->capture_default_str()->check(CLI::Range(1, 1024));
    app.add_option("--seed", asked.seed, "of all draws")->capture_default_str();
    app.add_option("--against", asked.against, "compare with the rows of this file")->check(CLI::ExistingFile);
    // The last one counts: bench/run names a file before the user may.
    app.add_option("--out", asked.out, "the rows, as JSON")->capture_default_str()->take_last();
    CLI11_PARSE(app, argc, argv);
    if (asked.quick && seconds->empty()) asked.seconds = 0.05;

    nlohmann::json before; // read first: it may be the file that is written
    if (!asked.against.empty()) before = nlohmann::json::parse(std::ifstream(asked.against));
    auto rows = benchmark(asked).run();
    if (rows.empty()) throw ps::invalid_input("no row has this workload and this number of devices");
    auto const checks = check_floors(rows);
    write(rows, asked.out);
    auto const missed = print(checks);
    if (!asked.against.empty()) compare(before, rows);
    fmt::print("\nwrote {}\n", asked.out);
    return missed == 0 ? 0 : 1;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
