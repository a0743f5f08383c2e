#include "explain.hpp"
#include "output.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/io/described/searches.hpp>
#include <parsearch/io/display/differences.hpp>
#include <parsearch/io/display/listing.hpp>
#include <parsearch/models/summary.hpp>

#include "fabric.hpp"
#include "tools/streams.hpp"
#include "tools/units.hpp"

namespace plan {

void print_table(std::vector<column> const& columns, std::vector<std::vector<std::string>> const& rows) {
    std::vector<std::size_t> width;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        width.push_back(std::max(columns[c].top.size(), columns[c].bottom.size()));
        for (auto const& row : rows) width[c] = std::max(width[c], row[c].size());
    }
    auto const print_line = [&](auto const& cell) {
        std::string line;
        for (std::size_t c = 0; c < columns.size(); ++c)
            line += columns[c].left ? fmt::format("  {:<{}}", cell(c), width[c]) : fmt::format("  {:>{}}", cell(c), width[c]);
        line.erase(line.find_last_not_of(' ') + 1);
        tools::print("{}\n", line);
    };
    if (std::any_of(columns.begin(), columns.end(), [](auto const& c) { return !c.top.empty(); }))
        print_line([&](std::size_t c) { return std::string(columns[c].top); });
    print_line([&](std::size_t c) { return std::string(columns[c].bottom); });
    for (auto const& row : rows) print_line([&](std::size_t c) { return row[c]; });
}

namespace {

bool limited(ps::byte_count memory) { return memory != std::numeric_limits<ps::byte_count>::max(); }

// What searches compare, where memory is missed and that counts.
std::string shown_cost(ps::picoseconds cost) { return cost == ps::cost_traits<ps::picoseconds>::infinity() ? "infinite" : tools::shown_time(cost); }

std::vector<std::string> cells(ps::io::compared const& f, bool costs) {
    std::vector<std::string> out{f.name, tools::shown_time(f.time), f.speed_up > 0 ? fmt::format("{:.2f}x", f.speed_up) : "?",
                                 fmt::format("{}/s", tools::shown_count(f.samples_per_second)),
                                 f.flops_utilisation > 0 ? fmt::format("{:.1f}%", 100 * f.flops_utilisation) : "?"};
    for (auto const bytes : f.moved) out.push_back(tools::shown_bytes(bytes));
    out.push_back(tools::shown_memory(f.fullest_device_use));
    out.push_back(f.fullest_device_memory > 0
                      ? fmt::format("{:.0f}%", 100 * static_cast<double>(f.fullest_device_use) / static_cast<double>(f.fullest_device_memory))
                      : "");
    out.push_back(f.fits ? "yes" : "NO");
    if (costs) out.push_back(shown_cost(f.cost));
    return out;
}

void print_pipeline(pipelined const& p, std::vector<std::string> const& lines) {
    auto const& f = p.figures;
    tools::print("\nplan     {} an iteration, {}; devices idle {:.1f}%; fullest device {}: {}{}\n", tools::shown_time(f.time), f.name, 100 * p.idle,
                 f.fullest_device, tools::shown_memory(f.fullest_device_use),
                 limited(f.fullest_device_memory)
                     ? fmt::format(" of {}, {}", tools::shown_memory(f.fullest_device_memory), f.fits ? "fits" : "does NOT fit")
                     : "");
    for (auto const& line : lines) tools::print("  {}\n", line);
}

// In what the plan differs from that of --diff.
void print_differences(request const& asked, planned const& made) {
    auto const& other = *made.other;
    auto const part = ps::pipeline::micro_batch(made.problem_of_other().graph(), other.how.micro_batches);
    std::vector<std::vector<std::string>> rows;
    for (auto const& d : ps::io::differences({made.plan->plan, made.plan->part.graph()}, {other, part}))
        rows.push_back({d.operators > 1 ? fmt::format("{} x", d.operators) : "", d.name, d.kind, d.first, d.second});
    if (rows.empty()) return tools::print("\nThe plan is that of {}.\n", asked.diff);
    tools::print("\n");
    print_table({{"", ""}, {"", "differs in", true}, {"", "kind", true}, {"", "the plan", true}, {"", asked.diff, true}}, rows);
}

// "+1.250 ms": what is shown of how much `now` is more than `before`.
template <class N, class F> std::string shown_difference(N now, N before, F const& shown) {
    if (now == before) return "0";
    return now > before ? '+' + shown(now - before) : '-' + shown(before - now);
}

// Why an operator has its configuration.
void print_explanation(ps::io::explanation const& e, planned const& made) {
    auto const& operation = made.plan->part.graph().operations[e.op];
    auto const& now = e.chosen.alone;
    bool const training = made.problem.options().training;
    bool costs = now.cost != now.time;
    for (auto const& o : e.others) costs = costs || o.alone.cost != o.alone.time;
    auto const all = fmt::format("all {}", e.alike.size());
    std::vector<column> columns{{"", "configuration", true}, {"", "iteration"}, {"", "difference"}};
    if (e.alike.size() > 1) columns.push_back({all, "alike"});
    columns.push_back({"shard", "forward"});
    if (training) columns.push_back({"shard", "backward"});
    columns.insert(columns.end(), {{"", "moved"}, {"fullest", "device"}, {"", "fits"}});
    if (costs) columns.push_back({"cost with", "memory"});
    auto const cells_of = [&](ps::io::operator_option const& o, bool chosen) {
        std::vector<std::string> row{ps::space::to_string(o.configuration, operation), tools::shown_time(o.alone.time),
                                     chosen ? "the plan" : shown_difference(o.alone.time, now.time, tools::shown_time)};
        if (e.alike.size() > 1)
            row.push_back(!o.alike ? ""
                                   : shown_difference(o.alike->time, now.time, tools::shown_time) + (o.alike->fullest.fits ? "" : ", does NOT fit"));
        row.push_back(tools::shown_time(o.forward));
        if (training) row.push_back(tools::shown_time(o.backward));
        row.push_back(chosen ? tools::shown_bytes(now.moved) : shown_difference(o.alone.moved, now.moved, tools::shown_bytes));
        row.push_back(tools::shown_memory(o.alone.fullest.use));
        row.push_back(o.alone.fullest.fits ? "yes" : "NO");
        if (costs) row.push_back(shown_cost(o.alone.cost));
        return row;
    };
    std::vector<std::vector<std::string>> rows{cells_of(e.chosen, true)};
    for (auto const& o : e.others) rows.push_back(cells_of(o, false));
    tools::print("\nwhy      {}\n", title_of(e, made));
    print_table(columns, rows);
    for (auto const& line : reasons_of(e, made)) tools::print("  {}\n", line);
}

// The rounds in which strategy and fabric were made for each other.
void print_rounds(planned const& made) {
    std::vector<std::vector<std::string>> rows;
    auto const told = rounds_of(made);
    for (std::size_t i = 0; i < told.size(); ++i) {
        auto const& r = told[i];
        rows.push_back({r.network, fmt::format("{}", r.round), tools::shown_time(r.before), tools::shown_time(r.after),
                        fmt::format("{}", r.evaluations), tools::shown_seconds(made.wired->rounds[i].seconds), r.chosen ? "the plan" : ""});
    }
    tools::print("\n");
    print_table({{"", "network", true}, {"", "round"}, {"cost", "before"}, {"cost", "found"}, {"", "evaluations"}, {"", "time"}, {"", "", true}},
                rows);
}
} // namespace

std::vector<ps::io::compared> compared_of(planned const& made) {
    std::vector<ps::io::compared> out;
    for (std::size_t i = 0; i < made.strategies.size(); ++i) {
        if (i == made.compared) out.insert(out.end(), made.textbook().begin(), made.textbook().end());
        out.push_back(made.strategies[i].figures);
    }
    return out;
}

std::vector<ps::io::compared> shown_rows(planned const& made) {
    auto out = compared_of(made);
    if (made.other_figures && std::ranges::find(out, made.other_figures->name, &ps::io::compared::name) == out.end())
        out.insert(out.end() - 1, *made.other_figures);
    if (made.rewritten && std::ranges::find(out, made.rewritten->plain.name, &ps::io::compared::name) == out.end())
        out.insert(out.end() - 1, made.rewritten->plain);
    if (!made.pipeline) return out;
    auto const& plan = made.pipeline->figures;
    if (!made.stats && out.size() > 1) out.pop_back(); // an expert, where no strategy was searched
    std::erase_if(out, [&](auto const& f) { return f.name == plan.name && f.time == plan.time; });
    out.push_back(plan);
    return out;
}

std::vector<ps::io::report_round> rounds_of(planned const& made) {
    std::vector<ps::io::report_round> out;
    if (!made.wired) return out;
    bool chosen = false;
    for (auto const& r : made.wired->rounds) {
        bool const best = !chosen && r.final && r.after == made.found().figures.cost;
        chosen = chosen || best;
        auto const again = std::ranges::any_of(
            made.wired->rounds, [&](auto const& other) { return other.chain == r.chain && other.round + 1 == r.round && other.wired == r.wired; });
        auto const from = std::ranges::find(made.wired->rounds, r.start, &ps::fabric::co_round::start); // the first of its start
        out.push_back({.network = r.last                                  ? "the best of these"
                                  : again                                 ? "the same"
                                  : r.round > 0 || from->final != r.final ? "wired for what was found"
                                  : r.start == 0                          ? "wired for data parallelism"
                                                                          : r.wired.name,
                       .round = r.round + 1,
                       .before = r.before,
                       .after = r.after,
                       .evaluations = r.evaluations,
                       .chosen = best});
    }
    return out;
}

std::string summary_of_model(ps::graph::dense_graph const& g, bool training) {
    auto const totals = ps::models::summarize(g);
    auto const batch = ps::io::batch_of(g);
    auto const cache = totals.cache > 0 ? fmt::format(" and {} of cache", tools::shown_memory(totals.cache)) : std::string();
    return fmt::format("{} operators, {} parameters{}, {}flop per {}, {} {} per iteration", totals.operators,
                       tools::shown_count(static_cast<double>(totals.parameters)), cache,
                       tools::shown_count(training ? totals.training_flops : totals.forward_flops), training ? "training step" : "forward pass",
                       static_cast<std::int64_t>(batch.size), batch.unit.substr(0, batch.unit.size() - (batch.size > 1 ? 0 : 1)));
}

std::string summary_of_cluster(ps::topology::cluster const& cluster, ps::sim::simulation_options const& options) {
    auto const& first = cluster.describe_device(0);
    bool one_kind = true;
    std::set<std::uint32_t> hosts;
    for (auto const d : cluster.devices()) {
        one_kind = one_kind && cluster.describe_device(d).kind == first.kind;
        hosts.insert(cluster.node_of(d));
    }
    auto const nodes = hosts.size();
    auto kept = limited(first.memory) && options.memory_kept_free > 0 ? fmt::format(", {:.3g}% of it kept free", 100 * options.memory_kept_free) : "";
    if (limited(first.memory) && options.context_memory > 0) kept += fmt::format(", {} of the runtime", tools::shown_memory(options.context_memory));
    return fmt::format("{} device{} on {} node{}, {} with {}{}{}", cluster.size(), cluster.size() == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s",
                       first.kind, limited(first.memory) ? tools::shown_memory(first.memory) : "unlimited memory", one_kind ? " each" : " and others",
                       kept);
}

// "; no plan of these operators costs less than 1 s (2.0% less)", of what costs `cost`; nothing where it says nothing.
std::string beside_bound(planned const& made, std::string_view of, ps::picoseconds cost, std::optional<ps::picoseconds> bound) {
    auto const operators = made.other_operators() ? "the rewritten operators" : "these operators";
    if (!bound || *bound <= ps::picoseconds::zero() || cost == ps::cost_traits<ps::picoseconds>::infinity()) return {};
    if (cost <= *bound) return fmt::format("; {} of {} costs less", of, operators);
    return fmt::format("; {} of {} costs less than {} ({:.1f}% less)", of, operators, tools::shown_time(*bound),
                       100 * (1 - static_cast<double>(bound->count()) / static_cast<double>(cost.count())));
}

// What was found beside the bounds. That of strategies says little beside that of all plans, unless it is met.
std::string summary_of_bound(planned const& made) {
    auto const cost = made.found().figures.cost;
    bool const met = made.bound && cost <= *made.bound;
    auto const strategies =
        !made.plan_bound || met
            ? beside_bound(made, made.pipeline || made.plan_bound ? "without pipelines no strategy" : "no strategy", cost, made.bound)
            : std::string();
    return strategies + beside_bound(made, made.whole ? "no plan of equal replicas" : "no plan", made.figures().cost, made.plan_bound);
}

std::string summary_of_search(request const& asked, planned const& made) {
    auto const& s = *made.stats;
    auto const work = made.wired
                          ? fmt::format("{} in {} round{}: {} evaluations in {}", ps::io::search_name(*asked.search), made.wired->rounds.size(),
                                        made.wired->rounds.size() == 1 ? "" : "s", s.evaluations, tools::shown_seconds(s.seconds))
                          : fmt::format("{} from {}: {} evaluations in {}, {} improvement{}", ps::io::search_name(*asked.search), made.start,
                                        s.evaluations, tools::shown_seconds(s.seconds), s.improved, s.improved == 1 ? "" : "s");
    return fmt::format("{}, ended by {}{}{}", work, ps::name_of(*made.reason), made.nothing_feasible ? ", none of what it found fits the memory" : "",
                       summary_of_bound(made));
}

std::string summary_of_sources(ps::source_times const& computed) {
    using ps::cost::cost_source;
    struct named {
        cost_source source;
        std::string_view name;
    };
    constexpr named sources[] = {{cost_source::exact, "measured"},
                                 {cost_source::interpolated, "interpolated"},
                                 {cost_source::roofline, "calibrated roofline"},
                                 {cost_source::published, "at rates of published runs"},
                                 {cost_source::data_sheet, "at rates that no published run tells"}};
    std::string out;
    for (auto const& [source, name] : sources) {
        auto const percent = 100 * computed.share(source);
        if (percent <= 0) continue;
        out += fmt::format("{}{} {}", out.empty() ? "" : ", ",
                           percent < 1                     ? "<1%"
                           : percent > 99 && percent < 100 ? ">99%"
                                                           : fmt::format("{:.0f}%", percent),
                           name);
    }
    return out.empty() ? "none" : out;
}

std::optional<std::string> summary_of_error(ps::topology::cluster const& cluster, planned const& made) {
    using ps::cost::cost_source;
    auto const published = made.computed.share(cost_source::published);
    if (published + made.computed.share(cost_source::data_sheet) < 0.5) return {};
    if (!made.problem.options().training) return "not known: published runs are of training";
    if (published < 0.5) return "not known: most of that is at rates that no published run tells";
    auto const& how = made.plan->plan.how;
    if (how.offloads()) return "not known: no published run with activations on hosts was predicted";
    if (std::ranges::find(how.recompute, true) != how.recompute.end())
        return "not known: published runs that compute activations again are predicted less well (docs/fidelity.md)";
    std::map<std::pair<ps::ops::work_class, ps::ops::dtype>, double> flops;
    for (auto const& op : made.plan->part.graph().operations)
        if (ps::cost::contracts(op.work)) flops[{op.work, op.outputs.front().type}] += op.flops;
    if (flops.empty()) return {};
    auto const [work, type] = std::ranges::max_element(flops, {}, [](auto const& f) { return f.second; })->first;
    auto const* const member = ps::cost::reached_by(work);
    std::set<std::string> kinds;
    std::string of_most;
    double most = 0;
    for (auto const d : ps::devices(cluster)) {
        ps::topology::device_spec const spec = ps::describe_device(cluster, d);
        if (!kinds.insert(spec.kind).second) continue;
        auto const runs_as = ps::cost::run_as(spec, type);
        auto const runs = member ? ps::cost::of_format(spec.reached.runs.*member->runs, runs_as) : 0;
        auto const error = ps::cost::of_format(spec.reached.error, runs_as);
        auto const where = fmt::format("with {} in {} on {}", ps::ops::name_of(work), ps::ops::name_of(runs_as), spec.kind);
        if (runs == 0) return fmt::format("not known: no published run {} was predicted", where);
        if (runs <= 2)
            return fmt::format("not known: {} published run{} {} tell{} the rate, and none tests it", runs, runs == 1 ? "" : "s", where,
                               runs == 1 ? "s" : "");
        if (error < most) continue;
        most = error;
        of_most = fmt::format("{:.0f}%, the largest of {} published runs {}", 100 * error, runs, where);
    }
    return of_most;
}

// "; 2 of 3 interfaces used" where servers are joined with each other and have some left.
std::string unused_interfaces(std::string const& cluster, ps::fabric::network const& network) {
    auto const fabric = fabric_of(cluster);
    if (network.switches > 0 || !fabric) return {};
    auto const used = ps::fabric::degrees_of(network.servers, network.links);
    auto const degree = fabric->options.degree;
    auto const [least, most] = std::minmax_element(used.begin(), used.end());
    if (*least >= degree) return {};
    return fmt::format("; {} of {} interfaces used", *least == *most ? fmt::format("{}", *least) : fmt::format("{} to {}", *least, *most), degree);
}

std::string vertex_name(ps::fabric::network const& network, std::uint32_t v) {
    return v < network.servers ? fmt::format("server {}", v) : fmt::format("switch {}", v - network.servers);
}

std::string summary_of_network(std::string const& cluster, ps::fabric::network const& network, planned const& made) {
    auto const& t = *made.traffic;
    auto out = fmt::format("{}: {:.2f} hops between servers, at most {}{}; bandwidth tax {:.2f}", network.name, t.mean_pair_hops, t.max_pair_hops,
                           unused_interfaces(cluster, network), t.bandwidth_tax());
    if (!t.utilisation.empty()) {
        auto const busiest = static_cast<std::uint32_t>(std::max_element(t.utilisation.begin(), t.utilisation.end()) - t.utilisation.begin());
        auto const& link = network.links[busiest / 2];
        out +=
            fmt::format("; busiest link {} -> {}, {:.0f}% of the time, {}", vertex_name(network, busiest % 2 == 0 ? link.a : link.b),
                        vertex_name(network, busiest % 2 == 0 ? link.b : link.a), 100 * t.utilisation[busiest], tools::shown_bytes(t.bytes(busiest)));
    }
    if (made.price) out += fmt::format("; {:.0f} $", *made.price);
    return out;
}

std::string ends_of(ps::fabric::network const& network, std::uint32_t link) {
    return fmt::format("{} - {}", vertex_name(network, network.links[link].a), vertex_name(network, network.links[link].b));
}

std::string summary_of_failures(ps::fabric::network const& network, planned const& made) {
    auto const& f = *made.failures;
    if (f.links == 0) return "there is no link";
    auto out = f.tried == f.links
                   ? (f.links == 1 ? std::string("the only link loses a wire") : fmt::format("any one of {} links loses a wire", f.links))
                   : fmt::format("one of {} links loses a wire, {} of them tried in the time", f.links, f.tried);
    if (f.worst_link)
        out += fmt::format(": {:.3f} times as long in the mean, {:.3f} at worst, {}", *f.mean, *f.worst, ends_of(network, *f.worst_link));
    if (f.cut_off > 0)
        out += fmt::format("{}{} cut servers off", f.worst_link ? "; " : ": ", f.cut_off == f.tried ? "all" : fmt::format("{} of them", f.cut_off));
    return out;
}

std::string summary_of_rewiring(ps::picoseconds delay, ps::fabric::phased_wiring const& r) {
    auto const one = fmt::format("the best of {} wirings takes {}", r.wirings, tools::shown_time(r.one_wiring_cost));
    auto const each = ps::io::option_value<std::chrono::nanoseconds>::print(std::chrono::duration_cast<std::chrono::nanoseconds>(delay));
    if (r.phases.size() == 1) return fmt::format("none within the iteration, of {} each: {}", each, one);
    auto out = fmt::format("{} within the iteration, of {} each: {}, {}; after ", r.rewirings, each, tools::shown_time(r.cost), one);
    for (std::size_t p = 0; p < r.phases.size(); ++p) out += fmt::format("{}{}", p > 0 ? ", " : "", tools::shown_time(r.phases[p].time.end));
    return out;
}

void print_inputs(request const& asked, inputs const& given, planned const& made) {
    tools::print("model    {}: {}\n", asked.model, summary_of_model(made.model(), asked.simulation.training));
    tools::print("cluster  {}: {}\n", asked.cluster, summary_of_cluster(given.cluster.cluster, asked.simulation));
    if (given.rules)
        tools::print("rules    {}: {} rules, {} in terms of parallel tensors, {} of these without splits, {} of these refuted; {} of the other {} "
                     "match the model\n",
                     asked.rules, given.rules->read, given.rules->translated, given.rules->unsplit, given.rules->refuted,
                     made.rules_matching.value_or(0), given.rules->rules.size());
    if (given.profile) tools::print("profile  {}: {} measured kernels\n", asked.profile, given.profile->size());
    std::fflush(stdout);
}

void print_plan(request const& asked, inputs const& given, planned const& made) {
    if (made.pipelines) {
        auto const& p = *made.pipelines;
        auto const bound = made.stats ? std::string() : summary_of_bound(made);
        tools::print("search   pipelines: {} simulated in {}, ended by {}{}\n", p.stats.evaluations,
                     tools::shown_seconds(p.stats.seconds - (p.plans ? p.plans->seconds : 0)), ps::name_of(p.reason),
                     p.plans ? std::string() : bound);
        if (auto const& o = made.tried_operators; o && o->graphs > 0)
            tools::print("search   other operators: {} graphs priced, {} pipelines simulated in {}, ended by {}\n", o->graphs, o->evaluations,
                         tools::shown_seconds(o->seconds), ps::name_of(o->reason));
        if (p.plans)
            tools::print("search   plans: {} from the best of these: {} evaluations in {}, {} improvement{}, ended by {}{}\n",
                         ps::io::search_name(*asked.search), p.plans->evaluations, tools::shown_seconds(p.plans->seconds), p.plans->improved,
                         p.plans->improved == 1 ? "" : "s", ps::name_of(p.plans_reason), bound);
    }
    if (made.stats) tools::print("search   {}\n", summary_of_search(asked, made));
    if (made.wired) print_rounds(made);
    std::string_view const unit = made.found().figures.throughput_unit;
    auto const plans = shown_rows(made);
    bool const costs = std::ranges::any_of(plans, [](auto const& f) { return f.cost != f.time; });
    std::vector<std::vector<std::string>> rows;
    for (auto const& row : plans) rows.push_back(cells(row, costs));
    tools::print("\n");
    std::vector<column> columns{{"", "strategy or plan", true}, {"", "iteration"},         {"", "speed-up"},     {unit, "throughput"},
                                {"of peak", "flops"},           {"moved:", "activations"}, {"", "gradients"},    {"partial", "sums"},
                                {"weight", "gradients"},        {"fullest", "device"},     {"of its", "memory"}, {"", "fits"}};
    if (costs) columns.push_back({"cost with", "memory"});
    print_table(columns, rows);
    tools::print("\ncompute time: {}\n", summary_of_sources(made.computed));
    if (auto const error = summary_of_error(given.cluster.cluster, made)) tools::print("expected error: {}\n", *error);
    if (made.traffic) tools::print("\nnetwork  {}\n", summary_of_network(asked.cluster, *given.cluster.network, made));
    if (made.failures) tools::print("failures {}\n", summary_of_failures(*given.cluster.network, made));
    if (made.rewired) tools::print("rewiring {}\n", summary_of_rewiring(*asked.reconfiguration, *made.rewired));
    if (made.pipeline) print_pipeline(*made.pipeline, made.plan->text);
    if (made.other) print_differences(asked, made);
    for (auto const& e : made.explained) print_explanation(e, made);
    if (asked.quiet) return;
    if (!made.moves.empty()) {
        rows.clear();
        auto const percent = [](std::uint64_t part, std::uint64_t of) {
            return of > 0 ? fmt::format("{:.1f}%", 100 * static_cast<double>(part) / static_cast<double>(of)) : "";
        };
        for (auto const& m : made.moves)
            rows.push_back({m.name, fmt::format("{}", m.counts.proposed), fmt::format("{}", m.counts.accepted),
                            percent(m.counts.accepted, m.counts.proposed), fmt::format("{}", m.counts.improved)});
        tools::print("\n");
        print_table({{"", "move", true}, {"", "proposed"}, {"", "accepted"}, {"", ""}, {"", "improved"}}, rows);
    }
    if (made.other_operators()) {
        auto const& now = made.rewritten->first ? made.figures() : made.found().figures;
        tools::print("\n{} operators in the place of the model's {}: {} an iteration, {} with what was found for the model's own. Rules applied:\n",
                     ps::models::summarize(made.problem.graph()).operators, ps::models::summarize(made.given_problem().graph()).operators,
                     tools::shown_time(now.time), tools::shown_time(made.rewritten->plain.time));
        for (auto const& rule : made.rewritten->applied) tools::print("  {}\n", rule);
    }
    if (!given.model.hash.empty()) {
        rows.clear();
        for (auto const& l : ps::io::parameter_listing(made.model()))
            rows.push_back(
                {l.tensors > 1 ? fmt::format("{} x", l.tensors) : "", l.name, l.shape, tools::shown_count(static_cast<double>(l.elements))});
        tools::print("\n");
        print_table({{"", ""}, {"", "parameters", true}, {"", "shape of each", true}, {"", "elements"}}, rows);
    }
    rows.clear();
    for (auto const& l : ps::io::listing(made.plan->on_all().part.graph(), made.plan->on_all().plan.strategy))
        rows.push_back({l.operators > 1 ? fmt::format("{} x", l.operators) : "", l.name, l.kind, l.shape, l.configuration});
    tools::print("\n");
    print_table({{"", ""}, {"", "operators", true}, {"", "kind", true}, {"", "output of each", true}, {"", "configuration", true}}, rows);
    std::fflush(stdout);
}

void print_note(std::string const& note) { tools::print(stderr, "note: {}\n", note); }

} // namespace plan
