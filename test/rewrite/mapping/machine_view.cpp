#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/rewrite/mapping/machine_view.hpp>

#include "support/cases.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

using placement = std::vector<machine_device>; // the device of each task

// The device of each task, counted up dim by dim; empty where one is outside the box or two are the same.
placement place(machine_view const& v, std::vector<int> const& degrees, resource_box const& box) {
    placement out;
    std::vector<int> at(degrees.size(), 0);
    for (bool more = true; more;) {
        machine_device d = v.start;
        for (std::size_t k = 0; k < at.size(); ++k) {
            if (v.across[k]) d.node += at[k] * v.stride[k];
            else d.device += at[k] * v.stride[k];
        }
        if (d.node < box.first_node || d.node >= box.first_node + box.nodes || d.device < box.first_device ||
            d.device >= box.first_device + box.devices)
            return {};
        out.push_back(d);
        more = false;
        for (std::size_t k = at.size(); k-- > 0 && !more;) {
            more = ++at[k] < degrees[k];
            if (!more) at[k] = 0;
        }
    }
    return std::set(out.begin(), out.end()).size() == out.size() ? out : placement{};
}

// Every start and every stride from 1, of every dim, even of those of degree 1.
void all_views(std::vector<int> const& degrees, resource_box const& box, std::vector<machine_view>& out) {
    int const most = std::max(box.nodes, box.devices);
    machine_view v{.rank = static_cast<std::uint32_t>(degrees.size())};
    auto const dims = [&](auto const& self, std::size_t k) -> void {
        if (k == degrees.size()) {
            if (!place(v, degrees, box).empty()) out.push_back(v);
            return;
        }
        for (bool const across : {false, true})
            for (int s = 1; s <= most; ++s) {
                v.across[k] = across;
                v.stride[k] = s;
                self(self, k + 1);
            }
    };
    for (v.start.node = box.first_node; v.start.node < box.first_node + box.nodes; ++v.start.node)
        for (v.start.device = box.first_device; v.start.device < box.first_device + box.devices; ++v.start.device) dims(dims, 0);
}

std::string describe(std::vector<int> const& degrees, resource_box const& box) {
    std::string out = to_string(box) + ", degrees";
    for (auto const d : degrees) out += text(" ", d);
    return out;
}

// The least placement among those that swapping dims of equal label and degree makes.
placement least_swap(placement const& p, std::vector<int> const& degrees, std::vector<std::uint32_t> const& labels) {
    std::vector<std::size_t> order(degrees.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    placement best = p;
    do {
        bool allowed = true;
        for (std::size_t k = 0; k < order.size(); ++k) allowed = allowed && labels[k] == labels[order[k]] && degrees[k] == degrees[order[k]];
        if (!allowed) continue;
        placement q(p.size());
        for (std::size_t n = 0; n < p.size(); ++n) {
            std::vector<std::size_t> at(degrees.size());
            auto rest = n;
            for (std::size_t k = degrees.size(); k-- > 0; rest /= static_cast<std::size_t>(degrees[k]))
                at[k] = rest % static_cast<std::size_t>(degrees[k]);
            std::size_t m = 0;
            for (std::size_t k = 0; k < degrees.size(); ++k) m = m * static_cast<std::size_t>(degrees[k]) + at[order[k]];
            q[m] = p[n];
        }
        best = std::min(best, q);
    } while (std::next_permutation(order.begin(), order.end()));
    return best;
}

} // namespace

TEST_CASE("machine views: all placements that views describe, each once, against all starts and strides") {
    std::uint64_t const seed = 20240;
    split_mix rng{seed};
    MESSAGE("seed ", seed);
    auto const draw = [&](std::uint64_t n) { return static_cast<int>(uniform_index(rng, n)); };
    std::size_t views = 0, without = 0;
    for (int n = 0, count = support::cases(1500); n < count; ++n) {
        std::vector<int> degrees(static_cast<std::size_t>(draw(4)));
        for (auto& d : degrees) d = 1 + draw(3);
        resource_box const box{draw(3), 1 + draw(4), draw(3), 1 + draw(degrees.size() == 3 ? 4 : 6)};
        std::vector<std::uint32_t> labels;
        for (std::size_t k = 0; k < degrees.size(); ++k) labels.push_back(static_cast<std::uint32_t>(draw(2)));
        CAPTURE(describe(degrees, box));

        std::vector<machine_view> brute;
        all_views(degrees, box, brute);
        std::set<placement> expected, swapped;
        std::set<std::set<machine_device>> sets;
        for (auto const& v : brute) {
            auto const p = place(v, degrees, box);
            expected.insert(p);
            sets.insert({p.begin(), p.end()});
            swapped.insert(least_swap(p, degrees, labels));
        }

        view_space const space(degrees, box);
        auto const list = space.list();
        REQUIRE(list.size() == space.size());
        std::set<placement> found;
        std::size_t i = 0;
        for (auto const& v : space.all()) {
            REQUIRE(v == list[i]);
            REQUIRE(v == space[i++]);
            auto const p = place(v, degrees, box);
            REQUIRE(!p.empty());
            REQUIRE(found.insert(p).second);
            auto const covers = footprint(v, degrees);
            REQUIRE(box.contains(covers));
            int low_node = 99, high_node = 0, low = 99, high = 0;
            auto const c = to_configuration(v, degrees, box.first_device + box.devices);
            REQUIRE(c.shards() == static_cast<std::int64_t>(p.size()));
            for (std::size_t t = 0; t < p.size(); ++t) {
                REQUIRE(device_of(v, degrees, static_cast<std::int64_t>(t)) == p[t]);
                REQUIRE(c.device(static_cast<std::int64_t>(t)) == p[t].node * (box.first_device + box.devices) + p[t].device);
                low_node = std::min(low_node, p[t].node), high_node = std::max(high_node, p[t].node);
                low = std::min(low, p[t].device), high = std::max(high, p[t].device);
            }
            REQUIRE(covers == resource_box{low_node, high_node - low_node + 1, low, high - low + 1});
        }
        REQUIRE(i == list.size());
        REQUIRE(found == expected);
        REQUIRE(std::set(list.begin(), list.end()).size() == list.size());

        std::set<std::set<machine_device>> found_sets;
        for (auto const& v : view_space(degrees, box, {.equivalence = view_equivalence::devices}).list()) {
            auto const p = place(v, degrees, box);
            REQUIRE(found_sets.insert({p.begin(), p.end()}).second);
        }
        REQUIRE(found_sets == sets);

        std::set<placement> found_swapped;
        for (auto const& v : view_space(degrees, box, {.labels = labels}).list())
            REQUIRE(found_swapped.insert(least_swap(place(v, degrees, box), degrees, labels)).second);
        REQUIRE(found_swapped == swapped);
        views += list.size();
        without += list.empty();
    }
    MESSAGE(views, " views, ", without, " cases without any");
    CHECK(views > static_cast<std::size_t>(support::cases(10'000)));
    CHECK(without > 0);
}

TEST_CASE("machine views: dims of degree 1 add none") {
    resource_box const machine{0, 2, 0, 8};
    auto const plain = view_space({4}, machine);
    auto const padded = view_space({1, 4, 1, 1}, machine);
    REQUIRE(plain.size() == padded.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
        CHECK(plain[i].stride[0] == padded[i].stride[1]);
        CHECK(padded[i].stride[0] == 0);
    }
    CHECK(view_space({}, machine).size() == 16);
    CHECK(view_space({1}, machine).size() == 16);
    CHECK(view_space({17}, machine).empty());
    CHECK(view_space({3, 1'000'000'000, 1'000'000'000, 1'000'000'000}, machine).empty());
}

TEST_CASE("machine views: boxes are cut at every node and device") {
    resource_box const box{1, 3, 2, 2};
    REQUIRE(box.cuts() == 3);
    CHECK(box.lower(0) == resource_box{1, 1, 2, 2});
    CHECK(box.upper(0) == resource_box{2, 2, 2, 2});
    CHECK(box.lower(1) == resource_box{1, 2, 2, 2});
    CHECK(box.upper(1) == resource_box{3, 1, 2, 2});
    CHECK(box.lower(2) == resource_box{1, 3, 2, 1});
    CHECK(box.upper(2) == resource_box{1, 3, 3, 1});
    CHECK(resource_box{}.cuts() == 0);
}

TEST_CASE("machine views: bad input is refused") {
    resource_box const one{};
    CHECK_THROWS_WITH_AS(view_space({0}, one), "machine views: degree 0 of task dim 0: must be at least 1", invalid_input);
    CHECK_THROWS_WITH_AS(view_space({2}, {0, 0, 0, 1}), "machine views: a box of 0 nodes: must be at least 1", invalid_input);
    CHECK_THROWS_WITH_AS(view_space({2}, {0, 1, -1, 2}), "machine views: a box from device -1: must be at least 0", invalid_input);
    CHECK_THROWS_WITH_AS(view_space({2}, {0, 1 << 16, 0, 1 << 16}),
                         "machine views: a box up to node 65535 and device 65535: must be fewer than 2^31 devices", invalid_input);
    CHECK_THROWS_WITH_AS(view_space({2, 2}, one, {.labels = {1}}), "machine views: 1 labels for 2 task dims: must be none or as many", invalid_input);
    CHECK_THROWS_AS(view_space(std::vector<std::int32_t>(11, 1), one), invalid_input);
    machine_view const v{.rank = 1, .start = {0, 1}, .stride = {2}};
    CHECK_THROWS_WITH_AS(static_cast<void>(to_configuration(v, std::vector{2}, 3)),
                         "a machine view of nodes 0-0, devices 1-3 on nodes of 3 devices: must be on one's own node", invalid_input);
    CHECK_THROWS_AS(static_cast<void>(to_configuration(v, std::vector{2, 2}, 8)), invalid_input);
}
