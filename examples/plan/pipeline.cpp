#include "pipeline.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/plans/one_replica.hpp>
#include <parsearch/pipeline/plans/plan_bound.hpp>
#include <parsearch/rewrite/joint/joint_pipeline.hpp>

#include "exports.hpp"
#include "planner.hpp"
#include "progress.hpp"
#include "search_plans.hpp"
#include "tools/limits.hpp"
#include "tools/units.hpp"

namespace plan {
namespace {

// The figures of the last pipeline that `simulator` simulated, of `problem`.
ps::io::compared figures_of(ps::pipeline::pipeline_simulator const& simulator, ps::parallelization const& problem, inputs const& given,
                            std::string name, ps::picoseconds baseline) {
    return ps::io::compare(problem, given.cluster.cluster, std::move(name), simulator.summary(), baseline);
}

std::string name_of(ps::pipeline::pipeline_plan const& plan, ps::parallelization const& problem) {
    return ps::pipeline::short_name(plan, problem.topology().size(), problem.options().replicas);
}

// An observer that keeps the figures of the best textbook plan of each family. It shows the first plan that fits, and releases `limit` then.
class textbook_shelf {
  public:
    textbook_shelf(ps::parallelization const& problem, inputs const& given, ps::picoseconds baseline, bool fits_already, progress_display& progress,
                   tools::deadline& limit)
        : problem_(problem), given_(given), baseline_(baseline), shown_(fits_already), progress_(progress), limit_(limit) {}

    void operator()(ps::pipeline::simulated_pipeline const& e) {
        auto const& tensor = e.plan.tensor_parallel;
        if (!e.cost || *e.cost == ps::cost_traits<ps::picoseconds>::infinity()) return;
        auto const name = [&] { return name_of(e.plan, problem_); };
        if (!shown_ && e.simulator.fits()) {
            shown_ = true;
            limit_.release();
            progress_.say(ps::text("the first plan that fits takes ", tools::shown_time(*e.cost), " an iteration: ", name()));
        }
        if (tensor.empty() || std::ranges::any_of(tensor, [&](auto n) { return n != tensor.front(); })) return;
        auto const family =
            ps::pipeline::family_of(e.plan.how.stages, tensor.front(), e.plan.expert_parallel, e.plan.context_parallel, e.plan.how.sharded);
        auto const at = best_.find(family);
        std::pair const rank(!e.simulator.fits(), *e.cost);
        if (at != best_.end() && at->second.first <= rank) return;
        best_[family] = {rank, figures_of(e.simulator, problem_, given_, name(), baseline_)};
    }
    [[nodiscard]] std::vector<ps::io::compared> figures() const {
        std::vector<ps::io::compared> out;
        for (auto const& [family, best] : best_) out.push_back(best.second);
        return out;
    }

  private:
    ps::parallelization const& problem_;
    inputs const& given_;
    ps::picoseconds baseline_;
    bool shown_;
    progress_display& progress_;
    tools::deadline& limit_;
    std::map<ps::pipeline::plan_family, std::pair<std::pair<bool, ps::picoseconds>, ps::io::compared>> best_; // by whether it does not fit, and cost
};

// `plan` of `problem` with its figures.
pipelined described(ps::pipeline::pipeline_plan plan, ps::parallelization const& problem, inputs const& given, ps::picoseconds baseline) {
    ps::sim::report simulated;
    std::uint64_t tasks = 0;
    if (plan.how.plain()) {
        simulated = simulate(problem, plan);
        tasks = simulated.tasks.size();
    } else {
        ps::pipeline::pipeline_simulator simulator(problem);
        simulator.simulate(plan.how, plan.strategy);
        simulated = simulator.summary();
        tasks = simulator.all_tasks();
    }
    auto figures = ps::io::compare(problem, given.cluster.cluster, name_of(plan, problem), simulated, baseline);
    return {.plan = std::move(plan), .figures = std::move(figures), .idle = simulated.idle_share(), .tasks = tasks};
}

// One pipeline may take this much longer than there is time.
std::optional<std::chrono::nanoseconds> with_grace(std::optional<std::chrono::nanoseconds> time) {
    constexpr std::chrono::nanoseconds grace = std::chrono::seconds{1};
    return time ? std::optional(*time + std::min(grace, std::chrono::nanoseconds::max() - *time)) : std::nullopt;
}

// The best pipeline of a problem, and how it was found.
struct partitioned {
    ps::search_result<ps::pipeline::pipeline_plan, ps::picoseconds> found;
    std::optional<std::uint64_t> estimates{};
};
partitioned partition(ps::parallelization const& problem, ps::pipeline::pipeline_plan const& start, ps::pipeline::partition_options const& options,
                      progress_display& progress, textbook_shelf& shelf) {
    std::mt19937_64 unused;
    std::optional<std::uint64_t> estimates;
    auto found = ps::pipeline::partition(problem, start, unused, options, progress, shelf,
                                         [&](ps::pipeline::estimated_pipelines const& e) { estimates = e.divisions; });
    progress.finish(found.stats.evaluations);
    return {std::move(found), estimates};
}

ps::picoseconds cheapest(planned const& made) {
    return std::ranges::min(made.strategies | std::views::transform([](auto const& s) { return s.figures.cost; }));
}

// The figures of the best so far: of the strategy found, or of a pipeline.
ps::io::compared const& best_figures(request const& asked, planned const& made) {
    auto const& found = made.found().figures;
    return made.pipeline && !is_better(asked, found, made.pipeline->figures) ? made.pipeline->figures : found;
}

// Pipelines of the operators that a joint search made, the found ones and the cheapest of the others, with what is left of the budget.
void try_other_operators(request const& asked, inputs const& given, ps::picoseconds baseline, planned& made) {
    auto& search = *made.pipelines;
    auto const& rewritten = *made.rewritten;
    std::vector<ps::rewrite::known_graph> graphs;
    auto const add = [&](auto const& operators, auto const& strategy, auto const& applied, ps::picoseconds cost) {
        if (graphs.size() < ps::rewrite::joint_pipeline_options{}.rewritten && !applied.empty())
            graphs.push_back({{.graph = {}, .operators = operators, .strategy = strategy, .applied = applied}, cost});
    };
    add(made.problem.graph(), made.found().strategy, rewritten.applied, made.found().figures.cost);
    for (auto const& o : rewritten.others) add(o.operators, o.strategy, o.applied, o.cost);
    auto const& best = best_figures(asked, made);
    auto const bound = best.cost;
    auto const left = ps::rewrite::left_of(*asked.pipelines, search.stats, bound);
    if (search.reason != ps::stop_reason::exhausted || !left || graphs.empty()) return;
    std::mt19937_64 unused;
    progress_display progress(asked.quiet, left->time, bound, std::nullopt);
    auto other = ps::rewrite::partition_graphs(rewritten.original, graphs, unused, *left, progress);
    progress.finish(other.stats.evaluations);
    add_counts(search.stats, other.stats);
    search.stats.seconds += other.stats.seconds;
    search.reason = other.reason;
    if (!other.best || !(other.best->cost < bound)) return;
    auto const& graph = graphs[other.best->graph].plan;
    auto const problem = problem_of(rewritten.original, graph.operators);
    auto found = described(std::move(other.best->plan), problem, given, baseline);
    if (!is_better(asked, found.figures, best)) return;
    made.pipeline = std::move(found);
    made.pipeline->figures.name += of_other_operators;
    made.pipeline->problem = problem;
    made.pipeline->applied = graph.applied;
}

// The strategy found with a sharded optimizer.
void shard_found(request const& asked, inputs const& given, ps::picoseconds baseline, planned& made) {
    auto const& problem = made.problem;
    auto const& options = problem.options();
    if (!asked.pipelines->sharded_optimizer || !options.training || options.synchronisation != ps::sim::synchronisation::all_reduce) return;
    ps::pipeline::pipeline_plan plan{.how = ps::pipeline::unpipelined(problem.graph()), .strategy = made.found().strategy};
    plan.how.sharded = ps::pipeline::sharded_states::optimizer;
    ps::pipeline::pipeline_simulator simulator(problem);
    (void)simulator(plan.how, plan.strategy);
    if (!is_better(asked, figures_of(simulator, problem, given, {}, baseline), best_figures(asked, made))) return;
    made.pipeline = described(std::move(plan), problem, given, baseline);
    made.pipeline->figures.name = ps::text(made.found().name, ", sharded optimizer");
    if (made.rewritten) made.pipeline->applied = made.rewritten->applied;
}

// What a search of plans may take of what `options` had: a quarter of the evaluations that are left, and half of the time, or all where no strategy
// without pipelines fits; in a rerun as many evaluations as before. Nothing where there is none.
std::optional<plan_budget> left_for_plans(request const& asked, ps::pipeline::partition_options const& options, planned const& made) {
    auto const& stats = made.pipelines->stats;
    if (made.pipelines->reason != ps::stop_reason::exhausted) return {};
    plan_budget out;
    if (asked.rerun) {
        if (!asked.rerun->pipelines || asked.rerun->pipelines->plans == 0) return {};
        out.evaluations = asked.rerun->pipelines->plans;
        return out;
    }
    if (options.evaluations) out.evaluations = (*options.evaluations - std::min(*options.evaluations, stats.evaluations)) / 4;
    if (options.time) {
        constexpr std::chrono::nanoseconds step = std::chrono::milliseconds{1};
        out.time = (*options.time - std::min(*options.time, made.time_of_pipelines())) / (made.missing > 0 ? 1 : 2) / step * step;
    }
    bool const none = out.evaluations == std::uint64_t{0} || out.time == std::chrono::nanoseconds::zero() || (!out.evaluations && !out.time);
    return none ? std::nullopt : std::optional(out);
}

// Goes on from the best pipeline, decision by decision. Not from a strategy: other searches price these faster.
void go_on(request const& asked, inputs const& given, ps::picoseconds baseline, ps::pipeline::partition_options const& options, planned& made,
           std::stop_token const& stop) {
    auto budget = left_for_plans(asked, options, made);
    if (!budget || made.pipeline->plan.how.plain() || !runs_on_plans(asked) || stop.stop_requested()) return;
    budget->stop = stop;
    progress_display progress(asked.quiet, budget->time, made.pipeline->figures.cost, std::nullopt);
    tools::deadline const limit(stop, with_grace(budget->time));
    std::optional<found_plan> found;
    try {
        found = search_plans(asked, made.problem.until(limit.token()), made.pipeline->plan, *budget, progress);
    } catch (ps::interrupted const&) {
        return;                            // no time for a single one
    } catch (ps::invalid_input const& e) { // of a file, say
        made.left_out.push_back(ps::text("a search from the best pipeline: ", e.what()));
        return;
    }
    progress.finish(found->stats.evaluations);
    made.pipelines->plans = found->stats;
    made.pipelines->stats.seconds += found->stats.seconds;
    made.pipelines->plans_reason = found->reason;
    if (!(found->cost < made.pipeline->figures.cost)) return;
    auto better = described(std::move(found->plan), made.problem, given, baseline);
    if (!is_better(asked, better.figures, made.pipeline->figures)) return;
    if (better.plan.tensor_parallel.empty()) better.figures.name = ps::text(name_of(found->stages, made.problem), ", some operators otherwise");
    if (made.other_operators()) better.figures.name += of_other_operators;
    made.pipelines->cost = better.figures.cost;
    made.pipeline = std::move(better);
}

// What the rules, and pipelines of the operators that these make, may take: the time that pipelines have left, a quarter of it at least, and a
// quarter of the evaluations; in a rerun what they took before.
ps::pipeline::partition_options for_other_operators(request const& asked, ps::pipeline::partition_options options, planned const& made) {
    if (asked.rerun) return *ps::io::repeatable_rewriting(*asked.rerun);
    if (options.evaluations) options.evaluations = std::max<std::uint64_t>(1, *options.evaluations / 4);
    if (options.time) *options.time = std::max(*options.time - made.time_of_pipelines(), *options.time / 4);
    return options;
}

// What is left for the model's own operators where others are to be tried, too.
ps::pipeline::partition_options for_own_operators(request const& asked, ps::pipeline::partition_options options) {
    if (!asked.rewriting || asked.rerun) return options;
    if (options.time) *options.time -= *options.time / 4;
    if (options.evaluations && *options.evaluations > 1) *options.evaluations -= *options.evaluations / 4;
    return options;
}

// Searches pipelines of the operators that are fastest on one device, made of the model's by rules. Where the best of the model's own takes longer
// than the best of these by more than `request::rewriting`, all that follows plans these operators. `options`: of all pipelines.
void try_other_operators_first(request const& asked, inputs const& given, ps::picoseconds baseline, ps::pipeline::partition_options const& options,
                               planned& made, std::stop_token const& stop) {
    auto left = for_other_operators(asked, options, made);
    auto const began = std::chrono::steady_clock::now();
    auto& tried = *made.tried_operators;
    tools::deadline const limit(stop, with_grace(left.time));
    auto const replicas = made.problem.options().replicas;
    auto other =
        rewrite_first(asked, made.whole ? *made.whole : made.problem, left.time ? std::optional(*left.time * 3 / 4) : std::nullopt, limit.token());
    tried.rules = other.applied;
    tried.graphs = other.stats.evaluations;
    if (other.applied.empty()) return;
    // The best of the model's own so far.
    auto plain = made.pipeline->figures;
    auto plain_strategy = made.pipeline->plan.strategy;
    for (auto const& s : made.strategies)
        if (is_better(asked, s.figures, plain)) {
            plain = s.figures;
            plain_strategy = s.strategy;
        }
    left.bound = plain.cost;
    if (left.time) *left.time -= std::min<std::chrono::nanoseconds>(*left.time, std::chrono::steady_clock::now() - began);
    auto const problem = made.whole ? ps::pipeline::one_replica(other.problem, replicas) : other.problem;
    progress_display progress(asked.quiet, left.time, plain.cost, std::nullopt);
    tools::deadline unlimited(stop, std::nullopt);
    textbook_shelf unseen(problem, given, baseline, true, progress, unlimited); // so that `partition` is one function
    auto search = partition(problem.until(limit.token()), {}, left, progress, unseen);
    tried.evaluations = search.found.stats.evaluations;
    tried.reason = search.found.ended;
    if (!(search.found.cost < plain.cost)) return;
    auto better = described(std::move(search.found.best), problem, given, baseline);
    if (!is_better(asked, better.figures, plain)) return;
    tried.cost = better.figures.cost;
    tried.fits = better.figures.fits;
    bool const comparable = asked.simulation.memory == ps::sim::memory_policy::ignore || plain.fits == better.figures.fits;
    if (comparable && ps::to_seconds(plain.cost) / ps::to_seconds(better.figures.cost) - 1 <= *asked.rewriting) return;
    better.figures.name += of_other_operators;
    made.rewritten = rewriting{.original = made.problem,
                               .whole = made.whole,
                               .plain = std::move(plain),
                               .plain_strategy = std::move(plain_strategy),
                               .plain_evaluations = made.pipelines->stats.evaluations,
                               .applied = std::move(other.applied),
                               .first = ps::io::run_rewriting_first{.share = *asked.rewriting,
                                                                    .graphs = tried.graphs,
                                                                    .evaluations = tried.evaluations,
                                                                    .estimates = search.estimates,
                                                                    .reason = tried.reason}};
    made.problem = problem;
    if (made.whole) made.whole = other.problem;
    made.pipelines->cost = better.figures.cost;
    made.pipeline = std::move(better);
}

// Does `f`; where it takes too much memory or time, or cannot be done, `what` is left out.
template <class F> void unless_left_out(std::string_view what, planned& made, F const& f) {
    auto const leave_out = [&](auto const&... why) { made.left_out.push_back(ps::text(what, why...)); };
    try {
        f();
    } catch (ps::interrupted const&) {
        leave_out(" were not ready in their part of the time: a longer --time waits for them");
    } catch (std::bad_alloc const&) {
        leave_out(" take more memory than there is; --memory may allow more");
    } catch (ps::invalid_input const& e) {
        leave_out(": ", e.what());
    }
}

// Says how many plans the runtime cannot say, and throws invalid_input where the best is one of them: then there is no other.
void require_sayable(runtime_rules& rules, std::string const& runtime, ps::pipeline::pipeline_plan const& best, planned& made) {
    auto const asked = rules.asked(), refused = rules.refused();
    if (auto const why = rules.refusal(best); !why.empty()) {
        if (asked == 0) throw ps::invalid_input("none of the plans tried fits the memory, and of the first ", runtime, " says: ", why);
        throw ps::invalid_input(runtime, " can say none of the ", asked, " plans tried; of the first: ", rules.first_refusal());
    }
    auto const& why = rules.first_refusal();
    if (refused > 0) made.notes.push_back(ps::text(runtime, " can not say ", refused, " of the ", asked, " plans tried; of the first: ", why));
}

} // namespace

void search_pipelines(request const& asked, inputs const& given, ps::picoseconds baseline, planned& made, std::stop_token const& stop) {
    if (made.start_pipeline && !asked.pipelines) {
        made.pipeline = described(*made.start_pipeline, made.problem, given, baseline);
        made.pipeline->figures.name = std::filesystem::path(asked.start).filename().string();
        return;
    }
    if (!asked.runtime.empty() && stop.stop_requested()) throw ps::invalid_input("--for ", asked.runtime, ": interrupted before a plan was tried");
    if (!asked.pipelines || stop.stop_requested()) return;
    unless_left_out("pipelines", made, [&] {
        auto const& data_parallel = made.strategies.front();
        // A tenth is for the figures behind, and another for files.
        auto options = *asked.pipelines;
        if (options.time)
            *options.time = std::max(*options.time - *options.time / (asked.out.empty() ? 10 : 5) - (std::chrono::steady_clock::now() - made.began),
                                     *options.time / 4);
        std::optional<runtime_rules> sayable;
        if (!asked.runtime.empty()) {
            sayable.emplace(asked.runtime, made.problem, made.whole);
            for (auto const& s : made.strategies) options.starts.push_back(s.strategy);
            if (!made.start_strategy.empty()) options.starts.push_back(made.start_strategy);
            options.surcharge = [&](ps::pipeline::pipeline_plan const& plan, std::span<std::size_t const>) {
                return sayable->refusal(plan).empty() ? ps::picoseconds{0} : ps::cost_traits<ps::picoseconds>::infinity();
            };
        }
        progress_display progress(asked.quiet, options.time, cheapest(made),
                                  data_parallel.figures.fits ? std::optional(data_parallel.figures.cost) : std::nullopt);
        auto const own = for_own_operators(asked, options);
        bool const fits = !sayable && std::ranges::any_of(made.strategies, [](auto const& s) { return s.figures.fits; });
        tools::deadline limit(stop, with_grace(own.time), !fits); // the first plan that fits is waited for
        textbook_shelf shelf(made.problem, given, baseline, fits, progress, limit);
        auto [best, estimates] =
            partition(made.problem.until(limit.token()), made.start_pipeline.value_or(ps::pipeline::pipeline_plan{}), own, progress, shelf);
        made.pipelines =
            pipeline_search{.stats = best.stats, .reason = best.ended, .estimates = estimates, .cost = best.cost, .textbook = shelf.figures()};
        if (sayable) require_sayable(*sayable, asked.runtime, best.best, made);
        made.pipeline = described(std::move(best.best), made.problem, given, baseline);
        if (sayable) return;
        if (asked.rewriting && !stop.stop_requested()) {
            auto const began = std::chrono::steady_clock::now();
            made.tried_operators.emplace();
            unless_left_out("other operators", made, [&] { try_other_operators_first(asked, given, baseline, options, made, stop); });
            made.tried_operators->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        }
        go_on(asked, given, baseline, options, made, stop);
    });
    if (!asked.runtime.empty() && !made.pipeline) throw ps::invalid_input("--for ", asked.runtime, ": ", made.left_out.back());
}

ps::picoseconds bound_of_plans(request const& asked, planned const& made, std::optional<std::chrono::nanoseconds> time, std::stop_token const& stop) {
    tools::deadline const limit(stop, time);
    return ps::pipeline::plan_bound(made.plan->problem, *asked.pipelines, limit.token());
}

void choose_pipeline(request const& asked, inputs const& given, ps::picoseconds baseline, planned& made) {
    if (!made.pipelines) return;
    if (!asked.runtime.empty()) return; // the strategy found is for comparison
    bool const joint = made.joint();
    if (made.pipeline && joint) made.pipeline->problem = made.rewritten->original;
    unless_left_out("pipelines", made, [&] {
        if (joint) try_other_operators(asked, given, baseline, made);
        shard_found(asked, given, baseline, made);
    });
    if (made.pipeline && made.other_operators() && !joint) made.pipeline->applied = made.rewritten->applied;
    if (made.pipeline) made.pipelines->cost = made.pipeline->figures.cost;
    if (made.pipeline && !is_better(asked, made.pipeline->figures, made.found().figures)) made.pipeline.reset();
    if (made.pipeline && made.pipeline->problem && !made.rewritten->applied.empty())
        made.notes.push_back(made.pipeline->applied.empty()
                                 ? std::string("the plan is of the model's own operators: rules that pay without micro-batches do not pay with them")
                                 : ps::text("the plan is of operators that ", made.pipeline->applied.size(),
                                            " rules made: ", made.pipeline->applied.front(), made.pipeline->applied.size() > 1 ? ", ..." : ""));
}

// `plan` of one replica on all devices; nothing where these were planned one by one.
static std::unique_ptr<chosen_plan> on_all_devices(planned const& made, ps::pipeline::pipeline_plan const& plan) {
    if (!made.whole) return {};
    return std::make_unique<chosen_plan>(chosen_plan{.plan = ps::pipeline::on_all_replicas(*made.whole, plan, made.problem.options().replicas),
                                                     .problem = *made.whole,
                                                     .part = ps::pipeline::micro_batch_problem(*made.whole, plan.how.micro_batches)});
}

void settle(request const& asked, inputs const& given, planned& made) {
    bool const reported = !asked.out.empty() || given.cluster.network;
    auto simulated = std::exchange(made.report, {});
    if (!made.pipeline) {
        made.plan = chosen_plan{.plan = {.how = ps::pipeline::unpipelined(made.problem.graph()), .strategy = made.found().strategy},
                                .problem = made.problem,
                                .part = made.problem,
                                .applied = made.rewritten ? made.rewritten->applied : given.applied};
        made.plan->all = on_all_devices(made, made.plan->plan);
        if (reported) made.plan->report = std::move(simulated);
        return;
    }
    simulated = {}; // its memory is for the next
    auto const& found = *made.pipeline;
    auto const& problem = found.problem ? *found.problem : made.problem;
    made.plan = chosen_plan{.plan = found.plan,
                            .problem = problem,
                            .part = ps::pipeline::micro_batch_problem(problem, found.plan.how.micro_batches),
                            .applied = made.rewritten ? found.applied : given.applied};
    made.plan->all = on_all_devices(made, found.plan);
    auto const& all = made.plan->on_all();
    std::istringstream lines(ps::pipeline::to_string(all.problem, all.plan));
    for (std::string line; std::getline(lines, line);) made.plan->text.push_back(line);
    if (!reported) return;
    constexpr std::uint64_t most_reported = 10'000'000; // a gigabyte or two
    if (found.tasks > most_reported) {
        made.left_out.push_back(
            ps::text("the plan has ", found.tasks, " tasks, more than are reported one by one (", most_reported,
                     "): ", asked.out.empty() ? "the load of the network is not told" : "timeline.json and report.html are not written"));
        return;
    }
    try {
        made.plan->report = simulate(problem, found.plan);
    } catch (std::bad_alloc const&) {
        made.left_out.push_back(asked.out.empty() ? "the load of the network takes more memory than there is"
                                                  : "timeline.json and report.html take more memory than there is; --memory may allow more");
    }
}

} // namespace plan
