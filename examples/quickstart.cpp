// A model, a cluster, a cost oracle: the fastest strategy that ten seconds of search find.
#include <parsearch/parsearch.hpp>

#include <iostream>
#include <random>

namespace ps = parsearch;
using namespace std::chrono_literals;

int main() {
    auto model = ps::models::gpt({.layers = 24, .hidden = 2048, .heads = 16, .sequence = 2048, .batch = 64});
    auto cluster = ps::topology::nodes({.count = 4, .gpus_per_node = 8, .device = ps::topology::h100_sxm});
    auto oracle = ps::cost::roofline{cluster};
    auto problem = ps::make_problem(model, cluster, oracle);
    std::mt19937_64 rng{42};
    auto found = ps::search::mcmc(problem, ps::data_parallel(problem), rng, {.time = 10s});

    std::cout << "data parallel " << ps::to_seconds(ps::simulate(problem, ps::data_parallel(problem)).makespan) * 1e3 << " ms, found "
              << ps::to_seconds(found.cost) * 1e3 << " ms after " << found.stats.evaluations << " simulations\n";
}
