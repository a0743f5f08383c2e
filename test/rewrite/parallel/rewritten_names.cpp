#include <parsearch/rewrite/parallel/rewritten_names.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

TEST_CASE("numbers that rewriting left in names go where nothing needs them") {
    graph::dense_graph model, g;
    model.names = {"a", "b~2", "c", "~3"};
    g.names = {"a~3", "b~2", "c~2", "c", "d+relu~4", "~3", "a~2", "e"};
    g.order = {6, 0, 1, 2, 3, 4, 5, 7};
    rewrite::keep_names(g, model);
    CHECK(g.names == std::vector<std::string>{"a~3", "b~2", "c~2", "c", "d+relu", "~3", "a", "e"});
    g.names = {"a~2~2", "b~2", "c~2~2", "c~2", "d+relu~4~2", "~3", "a~2", "c"};
    rewrite::keep_names(g, model);
    CHECK(g.names == std::vector<std::string>{"a~2", "b~2", "c~2~2", "c~2", "d+relu", "~3", "a", "c"});
    // Those of what was merged or fused, but nothing that is no number.
    model.names = {"a", "b", "x~y"};
    g.names = {"a~2|b~2~3", "a~2+relu", "x~y+relu", "a|c~2", "a|c", "b~", "1~2x"};
    g.order = {0, 1, 2, 3, 4, 5, 6};
    rewrite::keep_names(g, model);
    CHECK(g.names == std::vector<std::string>{"a|b", "a+relu", "x~y+relu", "a|c~2", "a|c", "b~", "1~2x"});
    auto const before = g.names;
    rewrite::keep_names(g, model);
    CHECK(g.names == before);
}
