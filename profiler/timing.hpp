#pragma once
/// The timing loop: as many repeats as a target relative error of the median needs, within limits.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch::profiler {

/// Something that runs `times` times, back to back, and answers the time of all: a `prepared_sequence` between two events, or a fake.
template <class R>
concept TimedRun = requires(R& r, std::int64_t times) {
    { r.run(times) } -> std::convertible_to<picoseconds>;
};

/// Limits and aims of the loop.
struct timing_options {
    /// Half the width of the confidence interval of the median, by the median.
    double target_error = 0.02;
    double confidence = 0.95;
    /// Of the loop's own clock, for a kernel; at least `least_samples` are taken all the same.
    std::chrono::nanoseconds kernel_time = std::chrono::seconds{1};
    std::chrono::nanoseconds warm_up = std::chrono::milliseconds{50};
    /// A sample is as many runs as take this long, so that the clock's grain and the gaps between launches matter little.
    picoseconds sample_time = std::chrono::microseconds{500};
    std::int64_t least_samples = 5, most_samples = 500;
    std::int64_t most_runs = 1 << 16; ///< of a sample
};

/// Checks `o`; throws `invalid_input` naming option, value and rule.
inline void validate(timing_options const& o) {
    if (!(o.target_error > 0) || o.target_error > 1) throw invalid_input("target_error is ", o.target_error, ": must be above 0 and at most 1");
    if (!(o.confidence > 0) || o.confidence >= 1) throw invalid_input("confidence is ", o.confidence, ": must be above 0 and below 1");
    if (o.kernel_time.count() < 0) throw invalid_input("kernel_time is ", o.kernel_time.count(), " ns: must not be negative");
    if (o.warm_up.count() < 0) throw invalid_input("warm_up is ", o.warm_up.count(), " ns: must not be negative");
    if (o.sample_time.count() < 0) throw invalid_input("sample_time is ", o.sample_time.count(), " ps: must not be negative");
    if (o.least_samples < 1 || o.most_samples < o.least_samples || o.most_samples > 1000)
        throw invalid_input("least_samples is ", o.least_samples, " and most_samples ", o.most_samples, ": must be 1 <= least <= most <= 1000");
    if (o.most_runs < 1 || o.most_runs > (1 << 24)) throw invalid_input("most_runs is ", o.most_runs, ": must be from 1 to 2^24");
}

/// What was measured. Times are of one run; those of a sample are the mean of its runs.
struct timing {
    picoseconds median{}, low{}, high{}; ///< of the samples, and its confidence interval
    picoseconds spread{};                ///< 1.4826 times the median absolute deviation of the samples: their standard deviation, were they normal
    std::int64_t samples = 0, runs = 0;  ///< that the median stands for
    std::int64_t discarded = 0;          ///< samples of the beginning that later ones did not agree with
    double error = 0;                    ///< half the interval by the median
    bool reached = false;                ///< the target, and without drift
};

/// The clock did not move over `most_runs` runs: nothing can be said of the time.
class still_clock : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

namespace detail {

/// The number k such that the interval from the k-th smallest to the k-th largest of `n` samples (from 0) holds the median with at least the
/// `confidence`; nothing where even all of them do not. Independent of the distribution: the number of samples below the median is binomial.
/// Source: W. J. Conover, Practical Nonparametric Statistics, 1999, section 3.2; advised for timings by T. Hoefler and R. Belli, Scientific
/// Benchmarking of Parallel Computing Systems, SC 2015, rule 5 and section 3.2.2. Precondition: n <= 1000. Complexity: O(n).
[[nodiscard]] inline std::optional<std::size_t> median_interval(std::size_t n, double confidence) {
    double const tail = (1 - confidence) / 2;
    double term = std::ldexp(1.0, -static_cast<int>(n)), below = term; // P(at most k of n)
    std::optional<std::size_t> found;
    for (std::size_t k = 0; 2 * k + 1 < n && below <= tail; ++k) {
        found = k;
        term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
        below += term;
    }
    return found;
}

/// Precondition: not empty, sorted.
[[nodiscard]] inline std::int64_t middle(std::vector<std::int64_t> const& sorted) {
    auto const n = sorted.size();
    return n % 2 ? sorted[n / 2] : sorted[n / 2 - 1] + (sorted[n / 2] - sorted[n / 2 - 1]) / 2;
}
[[nodiscard]] inline std::int64_t median_of(std::vector<std::int64_t> values) {
    std::ranges::sort(values);
    return middle(values);
}

/// What the samples say, in their order of time.
[[nodiscard]] inline timing summary_of(std::vector<std::int64_t> const& samples, timing_options const& o) {
    auto sorted = samples;
    std::ranges::sort(sorted);
    timing t{.samples = static_cast<std::int64_t>(samples.size())};
    auto const median = middle(sorted);
    t.median = picoseconds{median};
    auto const k = median_interval(sorted.size(), o.confidence);
    t.low = picoseconds{sorted[k.value_or(0)]};
    t.high = picoseconds{sorted[sorted.size() - 1 - k.value_or(0)]};
    std::vector<std::int64_t> deviations;
    for (auto const s : sorted) deviations.push_back(s > median ? s - median : median - s);
    t.spread = picoseconds{static_cast<std::int64_t>(1.4826 * static_cast<double>(median_of(std::move(deviations))))};
    t.error = median > 0 ? static_cast<double>((t.high - t.low).count()) / 2 / static_cast<double>(median) : 1;
    t.reached = k.has_value() && t.error <= o.target_error;
    return t;
}

/// How far the medians of the first and the second half are apart, by the whole's.
[[nodiscard]] inline double drift_of(std::vector<std::int64_t> const& samples) {
    auto const half = static_cast<std::ptrdiff_t>(samples.size() / 2);
    if (half == 0) return 0;
    auto const first = median_of({samples.begin(), samples.begin() + half}), second = median_of({samples.end() - half, samples.end()});
    auto const whole = median_of(samples);
    return whole > 0 ? std::abs(static_cast<double>(second - first)) / static_cast<double>(whole) : 0;
}
} // namespace detail

/// Times `what`. First it warms up, with more and more runs at once, until `warm_up` is over, and learns how many runs make a sample. Then it takes
/// samples until the interval of the median is narrow enough or a limit is reached; it looks after 6, 9, 13, 19, ... samples, so that looking often
/// does not make it stop by luck. Spikes do not matter to a median; where the two halves of the samples disagree by more than twice the
/// target (a clock that still rises), the first half is discarded and measured again.
/// `now()` answers a time point, `stop()` whether to give up; the answer is then empty. Throws what `what` throws, `still_clock` where the time of
/// runs is zero, `invalid_input` on an option that breaks a rule.
template <TimedRun Run, class Now, class Stop>
[[nodiscard]] std::optional<timing> measure(Run& what, timing_options const& o, Now const& now, Stop const& stop) {
    validate(o);
    auto const begin = now();
    auto const elapsed = [&] { return std::chrono::duration_cast<std::chrono::nanoseconds>(now() - begin); };
    // Warm-up.
    std::int64_t runs = 1;
    picoseconds last{};
    for (bool first = true;; first = false) {
        if (stop()) return std::nullopt;
        last = what.run(runs);
        if (last < picoseconds::zero()) throw still_clock(text("the clock went back by ", -last.count(), " ps over ", runs, " runs"));
        bool const long_enough = last > picoseconds::zero() && (last >= o.sample_time || runs >= o.most_runs);
        if (!first && elapsed() >= o.warm_up && last > picoseconds::zero()) break;
        if (long_enough && elapsed() >= o.warm_up) break;
        if (runs >= o.most_runs && last == picoseconds::zero()) throw still_clock(text("the clock stood still over ", runs, " runs"));
        if (!long_enough) runs = std::min(o.most_runs, runs * 2);
    }
    auto const one = std::max<std::int64_t>(1, last.count() / runs);
    auto const per_sample = std::clamp<std::int64_t>((o.sample_time.count() + one - 1) / one, 1, o.most_runs);

    std::vector<std::int64_t> samples;
    std::int64_t discarded = 0, next_look = std::max<std::int64_t>(o.least_samples, 6), taken = 0;
    auto const result = [&](bool drifts) {
        auto t = detail::summary_of(samples, o);
        t.reached = t.reached && !drifts;
        t.discarded = discarded;
        t.runs = t.samples * per_sample;
        return t;
    };
    for (;;) {
        if (stop()) return std::nullopt;
        auto const time = picoseconds{what.run(per_sample)};
        if (time < picoseconds::zero()) throw still_clock(text("the clock went back by ", -time.count(), " ps over ", per_sample, " runs"));
        samples.push_back(time.count() / per_sample);
        ++taken;
        auto const count = static_cast<std::int64_t>(samples.size());
        bool const over = taken >= o.most_samples || (count >= o.least_samples && elapsed() >= o.kernel_time);
        if (count < next_look && !over) continue;
        bool const drifts = detail::drift_of(samples) > 2 * o.target_error;
        auto const t = result(drifts);
        if (t.reached || over) {
            if (t.median == picoseconds::zero()) throw still_clock(text("the median of ", count, " samples of ", per_sample, " runs is zero"));
            return t;
        }
        if (drifts && detail::summary_of(samples, o).reached) {
            samples.erase(samples.begin(), samples.begin() + count / 2);
            discarded += count / 2;
        } else {
            next_look = count + std::max<std::int64_t>(1, count / 2);
        }
    }
}

/// The same by the steady clock, and without an end.
template <TimedRun Run> [[nodiscard]] timing measure(Run& what, timing_options const& o = {}) {
    return *measure(
        what, o, [] { return std::chrono::steady_clock::now(); }, [] { return false; });
}

} // namespace parsearch::profiler
