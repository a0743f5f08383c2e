// Searches over ranks with checkpoints, for check_killed.py, which kills ranks meanwhile.
//
//   killed tempering|portfolio|exact FILE resume|anew
//
// Rank 0 appends every cost to FILE.costs as it becomes the least, and writes `cost reason trajectory` of the answer to FILE.best. SIGTERM stops, as
// that is what mpirun sends to the ranks that are left.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include <boost/mpi/environment.hpp>
#include <doctest/doctest.h>

#include <parsearch/mpi/exact_ranks.hpp>
#include <parsearch/mpi/portfolio_ranks.hpp>
#include <parsearch/mpi/tempering_ranks.hpp>

#include "support/additive_toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
namespace mpi = parsearch::mpi;

namespace {

volatile std::sig_atomic_t asked_to_end = 0;

int run(std::string_view name, std::string const& file, bool resume) {
    bool const first = boost::mpi::communicator().rank() == 0;
    std::stop_source source;
    std::jthread const watch([&](std::stop_token const& end) {
        while (!end.stop_requested()) {
            if (asked_to_end != 0) source.request_stop();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    mpi::setting const over{.checkpoint = file, .every = std::chrono::milliseconds(20), .resume = resume};
    std::ofstream costs(file + ".costs", std::ios::app);
    auto const tell = search::on<search::improved>([&](auto const& e) {
        if (first) costs << e.cost << std::endl;
    });
    toys::splitmix rng{7};
    auto const problem = toys::random_additive<std::int64_t>(rng, 18, 10);
    toys::strategy const start(18, 0);
    boost::mpi::communicator().barrier(); // from here on all ranks are there
    if (first) costs << problem.evaluator()(start) << std::endl;
    // As slow as it is to price a real plan.
    ps::search_problem const slow{problem.space(), [cost = problem.evaluator()](toys::strategy const& s) {
                                      std::this_thread::sleep_for(std::chrono::microseconds(200));
                                      return cost(s);
                                  }};
    auto const write = [&](auto const& found) {
        if (!first) return 0;
        std::ofstream(file + ".best.new") << found.cost << ' ' << ps::name_of(found.ended) << ' ' << found.stats.trajectory << '\n';
        std::filesystem::rename(file + ".best.new", file + ".best");
        return 0;
    };
    if (name == "tempering")
        return write(mpi::tempering_fn{over}(slow, start, rng, {.evaluations = 6000, .stop = source.get_token(), .replicas = 6}, tell));
    if (name == "portfolio")
        return write(mpi::portfolio_fn{over}(slow, start, rng, {.evaluations = 4000, .stop = source.get_token(), .concurrent = true}, tell));
    return write(mpi::exact_fn{over}(problem, start, rng, {.stop = source.get_token(), .walk = 0, .sweeps = 0, .open = 64}, tell));
}

} // namespace

int main(int argc, char** argv) {
    boost::mpi::environment const environment(argc, argv);
    std::signal(SIGTERM, [](int) { asked_to_end = 1; });
    if (argc != 4) {
        std::fprintf(stderr, "killed tempering|portfolio|exact FILE resume|anew\n");
        return 2;
    }
    try {
        auto const code = run(argv[1], argv[2], std::string_view(argv[3]) == "resume");
        if (mpi::any_lost()) std::_Exit(code);
        return code;
    } catch (std::exception const& e) {
        std::fprintf(stderr, "killed: %s\n", e.what());
        return 1;
    }
}
