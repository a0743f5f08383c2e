#pragma once
/// A plan as one HTML file that needs nothing else: summary, comparison, timeline, memory, network, search, graph, operators.

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

#include <parsearch/core/compiled.hpp>
#include <parsearch/io/report/report_data.hpp>

namespace parsearch::io {

/// Writes the report of `d`. The page refers to nothing outside itself, runs without a network, and shows texts as they are, whatever characters
/// they hold. The same data make the same bytes. Size: some 100 KB, about 12 bytes per task, 200 per operator.
/// Throws `invalid_input` as `report_json` does, and where the stream fails.
void write_report(std::ostream& stream, report_data const& d);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/report/html_report.ipp>
#endif
