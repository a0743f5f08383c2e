#include <parsearch/cost/memoized.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/product.hpp"

using namespace parsearch;
using namespace parsearch::cost;

namespace {

/// Counts how often it is asked.
struct counting {
    int* asked;
    picoseconds operator()(ops::shard_work const& w, std::uint32_t device) const {
        ++*asked;
        return picoseconds{static_cast<std::int64_t>(w.flops) + device};
    }
};
ops::shard_work work(ops::operation const& op, ops::pass pass = ops::pass::forward) {
    std::array<std::int32_t, 3> const whole{1, 1, 1};
    return ops::work_of(op, whole, pass);
}
topology::cluster mixed() {
    topology::cluster_builder b;
    std::vector<topology::vertex> v;
    for (int i = 0; i < 4; ++i) v.push_back(b.add_device(i < 2 ? topology::k80 : topology::h100_sxm));
    for (std::size_t i = 0; i + 1 < v.size(); ++i) b.add_duplex_link(v[i], v[i + 1], {1e9}, picoseconds{1});
    return b.build();
}
} // namespace

static_assert(CostOracle<memoized<roofline>, ops::shard_work, std::uint32_t>);
static_assert(HasCollectiveTime<memoized<roofline>>);
static_assert(!HasCollectiveTime<memoized<counting>>);
static_assert(!CostOracle<memoized<counting>, ops::shard_work, std::string>); // the default key wants numbers

TEST_CASE("answers what the plain oracle answers, on random shards") {
    auto const c = mixed();
    roofline const plain(c);
    memoized const each(plain);
    memoized const by_kind(plain, kind_of_device(c));
    memoized const tiny(plain, kind_of_device(c), 3);
    std::mt19937_64 rng{1};
    for (int i = 0; i < 4000; ++i) {
        auto const size = [&] { return std::int64_t{1} << uniform_index(rng, 4); };
        auto op = support::product(8 * size(), 8 * size(), 8, bernoulli(rng, 0.5) ? ops::dtype::f32 : ops::dtype::bf16);
        if (bernoulli(rng, 0.3)) op.work = ops::work_class::attention;
        std::array<std::int32_t, 3> degrees{};
        for (auto& d : degrees) d = 1 << uniform_index(rng, 3);
        auto const w = ops::work_of(op, degrees, static_cast<ops::pass>(uniform_index(rng, 2)), uniform_index(rng, 2));
        auto const device = static_cast<std::uint32_t>(uniform_index(rng, 4));
        auto const expected = plain(w, device);
        REQUIRE(each.shard_time(w, device) == expected);
        REQUIRE(by_kind.shard_time(w, device) == expected);
        REQUIRE(tiny.shard_time(w, device) == expected);
    }
    CHECK(each.statistics().hits + each.statistics().misses == 4000);
    CHECK(by_kind.statistics().misses < each.statistics().misses);
    CHECK(by_kind.statistics().entries == by_kind.statistics().misses);
    CHECK(tiny.statistics().misses > by_kind.statistics().misses);
    CHECK(tiny.statistics().entries <= 3);
}

/// With a hash that tells nothing apart, the comparison alone must.
struct blind {
    std::size_t operator()(ops::shard_work const&, std::uint64_t) const noexcept { return 0; }
};

TEST_CASE_TEMPLATE("everything that an answer can depend on makes another question, whatever the hash", hash, question_hash, blind) {
    int asked = 0;
    memoized<counting, each_device, hash> const oracle{counting{&asked}};
    auto const base = support::product(8, 8, 8);
    auto const misses = [&](ops::shard_work const& w, std::uint32_t device = 0) {
        auto const before = oracle.statistics();
        CHECK(oracle.shard_time(w, device) == counting{&asked}(w, device));
        return oracle.statistics().misses - before.misses;
    };
    CHECK(misses(work(base)) == 1);
    CHECK(misses(work(base)) == 0);
    CHECK(misses(work(base), 1) == 1);
    CHECK(misses(work(base, ops::pass::backward)) == 1);
    auto const other = [&](auto const& change) {
        auto op = base;
        auto w = work(op); // the same amounts of work: the description alone differs
        change(op, w);
        w.op = &op;
        auto const first = misses(w);
        CHECK(misses(w) == 0);
        return first;
    };
    CHECK(other([](auto& op, auto&) { op.kind = "sum"; }) == 1);
    CHECK(other([](auto& op, auto&) { op.work = ops::work_class::recurrent; }) == 1);
    CHECK(other([](auto& op, auto&) { op.dims[0].extent = 16; }) == 1);
    CHECK(other([](auto& op, auto&) { op.dims[0].kind = ops::dim_kind::attribute; }) == 1);
    CHECK(other([](auto& op, auto&) { op.dims[0].name = "rows"; }) == 1);
    CHECK(other([](auto& op, auto&) { op.inputs[0].type = ops::dtype::f16; }) == 1);
    CHECK(other([](auto& op, auto&) { op.inputs[0].axes[1].span = 3; }) == 1);
    CHECK(other([](auto& op, auto&) { op.inputs[0].axes[1].terms[0].stride = 2; }) == 1);
    CHECK(other([](auto& op, auto&) { op.inputs.push_back(op.inputs[0]); }) == 1);
    CHECK(other([](auto& op, auto&) { op.inputs[0].saved = false; }) == 1);
    CHECK(other([](auto& op, auto&) { op.inputs[0].differentiable = false; }) == 1);
    CHECK(other([](auto& op, auto&) { op.inputs[0].name = "z"; }) == 1);
    CHECK(other([](auto& op, auto&) { op.weights.clear(); }) == 1);
    CHECK(other([](auto& op, auto&) { op.weights[0].touched_bytes = 4; }) == 1);
    CHECK(other([](auto& op, auto&) { op.weights[0].gradient_flops = 4; }) == 1);
    CHECK(other([](auto& op, auto&) { op.outputs[0].type = ops::dtype::f64; }) == 1);
    CHECK(other([](auto& op, auto&) { op.flops += 1; }) == 1);
    CHECK(other([](auto& op, auto&) { op.multiply_adds += 1; }) == 1);
    CHECK(other([](auto& op, auto&) { op.backward_flops += 1; }) == 1);
    CHECK(other([](auto& op, auto&) { op.saved_bytes += 1; }) == 1);
    CHECK(other([](auto& op, auto&) { op.variant = "causal"; }) == 1);
    CHECK(other([](auto&, auto& w) { w.flops += 1; }) == 1);
    CHECK(other([](auto&, auto& w) { w.bytes += 1; }) == 1);
    CHECK(other([](auto&, auto& w) { w.degrees[1] = 2; }) == 1);
    CHECK(other([](auto&, auto& w) { w.input_gradients = 1; }) == 1);
    // The name of a shared parameter is no matter of time.
    CHECK(other([](auto& op, auto&) { op.weights[0].parameter = "step 4"; }) == 0);
}

TEST_CASE("an operation may die after its question") {
    int asked = 0;
    memoized const oracle{counting{&asked}};
    for (int i = 0; i < 3; ++i) {
        auto const op = support::product(16, 8, 8);
        CHECK(oracle.shard_time(work(op), 0u) == picoseconds{2048});
    }
    CHECK(asked == 1);
    CHECK(oracle.statistics().hits == 2);
}

TEST_CASE("copies are independent; keys may be lambdas; exceptions are not remembered") {
    int asked = 0;
    memoized const oracle(counting{&asked}, [](std::uint32_t) { return std::uint64_t{0}; });
    auto const op = support::product(8, 8, 8);
    (void)oracle.shard_time(work(op), 0u);
    auto const copy = oracle;
    (void)copy.shard_time(work(op), 1u);
    CHECK(asked == 1);
    CHECK(copy.statistics().hits == 1);
    CHECK(oracle.statistics().hits == 0);

    bool broken = true;
    memoized const moody{[&](ops::shard_work const&, std::uint32_t) {
        if (broken) throw std::runtime_error("down");
        return picoseconds{5};
    }};
    CHECK_THROWS_AS((void)moody.shard_time(work(op), 0u), std::runtime_error);
    broken = false;
    CHECK(moody.shard_time(work(op), 0u) == picoseconds{5});
    CHECK(moody.statistics().misses == 1);
}

TEST_CASE("transfers and collectives pass through; mistakes are named") {
    auto const c = mixed();
    memoized const oracle(roofline{c});
    collective_group const g{.size = 2, .nodes = 1, .per_node = 2, .ring_rate = {1e9}};
    CHECK(collective_time(oracle, collective_kind::all_reduce, 1000, g) == alpha_beta{}.collective_time(collective_kind::all_reduce, 1000, g));
    CHECK(transfer_time(oracle, 1000, {{1e9}, picoseconds{1}}) == picoseconds{1'000'001});
    CHECK_THROWS_WITH_AS((memoized(roofline{c}, each_device{}, 0)), doctest::Contains("capacity is 0"), invalid_input);
    CHECK_THROWS_WITH_AS((void)kind_of_device(c)(9), doctest::Contains("does not name (its handle is 9)"), invalid_input);
}
