#pragma once
/// Where a search starts from: the given strategy, those that the problem offers, and random ones.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/kernel/choices.hpp>

namespace parsearch::search {

/// A problem may offer `starts()`: a range of strategies worth starting from, such as those of experts.
template <class P>
concept OffersStarts = requires(P const& p) { p.starts(); };

/// A uniform configuration of `space` for each operator, in the form of `like`. Linear in the number of operators.
template <ConfigurationSpace X, class S, RandomBits R> [[nodiscard]] S random_strategy(X const& space, S const& like, R& rng) {
    S out = like;
    for (std::size_t op = 0, operators = space.size(); op < operators; ++op)
        set_configuration(out, op, choice(space, op, uniform_index(rng, choice_count(space, op))));
    return out;
}

/// What a search starts from beside `given`: what the problem offers where `offered`, then `random` random strategies, without repetitions. Each is
/// made when it is asked for, so that a search can end between them. Refers to problem and engine, which nothing else draws from meanwhile.
template <class P, class S, RandomBits R> class other_starts {
  public:
    other_starts(std::string_view algorithm, P const& problem, S const& given, bool offered, std::uint64_t random, R& rng)
        : algorithm_(algorithm), problem_(&problem), given_(given), random_(random), rng_(&rng) {
        if constexpr (OffersStarts<P>)
            if (offered)
                for (auto&& one : problem.starts()) offered_.push_back(as_start(one));
    }

    /// The next, as far as there is one. Complexity: that of a random strategy, and of comparing it with all before. Throws `invalid_input` where it
    /// is none of the space.
    [[nodiscard]] std::optional<S> next() {
        for (;;) {
            std::optional<S> one;
            if (made_ < offered_.size()) {
                one = std::move(offered_[made_++]);
            } else if (random_ > 0) {
                --random_;
                one = random_strategy(problem_->space(), given_, *rng_);
            } else {
                return one;
            }
            bool known = *one == given_;
            for (auto const& s : before_) known = known || s == *one;
            if (known) continue;
            require_choices(problem_->space(), *one, algorithm_);
            before_.push_back(*one);
            return one;
        }
    }

  private:
    template <class T> [[nodiscard]] S as_start(T&& one) const {
        if constexpr (std::convertible_to<T, S>) {
            return std::forward<T>(one);
        } else { // a strategy of another type
            S copy = given_;
            for (std::size_t op = 0, operators = problem_->space().size(); op < operators; ++op)
                set_configuration(copy, op, static_cast<problem_configuration_t<P>>(configuration_of(std::as_const(one), op)));
            return copy;
        }
    }

    std::string_view algorithm_;
    P const* problem_;
    S given_;
    std::uint64_t random_;
    R* rng_;
    std::vector<S> offered_, before_;
    std::size_t made_ = 0;
};

} // namespace parsearch::search
