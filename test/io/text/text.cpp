#include <parsearch/io/text/text.hpp>

#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::io;

TEST_CASE("text: a stream is read whole, up to its limit") {
    std::string const long_text(200'000, 'x');
    for (auto const& text : {std::string(), std::string("a\nb"), long_text}) {
        std::istringstream in(text);
        CHECK(read_text(in, "file", 200'000) == text);
    }
    std::istringstream too_long(long_text), failed;
    CHECK(support::refusal([&] { return read_text(too_long, "file", 199'999); }) == "file: longer than 199999 bytes: that is the limit");
    failed.setstate(std::ios::failbit);
    CHECK(support::refusal([&] { return read_text(failed, "file", 10); }) == "file: cannot be read");
}

TEST_CASE("text: positions count lines and bytes from 1") {
    std::string const text = "ab\n\ncd";
    CHECK(position_of(text, 0) == text_position{1, 1});
    CHECK(position_of(text, 1) == text_position{1, 2});
    CHECK(position_of(text, 2) == text_position{1, 3}); // the newline ends its line
    CHECK(position_of(text, 3) == text_position{2, 1});
    CHECK(position_of(text, 4) == text_position{3, 1});
    CHECK(position_of(text, 5) == text_position{3, 2});
    CHECK(position_of(text, 99) == text_position{3, 3});
    CHECK(position_of("", 0) == text_position{1, 1});
    CHECK(text_position{3, 14}.in("cluster.json") == "cluster.json:3:14");
}

TEST_CASE("text: what is quoted stays on one line, in ASCII and short") {
    CHECK(in_quotes("fc1") == "\"fc1\"");
    CHECK(printable("a\nb\x7f\xc3\xa9") == "a\\x0ab\\x7f\\xc3\\xa9");
    CHECK(printable(std::string(60, 'x')) == std::string(60, 'x'));
    CHECK(printable(std::string(61, 'x')) == std::string(60, 'x') + "...");
    CHECK(printable("abc", 2) == "ab...");
}
