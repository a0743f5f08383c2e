#pragma once
/// The concepts `ConfigurationSpace` and `SearchProblem`: what a search algorithm works on.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <parsearch/core/ranges.hpp>
#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>

namespace parsearch {

/// `x.size()` operators; `x[op]` is the sized random-access range of configurations that `op` may take.
/// `std::vector<std::vector<C>>` is a model.
template <class X>
concept ConfigurationSpace = requires(X const& x, std::size_t op) {
    { x.size() } -> std::convertible_to<std::size_t>;
    requires SizedRandomAccessRange<decltype(x[op])>;
};

/// The type of a configuration in space `X`.
template <ConfigurationSpace X> using configuration_t = range_value_t<decltype(std::declval<X const&>()[std::size_t{}])>;

/// The space and the evaluator type of a problem.
template <class P> using space_t = std::remove_cvref_t<decltype(std::declval<P const&>().space())>;
template <class P> using evaluator_t = std::remove_cvref_t<decltype(std::declval<P const&>().evaluator())>;
template <class P> using problem_configuration_t = configuration_t<space_t<P>>;

/// `p.space()` is a `ConfigurationSpace`; `p.evaluator()` makes an evaluator of its own (one per thread) for strategies `S`.
template <class P, class S>
concept SearchProblem = requires(P const& p) {
    p.space();
    p.evaluator();
} && ConfigurationSpace<space_t<P>> && Strategy<S, problem_configuration_t<P>> && Evaluator<evaluator_t<P>, S>;

/// The cost type of a problem for strategies `S`.
template <class P, class S> using problem_cost_t = cost_t<evaluator_t<P>, S>;

/// A problem may know of a strategy with a finite cost that it is infeasible, as where costs have penalties: `p.feasible(s)`.
template <class P, class S>
concept OffersFeasibility = requires(P const& p, S const& s) {
    { p.feasible(s) } -> std::convertible_to<bool>;
};

/// A problem may have constraints that a start breaks: `p.project(s)` gives each operator of `s` that does the nearest configuration that keeps them,
/// and answers how many these are.
template <class P, class S>
concept ProjectsStarts = requires(P const& p, S& s) {
    { p.project(s) } -> std::convertible_to<std::uint64_t>;
};

/// The simplest problem: a space and an evaluator that is copied out.
template <ConfigurationSpace X, std::copy_constructible E> class search_problem {
  public:
    search_problem(X x, E e) : space_(std::move(x)), evaluator_(std::move(e)) {}
    [[nodiscard]] X const& space() const noexcept { return space_; }
    [[nodiscard]] E evaluator() const { return evaluator_; }

  private:
    X space_;
    E evaluator_;
};

} // namespace parsearch
