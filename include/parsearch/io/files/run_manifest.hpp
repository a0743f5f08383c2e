#pragma once
/// What a run of a search was given and what it found, as JSON: enough to run it again. See docs/schemas/run.schema.json.

#include <array>
#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/version.hpp>
#include <parsearch/io/described/described.hpp>
#include <parsearch/io/described/described_json.hpp>
#include <parsearch/io/described/described_kernels.hpp>
#include <parsearch/io/described/described_pipeline.hpp>
#include <parsearch/io/described/described_search.hpp>
#include <parsearch/io/described/described_simulation.hpp>
#include <parsearch/io/described/described_space.hpp>
#include <parsearch/io/json/json_reader.hpp>

namespace parsearch::io {

inline constexpr std::string_view run_format = "parsearch.run";
inline constexpr std::uint64_t run_version = 1;

/// Something that a run read.
struct run_input {
    std::string given; ///< as the user wrote it
    std::string hash;  ///< of the file, see `hash_of_file`; empty where it is none
    friend bool operator==(run_input const&, run_input const&) = default;
};
template <>
inline constexpr auto described<run_input> = boost::hana::make_tuple(field("given", &run_input::given, "as the user wrote it"),
                                                                     field("hash", &run_input::hash, "of the file; empty where it is none"));

/// A file that a run wrote.
struct run_file {
    std::string name; ///< in the folder of the manifest
    std::string hash; ///< see `hash_of_file`
    friend bool operator==(run_file const&, run_file const&) = default;
};
template <>
inline constexpr auto described<run_file> =
    boost::hana::make_tuple(field("name", &run_file::name, "in the folder of the manifest"), field("hash", &run_file::hash, "of what was written"));

/// The figures of a strategy.
struct run_figures {
    std::string strategy;
    std::int64_t time_ps = 0;
    double speed_up = 1, throughput = 0;
    std::string throughput_unit = "samples";
    double flops_utilisation = 0, activation_bytes = 0, gradient_bytes = 0, partial_sum_bytes = 0, weight_gradient_bytes = 0;
    std::int64_t peak_memory = 0;
    bool fits = true;
    friend bool operator==(run_figures const&, run_figures const&) = default;
};
template <>
inline constexpr auto described<run_figures> = boost::hana::make_tuple(
    field("strategy", &run_figures::strategy, "its name"), field("time_ps", &run_figures::time_ps, "of an iteration, in picoseconds"),
    field("speed_up", &run_figures::speed_up, "over data parallelism"), field("throughput", &run_figures::throughput, "per second"),
    field("throughput_unit", &run_figures::throughput_unit, "what is counted"),
    field("flops_utilisation", &run_figures::flops_utilisation, "share of the peak of all devices"),
    field("activation_bytes", &run_figures::activation_bytes, "moved between devices in an iteration"),
    field("gradient_bytes", &run_figures::gradient_bytes, "moved between devices in an iteration"),
    field("partial_sum_bytes", &run_figures::partial_sum_bytes, "moved between devices in an iteration"),
    field("weight_gradient_bytes", &run_figures::weight_gradient_bytes, "moved between devices in an iteration"),
    field("peak_memory", &run_figures::peak_memory, "bytes on the fullest device"),
    field("fits", &run_figures::fits, "no device needs more than it has"));

template <>
inline constexpr auto enumerators<stop_reason> =
    std::array{stop_reason::exhausted,      stop_reason::evaluation_budget, stop_reason::time_budget, stop_reason::stop_requested,
               stop_reason::proved_optimal, stop_reason::no_improvement,    stop_reason::observer,    stop_reason::out_of_memory};

/// What a run found.
struct run_result {
    std::int64_t cost_ps = 0; ///< what the search minimises: time and what the memory policy adds
    std::string start;        ///< the strategy that it started from
    std::uint64_t evaluations = 0, proposals = 0, accepted = 0, improved = 0;
    std::string trajectory; ///< hash of the accepted changes, hexadecimal
    double seconds = 0;     ///< of search
    std::optional<stop_reason> reason{};
    friend bool operator==(run_result const&, run_result const&) = default;
};
template <>
inline constexpr auto described<run_result> = boost::hana::make_tuple(
    field("cost_ps", &run_result::cost_ps, "what the search minimises, in picoseconds: time and what the memory policy adds"),
    field("start", &run_result::start, "the strategy that it started from"), field("evaluations", &run_result::evaluations, "strategies priced"),
    field("proposals", &run_result::proposals, "changes drawn"), field("accepted", &run_result::accepted, "proposals that became current"),
    field("improved", &run_result::improved, "proposals better than all before"),
    field("trajectory", &run_result::trajectory, "hash of the accepted changes"), field("seconds", &run_result::seconds, "wall time of the search"),
    field("reason", &run_result::reason, "why the search ended; none: there was none"));

/// The parts of the computing time of the found strategy by what they rest on: see `cost::cost_source`.
struct run_sources {
    double exact = 0, interpolated = 0, roofline = 0, published = 0, data_sheet = 0, fallback = 0;
    friend bool operator==(run_sources const&, run_sources const&) = default;
};
template <>
inline constexpr auto described<run_sources> =
    boost::hana::make_tuple(field("exact", &run_sources::exact, "measured"),
                            field("interpolated", &run_sources::interpolated, "between measurements"),
                            field("roofline", &run_sources::roofline, "by a roofline calibrated on measurements"),
                            field("published", &run_sources::published, "by a roofline at rates of published runs"),
                            field("data_sheet", &run_sources::data_sheet, "by a roofline at rates that no published run tells"),
                            field("fallback", &run_sources::fallback, "by another oracle"));

/// How operators were rewritten before anything was parallelized, and all was searched for those that this made.
struct run_rewriting_first {
    double share = 0;                         ///< by which a plan of other operators must be faster
    std::uint64_t graphs = 0;                 ///< priced
    std::uint64_t evaluations = 0;            ///< plans of the other operators that were simulated
    std::optional<std::uint64_t> estimates{}; ///< ways to divide these that were estimated
    stop_reason reason{};                     ///< why that ended
    friend bool operator==(run_rewriting_first const&, run_rewriting_first const&) = default;
};
template <>
inline constexpr auto described<run_rewriting_first> =
    boost::hana::make_tuple(field("share", &run_rewriting_first::share, "by which a plan of other operators must be faster"),
                            field("graphs", &run_rewriting_first::graphs, "priced"),
                            field("evaluations", &run_rewriting_first::evaluations, "plans of the other operators that were simulated"),
                            field("estimates", &run_rewriting_first::estimates, "ways to divide these that were estimated"),
                            field("reason", &run_rewriting_first::reason, "why that ended"));

/// What rules did to the model's operators.
struct run_rewriting {
    std::vector<std::string> applied{};               ///< rules, in order: name, then operators
    std::uint64_t operators = 0, plain_operators = 0; ///< inputs included: of the graph found, and of the model's
    std::int64_t plain_cost_ps = 0;                   ///< of the best plan found without rules
    std::uint64_t plain_evaluations = 0;              ///< that this took
    std::optional<run_rewriting_first> first{};       ///< none: a joint search did it
    friend bool operator==(run_rewriting const&, run_rewriting const&) = default;
};
template <>
inline constexpr auto described<run_rewriting> = boost::hana::make_tuple(
    field("operators", &run_rewriting::operators, "operators and inputs of the graph found"),
    field("plain_operators", &run_rewriting::plain_operators, "operators and inputs of the model"),
    field("plain_cost_ps", &run_rewriting::plain_cost_ps, "of the best plan found for the model's own operators, in picoseconds"),
    field("plain_evaluations", &run_rewriting::plain_evaluations, "graphs priced and strategies simulated for that"));

/// What a search of pipelines was given and what it found.
struct run_pipelines {
    pipeline::partition_options options{};
    std::int64_t cost_ps = 0;
    std::uint64_t evaluations = 0;            ///< pipelines simulated
    std::optional<std::uint64_t> estimates{}; ///< ways to divide the network that were estimated; none: not known, of earlier releases
    std::uint64_t plans = 0;                  ///< priced by the search that went on from the best, decision by decision
    double seconds = 0;
    stop_reason reason{};
};
template <>
inline constexpr auto described<run_pipelines> =
    boost::hana::make_tuple(field("cost_ps", &run_pipelines::cost_ps, "of the best, in picoseconds: time and what the memory policy adds"),
                            field("evaluations", &run_pipelines::evaluations, "pipelines simulated"),
                            field("estimates", &run_pipelines::estimates, "ways to divide the network that were estimated"),
                            field("plans", &run_pipelines::plans, "plans priced by the search that went on from the best"),
                            field("seconds", &run_pipelines::seconds, "wall time of the search"),
                            field("reason", &run_pipelines::reason, "why the search ended"));

/// What the plan takes after the failure of one wire of its fabric: `fabric::failure_summary`.
struct run_failures {
    std::uint32_t links = 0, tried = 0, cut_off = 0;
    std::optional<double> mean{}, worst{}; ///< nothing where all that were tried cut servers off
    std::string where{};                   ///< the ends of the worst
    friend bool operator==(run_failures const&, run_failures const&) = default;
};
template <>
inline constexpr auto described<run_failures> = boost::hana::make_tuple(
    field("links", &run_failures::links, "of the network"), field("tried", &run_failures::tried, "of these, each without one wire"),
    field("cut_off", &run_failures::cut_off, "of those tried, whose failure cuts servers off"),
    field("mean", &run_failures::mean, "how many times as long an iteration takes, of the others"),
    field("worst", &run_failures::worst, "of these, the one that takes longest"), field("where", &run_failures::where, "the ends of that link"));

/// A part of the iteration and the links of servers meanwhile: `fabric::wiring_phase`.
struct run_wiring_phase {
    struct link {
        std::uint32_t a = 0, b = 0; ///< servers
        std::uint32_t wires = 1;    ///< interfaces of either that are this link
        friend bool operator==(link const&, link const&) = default;
    };
    std::int64_t begin_ps = 0, end_ps = 0; ///< from when the links are set until the last of the phase's movements has arrived
    std::int64_t bytes = 0;                ///< that these put on the wire, were each link one hop
    std::vector<link> links{};
    friend bool operator==(run_wiring_phase const&, run_wiring_phase const&) = default;
};
template <>
inline constexpr auto described<run_wiring_phase> =
    boost::hana::make_tuple(field("begin_ps", &run_wiring_phase::begin_ps, "when its links are set"),
                            field("end_ps", &run_wiring_phase::end_ps, "when the last of its movements has arrived"),
                            field("bytes", &run_wiring_phase::bytes, "that these put on the wire, were each link one hop"));

/// What the plan takes where its servers are rewired within the iteration: `fabric::phased_wiring`.
struct run_rewiring {
    std::int64_t reconfiguration_ps = 0;      ///< that each rewiring takes
    std::int64_t cost_ps = 0;                 ///< of an iteration
    std::int64_t one_wiring_ps = 0;           ///< on the best wiring of those tried for all of it
    std::uint64_t rewirings = 0, wirings = 0; ///< within an iteration; tried
    std::vector<run_wiring_phase> phases{};   ///< in order; one: nothing is rewired
    friend bool operator==(run_rewiring const&, run_rewiring const&) = default;
};
template <>
inline constexpr auto described<run_rewiring> =
    boost::hana::make_tuple(field("reconfiguration_ps", &run_rewiring::reconfiguration_ps, "that each rewiring takes"),
                            field("cost_ps", &run_rewiring::cost_ps, "of an iteration"),
                            field("one_wiring_ps", &run_rewiring::one_wiring_ps, "on the best wiring of those tried for all of it"),
                            field("rewirings", &run_rewiring::rewirings, "within an iteration"), field("wirings", &run_rewiring::wirings, "tried"));

/// How blocks that repeat were planned alike.
struct run_regular {
    double share = 0;              ///< by which a strategy that differs must be faster
    std::uint64_t evaluations = 0; ///< strategies without a difference priced
    friend bool operator==(run_regular const&, run_regular const&) = default;
};
template <>
inline constexpr auto described<run_regular> =
    boost::hana::make_tuple(field("share", &run_regular::share, "by which a strategy must be faster that differs between blocks that repeat"),
                            field("evaluations", &run_regular::evaluations, "strategies without a difference priced"));

/// A run. `search` is empty where a strategy was only evaluated.
struct run_manifest {
    std::string library{version};
    run_input model, cluster, start;
    std::optional<run_input> profile{}; ///< where measurements were used
    std::optional<run_input> rules{};   ///< where a joint search was given a file of rules
    std::uint64_t seed = 0;
    std::optional<search_options> search{};
    sim::simulation_options simulation{};
    kernel_options kernels{};
    space::space_options space{};
    std::uint32_t replicas = 1;               ///< of a part of the cluster, of which one was planned
    std::string runtime{};                    ///< the one that was to be able to say the plan; empty: none
    std::vector<std::string> pin{}, forbid{}; ///< OPERATOR=SPLIT: how operators were to be split, or not
    std::optional<run_regular> regular{};     ///< none: nothing was asked of blocks that repeat
    run_result result{};
    std::optional<std::int64_t> lower_bound_ps{}; ///< no plan in the space of its operators costs less; none: not known
    std::optional<run_sources> compute{};         ///< of the plan
    std::optional<run_rewriting> rewriting{};     ///< where rules were applied
    std::optional<run_pipelines> pipelines{};     ///< where pipelines were searched
    std::optional<run_failures> failures{};       ///< where they were asked for
    std::optional<run_rewiring> rewiring{};       ///< where it was asked for
    std::vector<run_figures> strategies{};        ///< those compared, the found one last
    std::vector<run_file> files{};                ///< written beside the manifest, which is the last of them
};

/// `n` in sixteen hexadecimal digits.
[[nodiscard]] std::string hexadecimal(std::uint64_t n);

/// "fnv1a64:" and the 64-bit FNV-1a hash (Fowler, Noll, Vo) of all bytes of a text.
[[nodiscard]] std::string hash_of_text(std::string_view text);
/// The same of a file. Throws `invalid_input` where it cannot be read.
[[nodiscard]] std::string hash_of_file(std::string const& path);

/// Writes a manifest. Throws `invalid_input` as `write_json` does.
void write_run_manifest(std::ostream& out, run_manifest const& m);

/// Reads a manifest. Throws `invalid_input` with place, value and rule on another format or version, an unknown or missing member, a
/// value of the wrong kind. Options that are missing have their defaults; where earlier releases could not do what one says, that it is not done.
[[nodiscard]] run_manifest read_run_manifest(json_document const& document);

/// The search of `m` without clocks: one that ended by time, or by a request to stop, has its number of evaluations as budget instead, so
/// that it takes the same way and ends at the same place. Empty where `m` has no search.
[[nodiscard]] std::optional<search_options> repeatable_search(run_manifest const& m);

/// The options of the search of pipelines of `m` without clocks, as above. Empty where `m` has none.
[[nodiscard]] std::optional<pipeline::partition_options> repeatable_pipelines(run_manifest const& m);
/// The same of those of other operators. Empty where none were chosen before anything was parallelized.
[[nodiscard]] std::optional<pipeline::partition_options> repeatable_rewriting(run_manifest const& m);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/files/run_manifest.ipp>
#endif
