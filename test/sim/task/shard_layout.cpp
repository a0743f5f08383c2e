#include <parsearch/sim/task/shard_layout.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/kit/replicas.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/sim/task/overlap.hpp>

using namespace parsearch;

namespace {
using numbers = std::vector<std::uint32_t>;
using degrees = std::vector<std::int32_t>;

ops::operation linear() { return ops::linear{.out = 8, .bias = false}.infer(std::vector<ops::tensor>{{{8, 8}}}); }
ops::operation sum() { return ops::add{}.infer(std::vector<ops::tensor>{{{8, 8}}, {{8, 8}}}); }

/// Which producers each consumer reads.
std::vector<numbers> readings(sim::overlap_table const& t) {
    std::vector<numbers> out(t.first_of_consumer.size() - 1);
    for (auto const& pair : t.pairs) out[pair.consumer].push_back(pair.producer);
    return out;
}
} // namespace

TEST_CASE("shard layout: which copy and partial sum a shard makes, which share it reads") {
    auto const op = ops::with_copies(linear(), 4); // s, o, k, copies
    auto const made = sim::layout_of_output(op, op.outputs[0], degrees{1, 2, 2, 2});
    CHECK(made.regions.size() == 8);
    CHECK(made.copies == 2);
    CHECK(made.copy == numbers{0, 1, 0, 1, 0, 1, 0, 1});
    CHECK(made.partials == 2);
    CHECK(made.partial == numbers{0, 0, 1, 1, 0, 0, 1, 1});
    auto const plain = sim::layout_of_output(op, op.outputs[0], degrees{2, 2, 1, 1});
    CHECK(plain.copies == 1);
    CHECK(plain.copy.empty());
    CHECK(plain.partials == 1);
    CHECK(plain.partial.empty());

    auto const added = ops::with_sums(sum(), 4, 0b11); // s, j, sums
    auto const read = sim::layout_of_input(added, added.inputs[1], degrees{2, 1, 4});
    CHECK(read.partials == 4);
    CHECK(read.partial == numbers{0, 1, 2, 3, 0, 1, 2, 3});
    CHECK_FALSE(read == sim::layout_of_input(added, added.inputs[1], degrees{2, 1, 2}));
    auto const product = ops::with_sums(linear(), 4, 0b1);
    CHECK(sim::layout_of_input(product, product.inputs[0], degrees{1, 1, 1, 2}).partials == 2);
    auto const reduced = sim::layout_of_output(added, added.outputs[0], degrees{2, 1, 4});
    CHECK(reduced.partials == 4);
}

TEST_CASE("shard layout: readers divide copies in the order of their numbers") {
    auto const from = ops::with_copies(linear(), 4);
    auto const to = linear();
    auto const between = [&](std::int32_t copies, degrees const& by) {
        return readings(sim::find_overlaps(from, from.outputs[0], degrees{1, 1, 1, copies}, to, to.inputs[0], by));
    };
    CHECK(between(4, {1, 4, 1}) == std::vector<numbers>{{0}, {1}, {2}, {3}}); // each its own
    CHECK(between(2, {1, 4, 1}) == std::vector<numbers>{{0}, {0}, {1}, {1}}); // halves of the readers
    CHECK(between(4, {1, 2, 1}) == std::vector<numbers>{{0}, {2}});           // two are not read
    CHECK(between(4, {4, 1, 1}) == std::vector<numbers>{{0}, {0}, {0}, {0}}); // readers of different rows are the first of theirs
    CHECK(between(2, {2, 2, 1}) == std::vector<numbers>{{0}, {1}, {0}, {1}});
}

TEST_CASE("shard layout: shares of partial sums are equal, or not, or empty") {
    auto const from = linear(); // s, o, k
    auto const to = ops::with_sums(sum(), 8, 0b11);
    auto const between = [&](std::int32_t sums, std::int32_t shares) {
        return sim::find_overlaps(from, from.outputs[0], degrees{1, 1, sums}, to, to.inputs[0], degrees{1, 1, shares});
    };
    CHECK(readings(between(4, 4)) == std::vector<numbers>{{0}, {1}, {2}, {3}});
    CHECK_FALSE(between(4, 4).partial); // nobody adds
    CHECK(readings(between(4, 2)) == std::vector<numbers>{{0, 1}, {2, 3}});
    CHECK(between(4, 2).partial);
    CHECK(readings(between(2, 4)) == std::vector<numbers>{{0}, {}, {1}, {}});
    CHECK(readings(between(1, 2)) == std::vector<numbers>{{0}, {}});
    CHECK(readings(between(8, 3)) == std::vector<numbers>{{0, 1, 2}, {3, 4, 5}, {6, 7}});
    CHECK(between(8, 3).exchanges.empty());
}
