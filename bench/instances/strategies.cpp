// Instances that ask for a strategy, and the searches that run on them.
#include <algorithm>
#include <utility>

#include <boost/hana/concat.hpp>
#include <boost/hana/tuple.hpp>
#include <fmt/format.h>

#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/problem/lagrangian_bound.hpp>
#include <parsearch/search/kernel/moves.hpp>

#include "arena.hpp"
#include "run_search.hpp"
#include "two_level.hpp"

namespace bench {
namespace {

using ps::space::flat_strategy;

/// `mcmc` as FlexFlow has it (Jia, Zaharia, Aiken, MLSys 2019, section 6, and its code): uniform moves of one operator, exp(-1.2 d) for d
/// milliseconds more, back to the best every hundredth of the budget.
struct flexflow_fn {
    static constexpr ps::search_traits traits{.draws_moves = true};
    template <class P, class S, class R, class... Os>
        requires ps::SearchProblem<P, S>
    auto operator()(P const& problem, S start, R& rng, ps::search::mcmc_options options, Os&&... observers) const {
        options.temperature = 1e9 / 1.2;
        options.problem_starts = false;
        return ps::search::mcmc(ps::search::with_moves(problem, ps::search::uniform_move{}), std::move(start), rng, options,
                                std::forward<Os>(observers)...);
    }
};

/// Hill climbing: `mcmc` that takes what is not worse.
struct climbing_fn {
    static constexpr ps::search_traits traits{.draws_moves = true};
    template <class P, class S, class R, class... Os>
        requires ps::SearchProblem<P, S>
    auto operator()(P const& problem, S start, R& rng, ps::search::mcmc_options options, Os&&... observers) const {
        options.temperature = 0;
        return ps::search::mcmc(problem, std::move(start), rng, options, std::forward<Os>(observers)...);
    }
};

/// Searches beside those of the library: `ps::io::named_search<Options>("name", function_object, "a line about it")`, where Options has `time` and
/// `evaluations`. See docs/search.md.
constexpr auto own_searches = boost::hana::make_tuple(
    ps::io::named_search<ps::search::mcmc_options>("flexflow", flexflow_fn{}, "mcmc with FlexFlow's moves and temperature, from data parallelism"),
    ps::io::named_search<ps::search::mcmc_options>("climbing", climbing_fn{}, "mcmc that takes only what is not worse"));

constexpr auto all_searches = boost::hana::concat(ps::io::searches, own_searches);

class strategies final : public arena {
  public:
    explicit strategies(ps::io::network_instance n) : of_(std::move(n)), problem_(of_.problem()) {
        auto cost_of = problem_.evaluator();
        for (auto& start : problem_.named_starts()) {
            auto const cost = cost_of(start.strategy).count();
            textbook_.push_back({start.name, plan_of(std::move(start.strategy)), cost});
        }
        data_parallel_ = strategy_of(textbook_.front().of);
        sort_by_cost(textbook_);
    }

    [[nodiscard]] std::vector<search_line> searches() const override { return lines_of<ps::parallelization, flat_strategy>(all_searches); }
    [[nodiscard]] std::vector<textbook_solution> const& textbook() const override { return textbook_; }
    [[nodiscard]] std::size_t devices() const override { return problem_.topology().size(); }
    [[nodiscard]] std::size_t decisions() const override { return problem_.size(); }
    [[nodiscard]] proved_bound bound() const override {
        ps::parallelization const& problem = problem_;
        // Small spaces are divided, which takes up to a minute there; to the others it adds little.
        constexpr std::uint64_t small = 2048, parts = 1000;
        std::uint64_t configurations = 0;
        for (std::size_t op = 0; op < problem.size(); ++op) configurations += problem.space()[op].size();
        bool const divided = configurations <= small;
        return {ps::lagrangian_bound(problem, {.parts = divided ? parts : 1}).count(),
                divided ? fmt::format("lagrangian_bound, {} parts", parts) : "lagrangian_bound"};
    }
    [[nodiscard]] solved run(std::string_view search, limits const& given, solution const* start) const override {
        auto const& from = start ? strategy_of(*start) : search == "flexflow" ? data_parallel_ : strategy_of(textbook_.front().of);
        ps::parallelization const& problem = problem_;
        auto made = run_entry(all_searches, search, problem, from, problem.evaluator()(from).count(), given);
        made.row.search = search;
        return {std::move(made.row), plan_of(std::move(made.found.best))};
    }
    [[nodiscard]] ps::io::judgement judge(solution const& s) const override { return ps::io::judge(of_, std::get<ps::pipeline::pipeline_plan>(s)); }
    void write(std::ostream& out, solution const& s) const override {
        ps::io::write_plan_json(out, problem_, std::get<ps::pipeline::pipeline_plan>(s));
    }
    [[nodiscard]] solution read(std::istream& in, std::string const& name) const override { return ps::io::read_plan_json(in, name, problem_); }

  private:
    [[nodiscard]] solution plan_of(flat_strategy s) const {
        return ps::pipeline::pipeline_plan{.how = ps::pipeline::unpipelined(problem_.graph()), .strategy = std::move(s)};
    }
    [[nodiscard]] static flat_strategy const& strategy_of(solution const& s) { return std::get<ps::pipeline::pipeline_plan>(s).strategy; }

    ps::io::network_instance of_;
    ps::parallelization_of<std::uint32_t, std::uint32_t> problem_;
    std::vector<textbook_solution> textbook_;
    flat_strategy data_parallel_;
};

} // namespace

std::vector<search_line> all_search_lines() {
    std::vector<search_line> out;
    boost::hana::for_each(all_searches, [&](auto const& entry) { out.push_back({std::string(entry.name), std::string(entry.help)}); });
    out.insert(out.end(), {plan_line, partition_line, alpa_line, galvatron_line, joint_line});
    return out;
}

std::unique_ptr<arena> strategy_arena(made_instance const& made) {
    return std::make_unique<strategies>(std::get<ps::io::network_instance>(made.instance.of));
}

} // namespace bench
