#include "planner.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>
#include <type_traits>
#include <utility>

#include <parsearch/fabric/network/network_price.hpp>
#include <parsearch/io/described/searches.hpp>
#include <parsearch/io/files/strategy_file.hpp>
#include <parsearch/io/foreign/flexflow_strategy.hpp>
#include <parsearch/search/bounds/problem_bounds.hpp>

#include "experts.hpp"
#include "fabric.hpp"
#include "joint.hpp"
#include "profile.hpp"
#include "progress.hpp"
#include "tools/units.hpp"

namespace plan {
namespace {

bool is_expert(std::string const& name) {
    auto const list = expert_list();
    return std::any_of(list.begin(), list.end(), [&](auto const& e) { return e.name == name; });
}
bool is_joint(request const& asked) { return asked.search && std::holds_alternative<ps::rewrite::joint_options>(*asked.search); }
bool starts_from_file(request const& asked) { return asked.start != "cheapest" && !is_expert(asked.start); }

// A strategy file: JSON begins with a brace, FlexFlow's format with a number.
ps::space::flat_strategy read_strategy(std::string const& path, ps::parallelization const& problem) {
    std::ifstream in(path, std::ios::binary);
    char first = 0;
    if (!(in >> first)) throw ps::invalid_input(path, in.is_open() ? ": is empty: must be a strategy" : ": cannot be opened");
    in.seekg(0);
    if (first == '{') return ps::io::read_strategy_json(in, path, problem);
    return ps::io::read_flexflow_strategy(in, path, problem.graph(), problem.topology().size());
}

void require_same(std::string const& what, std::string const& given, std::string const& hash, ps::io::run_input const& before) {
    if (hash != before.hash)
        throw ps::invalid_input("--rerun: ", what, " '", given, "' has the hash ", hash.empty() ? "of no file" : hash, ": the run was made with '",
                                before.given, "' of hash ", before.hash.empty() ? "of no file" : before.hash);
    // What moved has another name, what is no file has the same; options are the same.
    if (hash.empty() ? given != before.given : ps::io::parse_settings(given).settings != ps::io::parse_settings(before.given).settings)
        throw ps::invalid_input("--rerun: ", what, " '", given, "': the run was made with '", before.given,
                                "': must be the same, with the same options");
}

std::size_t batch_of(ps::graph::dense_graph const& g) {
    std::int64_t batch = 1;
    for (auto const& op : g.operations)
        for (auto const& d : op.dims)
            if (d.kind == ps::ops::dim_kind::sample) batch = std::max(batch, d.extent);
    return static_cast<std::size_t>(batch);
}

std::string spoken_name(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
}

// On how many devices data parallelism runs: the most shards of an operator.
std::size_t devices_in_use(ps::space::flat_strategy const& data_parallel) {
    std::int64_t most = 1;
    for (auto const& c : data_parallel) most = std::max(most, c.shards());
    return static_cast<std::size_t>(most);
}

// Starts a rerun where the first run did, which may have compared other experts, or been interrupted before it had compared all.
void start_as_before(planned& made, std::string const& start) {
    for (auto const& e : expert_list())
        if (spoken_name(e.name) == start) {
            made.start = start;
            made.start_strategy = expert_strategy(e.name, made.problem);
        }
}

ps::parallelization make_problem(request const& asked, inputs const& given, cost_oracle const& oracle) {
    return ps::make_problem(given.model.graph, given.cluster.cluster, oracle, {.space = asked.space, .simulation = asked.simulation});
}

// Those asked for; where that is all of them, those that apply and are not equal to one before.
void add_experts(planned& made, std::vector<std::string> const& asked) {
    bool const all = asked == std::vector<std::string>{"all"};
    std::vector<std::string> names;
    if (all)
        for (auto const& e : expert_list()) names.push_back(e.name);
    else if (asked != std::vector<std::string>{"none"}) names = asked;
    made.strategies.push_back({.name = spoken_name("data_parallel"), .strategy = ps::data_parallel(made.problem)});
    for (auto const& name : names) {
        if (name == "data_parallel") continue;
        try {
            auto strategy = expert_strategy(name, made.problem);
            bool const known = std::any_of(made.strategies.begin(), made.strategies.end(), [&](auto const& s) { return s.strategy == strategy; });
            if (!all || !known) made.strategies.push_back({.name = spoken_name(name), .strategy = std::move(strategy)});
        } catch (ps::invalid_input const&) {
            if (!all) throw;
        }
    }
}

// A line for each move of the problem; none where the search does not draw from them.
std::vector<move_line> lines_of(ps::search::move_counts const& counts, ps::io::search_options const& search) {
    bool const draws = ps::io::visit_search(
        search, [](auto const& entry, auto const&) { return ps::traits_of<std::remove_cvref_t<decltype(entry.run)>>.draws_moves; });
    std::vector<move_line> out;
    if (!draws) return out;
    std::size_t number = 0;
    for (auto const name : ps::search::move_names<ps::parallelization>()) {
        out.push_back({name.empty() ? ps::text("move ", number) : std::string(name),
                       number < counts.of_move.size() ? counts.of_move[number] : ps::search::move_counts::counts{}});
        ++number;
    }
    return out;
}

// What the found strategy puts on the network of a fabric, and what that costs.
void add_network(inputs const& given, planned& made) {
    if (!given.cluster.network) return;
    auto const& network = *given.cluster.network;
    made.traffic = ps::fabric::report_of(network, given.cluster.cluster, made.report);
    try {
        made.price = ps::fabric::price_of(network, ps::fabric::cabling::patch_panel).total();
    } catch (ps::invalid_input const&) {
        // a rate that the list has no prices for
    }
}

// No strategy of the space costs less; nothing where the user wants to end, or the oracle refuses a configuration of the space.
std::optional<ps::picoseconds> bound_of(ps::parallelization const& problem, std::stop_token const& stop) {
    if (stop.stop_requested()) return {};
    try {
        return ps::search::root_bound<ps::space::flat_strategy>(problem);
    } catch (ps::invalid_input const&) {
        return {};
    }
}

// What the user should know of the result.
void add_notes(request const& asked, planned& made, std::size_t compared) {
    auto const devices = made.problem.topology().size(), used = devices_in_use(made.strategies.front().strategy);
    if (used < devices)
        made.notes.push_back(ps::text("the batch is ", batch_of(made.problem.graph()), ", so data parallelism splits it over ", used, " of ", devices,
                                      " devices; batch=", std::max<std::size_t>(64, 8 * devices), " behind the model sets a larger one"));
    if (made.rewritten && made.rewritten->applied.empty())
        made.notes.push_back(ps::text("no other operators than the model's were found to be faster",
                                      *made.reason == ps::stop_reason::time_budget ? "; a longer --time may find some" : ""));
    else if (made.reason && !made.rewritten && !made.wired && made.stats->improved == 0 && devices > 1)
        made.notes.push_back(ps::text("nothing better than the start, ", made.start, ", was found",
                                      *made.reason == ps::stop_reason::time_budget ? "; a longer --time may find it" : ""));
    for (std::size_t i = 0; i < compared; ++i)
        if (auto const& other = made.strategies[i]; other.cost < made.found().cost)
            made.notes.push_back(
                made.wired       ? ps::text(other.name, " costs less on this fabric than what was found: a larger budget may find better")
                : made.rewritten ? ps::text(other.name, " costs less than what was found: --joint.refinement looks further, ",
                                            "and other searches for the model's own operators begin there")
                                 : ps::text(other.name, " costs less than what was found from '", made.start, "': --start cheapest begins there"));
    if (!made.found().figures.fits)
        made.notes.push_back(ps::text("the strategy does not fit: device ", made.found().figures.fullest_device, " needs ",
                                      tools::shown_memory(made.found().figures.fullest_device_use), " of ",
                                      tools::shown_memory(made.found().figures.fullest_device_memory)));
    if (!made.strategies.front().figures.fits && made.found().figures.fits) {
        named_strategy const* rival = nullptr;
        for (std::size_t i = 0; i < compared; ++i)
            if (auto const& other = made.strategies[i]; other.figures.fits && (!rival || other.figures.time < rival->figures.time)) rival = &other;
        if (rival) {
            auto const times = std::round(100 * ps::to_seconds(rival->figures.time) / ps::to_seconds(made.found().figures.time)) / 100;
            made.notes.push_back(ps::text(made.strategies.front().name, " does not fit; against the fastest that does, ", rival->name,
                                          ", the plan is ", times == 1 ? std::string("as fast") : ps::text(times, " times as fast")));
        }
    }
    if (!asked.rerun) return;
    auto const& before = asked.rerun->result;
    bool const same_cost = before.cost_ps == made.found().cost.count();
    made.differs = !same_cost || (made.stats && before.trajectory != ps::io::hexadecimal(made.stats->trajectory)) ||
                   (made.rewritten && (!asked.rerun->rewriting || asked.rerun->rewriting->applied != made.rewritten->applied));
    if (!made.differs) made.verdict = "the rerun found the same: equal cost and equal trajectory";
    else if (same_cost) made.verdict = "the rerun found another plan of the same cost, by another trajectory";
    else made.verdict = ps::text("the rerun found something else: a cost of ", made.found().cost.count(), " ps, and ", before.cost_ps, " ps before");
    if (made.differs && asked.rerun->library != ps::version) made.verdict += ps::text("; that was made by version ", asked.rerun->library);
    made.notes.push_back(made.verdict);
}
} // namespace

inputs read_inputs(request const& asked) {
    auto to_wire = fabric_to_wire(asked);
    auto cluster = to_wire ? unwired(*to_wire) : ps::io::make_named_cluster(asked.cluster);
    auto const devices = cluster.cluster.size();
    inputs out{.model = tools::load_model(asked.model, devices), .cluster = std::move(cluster), .to_wire = std::move(to_wire)};
    if (!out.cluster.path.empty()) out.cluster_hash = ps::io::hash_of_file(out.cluster.path);
    if (starts_from_file(asked)) {
        std::error_code error;
        if (!std::filesystem::is_regular_file(asked.start, error)) {
            std::string known = "cheapest";
            for (auto const& e : expert_list()) known += ps::text(", ", e.name);
            throw ps::invalid_input("start '", asked.start, "': must be ", known, " or a strategy file, and there is no such file");
        }
        out.start_hash = ps::io::hash_of_file(asked.start);
    }
    if (!asked.profile.empty()) {
        auto const path = profile_path(asked.profile);
        out.profile_hash = ps::io::hash_of_file(path);
        out.profile = load_profile(path, out.cluster.cluster);
    }
    if (!asked.rules.empty()) {
        out.rules = load_rules(asked.rules);
        out.rules_hash = ps::io::hash_of_file(asked.rules);
    }
    if (asked.rerun) {
        require_same("profile", asked.profile, out.profile_hash, asked.rerun->profile.value_or(ps::io::run_input{}));
        require_same("rules", asked.rules, out.rules_hash, asked.rerun->rules.value_or(ps::io::run_input{}));
        require_same("model", asked.model, out.model.hash, asked.rerun->model);
        require_same("cluster", asked.cluster, out.cluster_hash, asked.rerun->cluster);
        require_same("start", asked.start, out.start_hash, asked.rerun->start);
    }
    return out;
}

planned begin_plan(request& asked, inputs const& given, std::stop_token const& stop) {
    cost_oracle const oracle(given.cluster.cluster, given.profile ? &*given.profile : nullptr);
    planned made{.problem = make_problem(asked, given, oracle), .oracle = oracle};
    made.notes = given.model.notes;
    add_experts(made, asked.compare);
    if (is_joint(asked)) {
        made.start = "none";
    } else if (starts_from_file(asked)) {
        made.start = asked.start;
        made.start_strategy = read_strategy(asked.start, made.problem);
    } else if (asked.start != "cheapest") {
        made.start = spoken_name(asked.start);
        made.start_strategy = expert_strategy(asked.start, made.problem);
    } else if (asked.rerun) {
        start_as_before(made, asked.rerun->result.start);
    }
    if (asked.search) {
        if (!given.to_wire) ps::io::fix_derived(*asked.search); // else it is divided first
        ps::io::visit_search(*asked.search, [&](auto const&, auto& options) {
            options.stop = stop;
            validate(options);
        });
    }
    if (asked.pipeline) {
        asked.pipeline->stop = stop;
        validate(*asked.pipeline);
    }
    if (given.rules) made.rules_matching = matching_rules(given.rules->rules, made.problem.graph());
    return made;
}

ps::search_result<ps::space::flat_strategy, ps::picoseconds> search_once(ps::io::search_options const& options, ps::parallelization const& problem,
                                                                         ps::space::flat_strategy start, std::mt19937_64& rng,
                                                                         progress_display& progress, ps::search::move_counts& counts) {
    return ps::io::run_search(options, problem, std::move(start), rng, progress, counts);
}

void finish_plan(request const& asked, inputs const& given, planned& made, std::stop_token const& stop) {
    auto cost_of = made.problem.evaluator();
    ps::picoseconds baseline{};
    // The simulation of what is evaluated last stays.
    auto const evaluate = [&](named_strategy& s) {
        s.cost = made.rewritten ? made.problem.evaluator()(s.strategy) : cost_of(s.strategy);
        made.report = ps::simulate(made.problem, s.strategy);
        if (&s == &made.strategies.front()) baseline = made.report.makespan;
        s.figures = ps::io::compare(made.problem, given.cluster.cluster, s.name, made.report, baseline);
    };
    for (std::size_t i = 0; i < made.strategies.size(); ++i) {
        // Who interrupts does not wait for the other experts.
        if (i > 0 && stop.stop_requested()) made.strategies.resize(i);
        else evaluate(made.strategies[i]);
    }
    auto const compared = made.strategies.size();
    if (is_joint(asked)) {
        // What it finds for the model's own operators, then what it finds with rules.
        std::optional<std::uint64_t> before;
        if (asked.rerun && asked.rerun->rewriting) before = asked.rerun->rewriting->plain_evaluations;
        auto plain = search_jointly(asked, made.problem, nullptr, before, nullptr);
        made.strategies.push_back({.name = "found without rules", .strategy = std::move(plain.strategy)});
        evaluate(made.strategies.back());
        auto const& data_parallel = made.strategies.front();
        progress_display progress(asked.quiet, std::get<ps::rewrite::joint_options>(*asked.search).time, made.strategies.back().cost,
                                  data_parallel.figures.fits ? std::optional(data_parallel.cost) : std::nullopt);
        static std::vector<ps::rewrite::rule> const none;
        auto found = search_jointly(asked, made.problem, given.rules ? &given.rules->rules : &none, std::nullopt, &progress);
        progress.finish(found.stats.evaluations);
        if (plain.cost < found.cost) { // a budget ended the search before it had looked as closely at the model's own operators
            found.problem = made.problem;
            found.strategy = made.strategies.back().strategy;
            found.applied.clear();
            found.bound.reset(); // of the operators found
            found.nothing_feasible = plain.nothing_feasible;
        }
        if (made.bound = found.bound; !made.bound && std::get<ps::rewrite::joint_options>(*asked.search).bound)
            made.bound = bound_of(found.problem, stop);
        made.stats = found.stats;
        made.reason = found.reason;
        made.nothing_feasible = found.nothing_feasible;
        made.curve = progress.curve();
        made.rewritten = rewriting{.original = made.problem,
                                   .plain = made.strategies.size() - 1,
                                   .plain_evaluations = plain.stats.evaluations,
                                   .applied = std::move(found.applied),
                                   .others = std::move(found.others)};
        made.problem = std::move(found.problem);
        made.strategies.push_back({.name = "found by joint", .strategy = std::move(found.strategy)});
        evaluate(made.strategies.back());
        if (auto const* const measured = made.oracle.measured())
            made.computed = ps::compute_time_by_source(made.problem, *measured, made.found().strategy);
        add_network(given, made);
        add_notes(asked, made, compared);
        return;
    }
    if (made.start_strategy.empty() && !made.wired) {
        auto const& cheapest =
            *std::min_element(made.strategies.begin(), made.strategies.end(), [](auto const& a, auto const& b) { return a.cost < b.cost; });
        made.start = cheapest.name;
        made.start_strategy = cheapest.strategy;
    }
    if (made.wired) {
        made.strategies.push_back({.name = ps::text("found by ", ps::io::search_name(*asked.search)), .strategy = made.wired->strategy});
    } else if (asked.search) {
        auto const time = ps::io::visit_search(*asked.search, [](auto const&, auto const& options) { return options.time; });
        auto const& data_parallel = made.strategies.front();
        progress_display progress(asked.quiet, time, cost_of(made.start_strategy),
                                  data_parallel.figures.fits ? std::optional(data_parallel.cost) : std::nullopt);
        std::mt19937_64 rng{asked.seed};
        ps::search::move_counts counts;
        auto found = search_once(*asked.search, made.problem, made.start_strategy, rng, progress, counts);
        progress.finish(found.stats.evaluations);
        made.stats = found.stats;
        made.reason = found.ended;
        made.nothing_feasible = found.reason == ps::stop_reason::nothing_feasible;
        made.bound = found.lower_bound;
        made.curve = progress.curve();
        made.moves = lines_of(counts, *asked.search);
        made.strategies.push_back({.name = ps::text("found by ", ps::io::search_name(*asked.search)), .strategy = std::move(found.best)});
    } else {
        made.strategies.push_back({.name = starts_from_file(asked) ? std::filesystem::path(made.start).filename().string() : "chosen: " + made.start,
                                   .strategy = made.start_strategy});
    }
    if (made.stats && !made.bound) made.bound = bound_of(made.problem, stop);
    evaluate(made.strategies.back());
    if (auto const* const measured = made.oracle.measured())
        made.computed = ps::compute_time_by_source(made.problem, *measured, made.found().strategy);
    add_network(given, made);
    add_notes(asked, made, compared);
}

} // namespace plan
