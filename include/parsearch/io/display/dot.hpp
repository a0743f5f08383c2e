#pragma once
/// An operator graph under a strategy as Graphviz DOT.

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/io/display/configuration_classes.hpp>
#include <parsearch/io/text/stream_text.hpp>
#include <parsearch/problem/problem.hpp>

namespace parsearch::io {

namespace detail {

/// `s` inside a quoted DOT string: quotes and backslashes escaped, line breaks as spaces, other control characters and what is not UTF-8
/// as U+FFFD.
[[nodiscard]] std::string dot_text(std::string_view s);

/// Light fills on which black text reads well: twelve chosen ones, then hues a golden ratio apart.
[[nodiscard]] std::string dot_fill(std::size_t number);
} // namespace detail

/// Writes the graph of `p` with operators coloured by their configuration under `s`, one colour per configuration, and a legend. Nodes
/// are named "op0", "op1", ... by operator number and labelled with name, kind and configuration; graph inputs are ellipses. Edges
/// are labelled with type and shape of their tensor. Throws `invalid_input` where the stream fails.
template <Strategy<space::configuration> S> void write_dot(std::ostream& stream, parallelization const& p, S const& s) {
    graph::dense_graph const& g = p.graph();
    auto const classes = classes_of(g, s);
    text_writer out(stream);
    out.add("digraph plan {\n  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=11, color=\"#5b6470\"];\n"
            "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#5b6470\", fontcolor=\"#3a414a\"];\n");
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const label = text(detail::dot_text(g.names[op]), "\\n", detail::dot_text(g.operations[op].kind));
        auto const c = classes.of_operator[op];
        if (c == configuration_classes::none) out.add("  op", op, " [shape=ellipse, fillcolor=\"#ffffff\", label=\"", label, "\"];\n");
        else out.add("  op", op, " [fillcolor=\"", detail::dot_fill(c), "\", label=\"", label, "\\n", detail::dot_text(classes.texts[c]), "\"];\n");
    }
    for (auto const& e : g.edges)
        out.add("  op", e.producer, " -> op", e.consumer, " [label=\"", ops::to_string(ops::tensor_of(g.operations[e.producer].outputs[e.slot])),
                "\"];\n");
    out.add("  subgraph cluster_legend {\n    label=\"configurations\"; fontname=\"Helvetica\"; fontsize=11; color=\"#c4cad1\";\n"
            "    legend [shape=plain, style=\"\", label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"2\">\n");
    for (std::size_t c = 0; c < classes.texts.size(); ++c)
        out.add("      <tr><td bgcolor=\"", detail::dot_fill(c), "\" width=\"24\"></td><td align=\"left\">", html_text(classes.texts[c]),
                "</td><td align=\"right\">", classes.operators[c], "</td></tr>\n");
    if (classes.texts.empty()) out.add("      <tr><td>none</td></tr>\n");
    out.add("    </table>>];\n  }\n}\n");
    out.finish("the graph");
}

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/display/dot.ipp>
#endif
