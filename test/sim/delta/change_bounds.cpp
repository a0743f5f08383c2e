#include <parsearch/sim/delta/change_bounds.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/sim/delta/place_blocks.hpp>
#include <parsearch/sim/delta_simulator.hpp>

#include "support/cases.hpp"
#include "support/hand_network.hpp"
#include "support/placed_blocks.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;

namespace {

using strategy = std::vector<space::configuration>;
constexpr auto none = sim::block_graph::none;
constexpr auto unlimited = std::numeric_limits<std::int64_t>::max();

/// The schedule of a current strategy, folded where it can be, and the bounds on changes of it.
template <class P> class bounded {
  public:
    bounded(P const& p, strategy const& s, bool fold)
        : p_(p), graph_(support::block_graph_of(*p.work)), cache_(p.work, fold), placed_(support::place_blocks(cache_, graph_, s)), folded_(folds()),
          resources_(folded_ ? cache_.folds()->resources() : cache_.resources()), known_(p.graph(), graph_, p.work->class_of, p.work->classes.size()),
          schedule_(graph_, resources_, p.work->options.discipline), changed_(*p.work, graph_, cache_) {
        support::note_facts(known_, cache_, graph_, placed_);
        known_.find_round_trips(p.work->options.discipline == sim::discipline::in_order);
        for (auto const& c : graph_.classes)
            if (c.update != none) schedule_.count(c.update, false);
        all_backward_.add(resources_.barrier(), 0);
        if (graph_.all_backward != none) schedule_.set_tasks(graph_.all_backward, &all_backward_);
        for (std::uint32_t op = 0; op < placed_.operators.size(); ++op)
            if (graph_.operators[op].forward != none) place(op, *placed_.operators[op]);
        for (std::uint32_t e = 0; e < placed_.edges.size(); ++e)
            if (placed_.edges[e]) place(e, *placed_.edges[e], placed_.carriers[e]);
        for (std::uint32_t c = 0; c < placed_.classes.size(); ++c) place(c, *placed_.classes[c]);
        schedule_.run({});
        schedule_.commit();
    }

    [[nodiscard]] bool folded() const noexcept { return folded_; }
    [[nodiscard]] bool changes(std::uint32_t op) const noexcept { return graph_.operators[op].forward != none; }
    [[nodiscard]] std::int64_t makespan() const noexcept { return schedule_.makespan(); }
    [[nodiscard]] std::int64_t load(std::uint32_t op, space::configuration const& c) {
        return changed_.device_load(*placed_.operators[op], cache_.of_operator(op, c), schedule_, folded_);
    }
    [[nodiscard]] std::int64_t earliest(std::uint32_t op, space::configuration const& c, std::int64_t limit) {
        auto& with = cache_.of_operator(op, c);
        auto const blocks = [&](std::uint32_t other) -> auto const& { return other == op ? with : *placed_.operators[other]; };
        auto const& edges = p_.graph().edges;
        auto const before = known_;
        auto& facts = known_.of_operator(op);
        facts.forward = with.shape->shortest_forward;
        facts.backward = with.shape->shortest_backward;
        if (auto const k = p_.work->class_of[op]; k != none) known_.of_class(k) = {};
        for (std::uint32_t e = 0; e < edges.size(); ++e) {
            if (graph_.forward[e].block == none || (edges[e].producer != op && edges[e].consumer != op)) continue;
            auto const& shape = cache_.shape_of_edge(e, blocks(edges[e].producer), blocks(edges[e].consumer));
            known_.of_edge(e) = {shape.every_consumer, shape.every_producer, false};
        }
        auto const out = changed_.earliest(op, *placed_.operators[op], with, known_, schedule_, blocks, limit);
        known_ = before;
        return out;
    }

  private:
    [[nodiscard]] bool folds() const {
        auto const folds = [](auto const* b) { return !b || b->folded; };
        bool all = cache_.folds().has_value();
        for (std::uint32_t op = 0; op < placed_.operators.size(); ++op)
            all = all && (graph_.operators[op].forward == none || folds(placed_.operators[op]));
        return all && std::all_of(placed_.edges.begin(), placed_.edges.end(), folds) &&
               std::all_of(placed_.classes.begin(), placed_.classes.end(), folds);
    }
    template <class Blocks, class... Carrier> void place(std::uint32_t number, Blocks const& b, Carrier... carrier) {
        sim::place(schedule_, graph_, number, folded_ ? *b.folded : b.parts, carrier...);
    }

    P const& p_;
    sim::block_graph graph_;
    decltype(sim::block_cache(std::declval<P const&>().work, true)) cache_;
    support::placed_blocks placed_;
    bool folded_;
    sim::resource_numbers resources_;
    sim::task_list all_backward_;
    sim::path_bounds known_;
    sim::engine schedule_;
    decltype(sim::change_bounds(*std::declval<P const&>().work, std::declval<sim::block_graph const&>(), cache_)) changed_;
};

struct bound_counts {
    std::size_t folded = 0, loaded = 0, hopeless = 0, near = 0, longer = 0;
};

/// Changes of one operator of `s` at a time.
template <class P> void check_changes(std::mt19937_64& rng, P const& p, strategy const& s, int changes, bound_counts& counts) {
    bounded bounds(p, s, bernoulli(rng, 0.5));
    auto const even = space::data_parallel(p.graph(), p.topology().size());
    auto full = p.simulator();
    REQUIRE(bounds.makespan() == full(s).count());
    for (int change = 0; change < changes; ++change) {
        auto const op = static_cast<std::uint32_t>(uniform_index(rng, s.size()));
        if (!bounds.changes(op)) continue;
        INFO("change ", change, " operator ", op, " folded ", bounds.folded());
        auto next = s;
        next[op] = bernoulli(rng, 0.1)
                       ? even[op]
                       : support::random_configuration(rng, p.graph().operations[op], p.space()[op], p.topology().size(), bernoulli(rng, 0.1));
        auto const exact = full(next).count();
        auto const load = bounds.load(op, next[op]);
        REQUIRE(load <= exact);
        auto const earliest = bounds.earliest(op, next[op], unlimited);
        REQUIRE(earliest <= exact);
        auto const limit = static_cast<std::int64_t>(uniform_index(rng, static_cast<std::uint64_t>(exact) + 2));
        auto const limited = bounds.earliest(op, next[op], limit); // ends early
        REQUIRE(limited <= exact);
        REQUIRE((limited > limit) == (earliest > limit));
        counts.folded += bounds.folded();
        counts.loaded += load > 0;
        counts.hopeless += earliest > bounds.makespan();
        counts.near += earliest > 0 && 10 * earliest >= 9 * exact;
        counts.longer += earliest > load;
    }
}

/// Layers one after the other, some with a way around them; `rereads`: some are joined with the input.
graph::operator_graph random_chain(std::mt19937_64& rng, bool rereads) {
    graph::operator_graph g;
    auto const input = g.input("x", {{4, 6}});
    auto x = g.add("first", ops::linear{.out = 6}, input), around = x;
    for (std::uint64_t made = 0, wanted = 3 + uniform_index(rng, 10); made < wanted; ++made) {
        auto const name = text("op", made);
        switch (uniform_index(rng, 7)) {
        case 0: x = g.add(name, ops::relu{}, x); break;
        case 1: x = g.add(name, ops::softmax{}, x); break;
        case 2: x = g.add(name, ops::linear{.out = 6, .parameter = "shared"}, x); break;
        case 3: x = g.add(name, ops::add{}, x, around), around = x; break;
        case 4:
        case 5:
            if (rereads) x = g.add(text(name, "joined"), ops::concat{.axis = 1}, input, x);
            [[fallthrough]];
        default: x = g.add(name, ops::linear{.out = 6, .bias = bernoulli(rng, 0.5)}, x);
        }
    }
    return g;
}

/// Changes of strategies of networks that `network(rng)` makes, for as many seeds of each discipline and movement.
template <class Network, class Check> void check_networks(std::uint64_t seeds, Network const& network, Check const& check) {
    for (auto const order : {sim::discipline::fifo, sim::discipline::in_order})
        for (auto const way : {sim::movement::pairwise, sim::movement::collective}) {
            INFO(name_of(order), " ", name_of(way));
            bound_counts counts;
            for (std::uint64_t seed = 0; seed < support::cases(seeds); ++seed) {
                INFO("seed ", seed);
                std::mt19937_64 rng(seed);
                auto options = support::random_options(rng);
                options.discipline = order;
                options.movement = way;
                support::problem_shape shape{.devices = static_cast<std::uint32_t>(bernoulli(rng, 0.7) ? 4 : 1 + uniform_index(rng, 8)),
                                             .kinds = bernoulli(rng, 0.3)};
                if (shape.devices == 4 && bernoulli(rng, 0.5)) shape.nodes = 4;
                auto const topology = support::random_topology(rng, shape);
                auto const p = support::make_workload_problem(network(rng), topology, support::mixed_oracle{bernoulli(rng, 0.7) ? 1 : 100}, options);
                check_changes(rng, p, bernoulli(rng, 0.6) ? support::mostly_data_parallel(rng, p, 0.1) : support::random_strategy(rng, p, 0.1), 20,
                              counts);
            }
            check(counts);
        }
}

} // namespace

TEST_CASE("change_bounds: no change of a random network ends before they say") {
    check_networks(
        300, [](auto& rng) { return support::random_network(rng, bernoulli(rng, 0.7) ? 8 : 24); },
        [](bound_counts const& c) {
            CHECK(c.folded > support::cases(100));
            CHECK(c.loaded > support::cases(2000));
            CHECK(c.hopeless > support::cases(100));
            CHECK(c.near > support::cases(200));
            CHECK(c.longer > support::cases(500));
        });
}

TEST_CASE("change_bounds: no change of a deep network ends before they say") {
    check_networks(
        300, [](auto& rng) { return random_chain(rng, false); },
        [](bound_counts const& c) {
            if (!support::sanitized) CHECK(c.folded > support::cases(100)); // few of the networks
            CHECK(c.loaded > support::cases(2000));
            CHECK(c.hopeless > support::cases(80));
            CHECK(c.near > support::cases(200));
            CHECK(c.longer > support::cases(2000));
        });
}

TEST_CASE("change_bounds: no change of a network that reads its input again ends before they say") {
    check_networks(
        500, [](auto& rng) { return random_chain(rng, true); }, [](bound_counts const& c) { CHECK(c.longer > support::cases(1000)); });
}

TEST_CASE("change_bounds: a shard that reads inputs of the network alone may have run before what the others read") {
    // On device 0: relu, then half of the concat, which is ready at once, then fc. With the concat elsewhere fc ends earlier.
    graph::operator_graph g;
    auto const x = g.input("x", {{1, 4}});
    auto const fc = g.add("fc", ops::linear{.out = 4, .bias = false}, g.add("relu", ops::relu{}, x));
    g.add("concat", ops::concat{.axis = 1}, x, fc);
    auto const p = support::make_workload_problem(g, support::mesh(2), [](ops::shard_work const&, std::uint32_t) { return picoseconds{100}; },
                                                  {.discipline = sim::discipline::fifo, .training = false});
    auto const op = support::op_named(p.graph(), "concat");
    auto s = support::all_on_first(p.graph());
    s[op].degree[p.graph().operations[op].dims.size() - 1] = 2;
    s[op].listed = {0, 1};
    bounded bounds(p, s, false);
    auto next = s;
    next[op] = space::whole(p.graph().operations[op], 1);
    auto full = p.simulator();
    REQUIRE(bounds.makespan() == full(s).count());
    CHECK(full(next) < full(s));
    auto const exact = full(next);
    CHECK(bounds.earliest(op, next[op], unlimited) <= exact.count());
    sim::delta_simulator simulator(p.work);
    REQUIRE(simulator.reset(s) == full(s));
    CHECK(simulator.propose(op, next[op], exact) == exact);
}
