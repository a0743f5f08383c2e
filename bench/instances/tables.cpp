// Instances of tables, and the searches that run on them.
#include <algorithm>
#include <utility>

#include <parsearch/search/budgeted_cost.hpp>

#include "arena.hpp"
#include "run_search.hpp"

namespace bench {
namespace {

using ps::search::numbered_strategy;
using budgeted_problem = ps::search::budgeted_problem<ps::picoseconds>;

class tables final : public arena {
  public:
    explicit tables(made_instance const& made) : of_(std::get<ps::io::table_instance>(made.instance.of)) {
        for (auto const& [name, choices] : made.starts) textbook_.push_back({name, choices, cost_of(ps::io::judge(of_, choices))});
        sort_by_cost(textbook_);
    }

    [[nodiscard]] std::vector<search_line> searches() const override {
        return of_.budget ? lines_of<budgeted_problem, numbered_strategy>(ps::io::searches)
                          : lines_of<ps::search::additive_problem<ps::picoseconds>, numbered_strategy>(ps::io::searches);
    }
    [[nodiscard]] std::vector<textbook_solution> const& textbook() const override { return textbook_; }
    [[nodiscard]] std::size_t devices() const override { return 0; }
    [[nodiscard]] std::size_t decisions() const override { return of_.costs.space().size(); }
    [[nodiscard]] solved run(std::string_view search, limits const& given, solution const* start) const override {
        auto const& from = std::get<numbered_strategy>(start ? *start : textbook_.front().of);
        auto const cost = cost_of(ps::io::judge(of_, from));
        auto made = of_.budget
                        ? run_entry(ps::io::searches, search, budgeted_problem({of_.costs.costs(), of_.memory, *of_.budget}), from, cost, given)
                        : run_entry(ps::io::searches, search, of_.costs, from, cost, given);
        made.row.search = search;
        return {std::move(made.row), std::move(made.found.best)};
    }
    [[nodiscard]] ps::io::judgement judge(solution const& s) const override { return ps::io::judge(of_, std::get<numbered_strategy>(s)); }
    void write(std::ostream& out, solution const& s) const override { ps::io::write_choices_json(out, std::get<numbered_strategy>(s)); }
    [[nodiscard]] solution read(std::istream& in, std::string const& name) const override { return ps::io::read_choices_json(in, name); }

  private:
    ps::io::table_instance of_;
    std::vector<textbook_solution> textbook_;
};

} // namespace

std::unique_ptr<arena> table_arena(made_instance const& made) { return std::make_unique<tables>(made); }

} // namespace bench
