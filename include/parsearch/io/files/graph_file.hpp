#pragma once
/// Operator graphs as JSON: iteration spaces, operands, amounts of work. See docs/formats.md.

#include <cstdint>
#include <istream>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::io {

inline constexpr std::string_view graph_format = "parsearch.graph";
inline constexpr std::uint64_t graph_version = 1;

/// Output `slot` of the operator that is called `op`.
struct named_output {
    std::string op{};
    std::uint32_t slot = 0;
    friend bool operator==(named_output const&, named_output const&) = default;
};

/// An operator as a document has it: with its name, and the outputs that it reads by name.
struct named_operator {
    std::string name{};
    ops::operation operation{};
    std::vector<named_output> inputs{}; ///< one for each of the operation's
    friend bool operator==(named_operator const&, named_operator const&) = default;
};

namespace detail {
/// How the points of the iteration space index a tensor: of each axis its extent and [dim, stride] per term; offset and span where they are not 0
/// and 1.
[[nodiscard]] ordered_json axes_to_json(std::vector<ops::axis> const& axes);

/// An operator of a document. Throws `invalid_input` where `inputs` are not as many as the operation's, or it has what is not written.
[[nodiscard]] ordered_json operator_to_json(std::string const& name, ops::operation const& op, std::span<named_output const> inputs);
[[nodiscard]] named_operator operator_from_json(json_value const& value);

/// The document of a graph, and the graph of a document, which may stand in another one.
[[nodiscard]] ordered_json graph_to_json(graph::dense_graph const& g);
[[nodiscard]] graph::dense_graph graph_from_json(json_value const& document);
} // namespace detail

/// Writes a graph such that reading it gives an equal one: operators in their order, which tell their inputs by name. Throws `invalid_input` where
/// two operators have one name, a name is not UTF-8, a dim has `shares`, which are a simulation's, or an operand says what its role has not (an
/// output that is passed on, say).
void write_graph_json(std::ostream& out, graph::dense_graph const& g);
/// The same of any operator graph. Throws as `graph::read_graph`, too.
template <OperatorGraph G> void write_graph_json(std::ostream& out, G const& g) { write_graph_json(out, graph::read_graph(g).graph); }

/// Reads a graph, which is an `OperatorGraph`; `name` stands for the input in messages. Throws `invalid_input` with place, value and rule on anything
/// that is not as docs/formats.md says, and as `graph::read_graph`.
[[nodiscard]] graph::dense_graph read_graph_json(std::istream& in, std::string name = "graph JSON", json_limits const& limits = {});
/// The same from a file. Throws `invalid_input` also where it cannot be opened.
[[nodiscard]] graph::dense_graph load_graph_json(std::string const& path, json_limits const& limits = {});

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/files/graph_file.ipp>
#endif
