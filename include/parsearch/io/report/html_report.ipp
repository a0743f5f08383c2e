#pragma once
// A plan as one HTML file that needs nothing else: summary, comparison, timeline, memory, network, search, graph, operators.

#include <algorithm>

#include <parsearch/io/report/asset_core.hpp>
#include <parsearch/io/report/asset_curve.hpp>
#include <parsearch/io/report/asset_graph.hpp>
#include <parsearch/io/report/asset_memory.hpp>
#include <parsearch/io/report/asset_network.hpp>
#include <parsearch/io/report/asset_operators.hpp>
#include <parsearch/io/report/asset_page.hpp>
#include <parsearch/io/report/asset_style.hpp>
#include <parsearch/io/report/asset_summary.hpp>
#include <parsearch/io/report/asset_timeline.hpp>
#include <parsearch/io/report/html_report.hpp>
#include <parsearch/io/text/stream_text.hpp>

namespace parsearch::io {

PARSEARCH_IO_INLINE void write_report(std::ostream& stream, report_data const& d) {
    // Inside a script element only "<" could end it.
    auto const document = report_json(d).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    text_writer out(stream);
    out.add("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>", html_text(d.title), "</title>\n", page::head,
            "<style>\n", page::style, "</style>\n</head>\n", page::body, "<script type=\"application/json\" id=\"data\">");
    for (std::size_t from = 0; from < document.size();) {
        auto const at = std::min(document.find('<', from), document.size());
        out.add(std::string_view(document).substr(from, at - from));
        if (at < document.size()) out.add("\\u003c");
        from = at + 1;
    }
    out.add("</script>\n<script>\n'use strict';\n", page::core_script, page::summary_script, page::timeline_script, page::memory_script,
            page::network_script, page::curve_script, page::graph_script, page::operators_script, page::start_script,
            "</script>\n</body>\n</html>\n");
    out.finish("the report");
}

} // namespace parsearch::io
