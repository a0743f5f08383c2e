#pragma once
/// Additive problems with a budget of memory, and the price on memory that searches them.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/io/instances/instance.hpp>
#include <parsearch/search/additive_cost.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/kernel/kernel.hpp>

namespace bench {

namespace ps = parsearch;

/// A `SearchProblem`: the costs of tables, infinite where choices exceed the budget.
class budgeted_problem {
  public:
    explicit budgeted_problem(ps::io::table_instance const& t) : of_(&t) {}

    [[nodiscard]] std::vector<ps::search::index_range> const& space() const noexcept { return of_->costs.space(); }
    [[nodiscard]] auto evaluator() const {
        return [t = of_, costs = of_->costs.costs()](ps::search::numbered_strategy const& s) {
            auto const cost = costs(s);
            return bytes_of(*t, s) > *t->budget ? ps::cost_traits<ps::picoseconds>::infinity() : cost;
        };
    }
    [[nodiscard]] ps::io::table_instance const& tables() const noexcept { return *of_; }

    [[nodiscard]] static ps::byte_count bytes_of(ps::io::table_instance const& t, ps::search::numbered_strategy const& s) {
        ps::byte_count bytes = 0;
        for (std::size_t d = 0; d < t.memory.size(); ++d) bytes += t.memory[d][s[d]];
        return bytes;
    }

  private:
    ps::io::table_instance const* of_;
};

struct priced_memory_options {
    std::optional<std::chrono::nanoseconds> time{};
    std::optional<std::uint64_t> evaluations{}; ///< prices tried
    std::stop_token stop{};
};

/// Lagrangian relaxation: exact minima of cost + price * memory, at prices that the solutions on both sides of the budget tell (Handler, Zang, A dual
/// algorithm for the constrained shortest path problem, Networks 10, 1980); then single choices are changed while that helps. The bound is the best
/// of min(cost + price * memory) - price * budget; a term's price * memory is rounded down, that of the budget up.
struct priced_memory_fn {
    static constexpr ps::search_traits traits{.start_matters = false};

    template <class R, class... Os>
    auto operator()(budgeted_problem const& problem, ps::search::numbered_strategy start, R&, priced_memory_options const& options = {},
                    Os&&... observers) const -> ps::search_result<ps::search::numbered_strategy, ps::picoseconds> {
        using strategy = ps::search::numbered_strategy;
        auto const& t = problem.tables();
        auto const& costs = t.costs.costs();
        auto evaluate = problem.evaluator();
        ps::search::kernel<strategy, ps::picoseconds, std::remove_reference_t<Os>...> run("priced_memory", ps::search::budget_of(options), {},
                                                                                          observers...);
        run.count_evaluation();
        run.begin(start, evaluate(start));
        struct end {
            double cost, memory;
        };
        // The minimum at a price; nothing where the tables of the exact search do not fit.
        auto const at_price = [&](double price) -> std::optional<end> {
            std::vector<std::vector<ps::picoseconds>> own, pairs;
            for (std::size_t d = 0; d < costs.size(); ++d) {
                auto const list = costs.operator_costs(d);
                auto& priced = own.emplace_back(list.begin(), list.end());
                for (std::size_t c = 0; c < priced.size(); ++c)
                    if (priced[c] != ps::cost_traits<ps::picoseconds>::infinity())
                        priced[c] += ps::picoseconds{static_cast<std::int64_t>(std::floor(price * static_cast<double>(t.memory[d][c])))};
            }
            for (std::size_t e = 0; e < costs.edges().size(); ++e) pairs.emplace_back(costs.edge_costs(e).begin(), costs.edge_costs(e).end());
            ps::search::additive_problem<ps::picoseconds> const priced({std::move(own), costs.edges(), std::move(pairs)});
            std::mt19937_64 rng{1};
            auto found = ps::search::dominator_dp(priced, priced.first(), rng, {.time = options.time, .stop = options.stop});
            if (found.lower_bound) {
                auto const whole = found.lower_bound->count() - static_cast<std::int64_t>(std::ceil(price * static_cast<double>(*t.budget)));
                if (whole > 0) run.raise_bound(ps::picoseconds{whole});
            }
            run.count_evaluation();
            end const out{static_cast<double>(costs(found.best).count()), static_cast<double>(budgeted_problem::bytes_of(t, found.best))};
            run.offer(std::move(found.best), evaluate(found.best));
            return found.ended == ps::stop_reason::proved_optimal ? std::optional(out) : std::nullopt;
        };
        auto const budget = static_cast<double>(*t.budget);
        auto const left = [&] { return !run.due(); };
        if (auto over = at_price(0); over && over->memory > budget && left()) {
            std::optional<end> within;
            for (double price = 1e-4; price < 1e7 && left() && !within; price *= 4)
                if (auto const found = at_price(price); !found) break;
                else (found->memory > budget ? *over : within.emplace()) = *found;
            while (within && left()) {
                auto const price = (within->cost - over->cost) / (over->memory - within->memory);
                auto const found = at_price(price);
                if (!found) break;
                auto const value = [&](end const& e) { return e.cost + price * e.memory; };
                if (value(*found) >= value(*within) * (1 - 1e-12)) break; // both ends are minima
                (found->memory > budget ? *over : *within) = *found;
            }
        }
        for (bool better = run.best_cost() < ps::cost_traits<ps::picoseconds>::infinity(); better && left();) {
            better = false;
            for (std::size_t d = 0; d < costs.size() && left(); ++d)
                for (std::uint32_t c = 0; c < costs.operator_costs(d).size(); ++c) {
                    auto next = run.best();
                    if (next[d] == c) continue;
                    next[d] = c;
                    auto const cost = evaluate(next);
                    better = better || cost < run.best_cost();
                    run.offer(std::move(next), cost);
                }
        }
        return run.finish(run.due().value_or(ps::stop_reason::exhausted));
    }
};

} // namespace bench
