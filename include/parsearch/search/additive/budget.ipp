#pragma once
// Minimises an additive cost within a budget of memory.

#include <algorithm>
#include <limits>

#include <parsearch/search/additive/budget.hpp>
#include <parsearch/search/additive/labels.hpp>
#include <parsearch/search/additive/memory_limit.hpp>
#include <parsearch/search/additive/minimise.hpp>

namespace parsearch::search::additive {

namespace detail {

/// See `minimise_within`.
template <class T> class budget_solver {
  public:
    budget_solver(cost_tables<T> const& tables, memory_limit const& limit, double bytes, budget_calls const& calls)
        : tables_(tables), limit_(limit), bytes_(bytes), calls_(calls) {}

    bool run() {
        std::vector<std::uint32_t> least;
        for (std::size_t op = 0; op < limit_.memory.size(); ++op) {
            auto const& of = limit_.memory[op];
            std::uint32_t first = 0;
            for (std::uint32_t c = 1; c < of.size(); ++c)
                if (of[c] < of[first] || (of[c] == of[first] && tables_.operators[op][c] < tables_.operators[op][first])) first = c;
            least.push_back(first);
            most_ = saturating_sum(most_, *std::ranges::max_element(of));
        }
        if (limit_.of(least) > limit_.budget) return true;
        offer(least);
        auto over = at({});
        if (!over) return !stopped_;                    // nothing is finite
        if (over->memory <= limit_.budget) return true; // the minimum without a budget keeps it
        std::optional<corner> within;
        if (auto const c = cost_of(least)) within = corner{*c, limit_.of(least), std::move(least)};
        auto const price = close_in(*over, within);
        if (stopped_) return false;
        if (within) {
            mix(over->choices, within->choices);
            mix(within->choices, over->choices);
        }
        return lower_ >= upper_ || find_within(price);
    }

  private:
    /// A minimum at some price.
    struct corner {
        std::int64_t cost;
        byte_count memory;
        std::vector<std::uint32_t> choices;
    };

    [[nodiscard]] std::int64_t edge_cost(typename cost_tables<T>::edge const& e, std::span<std::uint32_t const> choices) const {
        return e.costs[choices[e.ends.from] * tables_.operators[e.ends.to].size + choices[e.ends.to]];
    }
    [[nodiscard]] std::optional<std::int64_t> cost_of(std::span<std::uint32_t const> choices) const {
        std::int64_t sum = 0;
        for (std::size_t op = 0; op < choices.size(); ++op) {
            auto const c = tables_.operators[op][choices[op]];
            if (c >= cost_traits<std::int64_t>::infinity()) return {};
            sum += c;
        }
        for (auto const& e : tables_.edges) {
            auto const c = edge_cost(e, choices);
            if (c >= cost_traits<std::int64_t>::infinity()) return {};
            sum += c;
        }
        return sum;
    }

    void offer(std::span<std::uint32_t const> choices) {
        if (limit_.of(choices) > limit_.budget) return;
        auto const cost = cost_of(choices);
        if (!cost || *cost >= upper_) return;
        upper_ = *cost;
        calls_.found(choices);
    }
    void raise(std::int64_t least) {
        if (least <= lower_) return;
        lower_ = least;
        calls_.bound(least);
    }

    [[nodiscard]] cost_tables<T> priced(memory_price const& price) const {
        auto out = tables_;
        for (std::size_t op = 0; op < out.operators.size(); ++op) {
            std::vector<std::int64_t> terms(tables_.operators[op].size);
            for (std::size_t c = 0; c < terms.size(); ++c) {
                terms[c] = tables_.operators[op][c];
                if (terms[c] < cost_traits<std::int64_t>::infinity()) terms[c] += *price.of(limit_.memory[op][c]);
            }
            out.operators[op] = numbers<std::int64_t>(std::move(terms));
        }
        return out;
    }

    /// The minimum at a price; nothing where it was stopped, or where the price is too high to be told.
    [[nodiscard]] std::optional<corner> at(memory_price const& price) {
        if (!price.of(most_)) return {};
        auto const of_budget = *price.of(limit_.budget);
        std::vector<std::uint32_t> best;
        auto const found = [&](std::span<std::uint32_t const> choices) {
            best.assign(choices.begin(), choices.end());
            offer(choices);
        };
        auto const bound = [&](std::int64_t least) {
            if (least < cost_traits<std::int64_t>::infinity()) raise(least - of_budget);
        };
        stopped_ = !minimise(priced(price), bytes_, found, bound, calls_.stop);
        if (stopped_ || best.empty()) return {};
        auto const cost = *cost_of(best);
        auto least = cost;
        for (std::size_t op = 0; op < best.size(); ++op) least += *price.of(limit_.memory[op][best[op]]);
        raise(least - of_budget);
        return corner{cost, limit_.of(best), std::move(best)};
    }

    /// Prices from solutions on both sides of the budget, until none lies between: the last of them.
    [[nodiscard]] memory_price close_in(corner& over, std::optional<corner>& within) {
        memory_price price{};
        // Where what takes least is not allowed, a price that is high enough finds what is.
        for (std::int64_t high = std::max<std::int64_t>(1, over.cost < 0 ? -over.cost : over.cost); !within && high < std::int64_t{1} << 60;
             high *= 8) {
            memory_price const higher{high, over.memory};
            auto found = at(higher);
            if (!found) return price;
            price = higher;
            if (found->memory > limit_.budget) over = *std::move(found);
            else within = std::move(found);
        }
        while (within && within->cost > over.cost) {
            memory_price const between{within->cost - over.cost, over.memory - within->memory};
            auto found = at(between);
            if (!found) return price;
            price = between;
            // On the line through both: no solution lies below it.
            auto const value = [&](corner const& c) { return wide_integer{c.cost} * price.bytes + wide_integer{c.memory} * price.amount; };
            if (value(*found) >= value(over)) return price;
            if (found->memory > limit_.budget) over = *std::move(found);
            else within = std::move(found);
        }
        return price;
    }

    /// Offers the best that has the choices of `a` up to some operator and those of `b` behind it: where both are minima at one price, so is all but
    /// the seam. Complexity: O(operators + edges).
    void mix(std::vector<std::uint32_t> const& a, std::vector<std::uint32_t> const& b) {
        std::vector<std::vector<std::size_t>> edges_of(tables_.operators.size());
        for (std::size_t n = 0; n < tables_.edges.size(); ++n)
            for (auto const op : {tables_.edges[n].ends.from, tables_.edges[n].ends.to}) edges_of[op].push_back(n);
        auto both = b;
        std::int64_t cost = 0, infinite = 0; // of the terms that are finite, and how many are not
        auto const add = [&](std::int64_t term, std::int64_t times) {
            if (term < cost_traits<std::int64_t>::infinity()) cost += times * term;
            else infinite += times;
        };
        auto const add_of = [&](std::size_t op, std::int64_t times) {
            add(tables_.operators[op][both[op]], times);
            for (auto const n : edges_of[op]) add(edge_cost(tables_.edges[n], both), times);
        };
        for (std::size_t op = 0; op < both.size(); ++op) add(tables_.operators[op][both[op]], 1);
        for (auto const& e : tables_.edges) add(edge_cost(e, both), 1);
        wide_integer memory = 0;
        for (std::size_t op = 0; op < both.size(); ++op) memory += limit_.memory[op][both[op]];
        auto least = upper_;
        std::size_t best = both.size();
        for (std::size_t op = 0; op < both.size(); ++op) {
            add_of(op, -1);
            memory += limit_.memory[op][a[op]] - limit_.memory[op][both[op]];
            both[op] = a[op];
            add_of(op, 1);
            if (infinite > 0 || memory > limit_.budget || cost >= least) continue;
            least = cost;
            best = op;
        }
        if (best == both.size()) return;
        std::copy(b.begin() + static_cast<std::ptrdiff_t>(best) + 1, b.end(), both.begin() + static_cast<std::ptrdiff_t>(best) + 1);
        offer(both);
    }

    [[nodiscard]] bool find_within(memory_price const& price) {
        auto const with = priced(price);
        label_calls const calls{.found =
                                    [this](std::span<std::uint32_t const> choices) {
                                        offer(choices);
                                        return upper_;
                                    },
                                .bound = [this](std::int64_t least) { raise(std::min(least, upper_)); },
                                .stop = [this] { return calls_.stop(phase::bounded); }};
        return sums_fit_double(with) ? label_search<double>(with, limit_, price, bytes_).run(upper_, calls)
                                     : label_search<wide_integer>(with, limit_, price, bytes_).run(upper_, calls);
    }

    cost_tables<T> const& tables_;
    memory_limit const& limit_;
    double bytes_;
    budget_calls const& calls_;
    std::int64_t upper_ = cost_traits<std::int64_t>::infinity(), lower_ = std::numeric_limits<std::int64_t>::min();
    byte_count most_ = 0; ///< that is priced
    bool stopped_ = false;
};

} // namespace detail

template <std::same_as<std::int64_t> T>
bool minimise_within(cost_tables<T> const& tables, memory_limit const& limit, double bytes, budget_calls const& calls) {
    return detail::budget_solver<T>(tables, limit, bytes, calls).run();
}

} // namespace parsearch::search::additive
