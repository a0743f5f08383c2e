#include "pipeline.hpp"

#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include <parsearch/io/pipeline.hpp>
#include <parsearch/io/pipeline_timeline.hpp>

#include "planner.hpp"
#include "progress.hpp"
#include "tools/units.hpp"

namespace plan {

void plan_pipeline(request const& asked, inputs const& given, planned& made) {
    auto const& found = made.found();
    auto const& problem = made.problem;
    // The strategy found, simulated as pipelines are.
    ps::pipeline::pipeline_simulator simulator(problem);
    auto const as_it_is = ps::pipeline::unpipelined(problem.graph());
    auto const found_cost = simulator(as_it_is, found.strategy), found_time = simulator.simulate(as_it_is, found.strategy);
    auto const& data_parallel = made.strategies.front();
    progress_display progress(asked.quiet, asked.pipeline->time, found_cost, data_parallel.figures.fits ? std::optional(data_parallel.cost) : std::nullopt);
    auto options = *asked.pipeline;
    options.starts = {found.strategy};
    auto best = ps::pipeline::partition(problem, options, progress);
    progress.finish(best.stats.evaluations);

    auto& out = made.pipeline.emplace(pipelined{.plan = std::move(best.best), .unpipelined = found_time, .stats = best.stats, .reason = best.reason});
    ps::sim::report simulated;
    simulated.makespan = simulator.simulate(out.plan.how, out.plan.strategy);
    simulated.memory = simulator.memory();
    out.figures = ps::io::compare(problem, given.cluster.cluster, "pipeline", simulated, found_time);
    out.idle = simulator.idle_share();
    std::istringstream lines(ps::pipeline::to_string(problem, out.plan));
    for (std::string line; std::getline(lines, line);) out.text.push_back(line);

    auto const& how = out.plan.how;
    if (how.stages == 1 && how.micro_batches == 1)
        made.notes.push_back(ps::text("nothing of several stages or micro-batches was found to be faster than ",
                                      out.plan.strategy == found.strategy ? ps::text("\"", found.name, '"') : std::string("an expert's strategy"),
                                      how.sharded_optimizer ? " with a sharded optimizer" : "",
                                      out.reason == ps::stop_reason::time_budget ? "; a longer --pipeline.time may find it" : ""));
    if (auto const& f = out.figures; !f.fits)
        made.notes.push_back(ps::text("the pipeline does not fit: device ", f.fullest_device, " needs ", tools::shown_memory(f.fullest_device_use), " of ",
                                      tools::shown_memory(f.fullest_device_memory)));
}

void write_pipeline(std::ostream& out, problem_type const& problem, pipelined const& found, ps::io::strategy_notes notes) {
    notes.predicted = found.figures.time;
    ps::io::write_pipeline_json(out, problem, found.plan, notes);
}

void write_pipeline_trace(std::ostream& out, problem_type const& problem, ps::topology::cluster const& cluster, pipelined const& found) {
    ps::pipeline::pipeline_simulator simulator(problem);
    ps::io::write_pipeline_timeline(out, simulator, cluster, found.plan);
}

} // namespace plan
