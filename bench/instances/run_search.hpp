#pragma once
/// Runs a search by name from a list of entries, and keeps its curve.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/hana/for_each.hpp>

#include <parsearch/core/error.hpp>
#include <parsearch/io/described/searches.hpp>
#include <parsearch/search/kernel/events.hpp>

#include "arena.hpp"

namespace bench {

/// An observer that keeps each improvement.
struct curve_recorder {
    std::chrono::steady_clock::time_point begin;
    std::vector<point>* curve;
    template <class C> void operator()(ps::search::improved<C> const& e) {
        if (e.cost.count() >= curve->back().cost) return; // from a start that was worse in its own way
        curve->push_back({std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), e.evaluation, e.cost.count()});
    }
};

/// Goes on with the curve of `row` by what is better in that of `later`, which began after so many seconds and evaluations.
inline void add_curve(run_row& row, run_row const& later, double seconds, std::uint64_t evaluations) {
    for (auto const& p : later.curve)
        if (p.cost < row.cost()) row.curve.push_back({seconds + p.seconds, evaluations + p.evaluations, p.cost});
}

/// A search that ran: its answer, and its row without names.
template <class S> struct searched {
    ps::search_result<S, ps::picoseconds> found;
    run_row row;
};

template <class Options> void set_limits(Options& options, limits const& given) {
    if (given.seconds) options.time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(*given.seconds));
    options.evaluations = given.evaluations;
}

/// `search(problem, start, rng, options, observer)` with its curve.
template <class F, class P, class S, class Options>
[[nodiscard]] searched<S> run_recorded(F const& search, P const& problem, S start, std::int64_t start_cost, Options options, limits const& given) {
    set_limits(options, given);
    run_row row{.search = {}, .instance = {}, .seed = given.seed, .reason = {}, .curve = {{0, 1, start_cost}}};
    std::mt19937_64 rng{given.seed};
    curve_recorder recorder{std::chrono::steady_clock::now(), &row.curve};
    auto found = search(problem, std::move(start), rng, options, recorder);
    row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - recorder.begin).count();
    // Where a search tells no improvements, its answer is one.
    if (found.cost.count() < row.cost()) row.curve.push_back({row.seconds, found.stats.evaluations, found.cost.count()});
    row.evaluations = found.stats.evaluations;
    row.reason = ps::name_of(found.reason);
    if (found.lower_bound) row.bound = found.lower_bound->count();
    return {std::move(found), std::move(row)};
}

/// Runs the entry of that name of a Hana tuple of `ps::io::named_search`es, if it runs on the problem. Throws `invalid_input` where there is none.
template <class Entries, class P, class S>
[[nodiscard]] searched<S> run_entry(Entries const& entries, std::string_view name, P const& problem, S const& start, std::int64_t start_cost,
                                    limits const& given) {
    std::optional<searched<S>> out;
    boost::hana::for_each(entries, [&](auto const& entry) {
        using entry_type = std::remove_cvref_t<decltype(entry)>;
        if constexpr (ps::io::missing_for<decltype(entry_type::run), P, S>().empty())
            if (entry.name == name) out.emplace(run_recorded(entry.run, problem, start, start_cost, typename entry_type::options{}, given));
    });
    if (!out) throw ps::invalid_input("search '", name, "' does not run on this instance, or is not known");
    return std::move(*out);
}

/// The names of the entries that run on the problem.
template <class P, class S, class Entries> [[nodiscard]] std::vector<search_line> lines_of(Entries const& entries) {
    std::vector<search_line> out;
    boost::hana::for_each(entries, [&](auto const& entry) {
        if constexpr (ps::io::missing_for<decltype(std::remove_cvref_t<decltype(entry)>::run), P, S>().empty())
            out.push_back({std::string(entry.name), std::string(entry.help)});
    });
    return out;
}

/// The cheapest first, those of one cost in their order.
inline void sort_by_cost(std::vector<textbook_solution>& solutions) { std::ranges::stable_sort(solutions, {}, &textbook_solution::cost); }

} // namespace bench
