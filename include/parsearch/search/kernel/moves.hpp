#pragma once
/// Moves: how the next strategy is proposed from the current one, and mixes of several.
///
/// A move is callable as `move(space, strategy, rng, out)`. It appends the changed operators, each at most once, to the
/// empty `std::vector<change<C>>& out` and answers true, or answers false where it has nothing to propose. It may answer
/// `std::optional<std::uint64_t>` instead: a number that tells its draws on this operator apart, for the trajectory.
/// A public member `double weight` says how often it is drawn from a mix, relative to the others; without it, 1.
/// A `static constexpr std::string_view name` is its name in reports.
/// A search works on a copy of its own, always with one space, so a move may keep what it has learnt about it. Where what it keeps does
/// not change what it draws it is callable as const or says `static constexpr bool memoryless = true`; searches that draw ahead
/// save the others with each drawing.
///
/// Metropolis' acceptance presumes symmetric moves: a change is as likely as its reverse. With others a search still
/// finds good strategies, but does not sample exactly.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/kernel/choices.hpp>

namespace parsearch::search {

/// Callable as a move on strategies `S` of space `X` with engine `R`.
template <class M, class X, class S, class R>
concept Move = requires(M& move, X const& space, S const& strategy, R& rng, std::vector<change<configuration_t<X>>>& out) {
    static_cast<bool>(move(space, strategy, rng, out));
};

/// A move that draws the same whatever it was called with before.
template <class M, class X, class S, class R>
concept MemorylessMove = Move<M, X, S, R> && (requires { requires bool(M::memoryless); } || (!requires { M::memoryless; } && Move<M const, X, S, R>));

/// A uniform configuration for a uniform operator among those that have several. Symmetric. FlexFlow's proposal (Jia,
/// Zaharia, Aiken, MLSys 2019, section 6). Constant time but for the first call.
class uniform_move {
  public:
    static constexpr std::string_view name = "uniform";
    double weight = 1;
    static constexpr bool memoryless = true;

    uniform_move() = default;
    explicit uniform_move(double w) : weight(w) {}

    template <ConfigurationSpace X, class S, RandomBits R>
    std::optional<std::uint64_t> operator()(X const& space, S const&, R& rng, std::vector<change<configuration_t<X>>>& out) {
        if (!read_) {
            read_ = true;
            for (std::size_t op = 0, operators = space.size(); op < operators; ++op)
                if (choice_count(space, op) > 1) several_.push_back(op);
        }
        if (several_.empty()) return {};
        std::size_t const op = several_[uniform_index(rng, several_.size())];
        std::uint64_t const index = uniform_index(rng, choice_count(space, op));
        out.push_back({op, choice(space, op, index)});
        return index;
    }

  private:
    std::vector<std::size_t> several_; // the operators with more than one configuration, once `read_`
    bool read_ = false;
};

/// What a mix has drawn.
struct drawn_move {
    std::size_t move = 0;               ///< its number in the mix
    std::optional<std::uint64_t> index; ///< the number that the move answered, if it does
};

/// Draws one of several moves by weight and calls it: no virtual call, and no draw where there is only one.
template <class... Ms> class move_mix {
  public:
    /// All moves are.
    template <class X, class S, class R> static constexpr bool memoryless = (MemorylessMove<Ms, X, S, R> && ...);

    /// Throws `invalid_input` where a weight is negative or not finite, or all are zero.
    explicit move_mix(std::tuple<Ms...> moves) : moves_(std::move(moves)) {
        static_assert(sizeof...(Ms) > 0, "a mix needs at least one move");
        std::size_t number = 0;
        auto const add = [&](auto const& move) {
            double const w = weight_of(move);
            if (!(w >= 0 && w <= std::numeric_limits<double>::max()))
                throw invalid_input("move number ", number, ": weight ", w, ": must be finite and not negative");
            total_ += w;
            ++number;
        };
        std::apply([&](auto const&... move) { (add(move), ...); }, moves_);
        if (!(total_ > 0 && total_ <= std::numeric_limits<double>::max()))
            throw invalid_input("the weights of ", number, " moves sum to ", total_, ": must be positive and finite");
    }

    /// The names of the moves, by number; empty where a move has none.
    [[nodiscard]] static constexpr std::array<std::string_view, sizeof...(Ms)> names() noexcept { return {name_of_move<Ms>()...}; }

    /// Nothing where the move drawn has nothing to propose.
    template <class X, class S, class R>
    std::optional<drawn_move> operator()(X const& space, S const& strategy, R& rng, std::vector<change<configuration_t<X>>>& out) {
        static_assert((Move<Ms, X, S, R> && ...), "each move of the problem must be callable as move(space, strategy, rng, out), "
                                                  "out being a std::vector<parsearch::change<C>>&, and answer whether it proposes");
        double const at = sizeof...(Ms) > 1 ? total_ * uniform_unit(rng) : 0;
        double below = 0;
        std::size_t number = 0;
        std::optional<drawn_move> drawn;
        auto const call_if_here = [&](auto& move) {
            if (!(at < (below += weight_of(move)))) return ++number, false;
            auto const answer = move(space, strategy, rng, out);
            if (static_cast<bool>(answer)) {
                drawn.emplace(drawn_move{.move = number, .index = {}});
                if constexpr (std::is_same_v<decltype(answer), std::optional<std::uint64_t> const>) drawn->index = answer;
            }
            return true;
        };
        std::apply([&](auto&... move) { (call_if_here(move) || ...); }, moves_);
        return drawn;
    }

  private:
    template <class M> static double weight_of(M const& move) {
        if constexpr (requires { static_cast<double>(move.weight); }) return static_cast<double>(move.weight);
        else return 1;
    }

    template <class M> static constexpr std::string_view name_of_move() noexcept {
        if constexpr (requires { std::string_view(M::name); }) return M::name;
        else return {};
    }

    std::tuple<Ms...> moves_;
    double total_ = 0;
};

/// The moves of a problem: what its `moves()` answers, a tuple, else `uniform_move` alone.
template <class P> [[nodiscard]] auto moves_of(P const& problem) {
    if constexpr (requires { problem.moves(); }) return move_mix(problem.moves());
    else return move_mix(std::tuple<uniform_move>());
}

/// The names of the moves of `P`, by their numbers in events: an array of `std::string_view`, empty where a move has no name.
template <class P> [[nodiscard]] constexpr auto move_names() noexcept { return decltype(moves_of(std::declval<P const&>()))::names(); }

/// A problem with other moves. `P` may be a reference.
template <class P, class... Ms> class problem_with_moves {
  public:
    problem_with_moves(P problem, std::tuple<Ms...> moves) : problem_(std::forward<P>(problem)), moves_(std::move(moves)) {}

    [[nodiscard]] decltype(auto) space() const { return problem().space(); }
    [[nodiscard]] decltype(auto) evaluator() const { return problem().evaluator(); }
    [[nodiscard]] decltype(auto) order() const
        requires requires(P const& p) { p.order(); }
    {
        return problem().order();
    }
    [[nodiscard]] decltype(auto) coarsening() const
        requires requires(P const& p) { p.coarsening(); }
    {
        return problem().coarsening();
    }
    template <class... Limits>
        requires requires(P const& p, Limits const&... limits) { p.surrogate(limits...); }
    [[nodiscard]] decltype(auto) surrogate(Limits const&... limits) const {
        return problem().surrogate(limits...);
    }
    template <class S>
        requires requires(P const& p, S const& s) { p.surrogate_evaluations(std::uint64_t{1}, s); }
    [[nodiscard]] std::uint64_t surrogate_evaluations(std::uint64_t candidates, S const& s) const {
        return problem().surrogate_evaluations(candidates, s);
    }
    [[nodiscard]] decltype(auto) starts() const
        requires requires(P const& p) { p.starts(); }
    {
        return problem().starts();
    }
    template <class S>
        requires ProjectsStarts<std::remove_cvref_t<P>, S>
    [[nodiscard]] std::uint64_t project(S& s) const {
        return problem().project(s);
    }
    template <class S>
        requires OffersFeasibility<std::remove_cvref_t<P>, S>
    [[nodiscard]] bool feasible(S const& s) const {
        return problem().feasible(s);
    }
    [[nodiscard]] std::tuple<Ms...> const& moves() const noexcept { return moves_; }
    [[nodiscard]] std::remove_cvref_t<P> const& problem() const noexcept { return problem_; }

  private:
    P problem_;
    std::tuple<Ms...> moves_;
};

/// `problem` with `moves` in place of its own. A problem given as an lvalue is referred to and must outlive the answer.
template <class P, class... Ms> [[nodiscard]] problem_with_moves<P, Ms...> with_moves(P&& problem, Ms... moves) {
    return {std::forward<P>(problem), std::tuple<Ms...>(std::move(moves)...)};
}

} // namespace parsearch::search
