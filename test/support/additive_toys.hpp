#pragma once
/// Small additive problems, whose evaluators know bounds through their terms.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <parsearch/concepts/additive_evaluator.hpp>

#include "toys.hpp"

namespace toys {

/// A cost of tables, indexed by the values of configurations.
template <class C> struct additive {
    std::vector<std::vector<C>> own;
    std::vector<ps::operator_pair> pairs;
    std::vector<std::vector<std::vector<C>>> terms; ///< of each pair

    [[nodiscard]] C operator_cost(std::size_t op, int c) const { return own[op][static_cast<std::size_t>(c)]; }
    [[nodiscard]] C edge_cost(std::size_t e, int a, int b) const { return terms[e][static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; }
    [[nodiscard]] std::vector<ps::operator_pair> const& edges() const { return pairs; }
    C operator()(strategy const& s) const {
        C sum{};
        for (std::size_t op = 0; op < s.size(); ++op) sum = sum + operator_cost(op, s[op]);
        for (std::size_t e = 0; e < pairs.size(); ++e) sum = sum + edge_cost(e, s[pairs[e].from], s[pairs[e].to]);
        return sum;
    }
};
template <class C> using additive_problem = ps::search_problem<space, additive<C>>;

/// Up to `widest` configurations per operator, edges between random operators in both directions, terms of either sign.
template <class C> additive_problem<C> random_additive(splitmix& rng, std::size_t operators, std::uint64_t widest) {
    additive<C> e;
    space x(operators);
    auto const draw = [&] { return cost_of<C>(static_cast<std::int64_t>(ps::uniform_index(rng, 120)) - 20); };
    for (auto& range : x)
        for (std::uint64_t n = 0, count = 1 + ps::uniform_index(rng, widest); n < count; ++n) range.push_back(static_cast<int>(n));
    for (auto const& range : x) {
        e.own.emplace_back();
        for (std::size_t n = 0; n < range.size(); ++n) e.own.back().push_back(draw());
    }
    for (std::size_t n = 0; n < 2 * operators; ++n) {
        auto const a = static_cast<std::size_t>(ps::uniform_index(rng, operators)), b = static_cast<std::size_t>(ps::uniform_index(rng, operators));
        if (a == b) continue;
        e.pairs.push_back({a, b});
        e.terms.emplace_back(x[a].size());
        for (auto& row : e.terms.back())
            for (std::size_t k = 0; k < x[b].size(); ++k) row.push_back(draw());
    }
    return {std::move(x), std::move(e)};
}

/// The same evaluator as an incremental one that keeps its terms.
template <class C> class stepwise_additive : public stepwise<additive<C>, strategy, int> {
  public:
    stepwise_additive(additive<C> terms, asked& counts) : stepwise<additive<C>, strategy, int>(terms, counts), terms_(std::move(terms)) {}
    [[nodiscard]] C operator_cost(std::size_t op, int c) const { return terms_.operator_cost(op, c); }
    [[nodiscard]] C edge_cost(std::size_t e, int a, int b) const { return terms_.edge_cost(e, a, b); }
    [[nodiscard]] std::vector<ps::operator_pair> const& edges() const { return terms_.pairs; }

  private:
    additive<C> terms_;
};
template <class C> auto incremental_additive(additive_problem<C> const& problem, asked& counts) {
    return ps::search_problem{problem.space(), stepwise_additive<C>(problem.evaluator(), counts)};
}

} // namespace toys
