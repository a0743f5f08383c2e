#pragma once
/// An instance made ready to be searched.

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/io/instances/instance.hpp>
#include <parsearch/io/instances/judgement.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/search/additive_cost.hpp>

#include "catalogue.hpp"
#include "rows.hpp"

namespace bench {

/// A plan of a network, choices of tables, or choices of alternatives with a plan.
using solution = std::variant<ps::pipeline::pipeline_plan, ps::search::numbered_strategy, ps::io::rewritten_plan>;

/// What a search may take, and its seed.
struct limits {
    std::optional<double> seconds{};
    std::optional<std::uint64_t> evaluations{};
    std::uint64_t seed = 1;
};

/// What a search found.
struct solved {
    run_row row; ///< without the name of the instance
    solution best;
};

/// A solution that somebody would try first. `cost`: infinite where it is not feasible.
struct textbook_solution {
    std::string name;
    solution of;
    std::int64_t cost = infinite;
};

/// A cost that no solution is below, and what proves it.
struct proved_bound {
    std::int64_t cost = 0;
    std::string by;
};

/// A search of an arena, and a line about it.
struct search_line {
    std::string name, what;
};

inline search_line const joint_line{"joint", "of rewritings: alternatives place by place, then the strategy of the best operators"};
inline search_line const plan_line{"plan", "of plans: partition, then portfolio from what it found, as the program plan does"};
inline search_line const partition_line{"partition", "of plans: textbook plans, then the best of them improved step by step"};

class arena {
  public:
    virtual ~arena() = default;

    /// The searches that run on the instance; the first is what the library does where nothing is said.
    [[nodiscard]] virtual std::vector<search_line> searches() const = 0;
    /// What people try first, the cheapest first.
    [[nodiscard]] virtual std::vector<textbook_solution> const& textbook() const = 0;
    [[nodiscard]] virtual std::size_t devices() const = 0;
    [[nodiscard]] virtual std::size_t decisions() const = 0;
    /// A bound that is known without a search; none by default. May take a minute.
    [[nodiscard]] virtual proved_bound bound() const { return {}; }
    /// Runs a search from `start`, or from the cheapest textbook solution. Throws `invalid_input` where there is no search of that name.
    [[nodiscard]] virtual solved run(std::string_view search, limits const& given, solution const* start) const = 0;
    /// What a solution is worth, and its document.
    [[nodiscard]] virtual ps::io::judgement judge(solution const& s) const = 0;
    virtual void write(std::ostream& out, solution const& s) const = 0;
    [[nodiscard]] virtual solution read(std::istream& in, std::string const& name) const = 0;
};

[[nodiscard]] std::unique_ptr<arena> strategy_arena(made_instance const& made);
[[nodiscard]] std::unique_ptr<arena> plan_arena(made_instance const& made);
[[nodiscard]] std::unique_ptr<arena> table_arena(made_instance const& made);
[[nodiscard]] std::unique_ptr<arena> rewriting_arena(made_instance const& made);

[[nodiscard]] inline std::unique_ptr<arena> make_arena(made_instance const& made) {
    auto const* const n = std::get_if<ps::io::network_instance>(&made.instance.of);
    if (!n) return table_arena(made);
    if (!n->rewritings.empty()) return rewriting_arena(made);
    return n->asks == ps::io::instance_question::plan ? plan_arena(made) : strategy_arena(made);
}

/// All searches, of whatever kind of instance.
[[nodiscard]] std::vector<search_line> all_search_lines();

/// What is compared of a solution; infinite where it is not feasible.
[[nodiscard]] inline std::int64_t cost_of(ps::io::judgement const& said) { return said.feasible() ? said.cost.count() : infinite; }

} // namespace bench
