#include "fabric.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/fabric/cooptimize/phased_wiring.hpp>
#include <parsearch/fabric/cooptimize/usual_starts.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/servers/fabric_problem.hpp>
#include <parsearch/fabric/servers/wire_failures.hpp>
#include <parsearch/fabric/wiring/topology_finder.hpp>
#include <parsearch/fabric/wiring/wirings.hpp>
#include <parsearch/io/described/searches.hpp>
#include <parsearch/pipeline/plans/plan_simulator.hpp>

#include "progress.hpp"

namespace plan {
namespace {

// All interfaces of a server as one link to a switch.
ps::fabric::network switch_of(ps::io::fabric_options const& o) {
    return ps::io::find_fabric("ideal_switch").make(o, ps::io::servers_of(o).interface);
}

// A search of a round, by the search asked for and with what the round may take of its budget. Begins with the cheapest of what it is given and the
// experts.
ps::search_result<ps::space::flat_strategy, ps::picoseconds> search_round(request const& asked, ps::parallelization const& placed,
                                                                          ps::space::flat_strategy start, std::mt19937_64& rng,
                                                                          ps::search::budget const& budget) {
    auto const began = std::chrono::steady_clock::now();
    start = placed.space().nearest(std::move(start)); // the first is data parallelism
    auto cost_of = placed.evaluator();
    auto cost = cost_of(start);
    auto const experts = placed.starts();
    for (auto const& other : experts)
        if (auto const there = cost_of(other); there < cost) {
            cost = there;
            start = other;
        }
    auto options = *asked.search;
    auto const priced = 1 + std::uint64_t{experts.size()};
    ps::io::visit_search(options, [&](auto const&, auto& one) {
        if (budget.time) // less what pricing took
            one.time = std::max(std::chrono::nanoseconds{1},
                                *budget.time - std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began));
        if (budget.evaluations) one.evaluations = *budget.evaluations - std::min(*budget.evaluations - 1, priced);
    });
    ps::io::fix_derived(options);
    progress_display progress(asked.quiet, budget.time, cost, std::nullopt);
    ps::search::move_counts counts;
    auto found = search_once(options, placed, std::move(start), rng, progress, counts);
    progress.finish(found.stats.evaluations);
    found.stats.evaluations += priced;
    return found;
}

} // namespace

std::optional<ps::io::asked_fabric> fabric_of(std::string_view cluster) {
    if (!cluster.starts_with(ps::io::fabric_prefix)) return std::nullopt;
    return ps::io::read_fabric(cluster.substr(ps::io::fabric_prefix.size()));
}

std::optional<ps::io::asked_fabric> fabric_to_wire(request const& asked) {
    auto const out = fabric_of(asked.cluster);
    if (!out || out->entry->make) return std::nullopt;
    auto const name = out->entry->name;
    if (out->options.rounds < 1 || out->options.rounds > 1'000'000)
        throw ps::invalid_input("fabric ", name, ": option 'rounds' is ", out->options.rounds, ": must be from 1 to 1000000");
    if (!asked.search) throw ps::invalid_input("fabric ", name, ": is wired for what a search finds, and there is none: say --search");
    if (std::holds_alternative<ps::rewrite::joint_options>(*asked.search))
        throw ps::invalid_input("fabric ", name, ": search joint changes operators, which a wiring is made for: must be another");
    if (asked.start != "cheapest")
        throw ps::invalid_input("fabric ", name, ": start is ", asked.start, ": the first wiring is for data parallelism, so there is none to give");
    if (asked.rerun) {
        auto const reason = asked.rerun->result.reason;
        bool const timed = std::visit([](auto const& options) { return options.time.has_value(); }, *asked.rerun->search);
        if (timed || reason == ps::stop_reason::time_budget || reason == ps::stop_reason::stop_requested)
            throw ps::invalid_input(
                "--rerun: fabric ", name,
                " was wired in rounds that a clock or a signal ended, which no rerun repeats: plan on the topology.json beside the file, "
                "or say --evaluations in the place of --time for a run that can be repeated");
    }
    return out;
}

ps::io::named_cluster unwired(ps::io::asked_fabric const& fabric) {
    auto const& o = fabric.options;
    try {
        auto const servers = ps::io::servers_of(o);
        auto network = switch_of(o);
        auto cluster = ps::fabric::server_cluster(network, ps::io::paths_of(o), servers);
        // Refuses what cannot be wired before anything is searched.
        (void)ps::fabric::topology_finder(ps::fabric::demand(o.servers), o.servers, o.degree);
        return {.cluster = std::move(cluster), .source = ps::io::cluster_source::fabric, .network = std::move(network)};
    } catch (ps::invalid_input const& e) {
        throw ps::invalid_input("fabric ", fabric.entry->name, ": ", e.what());
    }
}

void wire_fabric(request const& asked, inputs& given, planned& made, std::stop_token const& stop) {
    auto const& o = given.to_wire->options;
    auto const servers = ps::io::servers_of(o);
    auto const oracle_of = [&](ps::topology::cluster const& c) {
        return ps::cost::profiled_roofline(c, given.profile ? &*given.profile : nullptr, asked.kernels.roofline());
    };
    ps::fabric::fabric_problem const problem(
        given.model.graph, o.servers,
        {.servers = servers, .routes = ps::io::paths_of(o), .problem = {.space = asked.space, .simulation = asked.simulation}}, oracle_of);
    auto const searcher = [&](ps::parallelization const& placed, ps::space::flat_strategy start, std::mt19937_64& rng,
                              ps::search::budget const& budget) { return search_round(asked, placed, std::move(start), rng, budget); };
    ps::fabric::co_options options{
        .stop = stop, .rounds = o.rounds, .starts = ps::fabric::usual_starts(o.servers, o.degree, servers.interface, o.wiring_seed)};
    ps::io::visit_search(*asked.search, [&](auto const&, auto const& all) {
        options.time = all.time;
        options.evaluations = all.evaluations;
    });
    std::mt19937_64 rng{asked.seed};
    auto found = ps::fabric::co_optimize(searcher, ps::fabric::wirings{o.degree, servers.interface})(problem, {}, rng, options);

    auto& wired = found.best.wired;
    auto placed = problem.on(wired);
    if (wired.switches == 0) wired.name = ps::text(given.to_wire->entry->name, ", degree ", o.degree);
    else
        made.notes.push_back(
            ps::text("a fat tree, one interface of ", wired.links.front().each.rate.bytes_per_second * 8e-9,
                     " Gb/s per server, costs as much as servers joined with each other, and what was found there is faster than on any wiring"));
    made.problem = std::move(placed.problem);
    made.oracle = oracle_of(placed.cluster);
    made.start = "data parallel";
    made.stats = found.stats;
    made.reason = found.ended;
    made.nothing_feasible = found.reason == ps::stop_reason::nothing_feasible;
    made.wired = co_optimized{.strategy = std::move(found.best.strategy), .rounds = std::move(found.rounds)};
    given.cluster.cluster = std::move(placed.cluster);
    given.cluster.network = std::move(wired);
}

void fail_wires(request const& asked, inputs const& given, planned& made, std::stop_token const& stop) {
    auto const o = fabric_of(asked.cluster)->options;
    auto const servers = ps::io::servers_of(o);
    auto routes = ps::io::paths_of(o);
    bool const other_paths = routes.policy == ps::fabric::routing::coin_change;
    if (other_paths) {
        routes.policy = ps::fabric::routing::shortest;
        made.notes.emplace_back("failures of wires are compared on shortest paths: coin_change needs a circulant, which one without a wire is not");
    }
    auto const& plan = made.plan->plan;
    auto const time_on = [&](ps::fabric::network const& left) {
        auto const cluster = ps::fabric::server_cluster(left, routes, servers);
        ps::cost::profiled_roofline const oracle(cluster, given.profile ? &*given.profile : nullptr, asked.kernels.roofline());
        auto const problem =
            ps::make_problem(made.plan->problem.graph(), cluster, oracle, {.space = asked.space, .simulation = made.plan->problem.options()})
                .until(stop);
        return ps::pipeline::plan_simulator(problem).simulate(plan);
    };
    auto const& network = *given.cluster.network;
    // A tree in the place of a wiring has one interface per server, of a rate of its own.
    auto const wire = given.to_wire && network.switches > 0 ? network.links.front().each.rate : servers.interface.rate;
    auto const before = other_paths ? time_on(network) : made.figures().time;
    made.failures = ps::fabric::summary_of(ps::fabric::single_wire_failures(network, wire, time_on, stop), network.links.size(), before);
}

void rewire(request const& asked, inputs const& given, planned& made, std::stop_token const& stop) {
    auto const o = fabric_of(asked.cluster)->options;
    auto const servers = ps::io::servers_of(o);
    auto routes = ps::io::paths_of(o);
    auto const& network = *given.cluster.network;
    if (!made.plan->plan.how.plain()) {
        made.notes.emplace_back(
            "nothing is rewired within the iteration: that is for plans of one stage and micro-batch, whose states are not shared");
        return;
    }
    if (routes.policy == ps::fabric::routing::coin_change) {
        routes.policy = ps::fabric::routing::shortest;
        made.notes.emplace_back("rewirings are simulated on shortest paths: coin_change needs a circulant, which not all wirings are");
    }
    ps::fabric::fabric_problem const problem(
        made.plan->problem.graph(), o.servers,
        {.servers = servers, .routes = routes, .problem = {.space = asked.space, .simulation = made.plan->problem.options()}},
        [&](ps::topology::cluster const& c) {
            return ps::cost::profiled_roofline(c, given.profile ? &*given.profile : nullptr, asked.kernels.roofline());
        });
    std::vector<ps::fabric::network> present; // not one of switches: servers are joined with each other
    if (network.switches == 0) present.push_back(network);
    made.rewired =
        ps::fabric::rewire_within_iteration(problem, made.plan->plan.strategy, ps::fabric::wirings{o.degree, servers.interface, o.wiring_seed},
                                            {.reconfiguration_time = *asked.reconfiguration, .wirings = std::move(present), .stop = stop});
}

} // namespace plan
