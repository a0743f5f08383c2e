// The searches that take what make_problem answers, on the smallest graph, topology and oracle that meet the concepts.
#include <parsearch/rewrite/joint/joint_pipeline.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/concepts/archetypes.hpp>
#include <parsearch/fabric/cooptimize/co_optimize.hpp>
#include <parsearch/fabric/cooptimize/joint_mcmc.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/wiring/wirings.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/rewrite/joint/joint.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>
#include <parsearch/search/mcmc.hpp>

#include "support/networks.hpp"

using namespace parsearch;
namespace at = parsearch::archetypes;

namespace {

using described = at::operator_graph<ops::operation>;
using oracle = at::cost_oracle<ops::shard_work, at::device_handle>;
static_assert(!std::copyable<described> && !std::is_copy_assignable_v<oracle>);

/// Two linear layers of a graph input and their sum with it.
graph::operator_graph diamond() {
    graph::operator_graph g;
    auto const x = g.input("x", {{12, 12}});
    auto const a = g.add("left", ops::linear{.out = 12}, x);
    auto const b = g.add("right", ops::linear{.out = 12}, x);
    g.add("join", ops::nary{ops::combine::add}, a, b, x);
    return g;
}

/// What its operators compute, as those of the archetype: the first has two outputs.
std::array<ops::operation, 4> operations() {
    auto made = graph::read_graph(diamond()).graph.operations;
    made[0].outputs.push_back(made[0].outputs[0]);
    return {made[0], made[1], made[2], made[3]};
}

} // namespace

TEST_CASE("joint, pipeline and fabric searches run on archetypes") {
    auto const made = operations();
    described const graph{std::span<ops::operation const, 4>(made)};
    auto const problem = make_problem(graph, at::device_topology{}, oracle(picoseconds{1000}));
    CHECK(problem.handle(3) == at::operator_handle(3));
    CHECK(problem.device(2) == at::device_handle(2));

    at::random_bits rng(1), again(1);
    // Graphs that are rewritten have inputs of one output.
    auto const plain = with_graph(problem, diamond());
    auto const joined = rewrite::joint(plain, {}, rng, {.rules = rewrite::algebraic_rules(), .refinement = 20});
    CHECK(joined.cost == rewrite::joint(plain, {}, again, {.rules = rewrite::algebraic_rules(), .refinement = 20}).cost);
    auto const staged = pipeline::partition(problem, {}, rng);
    CHECK(pipeline::pipeline_simulator(problem)(staged.best.how, staged.best.strategy) == staged.cost);
    auto const both = rewrite::joint_pipeline(plain, {}, rng);
    CHECK(both.cost <= pipeline::partition(plain, {}, rng).cost);

    fabric::fabric_problem const servers(graph, 4, {.servers = support::slow_servers(1)},
                                         [](topology::cluster const&) { return at::cost_oracle<ops::shard_work, std::uint32_t>(picoseconds{1000}); });
    auto const searcher = [](parallelization const& p, space::flat_strategy start, at::random_bits& bits) {
        return search::mcmc(p, std::move(start), bits, {.evaluations = 30});
    };
    auto const wired = fabric::co_optimize(searcher, fabric::wirings{2, servers.options().servers.interface})(servers, {}, rng, {.rounds = 2});
    auto const rewired = fabric::joint_mcmc(servers, wired.best, rng, {.evaluations = 30});
    CHECK(rewired.cost <= wired.cost);
}
