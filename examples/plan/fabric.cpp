#include "fabric.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/fabric/fabric_problem.hpp>
#include <parsearch/fabric/networks.hpp>
#include <parsearch/fabric/wirings.hpp>

#include "progress.hpp"

namespace plan {
namespace {

// All interfaces of a server as one link to a switch.
ps::fabric::network switch_of(ps::io::fabric_options const& o) {
    return ps::io::find_fabric("ideal_switch").make(o, ps::io::servers_of(o).interface);
}

// The search of one round: its part of the budget of all, from both beginnings.
ps::io::search_options search_of_round(request const& asked, std::uint64_t rounds) {
    auto out = *asked.search;
    ps::io::visit_search(out, [&](auto const&, auto& options) {
        auto const searches = 2 * rounds;
        if (options.time) *options.time /= static_cast<std::int64_t>(std::min<std::uint64_t>(searches, 1'000'000));
        if (options.evaluations) options.evaluations = std::max<std::uint64_t>(1, *options.evaluations / searches);
    });
    ps::io::fix_derived(out);
    return out;
}

} // namespace

std::optional<ps::io::asked_fabric> fabric_to_wire(request const& asked) {
    if (!asked.cluster.starts_with(ps::io::fabric_prefix)) return std::nullopt;
    auto out = ps::io::read_fabric(asked.cluster.substr(ps::io::fabric_prefix.size()));
    if (out.entry->make) return std::nullopt;
    auto const name = out.entry->name;
    if (out.options.rounds < 1 || out.options.rounds > 1'000'000) throw ps::invalid_input("fabric ", name, ": option 'rounds' is ", out.options.rounds, ": must be from 1 to 1000000");
    if (!asked.search) throw ps::invalid_input("fabric ", name, ": is wired for what a search finds, and there is none: say --search");
    if (std::holds_alternative<ps::rewrite::joint_options>(*asked.search))
        throw ps::invalid_input("fabric ", name, ": search joint changes operators, which a wiring is made for: must be another");
    if (asked.start != "cheapest") throw ps::invalid_input("fabric ", name, ": start is ", asked.start, ": the first wiring is for data parallelism, so there is none to give");
    if (asked.rerun) {
        auto const reason = asked.rerun->result.reason;
        bool const timed = ps::io::visit_search(*asked.rerun->search, [](auto const&, auto const& options) { return options.time.has_value(); });
        if (timed || reason == ps::stop_reason::time_budget || reason == ps::stop_reason::stop_requested)
            throw ps::invalid_input("--rerun: fabric ", name, " was wired in rounds that a clock or a signal ended, which no rerun repeats: plan on the topology.json beside the file, "
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
        (void)ps::fabric::wirings{o.degree, servers.interface}(ps::fabric::demand(o.servers)); // refuses what cannot be wired before anything is searched
        return {.cluster = std::move(cluster), .source = ps::io::cluster_source::fabric, .network = std::move(network)};
    } catch (ps::invalid_input const& e) {
        throw ps::invalid_input("fabric ", fabric.entry->name, ": ", e.what());
    }
}

void wire_fabric(request const& asked, inputs& given, planned& made, std::stop_token const& stop) {
    auto const& o = given.to_wire->options;
    auto const servers = ps::io::servers_of(o);
    auto const oracle_of = [&](ps::topology::cluster const& c) { return cost_oracle(c, given.profile ? &*given.profile : nullptr); };
    ps::fabric::fabric_problem const problem(given.model.graph, o.servers,
                                             {.servers = servers, .routes = ps::io::paths_of(o), .problem = {.space = asked.space, .simulation = asked.simulation}}, oracle_of);
    auto const search = search_of_round(asked, o.rounds);
    ps::fabric::co_options options{.stop = stop, .rounds = o.rounds, .starts = {{.wired = switch_of(o), .final = false}}};
    ps::io::visit_search(*asked.search, [&](auto const&, auto const& all) {
        options.time = all.time;
        options.evaluations = all.evaluations;
    });
    auto const time = ps::io::visit_search(search, [](auto const&, auto const& one) { return one.time; });
    std::vector<std::size_t> handles(made.problem.size());
    std::iota(handles.begin(), handles.end(), std::size_t{0});
    auto const searcher = [&](auto const& placed, ps::space::flat_strategy start, std::mt19937_64& rng) {
        problem_type const same(placed.workload(), handles, placed);
        progress_display progress(asked.quiet, time, same.evaluator()(start), std::nullopt);
        ps::search::move_counts counts;
        auto found = search_once(search, same, std::move(start), rng, progress, counts);
        progress.finish(found.stats.evaluations);
        return found;
    };
    std::mt19937_64 rng{asked.seed};
    auto found = ps::fabric::co_optimize(problem, searcher, ps::fabric::wirings{o.degree, servers.interface}, rng, options);

    auto& wired = found.best.wired;
    wired.name = ps::text(given.to_wire->entry->name, ", degree ", o.degree);
    auto placed = problem.on(wired);
    made.problem = problem_type(placed.problem.workload(), handles, placed.problem);
    made.oracle = oracle_of(placed.cluster);
    made.start = "data parallel";
    made.stats = found.stats;
    made.reason = found.reason;
    made.wired = co_optimized{.strategy = std::move(found.best.strategy), .rounds = std::move(found.rounds)};
    given.cluster.cluster = std::move(placed.cluster);
    given.cluster.network = std::move(wired);
}

} // namespace plan
