#include <parsearch/io/report/packed_numbers.hpp>

#include <cstdint>
#include <limits>
#include <string>

#include <doctest/doctest.h>

using namespace parsearch;

TEST_CASE("packed: seven bits to a byte, least significant first") {
    io::packed_numbers p;
    for (std::uint64_t const n : {0ULL, 127ULL, 128ULL, 300ULL}) p.add(n);
    CHECK(p.bytes() == std::string("\x00\x7f\x80\x01\xac\x02", 6));
    io::packed_numbers most;
    most.add(std::numeric_limits<std::uint64_t>::max());
    CHECK(most.bytes() == std::string(9, '\xff') + '\x01');
}

TEST_CASE("packed: base64, the vectors of RFC 4648") {
    CHECK(io::base64("") == "");
    CHECK(io::base64("f") == "Zg==");
    CHECK(io::base64("fo") == "Zm8=");
    CHECK(io::base64("foo") == "Zm9v");
    CHECK(io::base64("foob") == "Zm9vYg==");
    CHECK(io::base64("fooba") == "Zm9vYmE=");
    CHECK(io::base64("foobar") == "Zm9vYmFy");
    CHECK(io::base64("\xff\xfe\xfd") == "//79");
}
