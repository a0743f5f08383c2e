#include <parsearch/io/text/stream_text.hpp>

#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "support/refusal.hpp"

using namespace parsearch;

TEST_CASE("stream text: large texts arrive whole") {
    std::ostringstream out;
    io::text_writer writer(out);
    std::string expected;
    for (int i = 0; i < 50'000; ++i) {
        writer.add("line ", i, '\n');
        expected += "line " + std::to_string(i) + '\n';
    }
    writer.finish("the text");
    CHECK(out.str() == expected);
}

TEST_CASE("stream text: a stream that fails is refused by name") {
    std::ostringstream out;
    io::text_writer writer(out);
    writer.add("x");
    out.setstate(std::ios::failbit);
    CHECK(support::refusal([&] { return writer.finish("the thing"), 0; }) == "the thing cannot be written: the stream has failed");
}

TEST_CASE("stream text: JSON and HTML escape what has a meaning") {
    CHECK(io::json_string("a\"b\\\n\x01") == "\"a\\\"b\\\\\\n\\u0001\"");
    CHECK(io::json_string("\xff") == "\"\xef\xbf\xbd\"");
    CHECK(io::html_text("<a href=\"x\">'&'</a>\x02\xff") == "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;\xef\xbf\xbd\xef\xbf\xbd");
    CHECK(io::html_text("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
}
