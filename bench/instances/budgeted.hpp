#pragma once
/// Additive problems with a budget of memory, and the price on memory that searches them.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <stop_token>
#include <type_traits>
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

/// A `SearchProblem`: the costs of tables with a budget, infinite where choices exceed it. Refers to them.
class budgeted_problem {
  public:
    explicit budgeted_problem(ps::io::table_instance const& t) : of_(&t) {}

    [[nodiscard]] std::vector<ps::search::index_range> const& space() const noexcept { return of_->costs.space(); }
    [[nodiscard]] auto evaluator() const {
        return [t = of_, costs = of_->costs.costs()](ps::search::numbered_strategy const& s) {
            auto const cost = costs(s);
            return t->memory_of(s) > *t->budget ? ps::cost_traits<ps::picoseconds>::infinity() : cost;
        };
    }
    [[nodiscard]] ps::io::table_instance const& tables() const noexcept { return *of_; }

  private:
    ps::io::table_instance const* of_;
};

/// Picoseconds per byte, as a fraction, so that what is derived of it is exact.
struct memory_price {
    std::int64_t picoseconds = 0, bytes = 1; ///< neither negative, `bytes` above 0

    /// What `n` bytes, at most 2^62, cost, rounded down or up; nothing where that is 2^60 or more.
    [[nodiscard]] std::optional<std::int64_t> of(ps::byte_count n, bool up) const noexcept {
        __extension__ using wide = __int128;
        auto const exact = wide{picoseconds} * n + (up ? bytes - 1 : 0);
        auto const whole = exact / bytes;
        return whole < (wide{1} << 60) ? std::optional(static_cast<std::int64_t>(whole)) : std::nullopt;
    }
};

struct priced_memory_options {
    std::optional<std::chrono::nanoseconds> time{};
    std::optional<std::uint64_t> evaluations{};
    std::stop_token stop{};
};

/// Lagrangian relaxation: exact minima of cost + price * memory, at prices that the solutions on both sides of the budget tell (Handler, Zang, A dual
/// algorithm for the constrained shortest path problem, Networks 10, 1980); then single choices are changed while that helps. No solution costs less
/// than min(cost + price * memory) - price * budget: the terms of the minimum are rounded down, that of the budget up.
class priced_memory_fn {
    using strategy = ps::search::numbered_strategy;

  public:
    static constexpr ps::search_traits traits{.start_matters = false};

    template <class R, class... Os>
    auto operator()(budgeted_problem const& problem, ps::search::numbered_strategy start, R&, priced_memory_options const& options = {},
                    Os&&... observers) const -> ps::search_result<strategy, ps::picoseconds> {
        run<std::remove_reference_t<Os>...> search(problem, options, observers...);
        return search.from(std::move(start));
    }

  private:
    static constexpr auto infinity = ps::cost_traits<ps::picoseconds>::infinity();

    /// A minimum at some price.
    struct corner {
        std::int64_t cost;
        ps::byte_count memory;
    };

    template <class... Os> class run {
      public:
        run(budgeted_problem const& problem, priced_memory_options const& options, Os&... observers)
            : t_(problem.tables()), costs_(t_.costs.costs()), evaluate_(problem.evaluator()), stop_(options.stop),
              kernel_("priced_memory", ps::search::budget_of(options), {}, observers...) {}

        [[nodiscard]] ps::search_result<strategy, ps::picoseconds> from(strategy start) {
            kernel_.count_evaluation();
            auto const cost = evaluate_(start);
            kernel_.begin(std::move(start), cost);
            strategy least;
            for (auto const& of : t_.memory) least.push_back(static_cast<std::uint32_t>(std::ranges::min_element(of) - of.begin()));
            std::optional<corner> within;
            if (auto const c = costs_(least); t_.memory_of(least) <= *t_.budget && c < infinity) within = corner{c.count(), t_.memory_of(least)};
            offer(std::move(least));
            if (auto over = at({}); over && over->memory > *t_.budget) close_in(*over, within);
            improve();
            return kernel_.finish(kernel_.due().value_or(ps::stop_reason::exhausted));
        }

      private:
        [[nodiscard]] bool left() { return !kernel_.due(); }

        void offer(strategy s) {
            kernel_.count_evaluation();
            auto const cost = evaluate_(s);
            kernel_.offer(std::move(s), cost);
        }

        /// The minimum at a price, and the bound that it gives; nothing where the exact search does not end, or costs are too large to tell.
        [[nodiscard]] std::optional<corner> at(memory_price const& price) {
            std::vector<std::vector<ps::picoseconds>> own, pairs;
            for (std::size_t d = 0; d < costs_.size(); ++d) {
                auto const list = costs_.operator_costs(d);
                auto& priced = own.emplace_back(list.begin(), list.end());
                for (std::size_t c = 0; c < priced.size(); ++c) {
                    if (priced[c] == infinity) continue;
                    auto const more = price.of(t_.memory[d][c], false);
                    if (!more || priced[c].count() >= std::int64_t{1} << 60) return {};
                    priced[c] += ps::picoseconds{*more};
                }
            }
            for (std::size_t e = 0; e < costs_.edges().size(); ++e) pairs.emplace_back(costs_.edge_costs(e).begin(), costs_.edge_costs(e).end());
            ps::search::additive_problem<ps::picoseconds> const problem({std::move(own), costs_.edges(), std::move(pairs)});
            std::mt19937_64 rng{1};
            ps::search::dominator_dp_options options;
            if (auto const time = kernel_.time_left(); time < std::chrono::nanoseconds::max()) options.time = time;
            options.stop = stop_;
            auto found = ps::search::dominator_dp(problem, problem.first(), rng, options);
            auto const of_budget = price.of(*t_.budget, true);
            if (found.lower_bound && *found.lower_bound < infinity && of_budget)
                if (auto const bound = found.lower_bound->count() - *of_budget; bound > 0) kernel_.raise_bound(ps::picoseconds{bound});
            auto const cost = costs_(found.best);
            bool const minimum = found.ended == ps::stop_reason::proved_optimal && found.cost < infinity && cost < infinity;
            corner const out{cost.count(), t_.memory_of(found.best)};
            offer(std::move(found.best));
            return minimum ? std::optional(out) : std::nullopt;
        }

        /// Prices from solutions on both sides of the budget, until none lies between.
        void close_in(corner over, std::optional<corner> within) {
            // Where the least memory is not a solution, a price that is high enough finds one.
            for (std::int64_t high = std::max<std::int64_t>(1, over.cost); !within && left(); high = 8 * high) {
                auto const found = at({high, std::max<ps::byte_count>(1, over.memory)});
                if (!found) return;
                (found->memory > *t_.budget ? over : within.emplace()) = *found;
                if (high > std::int64_t{1} << 58) return;
            }
            while (within && within->cost > over.cost && left()) {
                memory_price const price{within->cost - over.cost, over.memory - within->memory};
                auto const found = at(price);
                if (!found) return;
                // On the line through both: no solution lies below it.
                __extension__ using wide = __int128;
                auto const value = [&](corner const& c) { return wide{c.cost} * price.bytes + wide{c.memory} * price.picoseconds; };
                if (value(*found) >= value(over)) return;
                (found->memory > *t_.budget ? over : *within) = *found;
            }
        }

        void improve() {
            for (bool better = kernel_.best_cost() < infinity; better;) {
                better = false;
                for (std::size_t d = 0; d < costs_.size(); ++d)
                    for (std::uint32_t c = 0; c < costs_.operator_costs(d).size(); ++c) {
                        if (kernel_.best()[d] == c) continue;
                        if (!left()) return;
                        auto next = kernel_.best();
                        next[d] = c;
                        auto const before = kernel_.best_cost();
                        offer(std::move(next));
                        better = better || kernel_.best_cost() < before;
                    }
            }
        }

        ps::io::table_instance const& t_;
        ps::search::additive_cost<ps::picoseconds> const& costs_;
        decltype(std::declval<budgeted_problem const&>().evaluator()) evaluate_;
        std::stop_token stop_;
        ps::search::kernel<strategy, ps::picoseconds, Os...> kernel_;
    };
};

} // namespace bench
