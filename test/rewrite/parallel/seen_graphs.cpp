#include <parsearch/rewrite/parallel/seen_graphs.hpp>

#include <doctest/doctest.h>

#include <parsearch/ops/elementwise.hpp>

#include "support/grown_graph.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

TEST_CASE("seen graphs: told apart by what they compute, not by names and numbers") {
    auto const made = [](bool twice, bool also) {
        support::grown_graph b;
        auto const x = b.g.add_input("x", {{4, 6}});
        if (also) b.g.add_operator("unused", ops::relu{}.infer(std::vector{ops::tensor{{4, 6}}}), {x}); // numbers are other ones
        auto const y = b.add(ops::relu{}, {x});
        if (twice) b.add(ops::gelu{}, y);
        b.finish();
        b.g.prune();
        return b.g;
    };
    rewrite::detail::seen_graphs seen;
    CHECK(seen.add(made(false, false)));
    CHECK(seen.add(made(true, false)));
    CHECK_FALSE(seen.add(made(false, true)));
    CHECK_FALSE(seen.add(made(true, true)));
}
