#include <parsearch/lab/rules/enumerate_graphs.hpp>

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
operator_set const relu_and_add{{"OP_RELU"}, {"OP_EW_ADD"}};
std::string refused(enumeration_options const& options) {
    return support::refusal([&] { return enumerate(options).size(); });
}
std::size_t classes(std::vector<rewrite::detail::graph_entry> const& graphs) {
    std::set<rewrite::detail::fingerprint> out;
    for (auto const& g : graphs) out.insert(g.print);
    return out.size();
}
} // namespace

TEST_CASE("enumeration: as many graphs as one counts by hand, each once") {
    // One operator on x1 and x2: two relus, three sums. A second beside it: 10 pairs. A second on what f makes: relu f, f + f, f + x1, f + x2.
    for (std::size_t n = 1; n <= 2; ++n) {
        auto const graphs = enumerate({.operators = n, .set = relu_and_add, .inputs = {{1, 2, 2}, {1, 2, 2}}});
        CHECK(graphs.size() == (n == 1 ? 5 : 5 + 10 + 5 * 4));
        std::set<rewrite::detail::code> codes;
        for (auto const& g : graphs) codes.insert(g.code);
        CHECK(codes.size() == graphs.size());
    }
    // Of x1 and likewise of x2: relu relu x1 = relu x1, relu x1 + relu x1 = relu(x1 + x1), (x1 + x1) + x2 = x1 + (x1 + x2).
    auto const graphs = enumerate({.operators = 2, .set = relu_and_add, .inputs = {{1, 4, 4}, {1, 4, 4}}});
    CHECK(classes(graphs) == graphs.size() - 6);
    // Inputs of other extents are never added.
    CHECK(enumerate({.operators = 1, .set = relu_and_add, .inputs = {{1, 4, 4}, {1, 2, 2}}}).size() == 4);
}

TEST_CASE("threads: enumeration is the same for any number of threads") {
    enumeration_options options{.operators = 2};
    auto const one = enumerate(options);
    options.threads = 3;
    CHECK(enumerate(options) == one);
}

TEST_CASE("enumeration: sorted by fingerprint, and the same graphs with other data") {
    enumeration_options options{.operators = 2};
    auto const one = enumerate(options);
    CHECK(std::is_sorted(one.begin(), one.end()));
    CHECK(one.size() == 37155);
    // Not the same classes: of few elements, some are equal by chance.
    options.seed = 2;
    auto const other = enumerate(options);
    CHECK(other.size() == one.size());
    CHECK(other != one);
}

TEST_CASE("enumeration: a graph has one form whatever the order of its operators and the names of its inputs") {
    using namespace rewrite::detail;
    auto const kinds = kinds_of(relu_and_add);
    std::vector<std::uint8_t> const same{0, 1}, swapped{1, 0};
    code const a{3, {{{0, 0, no_operand}, {0, 1, no_operand}, {1, 2, 3}, {}}}}; // relu x1 + relu x2
    code const b{3, {{{0, 1, no_operand}, {0, 0, no_operand}, {1, 3, 2}, {}}}};
    CHECK(least_form(a, kinds, same) == a);
    CHECK(least_form(b, kinds, same) == a);
    CHECK(least_form(a, kinds, swapped) == a);
    code const c{2, {{{0, 1, no_operand}, {1, 0, 2}, {}, {}}}}; // x1 + relu x2
    CHECK(least_form(c, kinds, swapped) == code{2, {{{0, 0, no_operand}, {1, 1, 2}, {}, {}}}});
}

TEST_CASE("enumeration: what is asked must make sense") {
    CHECK(refused({.operators = 0}) == "enumeration: operators of a graph are 0: must be from 1 to 4");
    CHECK(refused({.operators = 5}) == "enumeration: operators of a graph are 5: must be from 1 to 4");
    CHECK(refused({.set = {}}) == "enumeration: operators of the set are 0: must be from 1 to 100");
    CHECK(refused({.inputs = {}}) == "enumeration: inputs are 0: must be from 1 to 8");
    CHECK(refused({.inputs = {{1, 0, 1}}}) == "enumeration: an input has extent 0: must be from 1 to 64");
    CHECK(refused({.threads = 0}) == "enumeration: threads are 0: must be from 1 to 1024");
    CHECK(refused({.set = {{"OP_CONV2D"}}}) == "OP_CONV2D: what it computes is not known");
    CHECK(refused({.set = {{"OP_CONCAT", {}, {{"PM_NUM_INPUTS", 3}, {"PM_AXIS", 1}, {"PM_NUMDIM", 3}}}}}) ==
          "operator 0 of the set (OP_CONCAT) takes 3 operands: must take 1 or 2");
    CHECK(refused({.operators = 2, .most_graphs = 100}) == "enumeration: there are more than most_graphs = 100 graphs");
}
