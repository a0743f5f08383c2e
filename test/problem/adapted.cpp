#include <parsearch/problem/adapted.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/problem/replanning.hpp>
#include <parsearch/search/kernel/starts.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {
using wanted = constraints_of<graph::operator_graph, support::plain_topology>;

/// How many shards of operators that are split alike are elsewhere, by handle.
template <class P> std::uint64_t moved(P const& from, space::configuration const& a, P const& to, space::configuration const& b) {
    std::uint64_t out = 0;
    for (std::int64_t n = 0; n < a.shards(); ++n)
        out += from.device(static_cast<std::size_t>(a.device(n))) != to.device(static_cast<std::size_t>(b.device(n)));
    return out;
}

/// The same devices, by name and the last one first.
struct named_topology {
    support::plain_topology plain;
    std::vector<std::string> names;

    explicit named_topology(support::plain_topology t) : plain(std::move(t)) {
        for (auto d = plain.device_numbers.size(); d-- > 0;) names.push_back(text("gpu", d));
    }
    static std::uint32_t number(std::string const& name) { return static_cast<std::uint32_t>(std::stoul(name.substr(3))); }
    [[nodiscard]] std::vector<std::string> const& devices() const { return names; }
    [[nodiscard]] std::vector<std::uint32_t> const& links() const { return plain.links(); }
    [[nodiscard]] device_description const& describe_device(std::string const& d) const { return plain.describe_device(number(d)); }
    [[nodiscard]] link_description const& describe_link(std::uint32_t l) const { return plain.describe_link(l); }
    [[nodiscard]] std::vector<std::uint32_t> const& route(std::string const& a, std::string const& b) const {
        return plain.route(number(a), number(b));
    }
    [[nodiscard]] std::uint32_t node_of(std::string const& d) const { return plain.node_of(number(d)); }
};

struct oracle_of_names {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::string const& device) const {
        return support::mixed_oracle{}.shard_time(w, named_topology::number(device));
    }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const {
        return support::mixed_oracle{}.transfer_time(bytes, link);
    }
};
} // namespace

TEST_CASE("adapted: after devices are lost each operator is where most of it was") {
    for (std::uint64_t seed = 1; seed <= support::cases(200u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 6});
        auto const network = support::random_network(rng, 6);
        auto const from = make_problem(network, topology, support::mixed_oracle{});
        wanted lost;
        for (std::uint32_t d = 1; d < 6; ++d)
            if (bernoulli(rng, 0.3)) lost.leave_out(d);
        auto const to = make_problem(network, topology, support::mixed_oracle{}, {}, lost);
        auto const s = search::random_strategy(from.space(), data_parallel(from), rng);
        auto const found = adapted(from, s, to);
        REQUIRE(!to.space().first_outside(found.strategy));
        std::uint64_t other = 0, shards = 0;
        for (std::size_t op = 0; op < to.size(); ++op) {
            auto const& all = to.space()[op];
            std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
            for (auto const& c : all)
                if (c.degree == s[op].degree) least = std::min(least, moved(from, s[op], to, c));
            if (least == std::numeric_limits<std::uint64_t>::max()) {
                ++other;
                REQUIRE(found.strategy[op] == to.space().of(op).nearest(s[op]));
            } else {
                REQUIRE(found.strategy[op].degree == s[op].degree);
                REQUIRE(moved(from, s[op], to, found.strategy[op]) == least);
                if (to.graph().operations[op].work != ops::work_class::source) shards += least;
            }
        }
        REQUIRE(found.other_splits == other);
        REQUIRE(found.moved_shards == shards);
        // Where all is as it was, so is the strategy; where devices come back degrees stay.
        auto const same = adapted(from, s, from);
        REQUIRE(same.moved_shards == 0);
        for (std::size_t op = 0; op < from.size(); ++op)
            if (from.graph().operations[op].work != ops::work_class::source) REQUIRE(moved(from, s[op], from, same.strategy[op]) == 0);
        auto const back = adapted(to, found.strategy, from);
        REQUIRE(back.other_splits == 0);
    }
}

TEST_CASE("adapted: devices of other names are one each") {
    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = 4, .device = topology::h100_sxm});
    auto const p = make_problem(models::mlp({}), cluster, cost::roofline{cluster});
    CHECK(support::refusal([&] { return device_numbers(p, p, [](std::uint32_t d) { return d / 2; }).size(); }) ==
          "device_numbers: device 1 (its handle is 1) is called as one before it, that of number 0 (its handle is 0) in the other problem: must be "
          "one each");
    CHECK(device_numbers(p, p, [](std::uint32_t d) { return 3 - d; }) == std::vector<std::int32_t>{3, 2, 1, 0});
}

TEST_CASE("adapted: operators that are new have what is nearest to data parallelism") {
    auto const net = [](int layers) {
        graph::operator_graph g;
        graph::tensor_ref x = g.input("in", {{8, 16}});
        for (int i = 0; i < layers; ++i) x = g.add(text("fc", i), ops::linear{.out = 16}, x);
        return g;
    };
    auto const topology = support::mesh(4, 1e9);
    auto const from = make_problem(net(2), topology, support::mixed_oracle{}), to = make_problem(net(3), topology, support::mixed_oracle{});
    auto s = space::one_device(from.graph());
    auto const found = adapted(from, s, to);
    CHECK(found.other_splits == 1);
    CHECK(found.strategy[1] == s[1]);
    CHECK(found.strategy[3] == data_parallel(to)[3]);
}

TEST_CASE("with_topology: the same operators on other devices, which have other names there") {
    for (std::uint64_t seed = 1; seed <= support::cases(100u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 5});
        named_topology const named(topology);
        auto const network = support::random_network(rng, 6);
        problem_options const options{.space = {.uneven = bernoulli(rng, 0.5), .copies = 2}, .simulation = {.optimizer = sim::optimizer::adam}};
        auto const from = make_problem(network, topology, support::mixed_oracle{}, options, wanted{}.forbid([](auto, auto const&, auto const& c) {
            return c.device(0) == 4; // no part of the other problem
        }));
        constraints_of<graph::operator_graph, named_topology> lost;
        lost.tie_blocks();
        for (auto const& name : named.names)
            if (name != "gpu0" && bernoulli(rng, 0.3)) lost.leave_out(name);
        auto const to = with_topology(from, named, oracle_of_names{}, lost);

        // As if it had been made of the graph.
        auto const made = make_problem(network, named, oracle_of_names{}, options, lost);
        REQUIRE(to.ties() == made.ties());
        REQUIRE(to.topology() == made.topology());
        auto const s = search::random_strategy(made.space(), data_parallel(made), rng);
        REQUIRE(!to.space().first_outside(s));
        REQUIRE(to.evaluator()(s) == made.evaluator()(s));
        for (std::size_t op = 0; op < made.size(); ++op) {
            REQUIRE(to.handle(op) == made.handle(op));
            REQUIRE(std::ranges::equal(to.space()[op], made.space()[op]));
        }

        // A plan comes along, and what it holds does.
        auto const name = [](std::uint32_t d) { return text("gpu", d); };
        auto const plan = search::random_strategy(from.space(), data_parallel(from), rng);
        wanted numbered;
        for (std::uint32_t d = 0; d < 5; ++d)
            if (std::ranges::find(*to.device_handles(), name(d)) == to.device_handles()->end()) numbered.leave_out(d);
        auto const plain = make_problem(network, topology, support::mixed_oracle{}, options, numbered);
        auto const there = adapted(from, plan, to, name), here = adapted(from, plan, plain);
        REQUIRE(there.other_splits == here.other_splits);
        auto turned = here.strategy; // on the same devices, by the numbers that they have in `to`
        for (auto& c : turned) {
            std::vector<std::int32_t> listed;
            for (std::int64_t n = 0; n < c.shards(); ++n) listed.push_back(static_cast<std::int32_t>(plain.topology().size()) - 1 - c.device(n));
            c.listed = std::move(listed);
        }
        auto const needed = state_moves(from, plan, to, name)(turned), wanted_here = state_moves(from, plan, plain)(here.strategy);
        REQUIRE(needed.bytes == wanted_here.bytes);
        REQUIRE(needed.lost == wanted_here.lost);
        replanning const change(from, plan, to, 10, name);
        REQUIRE(change.start() == there.strategy);
    }
}
