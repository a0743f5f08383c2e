#include "planner.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include <parsearch/fabric/network/network_price.hpp>
#include <parsearch/graph/fusion.hpp>
#include <parsearch/graph/ring_attention.hpp>
#include <parsearch/io/described/searches.hpp>
#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/io/foreign/flexflow_strategy.hpp>
#include <parsearch/models/summary.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/plans/one_replica.hpp>
#include <parsearch/problem/lagrangian_bound.hpp>
#include <parsearch/search/bounds/problem_bounds.hpp>

#include "experts.hpp"
#include "explain.hpp"
#include "fabric.hpp"
#include "joint.hpp"
#include "pins.hpp"
#include "profile.hpp"
#include "progress.hpp"
#include "regular.hpp"
#include "tools/limits.hpp"
#include "tools/units.hpp"

namespace plan {
namespace {

bool is_joint(request const& asked) { return asked.search && std::holds_alternative<ps::rewrite::joint_options>(*asked.search); }
bool starts_from_file(request const& asked) { return asked.start != "cheapest" && !is_expert(asked.start); }

// Says where a file was made for something else.
void note_purpose(std::string const& path, request const& asked, ps::io::plan_notes const& said, std::vector<std::string>& notes) {
    auto const other = [](std::string const& name, std::string const& now) { return !name.empty() && name != now; };
    if (other(said.model, asked.model) || other(said.topology, asked.cluster))
        notes.push_back(ps::text(path, " says that it is for ", said.model, " on ", said.topology, ": it is read as one for ", asked.model, " on ",
                                 asked.cluster));
}

// Throws where `path`, the value of `option`, is no file. `names` are those that it could be beside experts.
void require_plan_file(std::string_view option, std::string const& path, std::string_view names) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return;
    std::string known(names);
    for (auto const& e : expert_list()) known += e.name + ", ";
    known.resize(known.size() - 2);
    throw ps::invalid_input(option, " '", path, "': must be ", known, " or the file of a plan, and there is no such file");
}

// The plan of a file, JSON, which begins with a brace, or FlexFlow's, which begins with a number. `notes` says where it was made for something else.
ps::pipeline::pipeline_plan read_plan(std::string const& path, request const& asked, ps::parallelization const& problem,
                                      std::vector<std::string>& notes) {
    std::ifstream in(path, std::ios::binary);
    char first = 0;
    if (!(in >> first)) throw ps::invalid_input(path, in.is_open() ? ": is empty: must be a plan" : ": cannot be opened");
    in.seekg(0);
    if (first != '{') {
        notes.push_back(ps::text(path, " is in FlexFlow's format, which does not say for which model and cluster it is"));
        return {.how = ps::pipeline::unpipelined(problem.graph()),
                .strategy = ps::io::read_flexflow_strategy(in, path, problem.graph(), problem.topology().size())};
    }
    ps::io::plan_notes said;
    auto plan = ps::io::read_plan_json(in, path, problem, &said);
    if (auto const m = asked.simulation.transfers; m != ps::sim::transfer_model::streaming && !plan.how.plain())
        throw ps::invalid_input(path, " is a pipeline, and --simulation.transfers is ", name_of(m), ": pipelines are simulated with streaming alone");
    note_purpose(path, asked, said, notes);
    return plan;
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
            return;
        }
    throw ps::invalid_input("--rerun: result.start is ", ps::io::in_quotes(start), ": must be the name of an expert");
}

ps::parallelization make_problem(request const& asked, inputs const& given, ps::cost::profiled_roofline const& oracle) {
    return ps::make_problem(given.model.graph, given.cluster.cluster, oracle, {.space = asked.space, .simulation = asked.simulation});
}

// Why the plan must be one of all devices, if it must.
std::optional<std::string> why_of_all(request const& asked, inputs const& given) {
    if (is_joint(asked)) return "search joint makes other operators";
    if (starts_from_file(asked)) return ps::text("the plan of ", asked.start, " is of all devices");
    if (!asked.diff.empty() && !is_expert(asked.diff)) return ps::text("--diff ", asked.diff, " is of all devices");
    if (given.cluster.network) return "the cluster is a fabric";
    if (!asked.pin.empty() || !asked.forbid.empty()) return "--pin and --forbid count parts on all devices";
    for (auto const* const runtime : {"chakra", "flexnet"})
        if (std::ranges::find(asked.exports, runtime, &wanted_export::runtime) != asked.exports.end())
            return ps::text("--export ", runtime, " writes tasks of all devices");
    return {};
}

// How many replicas to plan one of: what was asked, or of more than 256 devices as many as leave each 256, and memory for twice the weights and all
// that belongs to them.
std::uint32_t replicas_of(request const& asked, inputs const& given, ps::parallelization const& problem) {
    if (asked.replicas) return *asked.replicas;
    constexpr std::size_t few = 256;
    constexpr double bytes = 18; // of a parameter: bf16, its gradient in f32, and three values of f32 of Adam
    auto const& t = problem.topology();
    if (t.size() <= few || why_of_all(asked, given)) return 1;
    auto const parameters = static_cast<double>(ps::models::summarize(problem.graph()).parameters);
    auto const room = t.devices.front().memory > 0 ? 2 * parameters * bytes / static_cast<double>(t.devices.front().memory) : 0;
    auto const nodes = static_cast<std::uint32_t>(t.size() / std::max<std::size_t>(1, ps::topology::devices_per_node(t)));
    for (auto n = nodes / 2; n > 1; --n)
        if (auto const left = t.size() / n;
            nodes % n == 0 && left >= few && static_cast<double>(left) >= room && ps::pipeline::not_replicated(problem, n).empty())
            return n;
    return 1;
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

// What the plan puts on the network of a fabric, and what that costs.
void add_network(inputs const& given, planned& made) {
    if (!given.cluster.network || !made.plan->report) return;
    auto const& network = *given.cluster.network;
    made.traffic = ps::fabric::report_of(network, given.cluster.cluster, *made.plan->report);
    try {
        made.price = ps::fabric::price_of(network, ps::fabric::cabling::patch_panel).total();
    } catch (ps::invalid_input const&) {
        // a rate that the list has no prices for
    }
}

std::optional<std::chrono::nanoseconds> time_of(request const& asked) {
    if (!asked.search) return {};
    return std::visit([](auto const& options) { return options.time; }, *asked.search);
}
// What experts may take together, and so the bound: as long as the search, and a second where that is less.
std::optional<std::chrono::nanoseconds> time_beside(request const& asked) {
    auto const time = time_of(asked);
    return time ? std::optional(std::max<std::chrono::nanoseconds>(*time, std::chrono::seconds{1})) : std::nullopt;
}
// A search ends between evaluations; within one only where that takes this much longer.
std::optional<std::chrono::nanoseconds> time_of_last_evaluation(request const& asked) {
    auto const time = time_of(asked);
    constexpr std::chrono::nanoseconds grace = std::chrono::seconds{1};
    return time ? std::optional(*time + std::min(grace, std::chrono::nanoseconds::max() - *time)) : std::nullopt;
}

// Bytes by which any strategy without pipelines exceeds the memory of some device, at least: what all tensors take beyond all devices, shared evenly.
ps::byte_count least_missing(ps::parallelization const& problem) {
    auto left = ps::sim::least_memory(problem.graph(), problem.workload()->classes, problem.options());
    for (auto const& d : problem.topology().devices) left -= std::min(left, d.memory);
    auto const devices = static_cast<ps::byte_count>(problem.topology().size());
    return (left + devices - 1) / devices;
}
// Whether a search of strategies without pipelines may find something that costs less than the pipeline found: not where what they miss of memory
// costs more.
bool may_find_better(request const& asked, planned const& made) {
    if (is_joint(asked) || !made.pipeline) return true;
    if (!asked.runtime.empty()) return false;
    auto const& problem = made.problem;
    if (made.missing > 0 && made.pipeline->figures.fits && asked.simulation.memory != ps::sim::memory_policy::ignore) return false;
    return ps::sim::memory_cost(problem.options(), made.missing, problem.topology().size()) <= made.pipeline->figures.cost;
}

std::string more_memory(request const& asked) {
    return asked.memory
               ? ps::text("takes more memory than ", tools::shown_memory(static_cast<ps::byte_count>(*asked.memory)), ": --memory allows more")
               : std::string("takes more memory than there is");
}
// What `f` answers; nothing where `stop` or memory end it first, and then `made.left_out` says so. `stop` is a deadline's, `user` that of Ctrl-C.
template <class F>
auto unless_cut(std::string const& what, request const& asked, planned& made, std::stop_token const& user, F const& f)
    -> std::optional<decltype(f())> {
    try {
        return f();
    } catch (ps::interrupted const&) {
        made.left_out.push_back(ps::text(what, user.stop_requested() ? " was not ready when the program was to end"
                                                                     : " takes longer than its part of the time: a longer --time waits for it"));
    } catch (std::bad_alloc const&) {
        made.left_out.push_back(ps::text(what, ' ', more_memory(asked)));
    }
    return {};
}

// No strategy of the space costs less; nothing where the user wants to end, where it takes too long or too much memory, or where the oracle refuses a
// configuration of the space.
std::optional<ps::picoseconds> bound_of(ps::parallelization const& problem, request const& asked, planned& made, std::stop_token const& stop) {
    if (stop.stop_requested()) return {};
    auto const time = time_beside(asked);
    try {
        auto const bound = unless_cut("the lower bound", asked, made, stop, [&] {
                               tools::deadline const limit(stop, time);
                               return ps::search::root_bound<ps::space::flat_strategy>(problem.until(limit.token()));
                           }).value_or(std::nullopt);
        // Better from round to round: what there is after a part of the time will do.
        auto const weighed = unless_cut("a better lower bound", asked, made, stop, [&] {
                                 auto const part =
                                     time ? std::optional(std::max<std::chrono::nanoseconds>(*time / 4, std::chrono::seconds{1})) : std::nullopt;
                                 tools::deadline const limit(stop, part);
                                 return ps::lagrangian_bound(problem.until(limit.token()), {.pairs = 1 << 19});
                             }).value_or(ps::picoseconds::zero());
        if (!bound && weighed == ps::picoseconds::zero()) return {};
        return std::max(bound.value_or(weighed), weighed);
    } catch (ps::invalid_input const&) {
        return {};
    }
}

// An operator of which `s` has a configuration outside of the space, and that configuration; nothing where there is none.
std::optional<std::string> outside_of_space(ps::parallelization const& problem, ps::space::flat_strategy const& s) {
    auto const op = problem.space().first_outside(s);
    if (!op) return {};
    return ps::text("operator ", problem.graph().names[*op], ": ", ps::space::to_string(s[*op], problem.graph().operations[*op]));
}

// What the expert called `name` does with the operators that are planned, in their space; nothing where it does not apply to them: rules may have
// merged what it tells apart.
std::optional<ps::space::flat_strategy> on_planned_operators(planned const& made, std::string_view name) {
    auto const all = expert_list();
    auto const expert = std::ranges::find_if(all, [&](auto const& e) { return spoken_name(e.name) == name; });
    if (expert == all.end()) return {};
    try {
        return made.problem.space().nearest(expert_strategy(expert->name, made.problem));
    } catch (ps::invalid_input const&) {
        return {};
    }
}

// The cheapest of those compared; for a search, one that is outside of the space is worth what the space has nearest to it.
void choose_start(request const& asked, planned& made, std::stop_token const& stop) {
    auto time = time_beside(asked);
    if (time && made.other_operators()) *time /= 8; // for these all are simulated again
    tools::deadline const limit(stop, time);
    std::optional<ps::picoseconds> least;
    made.start_strategy.clear();
    for (auto const& s : made.strategies) {
        std::optional<ps::picoseconds> cost = s.figures.cost;
        auto strategy = s.strategy;
        if (made.other_operators()) {
            auto of_these = on_planned_operators(made, s.name);
            if (!of_these) continue;
            strategy = *std::move(of_these);
        }
        if (made.other_operators() || (asked.search && outside_of_space(made.problem, strategy)))
            cost =
                unless_cut(made.other_operators() ? ps::text(s.name, " of other operators") : ps::text("what the space has nearest to ", s.name),
                           asked, made, stop, [&] { return made.problem.until(limit.token()).evaluator()(made.problem.space().nearest(strategy)); });
        if (!made.start_strategy.empty() && (!cost || (least && *least <= *cost))) continue;
        least = cost;
        made.start = s.name;
        made.start_strategy = strategy;
    }
}

// Searches begin in the space, and say so where what they were given was not.
void move_into_space(planned& made) {
    auto const outside = outside_of_space(made.problem, made.start_strategy);
    if (!outside) return;
    made.notes.push_back(
        ps::text("the start, ", made.start, ", is outside of the space (", *outside, "): the search began with the nearest strategy of the space"));
    made.start_strategy = made.problem.space().nearest(std::move(made.start_strategy));
}

// A batch near to `batch` that data parallelism splits over all devices.
std::size_t batch_for(std::size_t devices, std::size_t batch) { return (batch + devices - 1) / devices * devices; }

// What the user should know of the result.
void add_notes(request const& asked, planned& made) {
    auto const compared = made.compared;
    auto const replicas = made.problem.options().replicas;
    auto const devices = made.problem.topology().size() * replicas, used = devices_in_use(made.strategies.front().strategy) * replicas;
    auto const batch = batch_of(made.problem.graph()) * replicas;
    if (used < devices)
        made.notes.push_back(ps::text("the batch is ", batch, ", so data parallelism splits it over ", used, " of ", devices,
                                      " devices; batch=", batch_for(devices, batch), " behind the model uses all"));
    bool const joint = made.joint();
    if (joint && made.rewritten->applied.empty())
        made.notes.push_back(ps::text("no other operators than the model's were found to be faster",
                                      *made.reason == ps::stop_reason::time_budget ? "; a longer --time may find some" : ""));
    else if (made.reason && !made.rewritten && !made.wired && made.stats->improved == 0 && devices > 1)
        made.notes.push_back(ps::text("nothing better than the start, ", made.start, ", was found",
                                      *made.reason == ps::stop_reason::time_budget ? "; a longer --time may find it" : ""));
    if (auto const& tried = made.tried_operators; tried && tried->cost && !made.rewritten) {
        auto const longer = ps::to_seconds(made.figures().cost) / ps::to_seconds(*tried->cost) - 1;
        if (made.figures().fits == tried->fits && longer >= 0.001)
            made.notes.push_back(ps::text("the plan takes ", std::round(1000 * longer) / 10,
                                          "% longer than one of other operators that compute the same (", tried->rules.front(),
                                          tried->rules.size() > 1 ? ps::text(" and ", tried->rules.size() - 1, " more") : std::string(),
                                          "): --rewriting ", std::floor(100 * longer) / 100, " takes that"));
    }
    for (auto const& what : made.left_out) made.notes.push_back(ps::text("left out: ", what));
    for (std::size_t i = 0; i < compared; ++i) {
        auto const& other = made.strategies[i];
        auto const outside = asked.search ? outside_of_space(made.given_problem(), other.strategy) : std::nullopt;
        if (outside && other.name != made.start)
            made.notes.push_back(ps::text(other.name, " is outside of the space (", *outside, "): it is shown for comparison"));
        if (!outside && (joint || !made.rewritten) && other.figures.cost < made.found().figures.cost)
            made.notes.push_back(
                made.wired ? ps::text(other.name, " costs less on this fabric than what was found: a larger budget may find better")
                : joint    ? ps::text(other.name, " costs less than what was found: --joint.refinement looks further, ",
                                      "and other searches for the model's own operators begin there")
                           : ps::text(other.name, " costs less than what was found from '", made.start, "': --start cheapest begins there"));
    }
    if (auto const& f = made.figures(); !f.fits) {
        auto const need = static_cast<double>(f.fullest_device_use) / static_cast<double>(std::max<ps::byte_count>(f.fullest_device_memory, 1)) *
                          static_cast<double>(devices);
        made.notes.push_back(ps::text("the plan does not fit: device ", f.fullest_device, " needs ", tools::shown_memory(f.fullest_device_use),
                                      " of ", tools::shown_memory(f.fullest_device_memory), " and misses ",
                                      tools::shown_memory(f.fullest_device_use - f.fullest_device_memory), "; more devices would help (",
                                      std::ceil(need), " of these have that much memory), or a smaller batch"));
    }
    if (!made.strategies.front().figures.fits && made.figures().fits) {
        named_strategy const* rival = nullptr;
        for (std::size_t i = 0; i < compared; ++i)
            if (auto const& other = made.strategies[i]; other.figures.fits && (!rival || other.figures.time < rival->figures.time)) rival = &other;
        if (rival) {
            auto const times = std::round(100 * ps::to_seconds(rival->figures.time) / ps::to_seconds(made.figures().time)) / 100;
            made.notes.push_back(ps::text(made.strategies.front().name, " does not fit; against the fastest that does, ", rival->name,
                                          ", the plan is ", times == 1 ? std::string("as fast") : ps::text(times, " times as fast")));
        }
    }
    if (!asked.rerun) return;
    auto const& before = asked.rerun->result;
    auto const& pipelines = asked.rerun->pipelines;
    auto const cost = made.pipelines && made.pipeline ? made.pipeline->figures.cost.count() : made.found().figures.cost.count();
    auto const cost_before = pipelines ? std::min(before.cost_ps, pipelines->cost_ps) : before.cost_ps;
    bool const same_cost = cost == cost_before && before.cost_ps == made.found().figures.cost.count();
    bool const moved = before.evaluations > 1; // a search that was ended at its start has no trajectory
    made.differs = !same_cost || (made.stats && moved && before.trajectory != ps::io::hexadecimal(made.stats->trajectory)) ||
                   (made.rewritten && (!asked.rerun->rewriting || asked.rerun->rewriting->applied != made.rewritten->applied));
    if (!made.differs) made.verdict = "the rerun found the same: equal cost and equal trajectory";
    else if (same_cost) made.verdict = "the rerun found another plan of the same cost, by another trajectory";
    else made.verdict = ps::text("the rerun found something else: a cost of ", cost, " ps, and ", cost_before, " ps before");
    if (made.differs && asked.rerun->library != ps::version) made.verdict += ps::text("; that was made by version ", asked.rerun->library);
    made.notes.push_back(made.verdict);
}
} // namespace

bool is_better(request const& asked, ps::io::compared const& a, ps::io::compared const& b) {
    if (asked.simulation.memory != ps::sim::memory_policy::ignore && a.fits != b.fits) return a.fits;
    return a.cost < b.cost;
}

// Whether any operator passes what it reads on in a ring.
static bool passes_on(ps::graph::operator_graph const& g) {
    for (std::size_t op = 0; op < g.size(); ++op)
        if (std::ranges::any_of(g[op].operation.inputs, [](auto const& i) { return i.passed_on; })) return true;
    return false;
}

// The file beside a plan with the operators that rules made of the model's, and these rules.
struct written_operators {
    std::string path;
    std::vector<std::string> rules;
    bool given; // as --model
};

// That of the plan in file `path`, where it is of the same model; nothing where there is none: then the plan is read as one of the model's operators.
static std::optional<written_operators> operators_beside(std::string const& path, request const& asked) {
    std::ifstream in(path, std::ios::binary);
    auto said = ps::io::read_plan_notes(in, path);
    auto beside = (std::filesystem::path(path).parent_path() / operators_file).string();
    std::error_code error;
    if (said.rewritten_by.empty() || !std::filesystem::is_regular_file(beside, error)) return {};
    bool const given = std::filesystem::equivalent(ps::io::parse_settings(asked.model).name, beside, error);
    if (!given && said.model != asked.model) return {};
    return written_operators{std::move(beside), std::move(said.rewritten_by), given};
}

// `g` with the kernels that are asked for.
static ps::graph::operator_graph with_kernels(ps::graph::operator_graph g, request const& asked) {
    g = ps::graph::with_fused_kernels(g, asked.kernels.fusion);
    return asked.kernels.ring_attention ? ps::graph::with_ring_attention(g) : g;
}

inputs read_inputs(request const& asked) {
    auto to_wire = fabric_to_wire(asked);
    auto cluster = to_wire ? unwired(*to_wire) : ps::io::make_named_cluster(asked.cluster);
    auto const devices = cluster.cluster.size();
    inputs out{.model = tools::load_model(asked.model, devices), .cluster = std::move(cluster), .to_wire = std::move(to_wire)};
    if (starts_from_file(asked)) {
        require_plan_file("start", asked.start, "cheapest, ");
        out.start_hash = ps::io::hash_of_file(asked.start);
        if (auto written = operators_beside(asked.start, asked)) {
            out.applied = std::move(written->rules);
            if (!written->given) {
                out.model_graph = with_kernels(std::exchange(out.model, tools::load_model(written->path, devices)).graph, asked);
                out.model.notes.push_back(
                    ps::text(asked.start, " is of operators that rules made of the model's: those of ", written->path, " are planned"));
            }
        }
    }
    out.model.graph = with_kernels(std::move(out.model.graph), asked);
    if (asked.kernels.ring_attention && !passes_on(out.model.graph))
        out.model.notes.emplace_back("--kernels.ring_attention changes nothing: no operator of the model is an attention (one made of products "
                                     "and a softmax is not known as such)");
    if (!out.cluster.path.empty()) out.cluster_hash = ps::io::hash_of_file(out.cluster.path);
    if (!asked.diff.empty() && !is_expert(asked.diff)) require_plan_file("--diff", asked.diff, "");
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
    ps::cost::profiled_roofline const oracle(given.cluster.cluster, given.profile ? &*given.profile : nullptr, asked.kernels.roofline());
    std::vector<std::string> pinned;
    if (!asked.pin.empty() || !asked.forbid.empty())
        pinned =
            pin_operators(asked, ps::space::with_replicas(ps::graph::read_graph(given.model.graph).graph, asked.space), given.cluster.cluster.size());
    planned made{.problem = make_problem(asked, given, oracle), .oracle = oracle};
    made.notes = given.model.notes;
    made.notes.insert(made.notes.end(), asked.notes.begin(), asked.notes.end());
    made.notes.insert(made.notes.end(), pinned.begin(), pinned.end());
    if (auto const n = replicas_of(asked, given, made.problem); n > 1) {
        if (auto const why = why_of_all(asked, given)) throw ps::invalid_input("--replicas is ", n, ", but ", *why, ": must be 1");
        if (auto const why = ps::pipeline::not_replicated(made.problem, n); !why.empty()) throw ps::invalid_input("--replicas is ", n, ": ", why);
        made.whole = std::exchange(made.problem, ps::pipeline::one_replica(made.problem, n));
        made.part = ps::topology::first_devices(given.cluster.cluster, made.problem.topology().size());
        made.notes.push_back(ps::text(
            "one of ", n, " replicas was planned, on ", made.problem.topology().size(), " of ", made.whole->topology().size(),
            " devices: all do the same. Figures are of all devices, report.html and timeline.json of one replica; --replicas says how many"));
    }
    if (!is_joint(asked) && !asked.rewriting) require_operators(asked, made.problem.graph()); // rules make other operators
    add_experts(made, asked.compare);
    if (is_joint(asked)) {
        made.start = "none";
    } else if (starts_from_file(asked)) {
        auto plan = read_plan(asked.start, asked, made.problem, made.notes);
        if (plan.how.plain()) {
            made.start = asked.start;
            made.start_strategy = std::move(plan.strategy);
        } else {
            if (auto const broken = broken_pin(asked, made.problem.graph(), plan.strategy))
                made.notes.push_back(ps::text("the start, ", asked.start, ", is left out: ", *broken));
            else made.start_pipeline = std::move(plan);
            if (asked.rerun) start_as_before(made, asked.rerun->result.start);
        }
    } else if (asked.start != "cheapest") {
        made.start = spoken_name(asked.start);
        made.start_strategy = expert_strategy(asked.start, made.problem);
    } else if (asked.rerun) {
        start_as_before(made, asked.rerun->result.start);
    }
    if (is_expert(asked.diff))
        made.other = {.how = ps::pipeline::unpipelined(made.problem.graph()), .strategy = expert_strategy(asked.diff, made.problem)};
    else if (!asked.diff.empty()) {
        // Of its own operators, which need not be those that are planned.
        if (auto const written = operators_beside(asked.diff, asked); written && !written->given)
            made.other_problem = ps::with_graph(made.problem, tools::load_model(written->path, given.cluster.cluster.size()).graph);
        else if (given.model_graph) made.other_problem = ps::with_graph(made.problem, *given.model_graph);
        made.other = read_plan(asked.diff, asked, made.problem_of_other(), made.notes);
    }
    if (asked.search) {
        if (!given.to_wire) ps::io::fix_derived(*asked.search); // else it is divided first
        ps::io::visit_search(*asked.search, [&](auto const&, auto& options) {
            options.stop = stop;
            validate(options);
        });
    }
    made.missing = least_missing(made.problem);
    if (asked.pipelines) {
        if (made.missing > 0 && !is_joint(asked) && !given.to_wire) asked.pipelines->time = time_of(asked); // nothing else may fit
        asked.pipelines->stop = stop;
        validate(*asked.pipelines);
    }
    if (given.rules) made.rules_matching = matching_rules(given.rules->rules, made.problem.graph());
    return made;
}

// What is known of `s`, a strategy of `made.problem`, or nothing.
static ps::io::compared const* known_figures(planned const& made, ps::space::flat_strategy const& s) {
    if (made.other_operators()) return nullptr;
    auto const end = made.strategies.begin() + static_cast<std::ptrdiff_t>(made.compared);
    auto const known = std::find_if(made.strategies.begin(), end, [&](auto const& other) { return other.strategy == s; });
    return known != end ? &known->figures : nullptr;
}

// The cost of the start. One that is not ready in time, or takes too much memory, gives way to the cheapest of those compared.
static ps::picoseconds cost_of_start(request const& asked, planned& made, std::stop_token const& stop) {
    if (auto const* const known = known_figures(made, made.start_strategy)) return known->cost;
    tools::deadline const limit(stop, time_beside(asked));
    if (auto const cost = unless_cut(ps::text("the start, ", made.start, ","), asked, made, stop,
                                     [&] { return made.problem.until(limit.token()).evaluator()(made.start_strategy); }))
        return *cost;
    choose_start(asked, made, stop);
    move_into_space(made);
    auto const* const known = known_figures(made, made.start_strategy);
    return known ? known->cost : made.problem.evaluator()(made.start_strategy);
}

// Adds what the search finds. Where time, Ctrl-C or memory end it early, its start is the plan.
static void search_from_start(request const& asked, planned& made, std::stop_token const& stop) {
    auto const start_cost = cost_of_start(asked, made, stop);
    auto& found = made.strategies.emplace_back(
        named_strategy{.name = ps::text("found by ", ps::io::search_name(*asked.search), made.other_operators() ? of_other_operators : ""),
                       .strategy = made.start_strategy});
    auto const end_at_start = [&](ps::stop_reason reason) {
        made.stats = ps::search_stats{.evaluations = 1};
        made.reason = reason;
    };
    try {
        auto const& data_parallel = made.strategies.front();
        progress_display progress(asked.quiet, time_of(asked), start_cost,
                                  data_parallel.figures.fits ? std::optional(data_parallel.figures.cost) : std::nullopt);
        std::mt19937_64 rng{asked.seed};
        ps::search::move_counts counts;
        tools::deadline const limit(stop, time_of_last_evaluation(asked));
        auto best = search_once(*asked.search, made.problem.until(limit.token()), made.start_strategy, rng, progress, counts);
        progress.finish(best.stats.evaluations);
        made.stats = best.stats;
        made.reason = best.ended;
        made.nothing_feasible = best.reason == ps::stop_reason::nothing_feasible;
        made.bound = best.lower_bound;
        made.curve = progress.curve();
        made.moves = lines_of(counts, *asked.search);
        found.strategy = std::move(best.best);
    } catch (ps::interrupted const&) {
        end_at_start(stop.stop_requested() ? ps::stop_reason::stop_requested : ps::stop_reason::time_budget);
    } catch (std::bad_alloc const&) {
        end_at_start(ps::stop_reason::out_of_memory);
        made.left_out.push_back(ps::text("the search ", more_memory(asked)));
    }
}

// `asked` with the time that the search of pipelines has left, half of it at least, but for what blocks that repeat take.
static request with_time_left(request asked, planned const& made) {
    auto const ties = asked.search ? time_for_ties(asked, made).value_or(std::chrono::nanoseconds::zero()) : std::chrono::nanoseconds::zero();
    if (auto const time = time_of(asked); time && (made.pipelines || ties > std::chrono::nanoseconds::zero())) {
        auto const used = made.time_of_pipelines();
        constexpr std::chrono::nanoseconds step = std::chrono::milliseconds{1};
        auto const left = std::max(*time - used, *time / 2) - ties;
        std::visit([&](auto& options) { options.time = left > step ? left / step * step : left; }, *asked.search);
    }
    return asked;
}

// The plan, once all is searched.
static void conclude(request const& asked, inputs const& given, ps::picoseconds baseline, planned& made, std::stop_token const& stop) {
    if (made.other)
        made.other_figures =
            ps::io::compare(made.problem_of_other(), given.cluster.cluster, is_expert(asked.diff) ? spoken_name(asked.diff) : asked.diff,
                            simulate(made.problem_of_other(), *made.other), baseline);
    choose_pipeline(asked, given, baseline, made);
    settle(asked, given, made);
    if (made.pipelines && !stop.stop_requested())
        made.plan_bound = unless_cut("the lower bound", asked, made, stop, [&] { return bound_of_plans(asked, made, time_beside(asked), stop); });
    try {
        made.computed = ps::compute_time_by_source(made.plan->part, made.oracle, made.plan->plan.strategy, made.plan->plan.how.micro_batches);
    } catch (std::bad_alloc const&) {
        made.left_out.emplace_back("what computing time rests on takes more memory than there is; --memory may allow more");
    }
    add_network(given, made);
    auto const add_of_fabric = [&](std::string const& what, auto const& add) {
        tools::deadline const limit(stop, time_beside(asked));
        try {
            unless_cut(what, asked, made, stop, [&] {
                ps::require_running(stop);
                add(asked, given, made, limit.token());
                return true;
            });
        } catch (ps::invalid_input const& e) {
            made.left_out.push_back(ps::text(what, ": ", e.what()));
        }
    };
    if (asked.failures) add_of_fabric("what failures of wires do", fail_wires);
    if (asked.reconfiguration) add_of_fabric("what rewiring within the iteration gains", rewire);
    add_notes(asked, made);
}

void finish_plan(request const& asked, inputs const& given, planned& made, std::stop_token const& stop) {
    ps::picoseconds baseline{};
    // The simulation of what is evaluated last stays.
    auto const evaluate = [&](named_strategy& s, std::stop_token const& until) {
        made.report = {}; // its memory is for the next
        made.report = ps::simulate(made.problem.until(until), s.strategy);
        if (&s == &made.strategies.front()) baseline = made.report.makespan;
        s.figures = ps::io::compare(made.problem, given.cluster.cluster, s.name, made.report, baseline);
    };
    // What was found. Where its figures are known and a pipeline is the plan, nothing is simulated again.
    auto const evaluate_found = [&](std::stop_token const& until) {
        auto& found = made.strategies.back();
        auto const* const known = known_figures(made, found.strategy);
        if (!known || !made.pipeline || !is_better(asked, made.pipeline->figures, *known)) return evaluate(found, until);
        found.figures = *known;
        found.figures.name = found.name;
    };
    evaluate(made.strategies.front(), stop);
    // Each has an equal part of the time that is left, so that one that takes long does not leave no time to those behind it.
    auto const began = std::chrono::steady_clock::now();
    auto time = time_beside(asked);
    if (time && made.missing > 0 && asked.pipelines) *time /= 4; // none fits: they are for comparison
    for (std::size_t i = 1; i < made.strategies.size();) {
        auto part = time;
        if (part)
            *part = std::max(*part - (std::chrono::steady_clock::now() - began), std::chrono::nanoseconds::zero()) / (made.strategies.size() - i);
        tools::deadline const limit(stop, part);
        auto& expert = made.strategies[i];
        if (unless_cut(expert.name, asked, made, stop, [&] { return evaluate(expert, limit.token()), true; })) ++i;
        else made.strategies.erase(made.strategies.begin() + static_cast<std::ptrdiff_t>(i));
    }
    made.compared = made.strategies.size();
    search_pipelines(asked, given, baseline, made, stop);
    auto rest = with_time_left(asked, made);
    if (is_joint(asked)) {
        auto& options = std::get<ps::rewrite::joint_options>(*rest.search);
        ps::rewrite::joint_cache cache(made.problem, options.pricing);
        options.cache = &cache;
        // What it finds for the model's own operators, then what it finds with rules.
        std::optional<std::uint64_t> before;
        if (asked.rerun && asked.rerun->rewriting) before = asked.rerun->rewriting->plain_evaluations;
        auto plain = search_jointly(rest, made.problem, nullptr, before, nullptr);
        made.strategies.push_back({.name = "found without rules", .strategy = std::move(plain.strategy)});
        evaluate_found({});
        auto const& data_parallel = made.strategies.front();
        progress_display progress(asked.quiet, options.time, made.strategies.back().figures.cost,
                                  data_parallel.figures.fits ? std::optional(data_parallel.figures.cost) : std::nullopt);
        static std::vector<ps::rewrite::rule> const none;
        auto found = search_jointly(rest, made.problem, given.rules ? &given.rules->rules : &none, std::nullopt, &progress);
        progress.finish(found.stats.evaluations);
        auto const own = made.strategies.back();
        if (plain.cost < found.cost) { // a budget ended the search before it had looked as closely at the model's own operators
            found.problem = made.problem;
            found.strategy = own.strategy;
            found.applied.clear();
            found.bound.reset(); // of the operators found
            found.nothing_feasible = plain.nothing_feasible;
        }
        if (made.bound = found.bound; !made.bound && std::get<ps::rewrite::joint_options>(*asked.search).bound)
            made.bound = bound_of(found.problem, asked, made, stop);
        made.stats = found.stats;
        made.reason = found.reason;
        made.nothing_feasible = found.nothing_feasible;
        made.curve = progress.curve();
        made.rewritten = rewriting{.original = made.problem,
                                   .plain = own.figures,
                                   .plain_strategy = own.strategy,
                                   .plain_evaluations = plain.stats.evaluations,
                                   .applied = std::move(found.applied),
                                   .others = std::move(found.others)};
        made.problem = std::move(found.problem);
        made.strategies.push_back({.name = "found by joint", .strategy = std::move(found.strategy)});
        evaluate_found({});
        conclude(asked, given, baseline, made, stop);
        return;
    }
    if (made.other_operators() && !made.start_strategy.empty())
        made.start_strategy = on_planned_operators(made, made.start).value_or(ps::space::flat_strategy{});
    if (made.start_strategy.empty() && !made.wired) choose_start(asked, made, stop);
    if (asked.search && !made.wired && asked.runtime.empty()) move_into_space(made);
    if (made.wired) {
        made.strategies.push_back({.name = ps::text("found by ", ps::io::search_name(*asked.search)), .strategy = made.wired->strategy});
    } else if (asked.search && may_find_better(asked, made)) {
        search_from_start(rest, made, stop);
    } else {
        if (asked.search && asked.runtime.empty())
            made.notes.push_back(
                ps::text("without micro-batches or stages nothing fits: some device would miss ", tools::shown_memory(made.missing),
                         " at least, as all tensors need ",
                         tools::shown_memory(ps::sim::least_memory(made.problem.graph(), made.problem.workload()->classes, made.problem.options())),
                         "; no such strategy was searched"));
        made.strategies.push_back({.name = starts_from_file(asked) && !made.start_pipeline ? std::filesystem::path(made.start).filename().string()
                                                                                           : "chosen: " + made.start,
                                   .strategy = made.start_strategy});
    }
    bool const searched = made.stats && !made.wired;
    if (made.stats && !made.bound && !made.pipelines) made.bound = bound_of(made.problem, asked, made, stop);
    bool const given_start = !made.stats && !made.wired && !known_figures(made, made.start_strategy); // what takes long is not waited for
    if (!unless_cut(made.strategies.back().name, asked, made, stop, [&] { return evaluate_found(given_start ? stop : std::stop_token{}), true; })) {
        made.strategies.pop_back();
        choose_start(asked, made, stop);
        made.strategies.push_back({.name = "chosen: " + made.start, .strategy = made.start_strategy});
        evaluate_found({});
    }
    if (auto alike = searched ? regular_strategy(asked, made, stop) : std::nullopt) {
        made.strategies.push_back(std::move(*alike));
        if (!unless_cut(made.strategies.back().name, asked, made, stop, [&] { return evaluate(made.strategies.back(), {}), true; })) {
            made.strategies.pop_back();
            evaluate(made.strategies.back(), {});
        }
    }
    conclude(asked, given, baseline, made, stop);
}

} // namespace plan
