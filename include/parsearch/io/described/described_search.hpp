#pragma once
/// The options of the searches.

#include <array>
#include <variant>

#include <parsearch/io/described/described.hpp>
#include <parsearch/rewrite/joint/joint_options.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/random_search.hpp>
#include <parsearch/search/tempering.hpp>

namespace parsearch::io {

/// The options of one of the searches: see io/described/searches.hpp.
using search_options =
    std::variant<search::portfolio_options, search::mcmc_options, search::greedy_options, search::dominator_dp_options, search::exact_options,
                 search::exhaustive_options, search::random_options, search::tempering_options, rewrite::joint_options>;

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
template <class Options> [[nodiscard]] constexpr auto problem_starts_field() {
    return field("problem_starts", &Options::problem_starts, "starts from the strategies that the problem offers, too");
}
template <class Options> [[nodiscard]] constexpr auto random_starts_field() {
    return field("random_starts", &Options::random_starts, "starts from so many random strategies, too");
}
} // namespace detail

template <>
inline constexpr auto described<search::mcmc_options> = boost::hana::make_tuple(
    detail::time_field<search::mcmc_options>(), detail::evaluations_field<search::mcmc_options>(),
    field("temperature", &search::mcmc_options::temperature,
          "how much worse a step may be, in picoseconds: one that costs d more is accepted with probability exp(-d / temperature); 0: never; "
          "none: relative_temperature decides"),
    field("relative_temperature", &search::mcmc_options::relative_temperature,
          "where temperature is none, it is this times the least cost so far; at least 0"),
    field("target_acceptance", &search::mcmc_options::target_acceptance,
          "where temperature is none, adapts relative_temperature until this share of the worse proposals is accepted, 0 to 1; none: no adaptation"),
    field("reheat_interval", &search::mcmc_options::reheat_interval,
          "where temperature and target_acceptance are none, the temperature doubles after so many proposals without an improvement, seven times, "
          "then starts over; 0: never"),
    field("reset_interval", &search::mcmc_options::reset_interval,
          "proposals from one return to the best strategy to the next; 0: never; none: a hundredth of evaluations, at most 1000, "
          "and 100 without a limit of evaluations"),
    field("patience", &search::mcmc_options::patience,
          "ends a search that has not improved for this fraction of its evaluations, 0 to 1; 0: never; none: 0 with a budget, 0.5 without"),
    field("time_patience", &search::mcmc_options::time_patience, "the same as a fraction of the time; such a search is not reproducible"),
    field("min_evaluations", &search::mcmc_options::min_evaluations,
          "evaluations before a patience may end the search; none: 1000 and 100 per operator"),
    detail::progress_field<search::mcmc_options>(), detail::problem_starts_field<search::mcmc_options>(),
    detail::random_starts_field<search::mcmc_options>(),
    field("race_length", &search::mcmc_options::race_length,
          "proposals of each round of the race between several starts, at least 1, shared by those that are left; none: a tenth of evaluations, "
          "10 to 10000, and 1000 without a limit of evaluations"),
    field("racing_starts", &search::mcmc_options::racing_starts, "starts that race, the cheapest of all; 0: all"),
    field("threads", &search::mcmc_options::threads,
          "threads that price proposals ahead; 0: as many as the machine has; the result is the same for any number"));

template <>
inline constexpr auto enumerators<search::visit_order> =
    std::array{search::visit_order::numbered, search::visit_order::shuffled, search::visit_order::supplied};
template <>
inline constexpr auto described<search::greedy_options> = boost::hana::make_tuple(
    detail::time_field<search::greedy_options>(), detail::evaluations_field<search::greedy_options>(),
    field("candidates", &search::greedy_options::candidates,
          "configurations tried per visit of an operator, at least 1; one that has more gets that many at random, new ones at each visit"),
    field("order", &search::greedy_options::order,
          "how a sweep visits the operators: by number, in a new random order each time, or as the problem lists them; "
          "none: as the problem lists them where it does, else by number"),
    field("construct", &search::greedy_options::construct,
          "whether the first sweep builds a strategy from parts of the start and the experts' strategies"),
    field("coarse", &search::greedy_options::coarse, "whether it begins with groups of operators that change together"),
    field("single", &search::greedy_options::single, "whether it goes on with single operators"), detail::progress_field<search::greedy_options>());

template <>
inline constexpr auto described<search::exact_options> = boost::hana::make_tuple(
    detail::time_field<search::exact_options>(), detail::evaluations_field<search::exact_options>(),
    field("walk", &search::exact_options::walk,
          "proposals of a random walk that looks for a first good strategy; 0: none; none: 1000 and 100 per operator"),
    field("sweeps", &search::exact_options::sweeps, "sweeps of best responses over the operators after the walk, at most; 0: none"),
    field("open", &search::exact_options::open,
          "partial strategies kept in a queue, least bound first, at least 1; when it is full, the search goes on depth first"),
    field("nodes", &search::exact_options::nodes, "partial strategies bounded, at most; none: no limit"),
    field("progress_interval", &search::exact_options::progress_interval, "partial strategies from one report of progress to the next; 0: none"));

template <>
inline constexpr auto described<search::exhaustive_options> = boost::hana::make_tuple(
    detail::time_field<search::exhaustive_options>(), detail::evaluations_field<search::exhaustive_options>(),
    field("bound", &search::exhaustive_options::bound, "reports a lower bound, which takes a moment to find, and ends when it is met"),
    detail::progress_field<search::exhaustive_options>());

template <>
inline constexpr auto described<search::random_options> = boost::hana::make_tuple(
    detail::time_field<search::random_options>(), detail::evaluations_field<search::random_options>(),
    field("patience", &search::random_options::patience,
          "ends a search that has not improved for this fraction of its evaluations, 0 to 1; 0: never; none: 0 with a budget, 0.5 without"),
    field("min_evaluations", &search::random_options::min_evaluations,
          "evaluations before patience may end the search; none: 1000 and 100 per operator"),
    field("bound", &search::random_options::bound, "reports a lower bound, which takes a moment to find, and ends when it is met"),
    detail::progress_field<search::random_options>());
template <>
inline constexpr auto described<search::portfolio_options> = boost::hana::make_tuple(
    detail::time_field<search::portfolio_options>(), detail::evaluations_field<search::portfolio_options>(),
    field("slice", &search::portfolio_options::slice,
          "evaluations of a member in its first turn, or as many as greedy made there before it; at least 1"),
    field("patience", &search::portfolio_options::patience,
          "ends after so many rounds that improved nothing; 0: never; none: 0 with a budget, 2 without"),
    field("concurrent", &search::portfolio_options::concurrent, "whether the members of a round run at once"),
    field("threads", &search::portfolio_options::threads, "threads; 0: as many as the machine has; the result is the same for any number"));

template <>
inline constexpr auto described<search::dominator_dp_options> = boost::hana::make_tuple(
    detail::time_field<search::dominator_dp_options>(), detail::evaluations_field<search::dominator_dp_options>(),
    field("memory", &search::dominator_dp_options::memory,
          "bytes that the search's tables may take, at least 1048576; where they do not fit, bounds and branch and bound"),
    field("candidates", &search::dominator_dp_options::candidates,
          "configurations per operator of which the additive cost is made, at least 1; its tables take time with their square"),
    detail::progress_field<search::dominator_dp_options>());
template <>
inline constexpr auto described<search::tempering_options> = boost::hana::make_tuple(
    detail::time_field<search::tempering_options>(), detail::evaluations_field<search::tempering_options>(),
    field("replicas", &search::tempering_options::replicas, "chains, 1 to 1024"),
    field("temperature", &search::tempering_options::temperature, "of the coldest chain, in picoseconds; none: relative_temperature decides"),
    field("relative_temperature", &search::tempering_options::relative_temperature,
          "where temperature is none, that of the coldest chain is this times the least cost so far; at least 0"),
    field("ratio", &search::tempering_options::ratio, "from one temperature to the next, at least 1"),
    field("exchange_interval", &search::tempering_options::exchange_interval, "evaluations of each chain between two exchanges, at least 1"),
    detail::problem_starts_field<search::tempering_options>(), detail::random_starts_field<search::tempering_options>(),
    field("patience", &search::tempering_options::patience,
          "ends a search that has not improved for this fraction of its evaluations, 0 to 1; 0: never; none: 0 with a budget, 0.5 without"),
    field("min_evaluations", &search::tempering_options::min_evaluations,
          "evaluations before patience may end the search; none: 1000 and 100 per operator"),
    field("threads", &search::tempering_options::threads,
          "threads that share the chains; 0: as many as the machine has; the result is the same for any number"),
    detail::progress_field<search::tempering_options>());

template <>
inline constexpr auto described<rewrite::joint_options> = boost::hana::make_tuple(
    detail::time_field<rewrite::joint_options>(),
    field("evaluations", &rewrite::joint_options::evaluations,
          "graphs priced and strategies simulated after which the search ends, at least 1; none: no limit"),
    field("alpha", &rewrite::joint_options::alpha, "a graph is followed up while it costs less than this times the best of its segment, at least 1"),
    field("segment_operators", &rewrite::joint_options::segment_operators,
          "the least of a segment, at least 1; segments are searched one after another"),
    field("segment_graphs", &rewrite::joint_options::segment_graphs, "graphs priced for each kind of segment before the next one"),
    field("beam", &rewrite::joint_options::beam, "graphs that are simulated in the end, at least 1"),
    field("mapping_views", &rewrite::joint_options::mapping_views,
          "configurations per operator among which machine mapping chooses, with branches side by side; 0: graphs are not mapped"),
    field("mapping_effort", &rewrite::joint_options::mapping_effort, "steps of machine mapping, of all graphs together"),
    detail::progress_field<rewrite::joint_options>(),
    field("refinement", &rewrite::joint_options::refinement, "evaluations of mcmc from the best of these; 0: none"),
    field("bound", &rewrite::joint_options::bound, "reports a lower bound on the parallelizations of the graph found, which takes a moment to find"),
    field("candidates", &rewrite::joint_options::pricing, &rewrite::graph_pricer_options::candidates,
          "configurations per operator among which a graph's price is found, at least 1"),
    field("table_bytes", &rewrite::joint_options::pricing, &rewrite::graph_pricer_options::table_bytes,
          "bytes that the tables of finding one price may take, at least 1048576"),
    field("remembered_bytes", &rewrite::joint_options::pricing, &rewrite::graph_pricer_options::remembered_bytes,
          "bytes of tables that are kept from graph to graph, about"),
    field("effort", &rewrite::joint_options::pricing, &rewrite::graph_pricer_options::effort,
          "steps of finding a price where its tables do not fit"));

} // namespace parsearch::io
