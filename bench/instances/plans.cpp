// Instances that ask for a plan, and the searches that run on them.
#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include <parsearch/core/cost.hpp>
#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/pipeline/plans/plan_bound.hpp>
#include <parsearch/pipeline/plans/plan_problem.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>

#include "arena.hpp"
#include "run_search.hpp"
#include "two_level.hpp"

namespace bench {
namespace {

using ps::pipeline::pipeline_plan, ps::pipeline::plan_problem, ps::pipeline::plan_decisions;

class plans final : public arena {
  public:
    explicit plans(ps::io::network_instance n) : of_(std::move(n)), problem_(of_.problem()), plans_(problem_) {
        // What `partition` tries first are the best of each family of textbook plans.
        std::mt19937_64 rng{1};
        auto const keep = [&](ps::pipeline::simulated_pipeline const& e) {
            if (!e.improves && e.cost) textbook_.push_back({ps::pipeline::short_name(e.plan, problem_.topology().size()), e.plan, e.cost->count()});
        };
        (void)ps::pipeline::partition(problem_, {}, rng, {.evaluations = families}, keep);
        for (auto& start : problem_.named_starts()) {
            pipeline_plan plan{.how = ps::pipeline::unpipelined(problem_.graph()), .strategy = std::move(start.strategy)};
            if (auto const cost = cost_of(judge(plan)); cost != infinite) textbook_.push_back({start.name, std::move(plan), cost});
        }
        if (textbook_.empty()) throw ps::invalid_input("no textbook plan of the instance could be simulated");
        sort_by_cost(textbook_);
        auto const& space = problem_.space();
        data_parallel_ = {.how = ps::pipeline::unpipelined(problem_.graph()),
                          .strategy = space.nearest(ps::space::data_parallel(problem_.graph(), problem_.topology().size(), space.options().uneven))};
    }

    [[nodiscard]] std::vector<search_line> searches() const override {
        std::vector<search_line> out{plan_line, partition_line, alpa_line, galvatron_line};
        for (auto& line : lines_of<plan_problem, plan_decisions>(ps::io::searches)) out.push_back(std::move(line));
        return out;
    }
    [[nodiscard]] std::vector<textbook_solution> const& textbook() const override { return textbook_; }
    [[nodiscard]] std::size_t devices() const override { return problem_.topology().size(); }
    [[nodiscard]] std::size_t decisions() const override { return plans_.space().size(); }
    [[nodiscard]] proved_bound bound() const override {
        auto const any = ps::pipeline::partition_options{.max_micro_batches = std::numeric_limits<std::uint64_t>::max()};
        return {ps::pipeline::plan_bound(problem_, any).count(), "plan_bound"};
    }
    [[nodiscard]] solved run(std::string_view search, limits const& given, solution const* start) const override {
        auto const& textbook = std::get<pipeline_plan>(textbook_.front().of);
        bool const published = search == alpa_line.name || search == galvatron_line.name;
        auto const* from = start ? &std::get<pipeline_plan>(*start) : published ? &data_parallel_ : &textbook;
        ps::parallelization const& problem = problem_;
        auto const of_plans = [&](auto const& searches) -> solved {
            auto made = run_recorded(searches, problem, *from, cost_of(judge(*from)), ps::pipeline::partition_options{}, given);
            made.row.search = search;
            return {std::move(made.row), std::move(made.found.best)};
        };
        if (search == plan_line.name) return one_after_the_other(given, start);
        if (search == partition_line.name) return of_plans(ps::pipeline::partition);
        if (search == alpa_line.name) return of_plans(alpa);
        if (search == galvatron_line.name) return of_plans(galvatron);
        auto decisions = decisions_of(*from);
        for (std::size_t n = 0; !decisions; ++n) { // `partition` finds some that there are
            from = &std::get<pipeline_plan>(textbook_.at(n).of);
            decisions = decisions_of(*from);
        }
        auto const cost = cost_of(judge(*from));
        auto made = run_entry(ps::io::searches, search, plans_, *decisions, cost, given);
        made.row.search = search;
        made.row.bound.reset(); // of these plans alone: the instance asks for any
        return {std::move(made.row), made.found.cost.count() < cost ? solution(plans_.plan(made.found.best)) : solution(*from)};
    }
    [[nodiscard]] ps::io::judgement judge(solution const& s) const override { return ps::io::judge(of_, std::get<pipeline_plan>(s)); }
    void write(std::ostream& out, solution const& s) const override { ps::io::write_plan_json(out, problem_, std::get<pipeline_plan>(s)); }
    [[nodiscard]] solution read(std::istream& in, std::string const& name) const override { return ps::io::read_plan_json(in, name, problem_); }

  private:
    static constexpr std::uint64_t families = 16;

    /// As the program `plan` searches: `partition` with half of the budget, then `portfolio` from what that found, if its decisions can say it.
    [[nodiscard]] solved one_after_the_other(limits const& given, solution const* start) const {
        auto first = given;
        if (given.seconds) first.seconds = *given.seconds / 2;
        if (given.evaluations) first.evaluations = (*given.evaluations + 1) / 2;
        auto made = run(partition_line.name, first, start);
        auto& row = made.row;
        row.search = plan_line.name;
        if ((given.seconds && row.seconds >= *given.seconds) || (given.evaluations && row.evaluations >= *given.evaluations)) return made;
        auto rest = given;
        if (given.seconds) rest.seconds = *given.seconds - row.seconds;
        if (given.evaluations) rest.evaluations = *given.evaluations - row.evaluations;
        auto second = from_here(std::get<pipeline_plan>(made.best), row.cost(), rest);
        if (!second) return made;
        add_curve(row, second->row, row.seconds, row.evaluations);
        row.seconds += second->row.seconds;
        row.evaluations += second->row.evaluations;
        row.reason = second->row.reason;
        return {std::move(row), std::move(second->best)};
    }
    /// Nothing of a plan that searches over decisions do not know.
    [[nodiscard]] std::optional<plan_decisions> decisions_of(pipeline_plan const& plan) const {
        try {
            return plans_.decisions(plan);
        } catch (ps::invalid_input const&) {
            return {};
        }
    }
    /// `portfolio` over the decisions of plans, or of strategies where `from` is one that those do not know; nothing where it is neither.
    [[nodiscard]] std::optional<solved> from_here(pipeline_plan const& from, std::int64_t cost, limits const& given) const {
        if (decisions_of(from)) {
            solution const start = from;
            return run("portfolio", given, &start);
        }
        if (!from.how.plain()) return {};
        ps::parallelization const& problem = problem_;
        auto made = run_recorded(ps::search::portfolio, problem, from.strategy, cost, ps::search::portfolio_options{}, given);
        return solved{std::move(made.row), pipeline_plan{.how = from.how, .strategy = std::move(made.found.best)}};
    }

    ps::io::network_instance of_;
    ps::parallelization_of<std::uint32_t, std::uint32_t> problem_;
    plan_problem plans_;
    std::vector<textbook_solution> textbook_;
    pipeline_plan data_parallel_; ///< whether it is feasible or not
};

} // namespace

std::unique_ptr<arena> plan_arena(made_instance const& made) { return std::make_unique<plans>(std::get<ps::io::network_instance>(made.instance.of)); }

} // namespace bench
