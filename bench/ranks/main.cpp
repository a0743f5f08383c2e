// Searches over MPI ranks: how quick, how much is said, and whether the result is that of one rank. Run by mpirun once per number of ranks, the
// smallest first; rows are added to the file.
//
//   mpirun -n N ranks [--evaluations N] [--out FILE]

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include <CLI/CLI.hpp>
#include <boost/mpi/collectives.hpp>
#include <boost/mpi/environment.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/mpi/tempering_ranks.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "bench/write_file.hpp"

namespace {

namespace ps = parsearch;

int run(std::uint64_t evaluations, std::string const& out) {
    boost::mpi::communicator const world;
    auto const cluster = ps::topology::nodes({.count = 4, .gpus_per_node = 4, .device = ps::topology::p100_sxm});
    auto const problem = ps::make_problem(ps::models::inception_v3(), cluster, ps::cost::roofline{cluster});
    std::mt19937_64 rng{1};
    ps::mpi::traffic sent;
    world.barrier();
    auto const began = std::chrono::steady_clock::now();
    auto const found =
        ps::mpi::tempering_fn{{.counted = &sent}}(problem, ps::data_parallel(problem), rng, {.evaluations = evaluations, .replicas = 8});
    double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    ps::mpi::traffic all;
    boost::mpi::reduce(world, sent.messages, all.messages, std::plus<>(), 0);
    boost::mpi::reduce(world, sent.bytes, all.bytes, std::plus<>(), 0);
    if (world.rank() != 0) return 0;
    auto rows = nlohmann::json::array();
    if (std::ifstream before(out); before && world.size() > 1) rows = nlohmann::json::parse(before);
    nlohmann::json row{{"case", "Inception-v3 on 16 GPUs, tempering"},
                       {"ranks", world.size()},
                       {"seconds", seconds},
                       {"evaluations_per_s", static_cast<double>(found.stats.evaluations) / seconds},
                       {"messages_per_s", static_cast<double>(all.messages) / seconds},
                       {"bytes_per_s", static_cast<double>(all.bytes) / seconds},
                       {"bytes_per_evaluation", static_cast<double>(all.bytes) / static_cast<double>(found.stats.evaluations)},
                       {"cost_ps", found.cost.count()},
                       {"trajectory", found.stats.trajectory}};
    auto const& first = rows.empty() ? row : rows.front();
    bool const same = first["trajectory"] == row["trajectory"] && first["cost_ps"] == row["cost_ps"];
    row["same_result"] = same;
    row["efficiency"] = first["seconds"].get<double>() / seconds / world.size();
    rows.push_back(row);
    bench::write_rows(out, rows);
    fmt::print("{} ranks: {:.2f} s, {:.0f} evaluations/s, efficiency {:.2f}, {:.0f} messages/s, {:.1f} kB/s, {:.0f} bytes/evaluation, result {}\n",
               world.size(), seconds, row["evaluations_per_s"].get<double>(), row["efficiency"].get<double>(), row["messages_per_s"].get<double>(),
               row["bytes_per_s"].get<double>() / 1e3, row["bytes_per_evaluation"].get<double>(), same ? "the same" : "ANOTHER");
    return same ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    boost::mpi::environment const environment(argc, argv, boost::mpi::threading::funneled, false);
    std::uint64_t evaluations = 40'000;
    std::string out = "out/bench/ranks.json";
    CLI::App app{"Searches over MPI ranks: how quick, how much is said, and whether the result is that of one rank."};
    app.add_option("--evaluations", evaluations, "of the search")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--out", out, "JSON file of the rows, made anew by a run of one rank")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        return run(evaluations, out);
    } catch (std::exception const& e) {
        fmt::print(stderr, "ranks: {}\n", e.what());
        return 2;
    }
}
