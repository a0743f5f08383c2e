#include <parsearch/io/display/listing.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/models/summary.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

using namespace parsearch;
using io::detail::products_of;
using io::detail::range_text;
using io::detail::take_apart;

TEST_CASE("ranges of numbers are short and say which they are") {
    CHECK(range_text({7}) == "7");
    CHECK(range_text({1, 2}) == "{1,2}");
    CHECK(range_text({1, 2, 3, 4}) == "{1..4}");
    CHECK(range_text({1, 2, 3, 7, 9}) == "{1..3,7,9}");
    CHECK(range_text({0, 4, 8, 12}) == "{0,4..12}");
    CHECK(range_text({0, 4, 8}) == "{0,4,8}");
    CHECK(range_text({1, 3, 5, 7}) == "{1,3..7}");
    CHECK(range_text({1, 3, 4, 5, 6, 7}) == "{1,3,4..7}"); // not as the line above
    CHECK(range_text({1, 3, 4, 5, 6}) == "{1,3..6}");
    CHECK(range_text({1, 10, 100, 1000, 5000, 9000, 9999, 20000}) == "{1,10,100,1000,5000,9000,...,20000}");
}

TEST_CASE("names are taken apart at their numbers") {
    auto const n = take_apart("block12.mlp.fc1");
    CHECK(n.pattern == std::string("block\0.mlp.fc\0", 14));
    CHECK(n.numbers == std::vector<std::int64_t>{12, 1});
    CHECK(take_apart("conv007").numbers.empty()); // "7" would be another name
    CHECK(take_apart("conv007").pattern == "conv007");
    CHECK(take_apart("x12345678901234567890").numbers.empty());
    CHECK(take_apart("x0").numbers == std::vector<std::int64_t>{0});
    CHECK(take_apart("").numbers.empty());
}

TEST_CASE("products cover the tuples exactly") {
    for (unsigned seed = 1; seed <= 200; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        std::size_t const positions = uniform_index(rng, 4);
        std::set<std::vector<std::int64_t>> given;
        for (std::size_t n = 1 + uniform_index(rng, 30); n > 0; --n) {
            std::vector<std::int64_t> t;
            for (std::size_t p = 0; p < positions; ++p) t.push_back(static_cast<std::int64_t>(uniform_index(rng, 4)));
            given.insert(t);
        }
        std::multiset<std::vector<std::int64_t>> covered;
        for (auto const& box : products_of({given.begin(), given.end()})) {
            std::vector<std::vector<std::int64_t>> all{{}};
            for (auto const& numbers : box) {
                std::vector<std::vector<std::int64_t>> longer;
                for (auto const& t : all)
                    for (auto const n : numbers) {
                        longer.push_back(t);
                        longer.back().push_back(n);
                    }
                all = std::move(longer);
            }
            covered.insert(all.begin(), all.end());
        }
        CHECK(std::vector(covered.begin(), covered.end()) == std::vector(given.begin(), given.end()));
    }
}

TEST_CASE("equal blocks of a network are shown once") {
    auto const g = graph::read_graph(models::gpt({.layers = 24, .hidden = 64, .heads = 4, .sequence = 16, .vocabulary = 96, .batch = 8})).graph;
    auto s = space::tensor_parallel(g, 8, 4);
    auto lines = io::listing(g, s);
    auto const find = [&](std::string const& name) {
        for (auto const& l : lines)
            if (l.name == name) return l;
        return io::listing_line{};
    };
    auto const heads = find("block{1..24}.attention");
    CHECK(heads.operators == 24);
    CHECK(heads.shape == "f32[8,16,64]");
    CHECK(heads.configuration == "s2 heads4 @0+4,1");
    std::size_t listed = 0, with_tasks = 0;
    for (auto const& l : lines) listed += l.operators;
    for (auto const& op : g.operations) with_tasks += op.work != ops::work_class::source;
    CHECK(listed == with_tasks);
    CHECK(lines.size() < 30);

    // One block that differs gets a line of its own, after the first of the others.
    for (std::size_t op = 0; op < g.size(); ++op)
        if (g.names[op] == "block7.attention") s[op] = space::whole(g.operations[op], 3);
    lines = io::listing(g, s);
    CHECK(find("block{1..6,8..24}.attention").operators == 23);
    CHECK(find("block7.attention").operators == 1);
    CHECK(find("block7.attention").configuration == "whole @3");
}

TEST_CASE("operators of another shape have a line of their own") {
    auto const g = graph::read_graph(models::resnet({.image = 32, .batch = 4})).graph;
    auto const lines = io::listing(g, space::data_parallel(g, 4));
    std::size_t listed = 0;
    for (auto const& l : lines) listed += l.operators;
    CHECK(lines.size() < listed);
    CHECK(lines.front().name == "stem.conv");
    CHECK(lines.front().kind == "conv2d");
    CHECK(lines.back().name == "loss");
}

TEST_CASE("operators of one name are counted") {
    graph::operator_graph made;
    made.add("fc1", ops::linear{.out = 4}, made.input("x", {{4, 4}}));
    auto g = graph::read_graph(made).graph;
    g.names.push_back(g.names.back());
    g.operations.push_back(g.operations.back());
    auto const lines = io::listing(g, space::data_parallel(g, 2));
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].name == "fc1");
    CHECK(lines[0].operators == 2);
}

TEST_CASE("parameters are listed once, equal ones in one line") {
    auto const g = graph::read_graph(models::gpt({.layers = 24, .hidden = 64, .heads = 4, .sequence = 16, .vocabulary = 96, .batch = 8})).graph;
    auto const lines = io::parameter_listing(g);
    std::int64_t elements = 0;
    for (auto const& l : lines) elements += l.elements;
    CHECK(elements == models::summarize(g).parameters);
    CHECK(lines.size() == 20);
    auto const find = [&](std::string const& name) {
        auto const at = std::find_if(lines.begin(), lines.end(), [&](auto const& l) { return l.name == name; });
        return at == lines.end() ? io::parameter_line{} : *at;
    };
    CHECK(find("tokens.weight") == io::parameter_line{"tokens.weight", 1, "f32[96,64]", 96 * 64}); // the logits' weight is the same tensor
    CHECK(find("block{1..24}.mlp.1.weight") == io::parameter_line{"block{1..24}.mlp.1.weight", 24, "f32[256,64]", 24 * 256 * 64});
}
