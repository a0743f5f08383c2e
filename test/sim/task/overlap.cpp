#include <parsearch/sim/task/overlap.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>

#include "support/random_network.hpp"

using namespace parsearch;

namespace {

/// y[s, o] = sum over k of x[s, k]: o from the first operator is k of the second.
ops::operation linear(std::int64_t in, std::int64_t out) { return ops::linear{.out = out, .bias = false}.infer(std::vector<ops::tensor>{{{8, in}}}); }

/// Overlaps between two linear layers of 8 x 8 x 8, degrees (s, o, k) each.
sim::overlap_table between(std::vector<std::int32_t> const& from, std::vector<std::int32_t> const& to) {
    static auto const op = linear(8, 8);
    return sim::find_overlaps(op, op.outputs[0], from, op, op.inputs[0], to);
}

/// "all_gather/reduce_scatter 3>3 64": its kinds, producers > consumers, elements; one after the other.
std::string exchanges(sim::overlap_table const& t) {
    std::string out;
    for (auto const& x : t.exchanges)
        out += text(out.empty() ? "" : ", ", name_of(x.forward), '/', name_of(x.backward), ' ', x.producers.size(), '>', x.consumers.size(), ' ',
                    x.elements, x.partial ? " partial" : "");
    return out;
}

} // namespace

TEST_CASE("overlap: what each change of layout amounts to") {
    // The tensor between has 8 x 8 = 64 elements; dims are s, o, k.
    CHECK(exchanges(between({4, 1, 1}, {4, 1, 1})) == "");                                         // stays where it is
    CHECK(exchanges(between({1, 1, 1}, {1, 4, 1})) == "broadcast/reduce 1>4 64");                  // all readers read all
    CHECK(exchanges(between({1, 4, 1}, {1, 4, 1})) == "all_gather/reduce_scatter 4>4 64");         // parts to everyone
    CHECK(exchanges(between({1, 4, 1}, {4, 1, 1})) == "all_to_all/all_to_all 4>4 64");             // columns to rows
    CHECK(exchanges(between({1, 1, 4}, {1, 1, 1})) == "reduce/broadcast 4>1 64 partial");          // partial sums to one reader
    CHECK(exchanges(between({1, 1, 4}, {1, 4, 1})) == "all_reduce/all_reduce 4>4 64 partial");     // to all
    CHECK(exchanges(between({1, 1, 4}, {4, 1, 1})) == "reduce_scatter/all_gather 4>4 64 partial"); // a part to each
    CHECK(exchanges(between({1, 4, 1}, {1, 1, 1})) == "");                                         // a gather: as good as messages
    CHECK(exchanges(between({1, 1, 1}, {4, 1, 1})) == "");                                         // a scatter
    CHECK(exchanges(between({2, 2, 1}, {2, 2, 1})) ==
          "all_gather/reduce_scatter 2>2 32, all_gather/reduce_scatter 2>2 32"); // in each half of the batch
    CHECK(exchanges(between({2, 1, 2}, {2, 1, 2})) == "reduce_scatter/all_gather 2>2 32 partial, reduce_scatter/all_gather 2>2 32 partial");
}

TEST_CASE("overlap: halos are irregular, every pair has its own elements") {
    auto const conv = ops::conv2d{.out = 1, .kernel = {3, 3}, .padding = {1, 1}}.infer(std::vector<ops::tensor>{{{1, 1, 8, 4}}});
    // dims s, o, h, w, c: rows in four parts of two; a part reads a row more on each side.
    std::vector<std::int32_t> const rows{1, 1, 4, 1, 1};
    auto const t = sim::find_overlaps(conv, conv.outputs[0], rows, conv, conv.inputs[0], rows);
    CHECK(t.exchanges.empty());
    std::vector<std::vector<std::int64_t>> pairs;
    for (auto const& p : t.pairs) pairs.push_back({p.producer, p.consumer, p.elements});
    CHECK(pairs == std::vector<std::vector<std::int64_t>>{
                       {0, 0, 8}, {1, 0, 4}, {0, 1, 4}, {1, 1, 8}, {2, 1, 4}, {1, 2, 4}, {2, 2, 8}, {3, 2, 4}, {2, 3, 4}, {3, 3, 8}});
    CHECK(t.first_of_consumer == std::vector<std::uint32_t>{0, 2, 5, 8, 10});
    CHECK(t.first_of_producer == std::vector<std::uint32_t>{0, 2, 5, 8, 10});
    CHECK(t.by_producer == std::vector<std::uint32_t>{0, 2, 1, 3, 5, 4, 6, 8, 7, 9});
}

TEST_CASE("overlap: an output of a split is read from the shards that hold it alone") {
    auto const split = ops::split{.axis = 1, .sizes = {4, 4}}.infer(std::vector<ops::tensor>{{{8, 8}}});
    auto const reader = linear(4, 8);
    auto const t =
        sim::find_overlaps(split, split.outputs[1], std::vector<std::int32_t>{1, 4}, reader, reader.inputs[0], std::vector<std::int32_t>{1, 1, 1});
    REQUIRE(t.pairs.size() == 2);
    CHECK(t.pairs[0].producer == 2);
    CHECK(t.pairs[1].producer == 3);
    CHECK(t.pairs[0].elements == 16);
}

TEST_CASE("overlap: exchanges of random edges are complete and closed, and move each element once") {
    std::size_t found = 0;
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const g = graph::read_graph(support::random_network(rng)).graph;
        if (g.edges.empty()) continue;
        auto const& e = g.edges[uniform_index(rng, g.edges.size())];
        auto const& producer = g.operations[e.producer];
        auto const& consumer = g.operations[e.consumer];
        auto const a = support::random_configuration(rng, producer, std::vector<space::configuration>{}, 1, true);
        auto const b = support::random_configuration(rng, consumer, std::vector<space::configuration>{}, 1, true);
        auto const t = sim::find_overlaps(producer, producer.outputs[e.slot], a.degrees(), consumer, consumer.inputs[e.input], b.degrees());
        REQUIRE(t.first_of_consumer.size() == static_cast<std::size_t>(b.shards()) + 1);
        REQUIRE(t.first_of_producer.size() == static_cast<std::size_t>(a.shards()) + 1);
        std::vector<std::size_t> pairs_of(t.exchanges.size(), 0);
        for (std::size_t i = 0; i < t.pairs.size(); ++i) {
            REQUIRE(t.pairs[i].elements > 0);
            if (t.exchange_of[i] < 0) continue;
            auto const& x = t.exchanges[static_cast<std::size_t>(t.exchange_of[i])];
            REQUIRE(std::count(x.producers.begin(), x.producers.end(), t.pairs[i].producer) == 1);
            REQUIRE(std::count(x.consumers.begin(), x.consumers.end(), t.pairs[i].consumer) == 1);
            ++pairs_of[static_cast<std::size_t>(t.exchange_of[i])];
        }
        auto const made_in = ops::partial_sums(producer, producer.outputs[e.slot], a.degrees()),
                   shares = sim::layout_of_input(consumer, consumer.inputs[e.input], b.degrees()).partials;
        auto const partials = std::max<std::int64_t>(1, made_in / shares);
        if (made_in > shares && made_in % shares != 0) REQUIRE(t.exchanges.empty());
        for (std::size_t n = 0; n < t.exchanges.size(); ++n) {
            auto const& x = t.exchanges[n];
            REQUIRE(pairs_of[n] == x.producers.size() * x.consumers.size());
            std::int64_t received = 0;
            for (std::size_t i = 0; i < t.pairs.size(); ++i)
                if (t.exchange_of[i] == static_cast<std::int32_t>(n)) received += t.pairs[i].elements;
            // Every reader gets a copy of all or its own part, of each partial sum.
            bool const copied =
                x.forward == collective_kind::broadcast || x.forward == collective_kind::all_gather || x.forward == collective_kind::all_reduce;
            REQUIRE(received == x.elements * partials * (copied ? static_cast<std::int64_t>(x.consumers.size()) : 1));
            REQUIRE(x.partial == (partials > 1));
            ++found;
        }
    }
    CHECK(found > 300);
}

TEST_CASE("overlap: shards are copies, disjoint, or neither, on a grid and off it") {
    std::size_t copies = 0, disjoint = 0, neither = 0, off_grid = 0;
    for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
        CAPTURE(seed);
        split_mix rng(seed);
        // A convolution's windows overlap where the kernel is larger than the stride.
        std::int64_t const kernel = 1 + static_cast<std::int64_t>(uniform_index(rng, 3)),
                           stride = 1 + static_cast<std::int64_t>(uniform_index(rng, 3));
        auto const conv = ops::conv2d{.out = 4, .kernel = {kernel, kernel}, .stride = {stride, stride}}.infer(
            std::vector<ops::tensor>{{{4, 2, 8 * stride + kernel - stride, 8 * stride + kernel - stride}}});
        auto const operand = uniform_index(rng, 2);
        std::vector<std::int32_t> degrees;
        for (auto const& d : conv.dims) {
            auto const degree = static_cast<std::int32_t>(1 + uniform_index(rng, 5));
            degrees.push_back(ops::can_be_in(d, degree) ? degree : 1);
        }
        sim::detail::shard_regions const regions(conv, operand == 0 ? conv.inputs[0] : conv.outputs[0], degrees);
        std::vector<std::uint32_t> shards;
        auto const keep = 1 + uniform_index(rng, 8);
        for (std::uint32_t n = 0; n < regions.size(); ++n)
            if (uniform_index(rng, 8) < keep) shards.push_back(n);
        if (shards.empty()) continue;
        bool equal = true, apart = true;
        for (std::size_t i = 0; i < shards.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) {
                equal = equal && sim::detail::same_region(regions[shards[i]], regions[shards[j]]);
                apart = apart && sim::detail::common_elements(regions[shards[i]], regions[shards[j]]) == 0;
            }
        auto const got = sim::detail::replicated(regions, shards);
        if (equal) CHECK(got == std::optional(true));
        else if (apart) CHECK(got == std::optional(false));
        else CHECK(got == std::nullopt);
        ++(equal ? copies : apart ? disjoint : neither);
        off_grid += !sim::detail::on_a_grid(regions, shards);
    }
    CHECK(copies > 500);
    CHECK(disjoint > 500);
    CHECK(neither > 500);
    CHECK(off_grid > 500);
}
