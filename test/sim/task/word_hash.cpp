#include <parsearch/sim/task/word_hash.hpp>

#include <cstdint>
#include <unordered_set>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

TEST_CASE("word hash: small words and configurations do not collide") {
    sim::word_hash const hash;
    std::unordered_set<std::size_t> words, lists, configurations;
    for (std::uint64_t w = 0; w < 10'000; ++w) words.insert(hash(w << 16));
    CHECK(words.size() == 10'000);
    for (std::uint32_t a = 0; a < 50; ++a)
        for (std::uint32_t b = 0; b < 50; ++b) lists.insert(hash(std::vector<std::uint32_t>{a, b}));
    CHECK(lists.size() == 2500);
    for (std::int32_t degree = 1; degree <= 16; ++degree)
        for (std::int32_t stride = 1; stride <= 16; ++stride)
            for (std::int32_t start = 0; start < 16; ++start) {
                space::configuration c{.rank = 2, .degree = {degree, 2}, .stride = {stride, 1}, .start = start};
                configurations.insert(hash(c));
            }
    CHECK(configurations.size() == 16 * 16 * 16);
}
