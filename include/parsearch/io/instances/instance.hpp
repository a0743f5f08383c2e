#pragma once
/// Instances of the search, whole, as JSON: a network with its devices, prices and rules, or tables of costs. See docs/instances.md.

#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/cost/profiled_roofline.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/instances/rewritings.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/additive_cost.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::io {

inline constexpr std::string_view instance_format = "parsearch.instance";
inline constexpr std::uint64_t instance_version = 1;

/// What is asked of a network: the cheapest strategy of its space, or the cheapest plan that there is, with stages, micro-batches and sharded states.
enum class instance_question : std::uint8_t { strategy, plan };

/// A network on devices, priced by a roofline, and before it by measurements where there are some.
struct network_instance {
    instance_question asks = instance_question::strategy;
    graph::dense_graph graph;
    topology::cluster cluster;
    std::optional<cost::profile> profile{};
    /// Of these, `host_time` and `f8_products` are written.
    cost::roofline_options prices{};
    /// Without functions (`max_degree`, `allows`, `admits`), which are not written.
    problem_options options{};
    /// Where operators may be replaced; of a strategy alone.
    std::vector<rewriting> rewritings{};

    /// The problem, of the graph as it is. Throws `invalid_input` as `make_problem` does.
    [[nodiscard]] parallelization_of<std::uint32_t, std::uint32_t> problem() const { return problem_of(graph); }
    /// The problem of a graph in its place.
    [[nodiscard]] parallelization_of<std::uint32_t, std::uint32_t> problem_of(graph::dense_graph const& g) const {
        return make_problem(g, cluster, cost::profiled_roofline(cluster, profile ? &*profile : nullptr, prices), options);
    }
    /// The graph of a choice for each of `rewritings`. Throws as `graph_rewriter` does.
    [[nodiscard]] graph::dense_graph graph_of(std::span<std::uint32_t const> choices) const { return graph_rewriter(graph, rewritings)(choices); }
};

/// Decisions, each between numbered choices, whose costs add up: one per choice, and one per pair of choices of two decisions. Where there is a
/// budget, the memory of the choices made must not exceed it.
struct table_instance {
    std::vector<std::string> names{}; ///< of the decisions
    search::additive_problem<picoseconds> costs;
    std::optional<byte_count> budget{};
    std::vector<std::vector<byte_count>> memory{}; ///< by decision and choice, at most 2^50 each; empty where there is no budget

    /// Of choices, one for each decision: their bytes, at most 2^63 - 1; 0 where there is no budget.
    [[nodiscard]] byte_count memory_of(search::numbered_strategy const& choices) const noexcept {
        byte_count bytes = 0;
        for (std::size_t d = 0; d < memory.size(); ++d) bytes = saturating_sum(bytes, memory[d][choices[d]]);
        return bytes;
    }
};

/// Throws `invalid_input` where there is not one name for each decision, memory is not that of all choices where there is a budget or is there where
/// none is, or a number is negative or too large. Complexity: linear in the tables.
void validate(table_instance const& t);

/// An instance: what is asked, and for people its name, the class it belongs to, and where it comes from.
struct instance {
    std::string name{}, group{}, description{};
    std::variant<network_instance, table_instance> of;
};

/// Writes an instance such that reading it gives an equal one. Throws `invalid_input` where a name is not UTF-8, two operators have one name, a space
/// has functions, prices are set that are not written, a plan is asked for and there are rewritings, or as `graph_rewriter` and `validate`.
void write_instance_json(std::ostream& out, instance const& i);

/// Reads an instance; `name` stands for the input in messages. Throws `invalid_input` with place, value and rule on anything that is not as
/// docs/instances.md says.
[[nodiscard]] instance read_instance_json(std::istream& in, std::string name = "instance JSON", json_limits const& limits = {});
/// The same from a file. Throws `invalid_input` also where it cannot be opened.
[[nodiscard]] instance load_instance_json(std::string const& path, json_limits const& limits = {});

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/instances/instance.ipp>
#endif
