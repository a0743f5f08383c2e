#pragma once
/// What a report shows, and how it is handed to the page: as one JSON document.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/version.hpp>
#include <parsearch/io/display/comparison.hpp>
#include <parsearch/io/display/configuration_classes.hpp>
#include <parsearch/io/report/report_network.hpp>
#include <parsearch/pipeline/memory_over_time.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::io {

/// A point of a search: what it was at after `evaluations` strategies and `seconds`. `picoseconds::max()` is no cost.
struct cost_point {
    double seconds = 0;
    std::uint64_t evaluations = 0;
    picoseconds current{}, best{};
};

/// A line of the report's list of options.
struct report_fact {
    std::string name, value;
};

/// What a search that changes operators started from. What the pointers name must outlive the call; none is null.
struct report_rewriting {
    graph::dense_graph const* graph = nullptr;      ///< of the model's operators
    space::flat_strategy const* strategy = nullptr; ///< the best that was found for these
    std::size_t compared = 0;                       ///< position of this strategy among `report_data::strategies`
    std::vector<std::string> applied{};             ///< the rules that made the operators of the report's graph of these, in order
};

/// The memory of a device over an iteration.
struct report_memory {
    std::uint32_t device = 0;
    std::vector<pipeline::memory_step> steps{}; ///< as `pipeline::memory_over_time` has them
};

/// Everything that a report shows. Texts may hold any characters. What the pointers name must outlive the call; none is null.
struct report_data {
    std::string title{}; ///< "GPT 1.3B on 4 x 8 H100"
    std::string model{}; ///< a few words each: "gpt, 24 layers", "4 nodes of 8 h100_sxm", "mcmc, 10 s"
    std::string cluster_text{};
    std::string search{};
    std::vector<compared> strategies{};        ///< the first is the baseline of the speed-ups
    std::size_t found = 0;                     ///< position among `strategies` of the one that the report is about
    std::vector<std::string> plan{};           ///< how it runs, and a line per stage (`pipeline::to_string`); empty: without micro-batches
    std::vector<std::uint32_t> stage{};        ///< of each operator; empty: there is one
    graph::dense_graph const* graph = nullptr; ///< of a plan, that of one of its micro-batches
    topology::cluster const* cluster = nullptr;
    std::vector<byte_count> usable{}; ///< memory of each device that a plan may use; empty: all that it has
    space::flat_strategy const* strategy = nullptr;
    sim::report const* simulation = nullptr;       ///< of `strategy`, or of the plan
    std::vector<report_memory> memory_over_time{}; ///< of those devices that are to be shown
    std::vector<cost_point> curve{};               ///< in the order of time; empty: no search
    std::optional<report_rewriting> rewriting{};   ///< set: `graph` has other operators than the model
    std::optional<report_network> network{};       ///< that `cluster` was made of; drawn where set
    std::vector<report_fact> options{};            ///< what was asked for
    std::vector<std::string> notes{};              ///< what the reader is to know, each a sentence
    std::string version = std::string(parsearch::version);
    std::string generated{}; ///< date or host where wanted; empty: not shown
};

namespace detail {

using nlohmann::ordered_json;

/// A curve of few points: of each stretch of equal length the first, the least and the greatest `current`, and always the last point.
[[nodiscard]] std::vector<cost_point> thin_out(std::vector<cost_point> const& curve, std::size_t stretches = 1000);

/// Of many steps those of each stretch of equal length in which most is used, and the last.
[[nodiscard]] ordered_json memory_json(std::vector<report_memory> const& devices, std::size_t stretches = 1000);

[[nodiscard]] ordered_json operators_json(graph::dense_graph const& g, configuration_classes const& classes, space::flat_strategy const& s);

/// The tasks that take time, row by row, and the row of each device and link (-1: left out, as they are more than `most`): the distinct durations and
/// the distinct things that are done, and for each task where in these it is, its number among those alike, the gap before it, and of a plan the
/// number of its micro-batch from 1, or 0.
[[nodiscard]] ordered_json tasks_json(sim::report const& r, std::size_t most = 1'000'000);

} // namespace detail

/// The document that the page reads. Throws `invalid_input` where a pointer is null, `found` is none of `strategies`, or the simulation
/// is not of graph, cluster and strategy; the same of a rewriting.
[[nodiscard]] nlohmann::ordered_json report_json(report_data const& d);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/report/report_data.ipp>
#endif
