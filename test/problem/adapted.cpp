#include <parsearch/problem/adapted.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/search/kernel/starts.hpp>

#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/sanitized.hpp"

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
