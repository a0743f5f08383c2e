#include "output.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <parsearch/io/described/searches.hpp>
#include <parsearch/io/display/dot.hpp>
#include <parsearch/io/display/timeline.hpp>
#include <parsearch/io/files/graph_file.hpp>
#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/io/files/run_manifest.hpp>
#include <parsearch/io/files/topology_file.hpp>
#include <parsearch/io/foreign/flexflow_strategy.hpp>
#include <parsearch/io/report/html_report.hpp>

#include "exports.hpp"
#include "output_folder.hpp"

namespace plan {
namespace {

namespace fs = std::filesystem;

// What earlier releases wrote.
constexpr std::array former_names{"strategy.json", "pipeline.json", "pipeline.trace.json"};

ps::io::run_figures run_figures_of(ps::io::compared const& f) {
    using kind = ps::sim::traffic_kind;
    auto const moved = [&](kind k) { return f.moved[static_cast<std::size_t>(k)]; };
    return {.strategy = f.name,
            .time_ps = f.time.count(),
            .speed_up = f.speed_up,
            .throughput = f.samples_per_second,
            .throughput_unit = std::string(f.throughput_unit),
            .flops_utilisation = f.flops_utilisation,
            .activation_bytes = moved(kind::activation),
            .gradient_bytes = moved(kind::gradient),
            .partial_sum_bytes = moved(kind::partial_sum),
            .weight_gradient_bytes = moved(kind::weight_gradient),
            .peak_memory = f.fullest_device_use,
            .fits = f.fits};
}

ps::io::run_rewiring run_rewiring_of(ps::picoseconds reconfiguration, ps::fabric::phased_wiring const& r) {
    ps::io::run_rewiring out{.reconfiguration_ps = reconfiguration.count(),
                             .cost_ps = r.cost.count(),
                             .one_wiring_ps = r.one_wiring_cost.count(),
                             .rewirings = r.rewirings,
                             .wirings = r.wirings};
    for (auto const& p : r.phases) {
        auto& phase = out.phases.emplace_back();
        phase.begin_ps = p.time.begin.count();
        phase.end_ps = p.time.end.count();
        phase.bytes = p.bytes;
        for (auto const& l : p.wired.links) phase.links.push_back({l.a, l.b, l.wires});
    }
    return out;
}

ps::io::run_manifest manifest_of(request const& asked, inputs const& given, planned const& made, std::vector<ps::io::run_file> files) {
    ps::io::run_manifest m;
    m.model = {asked.model, given.model.hash};
    m.cluster = {asked.cluster, given.cluster_hash};
    m.start = {asked.start, given.start_hash};
    if (!asked.profile.empty()) m.profile = ps::io::run_input{asked.profile, given.profile_hash};
    m.seed = asked.seed;
    if (!asked.rules.empty()) m.rules = ps::io::run_input{asked.rules, given.rules_hash};
    m.search = asked.search;
    m.simulation = asked.simulation;
    m.kernels = asked.kernels;
    m.space = asked.space;
    if (made.whole) m.replicas = made.problem.options().replicas;
    m.runtime = asked.runtime;
    m.pin = asked.pin;
    m.forbid = asked.forbid;
    if (asked.regular && made.stats && !made.joint() && !made.wired)
        m.regular = ps::io::run_regular{.share = *asked.regular, .evaluations = made.tied_evaluations};
    m.result.cost_ps = made.found().figures.cost.count();
    m.result.start = made.start;
    if (made.stats) {
        auto const& s = *made.stats;
        m.result.evaluations = s.evaluations;
        m.result.proposals = s.proposals;
        m.result.accepted = s.accepted;
        m.result.improved = s.improved;
        m.result.trajectory = ps::io::hexadecimal(s.trajectory);
        m.result.seconds = s.seconds;
    }
    m.result.reason = made.reason;
    if (auto const bound = made.plan_bound ? made.plan_bound : made.bound) m.lower_bound_ps = bound->count();
    if (made.rewritten) {
        auto const& r = *made.rewritten;
        m.rewriting = ps::io::run_rewriting{.applied = r.applied,
                                            .operators = made.problem.graph().size(),
                                            .plain_operators = r.original.graph().size(),
                                            .plain_cost_ps = r.plain.cost.count(),
                                            .plain_evaluations = r.plain_evaluations,
                                            .first = r.first};
    }
    using ps::cost::cost_source;
    auto const share = [&](cost_source s) { return made.computed.share(s); };
    m.compute = ps::io::run_sources{.exact = share(cost_source::exact),
                                    .interpolated = share(cost_source::interpolated),
                                    .roofline = share(cost_source::roofline),
                                    .published = share(cost_source::published),
                                    .data_sheet = share(cost_source::data_sheet)};
    if (made.pipelines) {
        auto const& p = *made.pipelines;
        auto& said = m.pipelines.emplace();
        said.options = *asked.pipelines;
        said.cost_ps = p.cost ? p.cost->count() : 0;
        said.evaluations = p.stats.evaluations;
        said.estimates = p.estimates;
        said.plans = p.plans ? p.plans->evaluations : 0;
        said.seconds = p.stats.seconds;
        said.reason = p.reason;
    }
    if (auto const& f = made.failures)
        m.failures = ps::io::run_failures{.links = f->links,
                                          .tried = f->tried,
                                          .cut_off = f->cut_off,
                                          .mean = f->mean,
                                          .worst = f->worst,
                                          .where = f->worst_link ? ends_of(*given.cluster.network, *f->worst_link) : std::string()};
    if (made.rewired) m.rewiring = run_rewiring_of(*asked.reconfiguration, *made.rewired);
    for (auto const& f : shown_rows(made)) m.strategies.push_back(run_figures_of(f));
    m.files = std::move(files);
    return m;
}

// Devices whose memory over time is shown: the fullest, and the first of each other kind of use, as far as these are few.
std::vector<std::uint32_t> devices_to_show(ps::sim::report const& r) {
    constexpr std::size_t few = 16;
    std::map<std::pair<ps::byte_count, ps::byte_count>, std::uint32_t> kinds; // the first of each use, in all and of activations
    for (std::uint32_t d = 0; d < r.memory.size(); ++d) kinds.try_emplace({-r.memory[d].total(), r.memory[d].activations}, d);
    std::vector<std::uint32_t> out;
    for (auto const& [use, d] : kinds)
        if (out.size() < few) out.push_back(d);
    return out;
}

ps::io::report_data report_of(request const& asked, inputs const& given, planned const& made, std::vector<std::string> const& notes) {
    ps::io::report_data d;
    auto const short_name = [](std::string const& input) { return fs::path(ps::io::parse_settings(input).name).filename().string(); };
    auto const without = [](std::string const& input, std::string_view prefix) {
        return input.starts_with(prefix) ? input.substr(prefix.size()) : input;
    };
    d.title = short_name(without(asked.model, "zoo:")) + " on " + short_name(without(asked.cluster, ps::io::fabric_prefix));
    d.model = summary_of_model(made.model(), asked.simulation.training);
    d.cluster_text = summary_of_cluster(given.cluster.cluster, asked.simulation);
    if (made.stats) d.search = summary_of_search(asked, made);
    auto const& plan = *made.plan;
    d.strategies = shown_rows(made);
    d.found = d.strategies.size() - 1;
    d.plan = plan.text;
    if (plan.plan.how.stages > 1) d.stage = plan.plan.how.stage;
    d.graph = &plan.part.graph();
    d.cluster = made.part ? &*made.part : &given.cluster.cluster;
    for (auto const& device : plan.part.topology().devices) d.usable.push_back(device.memory);
    d.strategy = &plan.plan.strategy;
    d.simulation = &*plan.report;
    for (auto const device : devices_to_show(*plan.report))
        d.memory_over_time.push_back({device, ps::pipeline::memory_over_time(plan.part.graph(), plan.plan, *plan.report, device)});
    d.curve = made.curve;
    if (made.traffic)
        d.network =
            ps::io::report_network{.network = &*given.cluster.network, .traffic = &*made.traffic, .price = made.price, .rounds = rounds_of(made)};
    if (made.other_operators() && !plan.applied.empty()) {
        auto const& before = *made.rewritten;
        auto const at = std::ranges::find(d.strategies, before.plain.name, &ps::io::compared::name) - d.strategies.begin();
        d.rewriting = ps::io::report_rewriting{
            .graph = &before.original.graph(), .strategy = &before.plain_strategy, .compared = static_cast<std::size_t>(at), .applied = plan.applied};
    }
    auto const add = [&](std::string const& prefix, std::vector<ps::io::setting> const& settings) {
        for (auto const& s : settings) d.options.push_back({prefix + s.key, s.value});
    };
    d.options.push_back({"model", asked.model});
    d.options.push_back({"cluster", asked.cluster});
    if (!asked.profile.empty()) d.options.push_back({"profile", asked.profile});
    if (!asked.rules.empty()) d.options.push_back({"rules", asked.rules});
    d.options.push_back({"compute time", summary_of_sources(made.computed)});
    if (auto const error = summary_of_error(given.cluster.cluster, made)) d.options.push_back({"expected error", *error});
    d.options.push_back({"start", asked.start});
    d.options.push_back({"seed", ps::text(asked.seed)});
    if (asked.search)
        ps::io::visit_search(*asked.search,
                             [&](auto const& entry, auto const& options) { add(ps::text(entry.name, '.'), ps::io::settings_of(options)); });
    add("simulation.", ps::io::settings_of(asked.simulation));
    add("space.", ps::io::settings_of(asked.space));
    for (auto const& rule : asked.pin) d.options.push_back({"pin", rule});
    for (auto const& rule : asked.forbid) d.options.push_back({"forbid", rule});
    d.notes = notes;
    return d;
}

// Removes from `folder` what an earlier run wrote there and this one does not: it would be taken for this plan. Answers what was left, for it is
// somebody else's.
std::vector<std::string> remove_older(fs::path const& folder, std::vector<ps::io::run_file> const& written) {
    std::vector<ps::io::run_file> older;
    try {
        older = ps::io::read_run_manifest(ps::io::json_document((folder / "run.json").string())).files;
    } catch (ps::invalid_input const&) {
        // There is none that can be read.
    }
    std::vector<std::string> left, names(plan_files.begin(), plan_files.end());
    for (auto const& f : older) // exports
        if (std::ranges::find(plan_files, f.name) == plan_files.end() && fs::path(f.name).filename() == f.name) names.push_back(f.name);
    for (auto const& name : names) {
        std::error_code error;
        if (std::ranges::find(written, name, &ps::io::run_file::name) != written.end() || !fs::exists(folder / name, error)) continue;
        auto const known = std::ranges::find(older, name, &ps::io::run_file::name);
        auto const path = (folder / name).string();
        if (known != older.end() && fs::is_regular_file(path, error) && ps::io::hash_of_file(path) == known->hash) fs::remove(path, error);
        else if (name != "run.json") left.push_back(name);
    }
    for (std::string const name : former_names) {
        std::error_code error;
        auto const known = std::ranges::find(older, name, &ps::io::run_file::name);
        auto const path = (folder / name).string();
        if (known != older.end() && fs::is_regular_file(path, error) && ps::io::hash_of_file(path) == known->hash) fs::remove(path, error);
    }
    return left;
}
} // namespace

void prepare_folder(request const& asked, inputs const& given) {
    if (asked.out.empty()) return;
    output_folder const try_it(asked.out);
    auto const path_of = [](std::string const& input) { return ps::io::parse_settings(input).name; };
    std::vector<std::string> names(plan_files.begin(), plan_files.end());
    for (auto const& e : asked.exports) names.push_back(e.file);
    for (auto const& name : names) {
        auto const path = fs::path(asked.out) / name;
        std::error_code error;
        if (fs::is_directory(path, error))
            throw ps::invalid_input("--out ", asked.out, ": ", path.string(), " is a folder: a file of that name is to be written");
        auto const beside_start = (fs::path(asked.start).parent_path() / operators_file).string();
        for (auto const& input : {path_of(asked.model), given.cluster.path, asked.start, given.applied.empty() ? std::string() : beside_start,
                                  asked.profile, asked.rules})
            if (!input.empty() && fs::equivalent(input, path, error))
                throw ps::invalid_input("--out ", asked.out, ": ", input,
                                        " is read and would be overwritten: the run could not be repeated; name another folder");
    }
}

written_files write_files(request const& asked, inputs const& given, planned const& made) {
    written_files written;
    auto& notes = written.notes;
    output_folder folder(asked.out);
    auto const& cluster = given.cluster.cluster;
    auto const& chosen = *made.plan;
    auto const& all = chosen.on_all();
    auto const& strategy = chosen.plan.strategy;
    ps::io::plan_notes const said{.model = asked.model, .topology = asked.cluster, .predicted = made.figures().time, .rewritten_by = chosen.applied};
    folder.write("plan.json", [&](std::ostream& out) { ps::io::write_plan_json(out, all.problem, all.plan, said); });
    if (!chosen.plan.how.plain()) {
        notes.push_back("strategy.flexflow is not written: FlexFlow knows no micro-batches, stages or shared states");
    } else if (!chosen.applied.empty()) {
        notes.push_back("strategy.flexflow is not written: rules have changed the operators, and FlexFlow knows the model's only");
    } else {
        std::ostringstream text;
        try {
            auto const lost =
                ps::io::write_flexflow_strategy(text, all.problem.graph(), cluster.size(), all.plan.strategy, ps::io::flexflow_losses::report);
            if (!lost.empty())
                notes.push_back(ps::text("strategy.flexflow says less than plan.json: FlexFlow's format has no words for ", lost.size(),
                                         lost.size() == 1 ? " thing: " : " things, the first: ", lost.front()));
            folder.write("strategy.flexflow", [&](std::ostream& out) { out << text.view(); });
        } catch (ps::invalid_input const& e) {
            notes.push_back(ps::text("strategy.flexflow is not written: ", e.what()));
        }
    }
    if (!chosen.applied.empty())
        folder.write(std::string(operators_file), [&](std::ostream& out) { ps::io::write_graph_json(out, all.problem.graph()); });
    folder.write("topology.json", [&](std::ostream& out) { ps::io::write_topology_json(out, cluster); });
    if (chosen.report) {
        std::size_t left_out = 0;
        auto const& shown = made.part ? *made.part : cluster;
        folder.write("timeline.json",
                     [&](std::ostream& out) { left_out = ps::io::write_timeline(out, chosen.part, shown, strategy, *chosen.report); });
        auto const rows = std::size_t{chosen.report->tasks.resources} - 1; // with copies to hosts and back
        if (left_out > 0)
            notes.push_back(
                ps::text("timeline.json has ", rows - left_out, " of ", rows,
                         " devices and links: all their tasks are more than a viewer shows, so those that do what another does are left out"));
    }
    folder.write("graph.dot", [&](std::ostream& out) { ps::io::write_dot(out, all.part, all.plan.strategy); });
    auto shown = made.notes;
    shown.insert(shown.end(), notes.begin(), notes.end());
    if (chosen.report) folder.write("report.html", [&](std::ostream& out) { ps::io::write_report(out, report_of(asked, given, made, shown)); });
    for (auto const& e : asked.exports) {
        std::vector<ps::io::exported_file> exported;
        try {
            exported = export_plan(e, asked, given, made, said, notes);
            if (!chosen.applied.empty())
                notes.push_back(ps::text(e.file, " has the operators of ", operators_file,
                                         ", which rules made of the model's: programs of the model lack these"));
            if (made.whole && e.runtime == "jax")
                notes.push_back(
                    ps::text(e.file, " does not say what is predicted of each device: one of several replicas was planned, --replicas 1 says it"));
        } catch (ps::invalid_input const& why) {
            written.refused.push_back(ps::text(e.file, " is not written: ", why.what()));
        }
        for (auto const& file : exported) folder.write(file.name, [&](std::ostream& to) { to << file.content; });
    }
    auto files = folder.files();
    folder.write("run.json", [&](std::ostream& out) { ps::io::write_run_manifest(out, manifest_of(asked, given, made, std::move(files))); });
    for (auto const& name : remove_older(asked.out, folder.files()))
        notes.push_back(ps::text(asked.out, '/', name, " is not of this run, nor of the one before: it was left as it is"));
    folder.move();
    return written;
}

} // namespace plan
