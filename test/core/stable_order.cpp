#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/stable_order.hpp>

TEST_CASE("what compares equal stays in order") {
    std::vector<std::string> const words{"ring", "mesh", "a", "torus", "b", "tree"};
    auto const by_length = [&](std::size_t a, std::size_t b) { return words[a].size() < words[b].size(); };
    CHECK(parsearch::stable_order(words.size(), by_length) == std::vector<std::size_t>{2, 4, 0, 1, 5, 3});
    CHECK(parsearch::stable_order(0, by_length).empty());
}
