#include <parsearch/rewrite/joint/joint_cache.hpp>

#include <random>
#include <string>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/joint/joint.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
template <class M> auto problem_of(M const& model, std::uint32_t nodes = 1) {
    auto const cluster = topology::nodes({.count = nodes, .gpus_per_node = 4, .device = topology::v100_sxm});
    return make_problem(model, cluster, cost::roofline(cluster));
}
} // namespace

TEST_CASE("joint cache: a search finds the same with it, filled by the same search or by another, and makes fewer tables") {
    auto const p = problem_of(models::lenet()), other = problem_of(models::mlp());
    auto const rules = algebraic_rules();
    auto const found = [&](auto const& problem, auto& cache) {
        std::mt19937_64 rng(1);
        return joint(problem, {}, rng, {.rules = rules, .cache = &cache, .mapping_views = 8});
    };
    joint_cache own(p), of_other(other), shared(p);
    CHECK(own.tables_made() == 0);
    auto const first = found(p, own), alone = found(other, of_other);
    auto const made = own.tables_made(), made_of_other = of_other.tables_made();
    CHECK(made > 0);
    auto const same = [](auto const& a, auto const& b) {
        return a.cost == b.cost && a.best.strategy == b.best.strategy && a.best.graph == b.best.graph && a.best.applied == b.best.applied &&
               a.stats.evaluations == b.stats.evaluations;
    };
    CHECK(same(found(p, own), first));
    CHECK(own.tables_made() == made); // all were there
    std::mt19937_64 rng(1);
    CHECK(same(joint(p, {}, rng, {.rules = rules, .mapping_views = 8}), first));
    CHECK(same(found(other, shared), alone));
    CHECK(same(found(p, shared), first));
    CHECK(same(found(other, shared), alone));
    CHECK(shared.tables_made() <= made + made_of_other);
}

TEST_CASE("joint cache: another topology is refused") {
    auto const p = problem_of(models::lenet()), other = problem_of(models::lenet(), 2);
    joint_cache cache(p);
    std::mt19937_64 rng(1);
    CHECK(support::refusal([&] { return joint(other, {}, rng, {.cache = &cache}); }).find("joint: the cache is of a topology of 4 devices") == 0);
    // The same links, another route; the same topology, other options of simulation.
    auto const mesh = support::mesh(4, 1000, 0);
    auto detour = mesh;
    detour.routes[0][1] = detour.routes[0][2];
    auto const straight = make_problem(models::lenet(), mesh, support::mixed_oracle{});
    joint_cache of_mesh(straight);
    CHECK(support::refusal([&] {
              return joint(make_problem(models::lenet(), detour, support::mixed_oracle{}), {}, rng, {.cache = &of_mesh});
          }).find("the same routes and rings") != std::string::npos);
    CHECK(support::refusal([&] {
              return joint(make_problem(models::lenet(), mesh, support::mixed_oracle{}, {.simulation = {.training = false}}), {}, rng,
                           {.cache = &of_mesh});
          }) == "joint: the cache is of other options of simulation than the problem's: must be the same");
    CHECK(support::refusal([&] { return joint_cache(p, {.candidates = 0}).tables_made(); }) ==
          "graph_pricer option candidates is 0: must be at least 1");
}
