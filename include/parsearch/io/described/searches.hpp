#pragma once
/// The searches by name, with options by reflection.

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <boost/hana/append.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/described/described.hpp>
#include <parsearch/io/described/described_search.hpp>
#include <parsearch/rewrite/joint/joint.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/random_search.hpp>
#include <parsearch/search/tempering.hpp>

namespace parsearch::io {

/// A search: its name, the function object, and a line about it.
template <class Options, class F> struct search_entry {
    using options = Options;
    std::string_view name;
    F run;
    std::string_view help;
};
template <class Options, class F> [[nodiscard]] constexpr search_entry<Options, F> named_search(std::string_view name, F run, std::string_view help) {
    return {name, run, help};
}

/// The searches for a strategy of a problem's graph: a Hana tuple of entries.
inline constexpr auto searches = boost::hana::make_tuple(
    named_search<search::portfolio_options>("portfolio", search::portfolio,
                                            "the other searches in turn, each from the best that any has found; as long as it is given"),
    named_search<search::mcmc_options>("mcmc", search::mcmc,
                                       "a random walk that accepts what is not much worse, after FlexFlow; as long as it is given"),
    named_search<search::greedy_options>("greedy", search::greedy,
                                         "the best configuration of one operator at a time, until none improves; ends by itself"),
    named_search<search::dominator_dp_options>(
        "dominator_dp", search::dominator_dp,
        "the exact minimum of additive costs; of simulated time, of an additive cost that resembles it; ends by itself"),
    named_search<search::exact_options>("exact", search::exact,
                                        "branch and bound: the optimum with a proof, or the best and a lower bound when time ends; ends by itself"),
    named_search<search::exhaustive_options>("exhaustive", search::exhaustive, "every strategy, with a proof at the end; for tiny spaces"),
    named_search<search::random_options>("random", search::random_search,
                                         "independent uniform strategies, the baseline; ends by patience without a budget"),
    named_search<search::tempering_options>("tempering", search::tempering,
                                            "random walks at several temperatures that exchange their strategies; as long as it is given"));

/// All that can be asked for by name: the searches, and `joint`, which finds another graph with its strategy and is not run by `run_search`.
inline constexpr auto named_searches = boost::hana::append(
    searches, named_search<rewrite::joint_options>("joint", rewrite::joint,
                                                   "which operators compute the network and how each is parallelized, after Unity; ends by itself"));

static_assert(std::same_as<search_options, decltype(boost::hana::unpack(
                                               named_searches, []<class... E>(E const&...) { return std::variant<typename E::options...>{}; }))>,
              "search_options has the options of all searches, in this order");

/// The names of the searches, comma separated.
[[nodiscard]] inline std::string search_names() {
    std::string out;
    boost::hana::for_each(named_searches, [&](auto const& entry) { out += text(out.empty() ? "" : ", ", entry.name); });
    return out;
}

/// The default options of the search of that name. Throws `invalid_input` listing the names where there is none.
[[nodiscard]] search_options default_options(std::string_view name);

/// Calls `f(entry, options)` with the search that `options` are of; answers what it does.
template <class Chosen, class F>
    requires std::same_as<std::remove_cv_t<Chosen>, search_options>
decltype(auto) visit_search(Chosen& options, F&& f) {
    return std::visit(
        [&]<class Options>(Options& chosen) -> decltype(auto) {
            // The entry of these options: every search has options of its own type.
            return boost::hana::unpack(named_searches, [&](auto const&... entry) -> decltype(auto) {
                auto const pick = [&](auto const& self, auto const& first, auto const&... rest) -> decltype(auto) {
                    if constexpr (std::same_as<typename std::remove_cvref_t<decltype(first)>::options, std::remove_const_t<Options>>)
                        return f(first, chosen);
                    else return self(self, rest...);
                };
                return pick(pick, entry...);
            });
        },
        options);
}

/// The name of the search that `options` are of.
[[nodiscard]] inline std::string_view search_name(search_options const& options) {
    return visit_search(options, [](auto const& entry, auto const&) { return entry.name; });
}

/// Writes into the options what their defaults derive from the budget, so that another budget leaves the rest of the search as it is.
void fix_derived(search_options& options);

/// What search `F` needs of a problem and `P` has not; empty where it runs.
template <class F, class P, class S> [[nodiscard]] constexpr std::string_view missing_for() noexcept {
    if constexpr (search::runs_on<F, P, S>) return "";
    else if constexpr (traits_of<F>.rewrites) return "it finds another graph, and a strategy of that";
    else if constexpr (traits_of<F>.additive_costs) return "its costs are not additive, and it has no surrogate()";
    else return "its evaluator knows no lower bounds";
}

/// Runs the search that `options` are of. Throws what it throws, and `invalid_input` where it does not run on such problems.
template <class P, class S, class R, class... Os>
[[nodiscard]] search_result<S, problem_cost_t<P, S>> run_search(search_options const& options, P const& problem, S start, R& rng, Os&&... observers) {
    return visit_search(options, [&]<class Options>(auto const& entry, Options const& chosen) -> search_result<S, problem_cost_t<P, S>> {
        constexpr auto missing = missing_for<std::remove_cvref_t<decltype(entry.run)>, P, S>();
        if constexpr (missing.empty()) return entry.run(problem, std::move(start), rng, chosen, observers...);
        else throw invalid_input("search '", entry.name, "' does not run on this problem: ", missing);
    });
}

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/described/searches.ipp>
#endif
