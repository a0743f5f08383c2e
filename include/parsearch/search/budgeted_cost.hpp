#pragma once
/// An additive cost with a budget of memory, in tables by configuration number, and the problem of minimising it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/search/additive/budget.hpp>
#include <parsearch/search/additive_cost.hpp>

namespace parsearch::search {

/// A `BudgetedEvaluator`: the sums of an `additive_cost`, infinite where the bytes of all configurations add up to more than a budget. Cheap to copy;
/// copies share the tables.
template <class C> class budgeted_cost : public additive_cost<C> {
  public:
    /// `memory[op]` has the bytes of each configuration, from 0 to 2^50. Throws `invalid_input` where sizes do not fit, or a number is out of range.
    budgeted_cost(additive_cost<C> costs, std::vector<std::vector<byte_count>> memory, byte_count budget) : additive_cost<C>(std::move(costs)) {
        if (memory.size() != this->size()) throw invalid_input("budgeted_cost: memory of ", memory.size(), " operators: must be of ", this->size());
        for (std::size_t op = 0; op < memory.size(); ++op) {
            auto const known = this->operator_costs(op).size();
            if (memory[op].size() != known)
                throw invalid_input("budgeted_cost: memory of ", memory[op].size(), " configurations of operator number ", op, ": must be of ",
                                    known);
            for (std::size_t c = 0; c < known; ++c)
                if (memory[op][c] < 0 || memory[op][c] > byte_count{1} << 50)
                    throw invalid_input("budgeted_cost: configuration number ", c, " of operator number ", op, " takes ", memory[op][c],
                                        " bytes: must be from 0 to 2^50");
        }
        if (budget < 0) throw invalid_input("budgeted_cost: the budget is ", budget, " bytes: must not be negative");
        limit_ = std::make_shared<additive::memory_limit const>(additive::memory_limit{std::move(memory), budget});
    }

    [[nodiscard]] byte_count memory_budget() const noexcept { return limit_->budget; }
    /// Throws `invalid_input` where the operator has no configuration of that number.
    [[nodiscard]] byte_count operator_memory(std::size_t op, std::uint32_t c) const {
        (void)this->operator_cost(op, c);
        return limit_->memory[op][c];
    }
    /// The bytes of a strategy, at most 2^63 - 1. Throws as `operator_memory`.
    template <class S>
        requires Strategy<S, std::uint32_t>
    [[nodiscard]] byte_count memory_of(S const& s) const {
        byte_count bytes = 0;
        for (std::size_t op = 0; op < this->size(); ++op)
            bytes = saturating_sum(bytes, operator_memory(op, static_cast<std::uint32_t>(configuration_of(s, op))));
        return bytes;
    }

    /// As `additive_cost`, and infinity where the strategy takes more than the budget.
    template <class S>
        requires Strategy<S, std::uint32_t>
    [[nodiscard]] C operator()(S const& s) const {
        auto const cost = additive_cost<C>::operator()(s);
        return memory_of(s) > limit_->budget ? cost_traits<C>::infinity() : cost;
    }

  private:
    std::shared_ptr<additive::memory_limit const> limit_;
};

/// The `SearchProblem` of a `budgeted_cost`: configurations are numbers from 0.
template <class C> class budgeted_problem {
  public:
    explicit budgeted_problem(budgeted_cost<C> costs) : costs_(std::move(costs)), of_(costs_) {}
    [[nodiscard]] std::vector<index_range> const& space() const noexcept { return of_.space(); }
    [[nodiscard]] budgeted_cost<C> evaluator() const { return costs_; }
    [[nodiscard]] budgeted_cost<C> const& costs() const noexcept { return costs_; }
    /// Every operator's first configuration.
    [[nodiscard]] numbered_strategy first() const { return of_.first(); }

  private:
    budgeted_cost<C> costs_;
    additive_problem<C> of_;
};

} // namespace parsearch::search
