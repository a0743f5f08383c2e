#pragma once
/// The options of the searches.

#include <array>

#include <parsearch/io/described.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>

namespace parsearch::io {

namespace detail {
/// What every search has.
template <class Options> [[nodiscard]] constexpr auto time_field() {
    return field("time", &Options::time, "wall time after which the search ends; none: no limit");
}
template <class Options> [[nodiscard]] constexpr auto evaluations_field() {
    return field("evaluations", &Options::evaluations, "strategies priced after which the search ends, at least 1; none: no limit");
}
template <class Options> [[nodiscard]] constexpr auto progress_field() {
    return field("progress_interval", &Options::progress_interval, "evaluations from one report of progress to the next; 0: none");
}
} // namespace detail

template <> inline constexpr auto described<search::mcmc_options> = boost::hana::make_tuple(
    detail::time_field<search::mcmc_options>(), detail::evaluations_field<search::mcmc_options>(),
    field("temperature", &search::mcmc_options::temperature,
          "how much worse a step may be, in picoseconds: one that costs d more is accepted with probability exp(-d / temperature); 0: never; "
          "none: relative_temperature decides"),
    field("relative_temperature", &search::mcmc_options::relative_temperature,
          "where temperature is none, it is this times the least cost so far; at least 0"),
    field("reheat_interval", &search::mcmc_options::reheat_interval,
          "where temperature is none, it doubles after so many proposals without an improvement, seven times, then starts over; 0: never"),
    field("reset_interval", &search::mcmc_options::reset_interval,
          "proposals from one return to the best strategy to the next; 0: never; none: a hundredth of evaluations, at most 1000, "
          "and 100 without a limit of evaluations"),
    field("patience", &search::mcmc_options::patience,
          "ends a search that has not improved for this fraction of its evaluations, 0 to 1; 0: never; none: 0 with a budget, 0.5 without"),
    field("time_patience", &search::mcmc_options::time_patience, "the same as a fraction of the time; such a search is not reproducible"),
    field("min_evaluations", &search::mcmc_options::min_evaluations,
          "evaluations before a patience may end the search; none: 1000 and 100 per operator"),
    detail::progress_field<search::mcmc_options>());

template <> inline constexpr auto enumerators<search::visit_order> =
    std::array{search::visit_order::numbered, search::visit_order::shuffled, search::visit_order::supplied};
template <> inline constexpr auto described<search::greedy_options> = boost::hana::make_tuple(
    detail::time_field<search::greedy_options>(), detail::evaluations_field<search::greedy_options>(),
    field("candidates", &search::greedy_options::candidates,
          "configurations tried per visit of an operator, at least 1; one that has more gets that many at random, new ones at each visit"),
    field("order", &search::greedy_options::order,
          "how a sweep visits the operators: by number, in a new random order each time, or as the problem lists them; "
          "none: as the problem lists them where it does, else by number"),
    detail::progress_field<search::greedy_options>());

} // namespace parsearch::io
