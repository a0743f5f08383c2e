#pragma once
/// Lower bounds on additive costs of strategies of which a part is decided.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/additive_evaluator.hpp>
#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/search/additive/number.hpp>
#include <parsearch/search/kernel/choices.hpp>

namespace parsearch::search {

/// Costs that can be added up.
template <class C>
concept SummableCost = Cost<C> && requires(C const& a, C const& b) {
    { a + b } -> std::convertible_to<C>;
};

/// Bounds of the strategies of a space for an `AdditiveEvaluator`: the terms of what is fixed; of every other operator the least sum of its own
/// term and those of its edges to fixed operators; of edges between operators that are not fixed the least term. An infinite term makes what
/// has it infinite; nothing else does before the sum is complete. Every term is asked once, when it is made: O(configurations + pairs of
/// configurations of every edge) time and memory. A problem with edges of millions of pairs should bring bounds of its own.
///
/// Integers and durations of integers are added without overflow and clamped to the range of costs at the end. A floating-point sum of n terms is
/// off by at most (n - 1) epsilon / 2 times the sum of their magnitudes, in whatever order they are added (Higham, Accuracy and Stability of
/// Numerical Algorithms, 2nd edition, section 4.2): each term is lowered by so much of its own magnitude that the sum here is not above the
/// evaluator's, whatever cancels. Costs of other types are added by their own `+`, which is taken to be exact.
template <class E, class S, class X>
    requires AdditiveEvaluator<E, S, configuration_t<X>> && SummableCost<cost_t<E, S>>
class additive_bounds {
  public:
    using cost = cost_t<E, S>;

    /// Throws `invalid_input` where an edge joins an operator that does not exist, or an operator to itself, or a term is not a number.
    additive_bounds(E& evaluator, X const& space) {
        auto const operators = static_cast<std::size_t>(space.size());
        adjacent_.resize(operators);
        fixed_.assign(operators, none);
        auto&& edges = evaluator.edges();
        auto const edge_count = static_cast<std::size_t>(std::ranges::size(edges));
        auto const terms = operators + edge_count;
        for (std::size_t op = 0; op < operators; ++op) {
            auto& mine = terms_.emplace_back();
            for (std::uint64_t i = 0, n = choice_count(space, op); i < n; ++i) {
                auto const term = static_cast<cost>(evaluator.operator_cost(op, choice(space, op, i)));
                mine.push_back(number_of(lowered(checked(term, "operator", op), terms)));
            }
        }
        auto const first = std::ranges::begin(edges);
        for (std::size_t e = 0; e < edge_count; ++e) {
            operator_pair const pair = first[static_cast<std::iter_difference_t<decltype(first)>>(e)];
            if (pair.from >= operators || pair.to >= operators || pair.from == pair.to)
                throw invalid_input("additive bounds: edge number ", e, " joins operators number ", pair.from, " and ", pair.to,
                                    ": must be two different ones below ", operators);
            adjacent_[pair.from].push_back(edges_.size());
            adjacent_[pair.to].push_back(edges_.size());
            edge mine{.ends = pair, .terms = {}, .least = cost_traits<cost>::infinity()};
            for (std::uint64_t a = 0, as = choice_count(space, pair.from); a < as; ++a)
                for (std::uint64_t b = 0, bs = choice_count(space, pair.to); b < bs; ++b) {
                    auto const term = static_cast<cost>(evaluator.edge_cost(e, choice(space, pair.from, a), choice(space, pair.to, b)));
                    mine.terms.push_back(lowered(checked(term, "edge", e), terms));
                    if (mine.terms.back() < mine.least) mine.least = mine.terms.back();
                }
            edges_.push_back(std::move(mine));
        }
        least_.reserve(operators);
        for (std::size_t op = 0; op < operators; ++op) least_.push_back(least_of(op));
    }

    /// Operator `op` takes its configuration number `i`. Complexity: O(configurations of its neighbours).
    void fix(std::size_t op, std::size_t i) {
        undo_.push_back({op, terms_[op], least_[op]});
        fixed_[op] = i;
        least_[op] = terms_[op][i];
        for (auto const e : adjacent_[op]) {
            auto const& [ends, terms, least] = edges_[e];
            auto const other = ends.from == op ? ends.to : ends.from;
            if (fixed_[other] != none) continue; // the term came to `op` when the other was fixed
            undo_.push_back({other, terms_[other], least_[other]});
            auto const width = terms_[ends.to].size();
            for (std::size_t k = 0; k < terms_[other].size(); ++k)
                terms_[other][k] = sum(terms_[other][k], number_of(ends.from == op ? terms[i * width + k] : terms[k * width + i]));
            least_[other] = least_of(other);
        }
    }

    /// Takes back the last `fix`, which was of `op`.
    void release(std::size_t op) {
        for (bool done = false; !done;) {
            auto& last = undo_.back();
            done = last.op == op;
            terms_[last.op] = std::move(last.terms);
            least_[last.op] = std::move(last.least);
            undo_.pop_back();
        }
        fixed_[op] = none;
    }

    /// No strategy of the space that has what is fixed costs less. Complexity: O(operators + edges).
    [[nodiscard]] cost value() const {
        std::optional<number> total;
        auto const add = [&](number const& n) { total = total ? sum(*total, n) : n; };
        for (auto const& n : least_) add(n);
        for (auto const& e : edges_)
            if (fixed_[e.ends.from] == none && fixed_[e.ends.to] == none) add(number_of(e.least));
        if (!total) return cost{};
        if constexpr (has_numbers) return *additive::to_cost<cost>(*total);
        else return *total;
    }

  private:
    static constexpr std::size_t none = ~std::size_t{0};
    static constexpr bool has_numbers = additive::amount<cost>::converts_back;
    using amount = typename additive::amount<cost>::type;
    /// What is added up: integers as wide ones, whose partial sums may leave the range of costs and come back; costs that are no numbers as such.
    using number = std::conditional_t<additive::counts_integers<cost>, additive::wide_integer, std::conditional_t<has_numbers, amount, cost>>;

    struct edge {
        operator_pair ends;
        std::vector<cost> terms; ///< of each pair of configurations, those of `from` major; not numbers, which may be twice as large
        cost least;
    };
    struct replaced {
        std::size_t op;
        std::vector<number> terms;
        number least;
    };

    [[nodiscard]] static number number_of(cost const& c) {
        if constexpr (has_numbers) return additive::to_number<number>(c);
        else return c;
    }
    [[nodiscard]] static number infinity() { return number_of(cost_traits<cost>::infinity()); }

    [[nodiscard]] static number sum(number const& a, number const& b) {
        if constexpr (additive::counts_integers<cost>) {
            return additive::number<number>::sum(a, b);
        } else {
            if (!(a < infinity()) || !(b < infinity())) return infinity();
            if constexpr (std::floating_point<number>) {
                // A negative term may bring back what overflows: only terms are infinite.
                auto const total = static_cast<number>(a + b);
                return total < infinity() ? total : std::numeric_limits<number>::max();
            } else {
                return a + b;
            }
        }
    }

    /// Term `c`, one of `terms`, minus a bound on rounding: in the evaluator's sum, in the one here and in this difference.
    [[nodiscard]] static cost lowered(cost const& c, std::size_t terms) {
        if constexpr (has_numbers && std::floating_point<amount>) {
            auto const n = additive::amount<cost>::of(c);
            if (!(n < infinity())) return c;
            auto const part = 4 * static_cast<amount>(terms + 1) * std::numeric_limits<amount>::epsilon();
            amount const volatile by = part * (n < 0 ? -n : n); // volatile: not fused with the difference, which rounds differently
            return additive::amount<cost>::back(static_cast<amount>(n - by));
        } else {
            return c;
        }
    }

    static cost checked(cost c, char const* what, std::size_t which) {
        if (!(c == c)) throw invalid_input("additive bounds: a term of ", what, " number ", which, " does not equal itself (NaN)");
        return c;
    }
    [[nodiscard]] number least_of(std::size_t op) const {
        auto least = infinity();
        for (auto const& n : terms_[op])
            if (n < least) least = n;
        return least;
    }

    std::vector<std::vector<number>> terms_; ///< of each operator's configurations: its own and those of edges to fixed operators
    std::vector<number> least_;
    std::vector<edge> edges_;
    std::vector<std::vector<std::size_t>> adjacent_;
    std::vector<std::size_t> fixed_;
    std::vector<replaced> undo_;
};

} // namespace parsearch::search
