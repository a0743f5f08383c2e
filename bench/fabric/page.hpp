#pragma once
// The comparison of networks as one HTML page that needs nothing else.

#include <ostream>
#include <string_view>

#include <nlohmann/json.hpp>

#include <parsearch/io/text/stream_text.hpp>

#include "../page_style.hpp"
#include "page_script.hpp"

namespace bench {

/// Writes the page of what `json_of` made. The same comparison makes the same bytes. Throws `invalid_input` where the stream fails.
inline void write_page(std::ostream& stream, nlohmann::json const& made) {
    ps::io::text_writer out(stream);
    out.add("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
            "initial-scale=1\">\n"
            "<title>Networks compared</title>\n<style>",
            page_style, fabric_style, "</style>\n</head>\n", fabric_body, "<script type=\"application/json\" id=\"data\">");
    for (char const c : made.dump()) // inside a script element only "<" could end it
        if (c == '<') out.add("\\u003c");
        else out.add(c);
    out.add("</script>\n<script>\n'use strict';\n", fabric_script, "</script>\n</body>\n</html>\n");
    out.finish("the page");
}

} // namespace bench
