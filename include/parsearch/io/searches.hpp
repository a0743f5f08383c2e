#pragma once
/// The searches by name, with options by reflection.

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/described.hpp>
#include <parsearch/io/described/search.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>

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

/// The searches: a Hana tuple of entries.
inline constexpr auto searches = boost::hana::make_tuple(
    named_search<search::mcmc_options>("mcmc", search::mcmc, "a random walk that accepts what is not much worse, after FlexFlow; as long as it is given"),
    named_search<search::greedy_options>("greedy", search::greedy, "the best configuration of one operator at a time, until none improves; ends by itself"));

/// The options of one of the searches.
using search_options = decltype(boost::hana::unpack(searches, []<class... E>(E const&...) { return std::variant<typename E::options...>{}; }));

/// The names of the searches, comma separated.
[[nodiscard]] inline std::string search_names() {
    std::string out;
    boost::hana::for_each(searches, [&](auto const& entry) { out += text(out.empty() ? "" : ", ", entry.name); });
    return out;
}

/// The default options of the search of that name. Throws `invalid_input` listing the names where there is none.
[[nodiscard]] inline search_options default_options(std::string_view name) {
    search_options out;
    bool found = false;
    boost::hana::for_each(searches, [&](auto const& entry) {
        if (entry.name != name) return;
        found = true;
        out = typename std::remove_cvref_t<decltype(entry)>::options{};
    });
    if (!found) throw invalid_input("search '", name, "' is not known: must be one of ", search_names());
    return out;
}

/// Calls `f(entry, options)` with the search that `options` are of; answers what it does.
template <class Chosen, class F>
    requires std::same_as<std::remove_cv_t<Chosen>, search_options>
decltype(auto) visit_search(Chosen& options, F&& f) {
    return std::visit(
        [&]<class Options>(Options& chosen) -> decltype(auto) {
            // The entry of these options: every search has options of its own type.
            return boost::hana::unpack(searches, [&](auto const&... entry) -> decltype(auto) {
                auto const pick = [&](auto const& self, auto const& first, auto const&... rest) -> decltype(auto) {
                    if constexpr (std::same_as<typename std::remove_cvref_t<decltype(first)>::options, std::remove_const_t<Options>>) return f(first, chosen);
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
inline void fix_derived(search_options& options) {
    if (auto* const o = std::get_if<search::mcmc_options>(&options)) o->reset_interval = search::reset_interval_of(*o);
}

/// Runs the search that `options` are of. Throws what it throws.
template <class P, class S, class R, class... Os>
[[nodiscard]] search_result<S, problem_cost_t<P, S>> run_search(search_options const& options, P const& problem, S start, R& rng, Os&&... observers) {
    return visit_search(options, [&](auto const& entry, auto const& chosen) { return entry.run(problem, std::move(start), rng, chosen, observers...); });
}

} // namespace parsearch::io
