#include <parsearch/problem/constraints.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/part_of_devices.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/pipeline/plans/placement.hpp>
#include <parsearch/pipeline/plans/plan_problem.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/problem/replanning.hpp>
#include <parsearch/problem/tied.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/random_search.hpp>
#include <parsearch/search/tempering.hpp>

#include "support/cases.hpp"
#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::literals;
using support::refusal;

namespace {

struct three_layers {
    graph::operator_graph g;
    support::plain_topology mesh = support::mesh(4, 1e9);
    using handle = operator_handle_t<graph::operator_graph>;
    three_layers() {
        graph::tensor_ref x = g.input("in", {{8, 16}});
        for (auto const* const name : {"fc1", "fc2", "fc3"}) x = g.add(name, ops::linear{.out = 16}, x);
    }
    [[nodiscard]] auto problem(constraints_of<graph::operator_graph, support::plain_topology> const& c = {}, problem_options const& o = {}) const {
        return make_problem(g, mesh, support::mixed_oracle{}, o, c);
    }
    [[nodiscard]] handle operator[](std::string const& name) const {
        auto const p = problem();
        return p.handle(static_cast<std::size_t>(std::ranges::find(p.graph().names, name) - p.graph().names.begin()));
    }
};
using wanted = constraints_of<graph::operator_graph, support::plain_topology>;

/// Devices that are not used, and memory of others.
wanted random_devices(std::mt19937_64& rng, std::uint32_t devices) {
    wanted out;
    auto const gone = static_cast<std::uint32_t>(uniform_index(rng, devices));
    if (bernoulli(rng, 0.3)) out.leave_out(gone);
    else if (bernoulli(rng, 0.3)) out.memory(gone, 1'000'000);
    return out;
}

/// `out`, and some constraints of a problem like `free`, which has `out`.
template <class Free> wanted random_constraints(Free const& free, wanted out, std::mt19937_64& rng) {
    auto const some = [&] {
        for (;;)
            if (auto const op = uniform_index(rng, free.size()); free.graph().operations[op].work != ops::work_class::source) return op;
    };
    auto const form = [&](std::size_t op) {
        auto said =
            space::to_string(free.space()[op][static_cast<std::uint32_t>(uniform_index(rng, free.space()[op].size()))], free.graph().operations[op]);
        return bernoulli(rng, 0.5) ? said : said.substr(0, said.find(" @"));
    };
    for (auto n = 1 + uniform_index(rng, 3); n > 0; --n) {
        auto const op = some();
        switch (uniform_index(rng, 5)) {
        case 0: out.pin(free.handle(op), form(op)); break;
        case 4: out.pin([handle = free.handle(op)](auto const& of, ops::operation const&) { return of == handle; }, form(op)); break;
        case 1: out.forbid(free.handle(op), form(op)); break;
        case 2:
            if (auto const& dims = free.graph().operations[op].dims; !dims.empty())
                out.limit(free.handle(op), dims[uniform_index(rng, dims.size())].name, static_cast<std::int32_t>(1 + uniform_index(rng, 2)));
            break;
        default: {
            auto const device = static_cast<std::int64_t>(uniform_index(rng, free.topology().size()));
            out.forbid([device, handle = free.handle(op)](auto const& of, ops::operation const&, space::configuration const& c) {
                bool there = false;
                for (std::int64_t shard = 0; shard < c.shards(); ++shard) there = there || c.place(shard) == device;
                return of == handle && there;
            });
        }
        }
    }
    return out;
}

} // namespace

TEST_CASE("constraints: all searches keep them, from starts that break them, and what is proved is proved of what is left") {
    int broken = 0, refused = 0;
    for (std::uint64_t seed = 1; seed <= support::cases(500u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 4});
        auto const network = support::random_network(rng, 4);
        auto const options = support::random_options(rng);
        auto const of_devices = random_devices(rng, 4);
        auto const free = make_problem(network, topology, support::mixed_oracle{}, {.simulation = options}, of_devices);
        auto const limits = random_constraints(free, of_devices, rng);
        auto const problem = [&]() -> std::optional<decltype(make_problem(network, topology, support::mixed_oracle{}))> {
            try {
                return make_problem(network, topology, support::mixed_oracle{}, {.simulation = options}, limits);
            } catch (invalid_input const&) { // nothing is left of some operator
                return {};
            }
        }();
        if (!problem) {
            ++refused;
            continue;
        }
        auto const start = search::random_strategy(free.space(), data_parallel(free), rng);
        std::uint64_t outside = 0;
        for (std::size_t op = 0; op < free.size(); ++op) {
            outside += !problem->space().contains(op, start[op]);
            // The space is what the rules leave, by definition.
            std::size_t left = 0;
            for (auto const& c : free.space()[op])
                left += space::keeps(problem->space().options(), free.graph().names[op], free.graph().operations[op], c);
            if (free.graph().operations[op].work != ops::work_class::source) REQUIRE(problem->space()[op].size() == left);
        }
        broken += outside > 0;
        auto const check = [&](std::string const& name, auto const& found) {
            CAPTURE(name);
            REQUIRE(!problem->space().first_outside(found.best));
            REQUIRE(problem->keeps_constraints(found.best));
            REQUIRE(problem->evaluator()(found.best) == found.cost);
            REQUIRE(found.stats.projected == outside);
        };
        auto const exact = search::exact(*problem, start, rng, {.evaluations = 500});
        check("exact", exact);
        auto const every = search::exhaustive(*problem, start, rng, {.evaluations = 3000});
        check("exhaustive", every);
        if (every.reason == stop_reason::exhausted || every.reason == stop_reason::proved_optimal) REQUIRE(exact.lower_bound <= every.cost);
        if (exact.reason == stop_reason::proved_optimal) REQUIRE(exact.cost <= every.cost);
        check("mcmc", search::mcmc(*problem, start, rng, {.evaluations = 60}));
        check("tempering", search::tempering(*problem, start, rng, {.evaluations = 60}));
        check("greedy", search::greedy(*problem, start, rng, {.evaluations = 100}));
        check("random", search::random_search(*problem, start, rng, {.evaluations = 30}));
        check("dominator_dp", search::dominator_dp(*problem, start, rng));
        check("portfolio", search::portfolio(*problem, start, rng, {.evaluations = 100}));
        for (auto const& s : problem->starts()) REQUIRE(problem->keeps_constraints(s));
        if (seed % 5 != 0) continue;
        replanning const change(free, start, *problem, 10);
        REQUIRE(problem->keeps_constraints(search::greedy(change, change.start(), rng, {.evaluations = 60}).best));
        REQUIRE(problem->keeps_constraints(search::mcmc(change, change.start(), rng, {.evaluations = 40}).best));
        tied_parallelization const tied(*problem);
        auto const together = tied.ties().spread(search::greedy(tied, tied.ties().gather(start), rng, {.evaluations = 60}).best);
        REQUIRE(problem->keeps_constraints(together));
        REQUIRE(tied.ties().keeps(together));
        std::vector<std::size_t> const counts{1, 2, problem->topology().size()};
        for (auto const &point : pipeline::device_front(*problem, counts, [&](parallelization const& p, space::flat_strategy const& s) {
                 return search::greedy(p, s, rng, {.evaluations = 30}).best;
             }))
            if (auto const& found = point.plan.strategy; !found.empty()) REQUIRE(problem->keeps_constraints(with_devices(found, point.devices)));
        auto const part = pipeline::partition_part(*problem, rng, {.evaluations = 40});
        REQUIRE(!space::first_not_allowed(on_devices(*problem, part.devices).space().options(), problem->graph(), part.found.best.strategy));
        auto const plan = pipeline::partition(*problem, {}, rng, {.evaluations = 40}).best;
        REQUIRE(!space::first_not_allowed(problem->space().options(), problem->graph(), plan.strategy));
        pipeline::plan_problem const plans(*problem);
        auto const improved = search::mcmc(plans, plans.decisions(plan), rng, {.evaluations = 40}).best;
        REQUIRE(!space::first_not_allowed(problem->space().options(), problem->graph(), plans.plan(improved).strategy));
    }
    CHECK(broken > 50);
    CHECK(refused < 100);
}

TEST_CASE("constraints: by handle, by predicate, with devices or without") {
    three_layers const net;
    auto const of = [&](wanted const& c, std::size_t op) { return net.problem(c).space()[op].size(); };
    auto const free = net.problem();
    CHECK(of(wanted{}.pin(net["fc1"], "s2 o2 @0+2,1"), 1) == 1);
    CHECK(of(wanted{}.pin(net["fc1"], "whole @3"), 1) == 1);
    CHECK(of(wanted{}.pin(net["fc1"], "whole @3").pin(net["fc1"], "whole @1"), 1) == 2);
    CHECK(of(wanted{}.pin(net["fc1"], "whole"), 1) == 4);
    CHECK(of(wanted{}.pin(net["fc1"], "whole"), 2) == free.space()[2].size());
    CHECK(of(wanted{}.pin(net["fc1"], free.space()[1][7]), 1) == 1);
    CHECK(of(wanted{}.forbid(net["fc1"], "whole @3"), 1) == free.space()[1].size() - 1);
    CHECK(of(wanted{}.forbid(net["fc1"], "whole"), 1) == free.space()[1].size() - 4);
    wanted linear;
    linear.pin([](auto const&, ops::operation const& op) { return op.kind == "linear"; }, "s4");
    for (std::size_t op = 1; op < 4; ++op) CHECK(of(linear, op) == 1);
    auto const limited = net.problem(wanted{}.limit(net["fc2"], "o", 2).limit(net["fc2"], "o", 1));
    for (auto const& c : limited.space()[2]) CHECK(c.degree[1] == 1);
    // What the options say holds, too.
    auto const fewer = net.problem(wanted{}.forbid(net["fc2"], "s2"), {.space = {.max_shards = 2}});
    for (auto const& c : fewer.space()[2]) CHECK((c.shards() <= 2 && c.degree[0] == 1));
    CHECK(free.number_of(net["fc3"]) == 3);
    CHECK(free.number_of(three_layers::handle{17}) == std::nullopt);
}

TEST_CASE("constraints: devices that are left out are not there, and handles say which are") {
    three_layers net;
    for (std::uint32_t d = 0; d < 4; ++d) net.mesh.node[d] = d / 2;
    auto const problem = net.problem(wanted{}.leave_out(net.mesh.devices()[1]).memory(net.mesh.devices()[3], 5_GiB));
    CHECK(problem.topology().size() == 3);
    CHECK(problem.device(1) == net.mesh.devices()[2]);
    for (std::size_t d = 0; d < 3; ++d) CHECK(problem.number_of_device(problem.device(d)) == d);
    CHECK(refusal([&] { return problem.number_of_device(1); }) ==
          "number_of_device: a device (its handle is 1) that is none of the 3 of the problem");
    CHECK(problem.topology().node == std::vector<std::uint32_t>{0, 1, 1});
    CHECK(problem.topology().devices[2].memory == sim::usable_memory(5_GiB, problem.options()));
    auto const all = net.problem();
    auto full = all.simulator();
    auto part = problem.simulator();
    for (std::size_t op = 1; op < 4; ++op)
        for (auto c : problem.space()[op]) {
            auto s = space::one_device(problem.graph());
            s[op] = c;
            // The same on the same devices of all of them. Odd devices are slower in this oracle, by handle.
            auto wide = s;
            for (auto& each : wide) {
                std::vector<std::int32_t> listed;
                for (std::int64_t n = 0; n < each.shards(); ++n) listed.push_back(each.device(n) + (each.device(n) > 0));
                each.listed = listed;
                each.start = 0;
                each.stride = {};
            }
            CHECK(part(s) == full(wide));
        }
}

TEST_CASE("constraints: part of a topology has the routes and rings of what is left") {
    auto ring = support::line(5, 1, 1);
    ring.node = {3, 3, 4, 7, 8};
    auto const t = topology::read_topology(ring).topology;
    auto const part = topology::part_of(t, {true, false, true, false, true});
    REQUIRE(part.size() == 3);
    CHECK(part.node == std::vector<std::uint32_t>{0, 1, 2});
    std::vector<std::size_t> const kept{0, 2, 4};
    for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = 0; b < 3; ++b) CHECK(std::ranges::equal(part.route(a, b), t.route(kept[a], kept[b])));
    CHECK(topology::part_of(t, std::vector<bool>(5, true)) == t);
    auto with_rings = t;
    with_rings.rings = {{0, 1, 2, 3}, {1, 2}};
    auto const left = topology::part_of(with_rings, {true, true, false, true, true}).rings;
    CHECK(left == std::vector<std::vector<std::uint32_t>>{{0, 1, 2}});
}

TEST_CASE("constraints: ties are those of the tied problem, whose bounds prove what enumeration finds") {
    three_layers const net;
    std::mt19937_64 rng{1};
    auto const problem = net.problem(wanted{}.tie({net["fc1"], net["fc3"]}).limit(net["fc2"], "o", 2));
    tied_parallelization const tied(problem);
    CHECK(problem.ties() == std::vector<std::uint32_t>{0, 1, 2, 1});
    CHECK(tied.ties().size() == 3);
    auto const start = tied.ties().gather(data_parallel(problem));
    auto const exact = search::exact(tied, start, rng);
    auto const every = search::exhaustive(tied, start, rng, {.bound = false});
    CHECK(exact.reason == stop_reason::proved_optimal);
    CHECK(exact.cost == every.cost);
    CHECK(exact.lower_bound == every.cost);
    auto const best = tied.ties().spread(exact.best);
    CHECK(best[1] == best[3]);
    CHECK(problem.simulator()(best) == exact.cost);
    // Where nothing is said, blocks; they can be joined with groups.
    CHECK(net.problem().ties().empty());
    CHECK(tied_parallelization(net.problem()).ties().group_of(3) == tied_parallelization(net.problem(wanted{}.tie_blocks())).ties().group_of(3));
    // A pin of one that is tied by name is one of all.
    CHECK(refusal([&] {
              return net.problem(wanted{}.tie({net["fc1"], net["fc3"]}).pin(net["fc3"], "whole")).size();
          }) == "constraints: 'fc3' is tied to 'fc1', which may be split otherwise: must have equal dims, and the same pins, limits and forbidden "
                "configurations");
    CHECK(net.problem(wanted{}.tie({net["fc1"], net["fc3"]}).pin(net["fc3"], "whole").pin(net["fc1"], "whole")).ties()[3] == 1);
    // Starts that break constraints are projected here, too.
    auto const pinned =
        net.problem(wanted{}.tie({net["fc1"], net["fc3"]}).pin([](auto const&, auto const& op) { return op.kind == "linear"; }, "o4"));
    tied_parallelization const all_pinned(pinned);
    auto const found = search::greedy(all_pinned, all_pinned.ties().gather(data_parallel(pinned)), rng);
    CHECK(found.stats.projected == 3);
    CHECK(pinned.keeps_constraints(all_pinned.ties().spread(found.best)));
}

TEST_CASE("constraints: bounds of ties are below every completion") {
    for (std::uint64_t seed = 1; seed <= support::cases(100u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 2});
        auto const network = support::random_network(rng, 5);
        auto const free = make_problem(network, topology, support::mixed_oracle{}, {.simulation = support::random_options(rng)});
        wanted ties;
        std::vector<operator_handle_t<decltype(network)>> group;
        for (std::size_t op = 0; op < free.size(); ++op)
            if (bernoulli(rng, 0.6) && (group.empty() || free.space().of(op) == free.space().of(*free.number_of(group.front()))))
                group.push_back(free.handle(op));
        if (!group.empty()) ties.tie(group);
        auto const problem = make_problem(network, topology, support::mixed_oracle{}, {.simulation = free.options()}, ties);
        tied_parallelization const tied(problem);
        auto const space = tied.space();
        auto evaluator = tied.evaluator();
        auto bounds = evaluator.bounds(space);
        for (int n = 0; n < 20; ++n) {
            auto s = tied.ties().gather(data_parallel(problem));
            std::vector<std::uint32_t> fixed;
            std::vector<picoseconds> values;
            for (auto const g : bounds.order()) {
                auto const i = static_cast<std::uint32_t>(uniform_index(rng, space[g].size()));
                s[g] = space[g][i];
                values.push_back(bounds.value());
                bounds.fix(g, i);
                fixed.push_back(g);
            }
            auto const cost = evaluator(s);
            for (auto const& v : values) REQUIRE(v <= cost);
            REQUIRE(bounds.value() <= cost);
            for (auto at = fixed.size(); at-- > 0;) bounds.release(fixed[at]);
        }
    }
}

TEST_CASE("constraints: what is wrong is named") {
    std::function<bool(operator_handle_t<graph::operator_graph> const&, ops::operation const&)> const no_predicate;
    CHECK(refusal([&] { return wanted{}.pin(no_predicate, "s2").left_out(); }) ==
          "constraints: the predicate of a pin to 's2' is an empty function: must be one that can be called");
    three_layers const net;
    auto const wrong = [&](wanted const& c) { return refusal([&] { return net.problem(c).size(); }); };
    CHECK(wrong(wanted{}.pin(three_layers::handle{17}, "whole")) ==
          "constraints: pin names an operator that is none of the 4 that operators(graph) names (its handle is 17)");
    CHECK(wrong(wanted{}.tie({three_layers::handle{17}})) ==
          "constraints: tie names an operator that is none of the 4 that operators(graph) names (its handle is 17)");
    CHECK(wrong(wanted{}.pin(net["in"], "whole")) == "constraints: pin of 'in': a graph input has no tasks");
    CHECK(wrong(wanted{}.pin(net["fc1"], "s9"))
              .starts_with("constraints: pin of 'fc1': 's9': s9: the degree must be from 1 to the extent, 8; linear has dims"));
    CHECK(wrong(wanted{}.forbid(net["fc1"], "s3")) ==
          "constraints: forbid of 'fc1': s3 @0+0: degrees must divide the extents, unless the space option uneven is true");
    CHECK(wrong(wanted{}.forbid(net["fc1"], space::configuration{})) ==
          "constraints: forbid of 'fc1': operator 'fc1' (linear): configuration has 0 degrees: the operator has 3 iteration dims");
    CHECK(wrong(wanted{}.limit(net["fc1"], "rows", 2)) == "constraints: limit of 'fc1' (linear): it has no dim 'rows'");
    CHECK(wrong(wanted{}.limit(net["fc1"], "o", 0)) == "constraints: limit of 'fc1', dim 'o' is 0: must be at least 1");
    CHECK(wrong(wanted{}.pin([](auto const&, auto const&) { return false; }, "s4")) ==
          "constraints: rule number 0, pin to 's4', matches no operator: must match some");
    CHECK(wrong(wanted{}.leave_out(9)) == "constraints: leave_out number 0 is of a device that the topology does not have (its handle is 9)");
    CHECK(wrong(wanted{}.memory(9, 1)) == "constraints: memory number 0 is of a device that the topology does not have (its handle is 9)");
    CHECK(wrong(wanted{}.memory(1, -1)) == "constraints: the memory of device 1 (its handle is 1) is -1 bytes: must not be negative");
    wanted none;
    for (std::uint32_t d = 0; d < 4; ++d) none.leave_out(d);
    CHECK(wrong(none) == "constraints: all 4 devices are left out: some must be used");
    // What leaves nothing is said.
    std::string const nothing = "configuration space of operator 'fc1': none of its ";
    auto const splits = net.problem().space().of(1).splits();
    CHECK(wrong(wanted{}.pin(net["fc1"], "s2").forbid(net["fc1"], "s2")) ==
          text(nothing, splits, " splits on 4 devices is allowed: it is pinned to 's2', forbidden 's2'"));
    CHECK(wrong(wanted{}.pin(net["fc1"], "s8").pin(net["fc1"], "o8")) ==
          text(nothing, splits, " splits on 4 devices is allowed: it is pinned to 's8' or 'o8'"));
    CHECK(wrong(wanted{}.pin(net["fc1"], "s2 o2").limit(net["fc1"], "o", 1).limit(net["fc1"], "s", 2)) ==
          text(nothing, splits, " splits on 4 devices is allowed: it is pinned to 's2 o2', limited to 2 parts of dim 's' and 1 parts of dim 'o'"));
    CHECK(wrong(wanted{}.pin(net["fc1"], "whole @9")) == text(nothing, "4 configurations on 4 devices is admitted: it is pinned to 'whole @9'"));
    auto elsewhere = net.problem().space()[1][0];
    elsewhere.start = 7;
    CHECK(wrong(wanted{}.pin(net["fc1"], elsewhere)) == text(nothing, "4 configurations on 4 devices is admitted: it is pinned to '",
                                                             space::to_string(elsewhere, net.problem().graph().operations[1]), "'"));
    CHECK(refusal([&] {
              return net.problem({}, {.space = {.allows = [](auto, auto const&, auto) { return false; }}}).size();
          }).ends_with(" is allowed"));

    // Not every graph has names of its own for all operators.
    auto twins = net.problem().graph();
    twins.names[2] = "fc1";
    using by_number = constraints_of<graph::dense_graph, support::plain_topology>;
    auto const made = [&](by_number const& c) { return make_problem(twins, net.mesh, support::mixed_oracle{}, {}, c); };
    CHECK(refusal([&] { return made(by_number{}.pin(1, "s2")).size(); }) ==
          "constraints: operators number 1 (its handle is 1) and 2 (its handle is 2) are both named 'fc1': operators with constraints that differ "
          "must have names that differ");
    CHECK(refusal([&] { return made(by_number{}.forbid([](auto, auto const&, auto const&) { return false; })).size(); }) ==
          "constraints: an operator (its handle is 1) and operator number 2 (its handle is 2) are both named 'fc1': forbid by a predicate needs "
          "names that differ");
    auto const pinned = net.problem(wanted{}.pin(net["fc1"], "s2"));
    auto start = data_parallel(pinned);
    start[1].rank = 2;
    std::mt19937_64 rng{1};
    CHECK(refusal([&] { return search::greedy(pinned, start, rng).cost; }) ==
          "operator 'fc1' (linear): configuration has 2 degrees: the operator has 3 iteration dims");
    auto const alike = made(by_number{}.pin(1, "s2").pin(2, "s2"));
    for (std::size_t op = 1; op < 3; ++op) CHECK(alike.space().of(op).splits() == 1);
}
