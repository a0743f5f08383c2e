#pragma once
/// Bounds of a problem, from whichever refinement its evaluator meets.

#include <cstddef>
#include <optional>

#include <parsearch/concepts/additive_evaluator.hpp>
#include <parsearch/concepts/bounded_evaluator.hpp>
#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/ranges.hpp>
#include <parsearch/search/bounds/additive_bounds.hpp>

namespace parsearch::search {

/// The problem's evaluator brings bounds, or is additive, so that they follow.
template <class P, class S>
inline constexpr bool has_bounds = BoundedEvaluator<evaluator_t<P>, S, space_t<P>> ||
                                   (AdditiveEvaluator<evaluator_t<P>, S, problem_configuration_t<P>> && SummableCost<problem_cost_t<P, S>>);

/// Bounds on the strategies of `space`, those of the evaluator where it has some. They may refer to both.
template <class S, class E, class X> [[nodiscard]] auto make_bounds(E& evaluator, X const& space) {
    if constexpr (BoundedEvaluator<E, S, X>) return evaluator.bounds(space);
    else return additive_bounds<E, S, X>(evaluator, space);
}

/// A cost that no strategy of the problem's space is below; nothing where its evaluator knows no bounds.
/// Complexity: that of making bounds, of the order of pricing each pair of configurations of each edge.
template <class S, class P>
    requires SearchProblem<P, S>
[[nodiscard]] std::optional<problem_cost_t<P, S>> root_bound([[maybe_unused]] P const& problem) {
    if constexpr (has_bounds<P, S>) {
        auto evaluator = problem.evaluator();
        auto bounds = make_bounds<S>(evaluator, problem.space());
        return static_cast<problem_cost_t<P, S>>(bounds.value());
    } else {
        return {};
    }
}

} // namespace parsearch::search
