#pragma once
/// When a search ends: its budget, and its patience with a search that no longer improves.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <utility>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/search_options.hpp>

namespace parsearch::search {

/// Ends a search that has not improved for a fraction of its evaluations, or of its time (0: never), but not before
/// `min_evaluations`. The rule of half the time is FlexFlow's (Jia, Zaharia, Aiken, MLSys 2019, section 6).
struct patience_rule {
    double of_evaluations = 0;
    double of_time = 0;
    std::uint64_t min_evaluations = 0;
};

/// The patience of options without any, where a search must end by itself although it has a stop token: half of the evaluations, or two rounds.
template <class Options>
inline constexpr auto own_patience = [] {
    using value = typename decltype(Options::patience)::value_type;
    if constexpr (std::floating_point<value>) return value(0.5);
    else return value{2};
}();

/// The patience in the options of a chain: half of the evaluations, where there is neither a budget nor a `patience`, and at least
/// `min_evaluations`, or 1000 + 100 per operator.
template <class Options> [[nodiscard]] patience_rule patience_of(Options const& o, std::size_t operators) {
    bool const budgeted = o.time || o.evaluations || o.stop.stop_possible();
    return {.of_evaluations = o.patience.value_or(budgeted ? 0 : 0.5),
            .of_time = 0,
            .min_evaluations = o.min_evaluations.value_or(1000 + 100 * static_cast<std::uint64_t>(operators))};
}

/// The budget and the patience of one running search; the time runs from construction. All but the time is reproducible.
class stopping {
  public:
    using clock = std::chrono::steady_clock;

    explicit stopping(budget limits, patience_rule patience = {})
        : stop_(std::move(limits.stop)), evaluations_(limits.evaluations.value_or(std::numeric_limits<std::uint64_t>::max())),
          time_(limits.time.value_or(std::chrono::nanoseconds::max())), timed_(limits.time || patience.of_time > 0), patience_(patience) {}

    /// The reason to end now, if any. Cheap: the clock is read only where it matters, and at most once in `most_steps` calls
    /// where calls follow each other quickly.
    [[nodiscard]] std::optional<stop_reason> due(std::uint64_t evaluations);

    /// Whether the stop token asks for an end.
    [[nodiscard]] bool stop_requested() const noexcept { return stop_.stop_requested(); }

    /// Lets the search go on for so much more.
    void extend(extension const& more);
    /// Evaluations that may still be made.
    [[nodiscard]] std::uint64_t left(std::uint64_t evaluations) const noexcept { return evaluations_ - std::min(evaluations_, evaluations); }
    /// When the time is over; nothing where it is not limited, or the clock does not count so far.
    [[nodiscard]] std::optional<clock::time_point> end() const {
        return time_ < clock::time_point::max() - start_ ? std::optional(start_ + time_) : std::nullopt;
    }
    /// The next `due` reads the clock.
    void look_next() noexcept { steps_left_ = 1; }
    /// Time that is left, at least 0.
    [[nodiscard]] std::chrono::nanoseconds time_left() const { return time_ - std::min(time_, elapsed()); }

    /// Notes that the evaluation with this number improved on all before.
    void improved(std::uint64_t evaluation) {
        improved_at_ = evaluation;
        if (patience_.of_time > 0) improved_after_ = elapsed();
    }

    /// What is reproducible of its state, through an archive as of Boost.Serialization.
    template <class Archive> void serialize(Archive& a, unsigned) { a& improved_at_; }

    [[nodiscard]] std::chrono::nanoseconds elapsed() const { return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start_); }

  private:
    static constexpr std::uint32_t most_steps = 64;

    // Reads the clock; the more calls fit between two readings, the rarer the next one.
    std::chrono::nanoseconds look();

    clock::time_point start_ = clock::now();
    std::stop_token stop_;
    std::uint64_t evaluations_;
    std::chrono::nanoseconds time_;
    bool timed_; // the clock matters
    patience_rule patience_;
    std::uint64_t improved_at_ = 1; // the start
    std::chrono::nanoseconds improved_after_{}, looked_after_{};
    std::uint32_t steps_ = 1, steps_left_ = 1;
};

} // namespace parsearch::search

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/kernel/stopping.ipp>
#endif
