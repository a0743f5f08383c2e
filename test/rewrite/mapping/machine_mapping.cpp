#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/rewrite/mapping/machine_mapping.hpp>
#include <parsearch/rewrite/mapping/machine_view.hpp>

#include "support/cases.hpp"
#include "support/has_n.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

constexpr picoseconds infinite = cost_traits<picoseconds>::infinity();

struct placed {
    resource_box box;
    std::uint32_t number = 0;
};

// Costs in tables, any of them infinite.
struct tabled {
    resource_box all{};
    std::vector<graph::task_edge> links{};
    std::vector<std::vector<placed>> choices{};
    std::vector<std::vector<std::int64_t>> costs{};              // by task, by view
    std::vector<std::vector<std::vector<std::int64_t>>> moves{}; // by edge, by view, by view

    resource_box machine() const { return all; }
    std::size_t tasks() const { return choices.size(); }
    std::vector<graph::task_edge> const& edges() const { return links; }
    std::vector<placed> const& views(std::size_t t) const { return choices[t]; }
    bool fits(std::size_t, placed const& v, resource_box const& box) const { return box.contains(v.box); }
    picoseconds task_cost(std::size_t t, placed const& v) const { return picoseconds{costs[t][v.number]}; }
    picoseconds edge_cost(std::size_t e, placed const& a, placed const& b) const { return picoseconds{moves[e][a.number][b.number]}; }
};
static_assert(MappingModel<tabled>);

std::int64_t sum(std::int64_t a, std::int64_t b) { return a == infinite.count() || b == infinite.count() ? infinite.count() : a + b; }

// The definition, word by word: sets of leaves, every box, every cut.
class by_definition {
  public:
    by_definition(tabled const& m, graph::composition_tree const& tree, std::uint32_t free) : m_(m), tree_(tree), free_(free) {
        for (std::size_t p = 0; p < tree.parts.size(); ++p) {
            std::set<std::uint32_t> leaves;
            if (tree.parts[p].kind == graph::composition::task) leaves.insert(tree.parts[p].task);
            for (auto const c : tree.parts[p].parts) leaves.insert(leaves_[c].begin(), leaves_[c].end());
            leaves_.push_back(leaves);
        }
    }
    std::int64_t operator()(std::vector<std::uint32_t> const& views) {
        views_ = views;
        known_.clear();
        return time({static_cast<std::uint32_t>(tree_.parts.size() - 1)}, m_.all);
    }
    // The least of all assignments.
    std::int64_t least() {
        std::vector<std::uint32_t> views(m_.tasks(), 0);
        std::int64_t best = infinite.count();
        for (auto const& c : m_.choices)
            if (c.empty()) return best;
        for (bool more = true; more;) {
            best = std::min(best, (*this)(views));
            more = false;
            for (std::size_t t = 0; t < views.size() && !more; ++t) {
                more = ++views[t] < m_.choices[t].size();
                if (!more) views[t] = 0;
            }
        }
        return best;
    }

  private:
    // Of parallel branches, or of one part.
    std::int64_t time(std::vector<std::uint32_t> const& parts, resource_box const& box) {
        if (auto const at = known_.find({parts, box}); at != known_.end()) return at->second;
        std::int64_t best = infinite.count();
        if (parts.size() > 1) {
            for (std::uint32_t mask = 1; mask + 1 < 1u << parts.size(); ++mask) {
                std::vector<std::uint32_t> a, b;
                for (std::size_t n = 0; n < parts.size(); ++n) (mask >> n & 1u ? a : b).push_back(parts[n]);
                if (!wide_.empty() && (!neighbours(a) || !neighbours(b))) continue;
                best = std::min(best, sum(time(a, box), time(b, box)));
                for (int n = 1; n < box.nodes; ++n) {
                    auto low = box, high = box;
                    low.nodes = n;
                    high.first_node += n;
                    high.nodes -= n;
                    best = std::min(best, std::max(time(a, low), time(b, high))); // the other way round is another mask
                }
                for (int n = 1; n < box.devices; ++n) {
                    auto low = box, high = box;
                    low.devices = n;
                    high.first_device += n;
                    high.devices -= n;
                    best = std::min(best, std::max(time(a, low), time(b, high)));
                }
            }
        } else if (auto const& part = tree_.parts[parts.front()]; part.kind == graph::composition::task) {
            auto const& v = m_.choices[part.task][views_[part.task]];
            if (v.box.first_node >= box.first_node && v.box.first_node + v.box.nodes <= box.first_node + box.nodes &&
                v.box.first_device >= box.first_device && v.box.first_device + v.box.devices <= box.first_device + box.devices)
                best = m_.costs[part.task][v.number];
        } else if (part.kind == graph::composition::series) {
            best = 0;
            for (auto const c : part.parts) best = sum(best, time({c}, box));
            for (std::size_t e = 0; e < m_.links.size(); ++e)
                for (auto const c : part.parts)
                    for (auto const d : part.parts)
                        if (c != d && leaves_[c].count(m_.links[e].first) && leaves_[d].count(m_.links[e].second))
                            best = sum(best, m_.moves[e][views_[m_.links[e].first]][views_[m_.links[e].second]]);
        } else {
            auto const before = wide_;
            wide_ = part.parts.size() > free_ ? part.parts : std::vector<std::uint32_t>{};
            best = time(part.parts, box);
            wide_ = before;
        }
        return known_[{parts, box}] = best;
    }
    bool neighbours(std::vector<std::uint32_t> const& parts) const {
        auto const first = std::find(wide_.begin(), wide_.end(), parts.front());
        return static_cast<std::size_t>(wide_.end() - first) >= parts.size() && std::equal(parts.begin(), parts.end(), first);
    }

    tabled const& m_;
    graph::composition_tree const& tree_;
    std::uint32_t free_;
    std::vector<std::set<std::uint32_t>> leaves_;
    std::vector<std::uint32_t> views_, wide_;
    std::map<std::pair<std::vector<std::uint32_t>, resource_box>, std::int64_t> known_;
};

void random_edges(split_mix& rng, std::size_t tasks, int kind, std::vector<graph::task_edge>& out) {
    auto const n = static_cast<std::uint32_t>(tasks);
    auto const link = [&](std::uint32_t a, std::uint32_t b, double p) {
        if (bernoulli(rng, p)) out.emplace_back(a, b);
    };
    if (kind == 0) // any DAG
        for (std::uint32_t a = 0; a < n; ++a)
            for (std::uint32_t b = a + 1; b < n; ++b) link(a, b, 0.4);
    else if (kind == 1) { // layers, mostly connected all to all
        std::vector<std::uint32_t> layer(n, 0);
        for (std::uint32_t v = 1; v < n; ++v) layer[v] = layer[v - 1] + static_cast<std::uint32_t>(bernoulli(rng, 0.5));
        for (std::uint32_t a = 0; a < n; ++a)
            for (std::uint32_t b = a + 1; b < n; ++b)
                if (layer[b] == layer[a] + 1) link(a, b, 0.85);
                else if (layer[b] > layer[a]) link(a, b, 0.1);
    } else if (kind == 2) { // a first and a last task, branches of one or two between, some edges past them
        for (std::uint32_t v = 1; v + 1 < n; ++v) {
            bool const chained = v > 1 && bernoulli(rng, 0.4);
            if (chained) out.emplace_back(v - 1, v);
            else out.emplace_back(0, v);
            link(v, n - 1, 0.8);
        }
        if (n > 1) link(0, n - 1, 0.3);
    } else if (kind == 4) { // an N and more tasks behind some of it
        out = {{0, 2}, {1, 2}, {1, 3}};
        for (std::uint32_t a = 0; a < n; ++a)
            for (std::uint32_t b = std::max(a + 1, 4u); b < n; ++b) link(a, b, 0.4);
    } // else none
    for (auto i = out.size(); i > 1; --i) std::swap(out[i - 1], out[uniform_index(rng, i)]);
    if (!out.empty() && bernoulli(rng, 0.2)) out.push_back(out.front());
}

tabled random_model(split_mix& rng, std::size_t tasks, std::size_t most_views, int kind) {
    auto const draw = [&](std::uint64_t n) { return static_cast<std::int64_t>(uniform_index(rng, n)); };
    tabled m;
    m.all = {static_cast<std::int32_t>(draw(2)), static_cast<std::int32_t>(1 + draw(3)), static_cast<std::int32_t>(draw(2)),
             static_cast<std::int32_t>(1 + draw(4))};
    random_edges(rng, tasks, kind, m.links);
    bool const heavy_moves = bernoulli(rng, 0.5);
    std::uint64_t const range = bernoulli(rng, 0.3) ? 4 : 1000;
    auto const cost = [&](std::uint64_t most, double impossible) { return bernoulli(rng, impossible) ? infinite.count() : draw(most); };
    for (std::size_t t = 0; t < tasks; ++t) {
        std::vector<resource_box> boxes;
        for (std::int32_t const d : {1, 2, 4})
            for (auto const& v : view_space({d}, m.all).list()) boxes.push_back(footprint(v, std::vector{d}));
        auto const count = 1 + uniform_index(rng, most_views);
        m.choices.emplace_back();
        m.costs.emplace_back();
        for (std::uint32_t n = 0; n < count; ++n) {
            m.choices[t].push_back({boxes[uniform_index(rng, boxes.size())], n});
            m.costs[t].push_back(cost(range, 0.03));
        }
    }
    for (auto const& [a, b] : m.links) {
        m.moves.emplace_back(m.choices[a].size());
        for (auto& row : m.moves.back())
            for (std::size_t n = 0; n < m.choices[b].size(); ++n) row.push_back(cost(heavy_moves ? range : range / 4 + 1, 0.03));
    }
    return m;
}

// Equal devices and links: costs depend on kinds, degrees, strides and differences of starts.
struct uniform {
    struct choice {
        machine_view view;
        std::int32_t degree;
        resource_box box;
    };
    resource_box all{};
    std::vector<graph::task_edge> links{};
    std::vector<std::vector<choice>> choices{}; // by kind
    std::vector<std::uint32_t> kinds{}, labels{};
    std::uint64_t range = 0;

    resource_box machine() const { return all; }
    std::size_t tasks() const { return kinds.size(); }
    std::vector<graph::task_edge> edges() const { return links; }
    std::vector<choice> views(std::size_t t) const { return choices[kinds[t]]; }
    bool fits(std::size_t, choice const& v, resource_box const& box) const { return box.contains(v.box); }
    picoseconds task_cost(std::size_t t, choice const& v) const { return picoseconds{hash({kinds[t], shape(v)}) % range}; }
    picoseconds edge_cost(std::size_t e, choice const& a, choice const& b) const {
        auto const moved = static_cast<std::uint64_t>((b.view.start.node - a.view.start.node) * 16 + b.view.start.device - a.view.start.device + 256);
        auto const [from, to] = links[e];
        return picoseconds{hash({labels[e], kinds[from], kinds[to], shape(a), shape(b), moved}) % range / 2};
    }

  private:
    static std::uint64_t shape(choice const& v) {
        return (static_cast<std::uint64_t>(v.degree) * 16 + static_cast<std::uint64_t>(v.view.stride[0])) * 2 + (v.view.across[0] ? 1u : 0u);
    }
    static std::uint64_t hash(std::initializer_list<std::uint64_t> parts) {
        std::uint64_t out = 17;
        for (auto const p : parts) out = split_mix{out * 31 + p}();
        return out >> 8;
    }
};
struct classed : uniform {
    std::uint32_t task_class(std::size_t t) const { return kinds[t]; }
    std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> edge_class(std::size_t e) const {
        return {kinds[links[e].first], kinds[links[e].second], labels[e]};
    }
    std::pair<int, int> box_class(resource_box const& box) const { return {box.nodes, box.devices}; }
};
static_assert(MappingModel<uniform> && MappingModel<classed>);

classed random_uniform(split_mix& rng, std::size_t kinds) {
    classed m;
    m.all = {1, static_cast<std::int32_t>(1 + uniform_index(rng, 2)), 2, static_cast<std::int32_t>(1 + uniform_index(rng, 4))};
    m.range = bernoulli(rng, 0.3) ? 6 : 1000;
    for (std::size_t k = 0; k < kinds; ++k) {
        m.choices.emplace_back();
        for (std::int32_t const d : {1, 2, 4})
            if (d == 1 || bernoulli(rng, 0.6))
                for (auto const& v : view_space({d}, m.all).list()) m.choices[k].push_back({v, d, footprint(v, std::vector{d})});
    }
    return m;
}
void label(split_mix& rng, classed& m) {
    for (std::size_t e = 0; e < m.links.size(); ++e) m.labels.push_back(static_cast<std::uint32_t>(uniform_index(rng, 2)));
}

// A random series-parallel graph, with few kinds of tasks: its first and last tasks.
std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>> random_tree(split_mix& rng, classed& m, std::size_t tasks, bool series) {
    if (tasks == 1) {
        auto const v = static_cast<std::uint32_t>(m.kinds.size());
        m.kinds.push_back(static_cast<std::uint32_t>(uniform_index(rng, m.choices.size())));
        return {{v}, {v}};
    }
    std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>> out;
    for (std::size_t rest = tasks, parts = 2 + uniform_index(rng, 2); rest > 0; --parts) {
        auto const size = parts <= 1 ? rest : 1 + uniform_index(rng, rest - std::min(rest, parts) + 1);
        auto const part = random_tree(rng, m, std::min(size, rest == tasks ? tasks - 1 : rest), !series);
        rest -= std::min(size, rest == tasks ? tasks - 1 : rest);
        if (series) {
            for (auto const a : out.second)
                for (auto const b : part.first) m.links.emplace_back(a, b);
            if (out.first.empty()) out.first = part.first;
            out.second = part.second;
        } else {
            out.first.insert(out.first.end(), part.first.begin(), part.first.end());
            out.second.insert(out.second.end(), part.second.begin(), part.second.end());
        }
        if (parts <= 1) parts = 2;
    }
    return out;
}

template <class M> tabled tables_of(M const& m) {
    tabled out{.all = m.machine(), .links = m.edges()};
    for (std::size_t t = 0; t < m.tasks(); ++t) {
        out.choices.emplace_back();
        out.costs.emplace_back();
        for (auto const& v : m.views(t)) {
            out.choices[t].push_back({v.box, static_cast<std::uint32_t>(out.choices[t].size())});
            out.costs[t].push_back(m.task_cost(t, v).count());
        }
    }
    for (std::size_t e = 0; e < out.links.size(); ++e) {
        out.moves.emplace_back();
        for (auto const& a : m.views(out.links[e].first)) {
            out.moves[e].emplace_back();
            for (auto const& b : m.views(out.links[e].second)) out.moves[e].back().push_back(m.edge_cost(e, a, b).count());
        }
    }
    return out;
}

std::string describe(tabled const& m) {
    std::string out = text(to_string(m.all), ", ", m.tasks(), " tasks:");
    for (auto const& [a, b] : m.links) out += text(' ', a, "->", b);
    return out;
}

} // namespace

TEST_CASE("machine mapping: the least of all views, cuts and orders, on random graphs") {
    std::uint64_t const seed = 4242;
    MESSAGE("seed ", seed);
    std::size_t parallel = 0, in_part = 0, never = 0, not_series_parallel = 0;
    for (int n = 0, count = support::cases(2400); n < count; ++n) {
        split_mix rng{seed + static_cast<std::uint64_t>(n)};
        int const kind = n % 8 == 7 ? 3 : n % 8 > 2 ? 4 : n % 3;
        auto const tasks = kind == 4 ? 4 + uniform_index(rng, 3) : 1 + uniform_index(rng, n % 2 == 0 ? 6 : 7);
        auto const m = random_model(rng, tasks, n % 2 == 0 ? 3 : 2, kind);
        not_series_parallel += support::has_n(m.tasks(), m.links);
        CAPTURE(n);
        CAPTURE(describe(m));
        auto const tree = decompose(m);
        for (auto const& p : tree.parts) parallel += p.kind == graph::composition::parallel;
        mapping_options const options{.free_branches = n % 4 < 2 ? 4u : 2u};
        by_definition definition(m, tree, options.free_branches);
        auto const found = machine_mapping(m, options);
        REQUIRE(found.cost.count() == definition.least());
        if (found.cost == infinite) {
            ++never;
            REQUIRE(found.views.empty());
            continue;
        }
        REQUIRE(found.views.size() == m.tasks());
        REQUIRE(definition(found.views) == found.cost.count());
        REQUIRE(mapping_time(m, tree, found.views, options) == found.cost);
        for (std::size_t t = 0; t < m.tasks(); ++t) {
            REQUIRE(found.boxes[t].contains(m.choices[t][found.views[t]].box));
            in_part += found.boxes[t] != m.all;
        }
        // Another assignment: both evaluations agree.
        std::vector<std::uint32_t> other;
        for (auto const& c : m.choices) other.push_back(static_cast<std::uint32_t>(uniform_index(rng, c.size())));
        REQUIRE(mapping_time(m, tree, other, options).count() == definition(other));
    }
    MESSAGE(parallel, " parallel compositions, ", in_part, " tasks on a part of the machine, ", never, " cases without a plan, ", not_series_parallel,
            " graphs that are not series-parallel");
    CHECK(parallel > static_cast<std::size_t>(support::cases(1000)));
    CHECK(in_part > static_cast<std::size_t>(support::cases(500)));
    CHECK(never > 0);
    CHECK(not_series_parallel > static_cast<std::size_t>(support::cases(1000)));
}

TEST_CASE("machine mapping: what is alike is solved once, with the same answer") {
    std::uint64_t const seed = 99;
    MESSAGE("seed ", seed);
    std::size_t compared = 0, in_part = 0;
    for (int n = 0, count = support::cases(240); n < count; ++n) {
        split_mix rng{seed + static_cast<std::uint64_t>(n)};
        auto m = random_uniform(rng, 1 + uniform_index(rng, 2));
        bool const small = n % 2 == 0;
        random_tree(rng, m, small ? 1 + uniform_index(rng, 4) : 5 + uniform_index(rng, 6), bernoulli(rng, 0.7));
        label(rng, m);
        auto const tables = tables_of(m);
        CAPTURE(n);
        CAPTURE(describe(tables));
        auto const found = machine_mapping(m);
        REQUIRE(found.cost < infinite);
        auto const tree = decompose(m);
        REQUIRE(mapping_time(m, tree, found.views) == found.cost);
        by_definition definition(tables, tree, 4);
        REQUIRE(definition(found.views) == found.cost.count());
        REQUIRE(machine_mapping(static_cast<uniform const&>(m)).cost == found.cost);
        REQUIRE(machine_mapping(tables).cost == found.cost);
        for (auto const& box : found.boxes) in_part += box != m.all;
        double assignments = 1;
        for (auto const& c : tables.choices) assignments *= static_cast<double>(c.size());
        if (assignments <= 600) {
            ++compared;
            REQUIRE(found.cost.count() == definition.least());
        }
        for (int k = 0; k < 4; ++k) { // one other view does no better
            auto other = found.views;
            auto const t = uniform_index(rng, other.size());
            other[t] = static_cast<std::uint32_t>(uniform_index(rng, m.views(t).size()));
            REQUIRE(mapping_time(m, tree, other) >= found.cost);
        }
    }
    MESSAGE(compared, " compared with all assignments, ", in_part, " tasks on a part of the machine");
    CHECK(compared > static_cast<std::size_t>(support::cases(50)));
    CHECK(in_part > static_cast<std::size_t>(support::cases(100)));
}

TEST_CASE("machine mapping: two branches side by side, where communication allows") {
    // A task on all devices, two on half of them each, a task on all. Moving to the half costs 3, a branch 10.
    resource_box const all{0, 1, 0, 2};
    tabled m{.all = all, .links = {{0, 1}, {0, 2}, {1, 3}, {2, 3}}};
    placed const both{all, 0}, low{{0, 1, 0, 1}, 0}, high{{0, 1, 1, 1}, 1};
    m.choices = {{both}, {low, high, {all, 2}}, {low, high, {all, 2}}, {both}};
    m.costs = {{1}, {10, 10, 8}, {10, 10, 8}, {1}};
    m.moves = {{{1, 1, 0}}, {{1, 1, 0}}, {{1}, {1}, {0}}, {{1}, {1}, {0}}};
    auto const found = machine_mapping(m);
    CHECK(found.cost == picoseconds{1 + 4 + 10 + 1});
    REQUIRE(found.boxes.size() == 4);
    CHECK(found.boxes[0] == all);
    CHECK(found.boxes[1] != found.boxes[2]);
    for (auto& row : m.moves[0][0]) row += 3;
    CHECK(machine_mapping(m).cost == picoseconds{1 + 3 + 4 + 10 + 1});
    m.moves[0][0] = {9, 9, 0};
    CHECK(machine_mapping(m).cost == picoseconds{1 + 8 + 8 + 1}); // one after the other, on both devices
    // Sequence alone, as a tree of one's own.
    graph::composition_tree const sequence{{{graph::composition::task, 0, {}},
                                            {graph::composition::task, 1, {}},
                                            {graph::composition::task, 2, {}},
                                            {graph::composition::task, 3, {}},
                                            {graph::composition::series, 0, {0, 1, 2, 3}}}};
    m.moves[0][0] = {1, 1, 0};
    CHECK(machine_mapping(m, sequence).cost == picoseconds{18});
    CHECK(machine_mapping(tabled{.all = all}).cost == picoseconds{0});
}

TEST_CASE("machine mapping: bad input is refused") {
    auto const map = [](auto const& m, mapping_options const& o = {}) { static_cast<void>(machine_mapping(m, o)); };
    resource_box const one{};
    tabled const good{.all = one, .links = {{0, 1}}, .choices = {{{one, 0}}, {{one, 0}}}, .costs = {{1}, {1}}, .moves = {{{1}}}};
    CHECK_NOTHROW(map(good));
    auto m = good;
    m.costs[1][0] = -2;
    CHECK_THROWS_WITH_AS(map(m), "machine mapping: the cost of task 1 is -2 ps: must not be negative", invalid_input);
    m = good;
    m.moves[0][0][0] = -1;
    CHECK_THROWS_WITH_AS(map(m), "machine mapping: the cost of edge number 0 is -1 ps: must not be negative", invalid_input);
    m = good;
    m.all.devices = 0;
    CHECK_THROWS_WITH_AS(map(m), "machine mapping: a box of 0 devices per node: must be at least 1", invalid_input);
    m = good;
    m.links = {{0, 2}};
    CHECK_THROWS_AS(map(m), invalid_input);
    m.links = {{0, 1}, {1, 0}};
    CHECK_THROWS_AS(map(m), invalid_input);
    m = good;
    m.choices[0].clear();
    CHECK(machine_mapping(m).cost == infinite);
    m = good;
    m.costs[0][0] = m.costs[1][0] = infinite.count() - 1; // past 64 bits
    CHECK(machine_mapping(m).cost == infinite);
    CHECK_THROWS_WITH_AS(map(good, {.free_branches = 9}), "machine mapping: option 'free_branches' is 9: must be from 2 to 8", invalid_input);
    CHECK_THROWS_AS(map(good, {.table_limit = 0}), invalid_input);
    CHECK_THROWS_WITH_AS(map(good, {.effort = 0}), "machine mapping: option 'effort' is 0: must be at least 1", invalid_input);
    auto const tree = decompose(good);
    auto const time = [&](std::vector<std::uint32_t> const& views) { static_cast<void>(mapping_time(good, tree, views)); };
    CHECK_THROWS_WITH_AS(time({0, 1}), "machine mapping: view number 1 of task 1: it has 1 views", invalid_input);
    CHECK_THROWS_AS(time({0}), invalid_input);

    split_mix rng{5};
    auto wide = random_uniform(rng, 2);
    wide.all = {0, 1, 0, 4};
    for (auto& list : wide.choices) {
        list.clear();
        for (auto const& v : view_space({1}, wide.all).list()) list.push_back({v, 1, footprint(v, std::vector{1})});
    }
    wide.kinds = {0, 0, 0, 0};
    wide.links = {{0, 2}, {0, 3}, {1, 2}, {1, 3}};
    wide.labels = {0, 0, 0, 0};
    CHECK_NOTHROW(map(wide));
    CHECK_THROWS_WITH_AS(map(wide, {.table_limit = 15}),
                         "machine mapping: a table of 16 entries, the views of 2 tasks that depend on each other: option 'table_limit' allows 15; "
                         "give tasks fewer views",
                         invalid_input);
    auto other = wide;
    other.kinds[3] = 1;
    struct lies : classed {
        std::uint32_t edge_class(std::size_t) const { return 0; }
    } const lying{other};
    CHECK_THROWS_WITH_AS(map(lying), "machine mapping: edge number 1 is of the class of one that leads between tasks of other classes",
                         invalid_input);
    other.choices[1].pop_back();
    struct more_lies : classed {
        std::uint32_t task_class(std::size_t) const { return 0; }
    } const lying_too{other};
    CHECK_THROWS_WITH_AS(map(lying_too), "machine mapping: task 3 has 3 views, the first task of its class 4: must be as many", invalid_input);
}

TEST_CASE("machine mapping: it refuses what takes more steps than allowed, tells how many it took, and stops when asked") {
    split_mix rng{31};
    auto m = random_uniform(rng, 2);
    random_tree(rng, m, 12, true);
    label(rng, m);
    auto const found = machine_mapping(m);
    REQUIRE(found.steps > 100);
    auto const same = machine_mapping(m, {.effort = found.steps});
    CHECK(same.views == found.views);
    CHECK(same.steps == found.steps);
    for (auto const effort : {std::uint64_t{1}, found.steps / 2, found.steps - 1}) {
        try {
            static_cast<void>(machine_mapping(m, {.effort = effort}));
            FAIL("not refused");
        } catch (mapping_limit const& e) {
            CHECK(e.steps() > effort);
            CHECK(e.steps() <= found.steps);
            CHECK(std::string(e.what()) ==
                  text("machine mapping: more steps than the ", effort, " that option 'effort' allows; give tasks fewer views"));
        }
    }
    int asked = 0;
    CHECK(machine_mapping(m, {.stopped = [&] { return ++asked < 0; }}).cost == found.cost);
    CHECK(asked > 0);
    CHECK_THROWS_WITH_AS(static_cast<void>(machine_mapping(m, {.stopped = [] { return true; }})), "machine mapping: stopped before it was done",
                         mapping_limit);
}
