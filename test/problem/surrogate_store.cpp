#include <parsearch/problem/surrogate_store.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/mlp.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"

namespace ps = parsearch;

namespace {
using store_type = ps::surrogate_store;
using terms_type = ps::surrogate_terms;

std::vector<ps::surrogate_tables::choices> some_choices(std::mt19937_64& rng, auto const& problem) {
    std::vector<ps::surrogate_tables::choices> out;
    for (std::size_t op = 0; op < problem.size(); ++op) {
        std::vector<ps::space::configuration> list;
        for (std::uint64_t n = 0, count = 1 + ps::uniform_index(rng, 3); n < count; ++n)
            list.push_back(support::random_configuration(rng, problem.graph().operations[op], problem.space()[op], problem.topology().size(),
                                                         ps::bernoulli(rng, 0.3)));
        out.push_back(std::make_shared<std::vector<ps::space::configuration> const>(std::move(list)));
    }
    return out;
}
} // namespace

TEST_CASE("surrogate_store: tables are the terms, whichever graphs came before and whatever is remembered") {
    for (std::uint64_t seed = 1; seed <= support::cases(10u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const options = support::random_options(rng);
        auto const cluster = support::random_topology(rng, {.devices = 4});
        store_type all, few(4000), none(0);
        for (int n = 0; n < 12; ++n) {
            auto const problem = ps::make_problem(support::random_network(rng), cluster, support::mixed_oracle{}, {.simulation = options});
            auto const& g = problem.graph();
            auto const choices = some_choices(rng, problem);
            for (auto* store : {&all, &few, &none}) {
                terms_type terms(problem.workload()), plain(problem.workload());
                auto const numbers = store->numbers_of(g);
                auto const tables = store->tables_of(g, numbers, choices, [&]() -> auto& { return terms; });
                for (std::uint32_t op = 0; op < g.size(); ++op) CHECK(*tables.operators[op] == plain.of_operator(op, *choices[op]));
                for (std::uint32_t e = 0; e < g.edges.size(); ++e) {
                    CHECK(tables.edges[e].from == g.edges[e].producer);
                    CHECK(tables.edges[e].to == g.edges[e].consumer);
                    CHECK(*tables.pairs[e] == plain.of_edge(e, *choices[g.edges[e].producer], *choices[g.edges[e].consumer]));
                }
            }
            CHECK(few.bytes() <= 4000);
            CHECK(none.bytes() == 0);
        }
        CHECK(all.made() <= few.made());
    }
}

TEST_CASE("surrogate_store: what is known is not made again, and repeats share their tables") {
    auto const cluster = support::star(4, 1, 2);
    auto const problem =
        ps::make_problem(ps::models::mlp({.features = 16, .hidden = {16, 16, 16}, .classes = 16, .batch = 8}), cluster, support::mixed_oracle{});
    auto const& g = problem.graph();
    store_type store;
    terms_type terms(problem.workload());
    auto const read = [&](auto const& need) {
        auto const numbers = store.numbers_of(g);
        std::vector<ps::surrogate_tables::choices> choices;
        for (std::size_t op = 0; op < g.size(); ++op)
            choices.push_back(store.choices_of(numbers[op], [&] {
                return std::vector{ps::data_parallel(problem)[op], ps::space::whole(g.operations[op])};
            }));
        return store.tables_of(g, numbers, choices, need);
    };
    auto const first = read([&]() -> auto& { return terms; });
    auto const again = read([&]() -> terms_type& { throw std::runtime_error("asked for"); });
    CHECK(first.operators == again.operators);
    CHECK(first.pairs == again.pairs);
    std::vector<std::size_t> layers;
    for (std::size_t op = 0; op < g.size(); ++op)
        if (g.operations[op].kind == "linear") layers.push_back(op);
    REQUIRE(layers.size() == 4);
    CHECK(first.operators[layers[1]] == first.operators[layers[2]]);
    CHECK(first.operators[layers[0]] != first.operators[layers[1]]); // the first one's input wants no gradient
}

TEST_CASE("surrogate_store: an oracle that throws leaves nothing behind") {
    auto const cluster = support::star(4, 1, 2);
    auto const left = std::make_shared<std::int64_t>(25);
    auto const problem =
        ps::make_problem(ps::models::mlp({.features = 16, .hidden = {16, 16}, .classes = 16, .batch = 8}), cluster, support::failing_oracle{left});
    auto const& g = problem.graph();
    ps::surrogate_store store;
    auto const read = [&] {
        ps::surrogate_terms terms(problem.workload());
        auto const numbers = store.numbers_of(g);
        std::vector<ps::surrogate_tables::choices> choices;
        for (std::size_t op = 0; op < g.size(); ++op)
            choices.push_back(store.choices_of(numbers[op], [&] {
                return std::vector{ps::data_parallel(problem)[op], ps::space::whole(g.operations[op])};
            }));
        return store.tables_of(g, numbers, choices, [&]() -> auto& { return terms; });
    };
    CHECK_THROWS_AS((void)read(), std::runtime_error);
    *left = 1'000'000;
    auto const tables = read();
    ps::surrogate_terms plain(problem.workload());
    for (std::uint32_t op = 0; op < g.size(); ++op) CHECK(*tables.operators[op] == plain.of_operator(op, *tables.candidates[op]));
}
