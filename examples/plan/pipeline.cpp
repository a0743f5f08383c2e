#include "pipeline.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include <parsearch/io/display/pipeline_timeline.hpp>
#include <parsearch/io/files/pipeline_file.hpp>
#include <parsearch/rewrite/joint/joint_pipeline.hpp>

#include "planner.hpp"
#include "progress.hpp"
#include "tools/limits.hpp"
#include "tools/units.hpp"

namespace plan {
namespace {

// Pipelines of other operators that the joint search made: of the cheapest two, with what is left of the budget. `cost` is that of `out`.
void try_other_operators(ps::pipeline::partition_options const& options, ps::picoseconds cost, rewriting const& rewritten,
                         ps::parallelization const& problem, progress_display& progress, pipelined& out) {
    auto const most = static_cast<std::size_t>(ps::rewrite::joint_pipeline_options{}.rewritten);
    std::vector<ps::rewrite::known_graph> graphs;
    for (auto const& o : rewritten.others)
        if (graphs.size() < most) graphs.push_back({{.graph = {}, .operators = o.operators, .strategy = o.strategy, .applied = o.applied}, o.cost});
    std::mt19937_64 unused;
    auto const left = ps::rewrite::left_of(options, out.stats, cost);
    if (out.reason != ps::stop_reason::exhausted || !left) return;
    auto other = ps::rewrite::partition_graphs(problem, graphs, unused, *left, progress);
    add_counts(out.stats, other.stats);
    out.stats.seconds += other.stats.seconds;
    out.reason = other.reason;
    if (!other.best || !(other.best->cost < cost)) return;
    auto const& graph = graphs[other.best->graph].plan;
    out.problem = problem_of(problem, graph.operators);
    out.applied = graph.applied;
    out.plan = std::move(other.best->plan);
}

} // namespace

std::optional<ps::pipeline::partition_options> pipelines_to_try(request const& asked, planned const& made, std::stop_token const& stop) {
    if (asked.pipeline) return asked.pipeline;
    auto const& s = asked.simulation;
    bool const possible = s.training && s.memory != ps::sim::memory_policy::ignore && s.transfers == ps::sim::transfer_model::streaming;
    if (!asked.search || made.found().figures.fits || !possible || stop.stop_requested()) return std::nullopt;
    return ps::pipeline::partition_options{.time = ps::io::visit_search(*asked.search, [](auto const&, auto const& options) { return options.time; }),
                                           .stop = stop};
}

void plan_pipeline(request const& asked, ps::pipeline::partition_options options, inputs const& given, planned& made) {
    auto const& found = made.found();
    auto const& problem = made.problem;
    // The strategy found, simulated as pipelines are.
    ps::pipeline::pipeline_simulator simulator(problem);
    auto const as_it_is = ps::pipeline::unpipelined(problem.graph());
    auto const found_cost = simulator(as_it_is, found.strategy), found_time = simulator.simulate(as_it_is, found.strategy);
    auto const& data_parallel = made.strategies.front();
    progress_display progress(asked.quiet, options.time, found_cost, data_parallel.figures.fits ? std::optional(data_parallel.cost) : std::nullopt);
    options.starts = {found.strategy};
    std::mt19937_64 unused;
    constexpr std::chrono::nanoseconds grace = std::chrono::seconds{1}; // for one pipeline that takes long
    tools::deadline const limit(
        options.stop, options.time ? std::optional(*options.time + std::min(grace, std::chrono::nanoseconds::max() - *options.time)) : std::nullopt);
    auto best = ps::pipeline::partition(problem.until(limit.token()), {}, unused, options, progress);
    auto& out = made.pipeline.emplace(pipelined{.plan = std::move(best.best), .unpipelined = found_time, .stats = best.stats, .reason = best.ended});
    if (made.rewritten) try_other_operators(options, best.cost, *made.rewritten, problem, progress, out);
    progress.finish(out.stats.evaluations);

    auto const& of = out.problem ? *out.problem : problem;
    ps::pipeline::pipeline_simulator judge(of);
    ps::sim::report simulated;
    simulated.makespan = judge.simulate(out.plan.how, out.plan.strategy);
    simulated.memory = judge.memory();
    out.figures = ps::io::compare(of, given.cluster.cluster, "pipeline", simulated, found_time);
    out.idle = judge.idle_share();
    std::istringstream lines(ps::pipeline::to_string(of, out.plan));
    for (std::string line; std::getline(lines, line);) out.text.push_back(line);
    if (out.problem)
        made.notes.push_back(out.applied.empty()
                                 ? std::string("the pipeline is of the model's own operators: rules that pay without it do not pay in it")
                                 : ps::text("the pipeline is of operators that ", out.applied.size(),
                                            " rules made, others than those of the plan without it: ", out.applied.front(),
                                            out.applied.size() > 1 ? ", ..." : ""));

    auto const& how = out.plan.how;
    if (how.stages == 1 && how.micro_batches == 1)
        made.notes.push_back(ps::text("nothing of several stages or micro-batches was found to be faster than ",
                                      out.plan.strategy == found.strategy ? ps::text("\"", found.name, '"') : std::string("an expert's strategy"),
                                      how.sharded_optimizer ? " with a sharded optimizer" : "",
                                      out.reason == ps::stop_reason::time_budget ? "; a longer --pipeline.time may find it" : ""));
    if (auto const& f = out.figures; !f.fits)
        made.notes.push_back(ps::text("the pipeline does not fit: device ", f.fullest_device, " needs ", tools::shown_memory(f.fullest_device_use),
                                      " of ", tools::shown_memory(f.fullest_device_memory)));
}

void write_pipeline(std::ostream& out, ps::parallelization const& problem, pipelined const& found, ps::io::strategy_notes notes) {
    notes.predicted = found.figures.time;
    if (found.problem) notes.rewritten_by = found.applied;
    ps::io::write_pipeline_json(out, found.problem ? *found.problem : problem, found.plan, notes);
}

void write_pipeline_trace(std::ostream& out, ps::parallelization const& problem, ps::topology::cluster const& cluster, pipelined const& found) {
    ps::pipeline::pipeline_simulator simulator(found.problem ? *found.problem : problem);
    ps::io::write_pipeline_timeline(out, simulator, cluster, found.plan);
}

} // namespace plan
