#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/series_parallel.hpp>

#include "support/cases.hpp"

using namespace parsearch;
using namespace parsearch::graph;

namespace {

using edges_type = std::vector<task_edge>;

// "(0 [1 2] 3)": series in round, parallel in square brackets, whose parts are sorted.
std::string show(composition_tree const& t, std::size_t p) {
    auto const& part = t.parts[p];
    if (part.kind == composition::task) return text(part.task);
    std::vector<std::string> parts;
    for (auto const c : part.parts) parts.push_back(show(t, c));
    bool const series = part.kind == composition::series;
    if (!series) std::sort(parts.begin(), parts.end());
    std::string out;
    for (auto const& s : parts) out += (out.empty() ? "" : " ") + s;
    return text(series ? "(" : "[", out, series ? ")" : "]");
}
std::string show(std::size_t tasks, edges_type const& edges) {
    auto const t = decompose(tasks, edges);
    validate(t, tasks, edges);
    return t.parts.empty() ? "" : show(t, t.parts.size() - 1);
}

// A random tree as text, numbered from `first`; with the tasks of it that nothing precedes and that nothing follows.
struct drawn {
    std::string name;
    std::vector<std::uint32_t> sources, sinks;
};
drawn draw(split_mix& rng, std::uint32_t& first, std::size_t tasks, bool series, edges_type& edges) {
    if (tasks == 1) {
        auto const v = first++;
        return {text(v), {v}, {v}};
    }
    std::vector<std::size_t> sizes(2 + uniform_index(rng, std::min<std::size_t>(tasks - 1, 3)), 1);
    for (auto rest = tasks - sizes.size(); rest > 0; --rest) ++sizes[uniform_index(rng, sizes.size())];
    drawn out;
    std::vector<std::string> names;
    for (auto const size : sizes) {
        auto part = draw(rng, first, size, !series, edges);
        names.push_back(part.name);
        if (!series) {
            out.sources.insert(out.sources.end(), part.sources.begin(), part.sources.end());
            out.sinks.insert(out.sinks.end(), part.sinks.begin(), part.sinks.end());
            continue;
        }
        for (auto const a : out.sinks)
            for (auto const b : part.sources) edges.emplace_back(a, b);
        if (out.sources.empty()) out.sources = part.sources;
        out.sinks = part.sinks;
    }
    if (!series) std::sort(names.begin(), names.end());
    std::string all;
    for (auto const& s : names) all += (all.empty() ? "" : " ") + s;
    out.name = text(series ? "(" : "[", all, series ? ")" : "]");
    return out;
}

} // namespace

TEST_CASE("series-parallel: small graphs") {
    CHECK(show(0, {}).empty());
    CHECK(show(1, {}) == "0");
    CHECK(show(3, {}) == "[0 1 2]");
    CHECK(show(4, {{0, 1}, {1, 2}, {2, 3}}) == "(0 1 2 3)");
    CHECK(show(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}) == "(0 [1 2] 3)");
    CHECK(show(3, {{0, 1}, {1, 2}, {0, 2}, {0, 2}}) == "(0 1 2)"); // a residual connection, twice
    CHECK(show(4, {{0, 2}, {0, 3}, {1, 2}, {1, 3}}) == "([0 1] [2 3])");
    CHECK(show(5, {{4, 3}, {3, 2}, {4, 1}, {1, 0}, {2, 0}}) == "(4 [(3 2) 1] 0)");
    // An N, and one whose corners are chains and pairs.
    CHECK(show(4, {{0, 2}, {1, 2}, {1, 3}}) == "([0 1] [2 3])");
    CHECK(show(8, {{0, 1}, {1, 4}, {1, 5}, {2, 4}, {2, 5}, {3, 4}, {3, 5}, {2, 6}, {3, 6}, {6, 7}}) == "([(0 1) 2 3] [(6 7) 4 5])");
    // An N between two tasks that are comparable to all.
    CHECK(show(6, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {2, 4}, {3, 5}, {4, 5}}) == "(0 [1 2] [3 4] 5)");
}

TEST_CASE("series-parallel: random trees are found again, whatever the numbers and the edges beside paths") {
    std::uint64_t const seed = 77;
    split_mix rng{seed};
    MESSAGE("seed ", seed);
    for (int n = 0, count = support::cases(2000); n < count; ++n) {
        auto const tasks = 1 + uniform_index(rng, 30);
        edges_type edges;
        std::uint32_t first = 0;
        auto const made = draw(rng, first, tasks, bernoulli(rng, 0.5), edges);
        // Edges along two others change nothing.
        for (int k = 0; k < 5 && !edges.empty(); ++k) {
            auto const a = edges[uniform_index(rng, edges.size())];
            for (auto const& b : edges)
                if (a.second == b.first) {
                    edges.emplace_back(a.first, b.second);
                    break;
                }
        }
        for (auto i = edges.size(); i > 1; --i) std::swap(edges[i - 1], edges[uniform_index(rng, i)]);
        REQUIRE(show(tasks, edges) == made.name);
    }
}

TEST_CASE("series-parallel: any random DAG gives a valid tree, in which modules stay together") {
    std::uint64_t const seed = 78;
    split_mix rng{seed};
    MESSAGE("seed ", seed);
    for (int n = 0, count = support::cases(2000); n < count; ++n) {
        auto const tasks = 2 + uniform_index(rng, 12);
        std::vector<std::uint32_t> number(tasks);
        for (std::uint32_t v = 0; v < tasks; ++v) number[v] = v;
        for (auto i = tasks; i > 1; --i) std::swap(number[i - 1], number[uniform_index(rng, i)]);
        edges_type edges;
        double const density = 0.05 + 0.1 * static_cast<double>(n % 6);
        for (std::uint32_t a = 0; a < tasks; ++a)
            for (std::uint32_t b = a + 1; b < tasks; ++b)
                if (bernoulli(rng, density)) edges.emplace_back(number[a], number[b]);
        auto const t = decompose(tasks, edges);
        REQUIRE_NOTHROW(validate(t, tasks, edges));
        // Each task replaced by a chain of two: the same tree, with a series of two in the place of each leaf.
        edges_type twice;
        auto const m = static_cast<std::uint32_t>(tasks);
        for (auto const& [a, b] : edges) twice.emplace_back(a + m, b);
        for (std::uint32_t v = 0; v < m; ++v) twice.emplace_back(v, v + m);
        auto const name = show(t, t.parts.size() - 1);
        std::string expected;
        auto const write = [&](auto const& self, std::size_t p, bool in_series) -> std::string {
            auto const& part = t.parts[p];
            if (part.kind == composition::task)
                return in_series ? text(part.task, ' ', part.task + m) : text('(', part.task, ' ', part.task + m, ')');
            std::vector<std::string> parts;
            for (auto const c : part.parts) parts.push_back(self(self, c, part.kind == composition::series));
            if (part.kind == composition::parallel) std::sort(parts.begin(), parts.end());
            std::string out;
            for (auto const& s : parts) out += (out.empty() ? "" : " ") + s;
            return part.kind == composition::series ? text('(', out, ')') : text('[', out, ']');
        };
        CAPTURE(name);
        REQUIRE(show(2 * tasks, twice) == write(write, t.parts.size() - 1, false));
    }
}

TEST_CASE("series-parallel: bad graphs and trees are refused") {
    auto const tree_of = [](std::size_t n, edges_type const& e) { static_cast<void>(decompose(n, e)); };
    CHECK_THROWS_WITH_AS(tree_of(2, {{0, 2}}), "task graph: edge number 0 leads from 0 to 2: the graph has 2 tasks", invalid_input);
    CHECK_THROWS_WITH_AS(tree_of(3, {{0, 1}, {1, 2}, {2, 1}}), "task graph: task 1 waits for itself: the edges have a cycle", invalid_input);
    CHECK_THROWS_AS(tree_of(1, {{0, 0}}), invalid_input);

    edges_type const edge{{0, 1}};
    auto const leaf = [](std::uint32_t v) { return composition_tree::part{composition::task, v, {}}; };
    auto const with = [&](composition kind, std::vector<std::uint32_t> parts) {
        return composition_tree{{leaf(0), leaf(1), {kind, 0, std::move(parts)}}};
    };
    CHECK_NOTHROW(validate(with(composition::series, {0, 1}), 2, edge));
    CHECK_THROWS_AS(validate(with(composition::series, {1, 0}), 2, edge), invalid_input);
    CHECK_THROWS_AS(validate(with(composition::parallel, {0, 1}), 2, edge), invalid_input);
    CHECK_NOTHROW(validate(with(composition::parallel, {1, 0}), 2, {}));
    CHECK_THROWS_WITH_AS(validate(with(composition::series, {0, 1}), 3, edge), "composition tree: task 2 is missing", invalid_input);
    CHECK_THROWS_WITH_AS(validate(with(composition::series, {0, 0}), 2, edge),
                         "composition tree: part 2 has part 0, as has part 2: must be in one place", invalid_input);
    CHECK_THROWS_AS(validate(with(composition::series, {0, 2}), 2, edge), invalid_input);
    CHECK_THROWS_AS(validate(with(composition::series, {0}), 2, edge), invalid_input);
    CHECK_THROWS_AS(validate(composition_tree{{leaf(0), leaf(1)}}, 2, edge), invalid_input);
    CHECK_THROWS_AS(validate(composition_tree{{leaf(0), leaf(0), {composition::series, 0, {0, 1}}}}, 2, edge), invalid_input);
}
