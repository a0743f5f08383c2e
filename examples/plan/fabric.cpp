#include "fabric.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/servers/fabric_problem.hpp>
#include <parsearch/fabric/wiring/wirings.hpp>

#include "progress.hpp"

namespace plan {
namespace {

// All interfaces of a server as one link to a switch.
ps::fabric::network switch_of(ps::io::fabric_options const& o) {
    return ps::io::find_fabric("ideal_switch").make(o, ps::io::servers_of(o).interface);
}

// The searches of the rounds. Each gets the same part of the budget that is left, so that those which are sure to come get most, and all of them no
// more than there is; where rounds end by themselves, a last search on the best fabric gets what they left. Each begins with the cheapest of what it
// is given and the experts.
class round_search {
  public:
    round_search(request const& asked, std::uint64_t rounds) : asked_(asked), rounds_(rounds) {}

    // The search after them gets all that is left.
    void last() noexcept { rounds_ = 1; }
    // A twentieth of the budget or more. There is none left where there was none.
    [[nodiscard]] bool has_budget_left() const {
        return ps::io::visit_search(*asked_.search, [&](auto const&, auto const& options) {
            auto const gone = std::chrono::steady_clock::now() - begin_;
            return (options.time || options.evaluations) && (!options.time || gone < *options.time / 20 * 19) &&
                   (!options.evaluations || evaluations_ < *options.evaluations - *options.evaluations / 20);
        });
    }

    ps::search_result<ps::space::flat_strategy, ps::picoseconds> operator()(ps::parallelization const& placed, ps::space::flat_strategy start,
                                                                            std::mt19937_64& rng) {
        start = placed.space().nearest(std::move(start)); // the first is data parallelism
        auto cost_of = placed.evaluator();
        auto cost = cost_of(start);
        auto const experts = placed.starts();
        for (auto const& other : experts)
            if (auto const there = cost_of(other); there < cost) {
                cost = there;
                start = other;
            }
        auto const options = budgeted(1 + experts.size());
        auto const time = ps::io::visit_search(options, [](auto const&, auto const& one) { return one.time; });
        progress_display progress(asked_.quiet, time, cost, std::nullopt);
        ps::search::move_counts counts;
        auto found = search_once(options, placed, std::move(start), rng, progress, counts);
        progress.finish(found.stats.evaluations);
        found.stats.evaluations += 1 + experts.size();
        evaluations_ += found.stats.evaluations;
        return found;
    }

  private:
    // For a search before which so many strategies were priced.
    [[nodiscard]] ps::io::search_options budgeted(std::uint64_t priced) const {
        auto out = *asked_.search;
        ps::io::visit_search(out, [&](auto const&, auto& options) {
            if (options.time) {
                auto const gone = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_);
                options.time = std::max(std::chrono::nanoseconds{1}, (*options.time - gone) / static_cast<std::int64_t>(rounds_));
            }
            if (options.evaluations) {
                auto const left = *options.evaluations - std::min(*options.evaluations, evaluations_);
                auto const part = left / rounds_;
                options.evaluations = std::max<std::uint64_t>(1, part - std::min(part, priced));
            }
        });
        ps::io::fix_derived(out);
        return out;
    }

    request const& asked_;
    std::uint64_t rounds_, evaluations_ = 0;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

} // namespace

std::optional<ps::io::asked_fabric> fabric_to_wire(request const& asked) {
    if (!asked.cluster.starts_with(ps::io::fabric_prefix)) return std::nullopt;
    auto out = ps::io::read_fabric(asked.cluster.substr(ps::io::fabric_prefix.size()));
    if (out.entry->make) return std::nullopt;
    auto const name = out.entry->name;
    if (out.options.rounds < 1 || out.options.rounds > 1'000'000)
        throw ps::invalid_input("fabric ", name, ": option 'rounds' is ", out.options.rounds, ": must be from 1 to 1000000");
    if (!asked.search) throw ps::invalid_input("fabric ", name, ": is wired for what a search finds, and there is none: say --search");
    if (std::holds_alternative<ps::rewrite::joint_options>(*asked.search))
        throw ps::invalid_input("fabric ", name, ": search joint changes operators, which a wiring is made for: must be another");
    if (asked.start != "cheapest")
        throw ps::invalid_input("fabric ", name, ": start is ", asked.start, ": the first wiring is for data parallelism, so there is none to give");
    if (asked.rerun) {
        auto const reason = asked.rerun->result.reason;
        bool const timed = ps::io::visit_search(*asked.rerun->search, [](auto const&, auto const& options) { return options.time.has_value(); });
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
        (void)ps::fabric::wirings{o.degree,
                                  servers.interface}(ps::fabric::demand(o.servers)); // refuses what cannot be wired before anything is searched
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
    round_search rounds(asked, o.rounds);
    auto const searcher = [&](ps::parallelization const& placed, ps::space::flat_strategy start, std::mt19937_64& rng) {
        return rounds(placed, std::move(start), rng);
    };
    ps::fabric::co_options options{.stop = stop, .rounds = o.rounds, .starts = {{.wired = switch_of(o), .final = false}}};
    ps::io::visit_search(*asked.search, [&](auto const&, auto const& all) {
        options.time = all.time;
        options.evaluations = all.evaluations;
    });
    std::mt19937_64 rng{asked.seed};
    auto found = ps::fabric::co_optimize(searcher, ps::fabric::wirings{o.degree, servers.interface})(problem, {}, rng, options);

    auto& wired = found.best.wired;
    auto placed = problem.on(wired);
    bool const search_on = found.ended == ps::stop_reason::exhausted && rounds.has_budget_left();
    if (search_on) {
        rounds.last();
        auto const began = std::chrono::steady_clock::now();
        auto more = rounds(placed.problem, found.best.strategy, rng);
        auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        auto const start =
            std::find_if(found.rounds.begin(), found.rounds.end(), [&](auto const& r) { return r.final && r.after == found.cost; })->start;
        auto const round = std::count_if(found.rounds.begin(), found.rounds.end(), [&](auto const& r) { return r.start == start; });
        found.rounds.push_back({start, static_cast<std::uint64_t>(round), wired, true, found.cost, more.cost, more.stats.evaluations, seconds});
        add_counts(found.stats, more.stats);
        found.stats.trajectory = ps::split_mix(found.stats.trajectory ^ more.stats.trajectory)();
        found.stats.seconds += seconds;
        found.reason = more.reason;
        found.ended = more.ended;
        found.best.strategy = std::move(more.best);
    }
    wired.name = ps::text(given.to_wire->entry->name, ", degree ", o.degree);
    made.problem = std::move(placed.problem);
    made.oracle = oracle_of(placed.cluster);
    made.start = "data parallel";
    made.stats = found.stats;
    made.reason = found.ended;
    made.nothing_feasible = found.reason == ps::stop_reason::nothing_feasible;
    made.wired = co_optimized{.strategy = std::move(found.best.strategy), .rounds = std::move(found.rounds), .searched_on = search_on};
    given.cluster.cluster = std::move(placed.cluster);
    given.cluster.network = std::move(wired);
}

} // namespace plan
