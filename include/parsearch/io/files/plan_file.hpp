#pragma once
/// Plans as JSON: stages with the configurations of their operators, micro-batches and their order, what is shared. See docs/formats.md.

#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/files/configuration_list.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::io {

inline constexpr std::string_view plan_format = "parsearch.plan";
inline constexpr std::uint64_t plan_version = 1;

namespace detail {
/// The document of a plan, and the plan of a document, which may stand in another one.
[[nodiscard]] ordered_json plan_to_json(graph::dense_graph const& g, std::size_t devices, pipeline::pipeline_plan const& plan,
                                        plan_notes const& notes = {});
[[nodiscard]] pipeline::pipeline_plan plan_from_json(json_value const& document, graph::dense_graph const& g, std::size_t devices,
                                                     plan_notes* notes = nullptr);
} // namespace detail

/// Writes a plan of `g` on `devices` devices such that reading it gives an equal one; stage, segment and block of graph inputs do not matter: they
/// are read as 0. (Of a configuration that lists its devices, start and strides count for nothing and are not written.) Throws `invalid_input` where
/// `pipeline::validate` and `pipeline::micro_batch` do, where the strategy does not fit the micro-batches, where a degree of tensor, expert
/// or context parallelism is not from 1 to `devices` or the first not of each stage, where two operators have one name, or a name is not UTF-8.
void write_plan_json(std::ostream& out, graph::dense_graph const& g, std::size_t devices, pipeline::pipeline_plan const& plan,
                     plan_notes const& notes = {});
/// The same of a strategy, which is a plan without stages or micro-batches.
template <Strategy<space::configuration> S>
void write_plan_json(std::ostream& out, graph::dense_graph const& g, std::size_t devices, S const& strategy, plan_notes const& notes = {}) {
    pipeline::pipeline_plan plan{.how = pipeline::unpipelined(g), .strategy = {}};
    auto size = g.size();
    if constexpr (requires { strategy.size(); }) size = static_cast<std::size_t>(strategy.size());
    for (std::size_t op = 0; op < size; ++op) plan.strategy.push_back(configuration_of(strategy, op));
    write_plan_json(out, g, devices, plan, notes);
}
/// The same of a problem, and a plan or strategy.
template <detail::has_graph_and_topology P, class Plan>
void write_plan_json(std::ostream& out, P const& problem, Plan const& plan, plan_notes const& notes = {}) {
    write_plan_json(out, problem.graph(), problem.topology().size(), plan, notes);
}

/// Reads a plan of `g` on `devices` devices; `name` stands for the input in messages, what the document says beside the plan goes to `notes`. Graph
/// inputs that are not listed are on device 0. Reads "parsearch.strategy" and "parsearch.pipeline", which earlier releases wrote, too. Throws
/// `invalid_input` with place, value and rule on anything that is not as docs/formats.md says or does not fit graph, micro-batches and devices.
[[nodiscard]] pipeline::pipeline_plan read_plan_json(std::istream& in, std::string name, graph::dense_graph const& g, std::size_t devices,
                                                     plan_notes* notes = nullptr);
/// The same for a problem.
template <detail::has_graph_and_topology P>
[[nodiscard]] pipeline::pipeline_plan read_plan_json(std::istream& in, std::string name, P const& problem, plan_notes* notes = nullptr) {
    return read_plan_json(in, std::move(name), problem.graph(), problem.topology().size(), notes);
}

/// What a plan's document says beside the plan, but for the predicted time: read without a graph. Empty of what does not begin as a JSON object does.
/// Throws `invalid_input` where it is none, or has these members otherwise.
[[nodiscard]] plan_notes read_plan_notes(std::istream& in, std::string name);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/files/plan_file.ipp>
#endif
