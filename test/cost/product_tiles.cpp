#include <parsearch/cost/product_tiles.hpp>

#include <array>
#include <random>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/linear.hpp>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::cost;
using namespace parsearch::test;

namespace {
ops::shard_work shard(ops::operation const& op, std::vector<std::int32_t> const& degrees, ops::pass pass, std::uint64_t wanted = ~std::uint64_t{0}) {
    return ops::work_of(op, degrees, pass, wanted);
}
std::vector<product_extents> products(ops::shard_work const& work) {
    auto const found = products_of(work);
    return {found.products.begin(), found.products.begin() + static_cast<std::ptrdiff_t>(found.count)};
}
using list = std::vector<product_extents>;
} // namespace

TEST_CASE("the products of a shard of a linear layer") {
    auto const op = infer(ops::linear{.out = 32}, {f32({4, 10, 64})}); // dims s l o k
    CHECK(products(shard(op, {1, 1, 1, 1}, ops::pass::forward)) == list{{1, 40, 32, 64}});
    CHECK(products(shard(op, {2, 5, 4, 8}, ops::pass::forward)) == list{{1, 4, 8, 8}});
    CHECK(products(shard(op, {1, 1, 1, 1}, ops::pass::backward)) == list{{1, 40, 64, 32}, {1, 64, 32, 40}});
    CHECK(products(shard(op, {1, 1, 1, 1}, ops::pass::backward, 0)) == list{{1, 64, 32, 40}});
    for (auto const pass : {ops::pass::forward, ops::pass::backward}) {
        auto const work = shard(op, {2, 1, 2, 1}, pass);
        double sum = 0;
        for (auto const& p : products(work)) sum += p.flops();
        CHECK(sum <= work.flops); // the bias is no product
        CHECK(sum > 0.98 * work.flops);
        CHECK(tiled_flops(work, 0) == doctest::Approx(work.flops));
    }
}

TEST_CASE("batches of products, and convolutions as products") {
    auto const matmul = infer(ops::batched_matmul{}, {f32({6, 10, 20}), f32({6, 20, 30})});
    CHECK(products(shard(matmul, {3, 1, 1, 1}, ops::pass::forward)) == list{{2, 10, 30, 20}});
    CHECK(products(shard(matmul, {1, 1, 1, 1}, ops::pass::backward, 2)) == list{{6, 20, 30, 10}});
    auto const experts = infer(ops::einsum{.equation = "sech,eho->seco", .weight = {4, 16, 32}}, {f32({2, 4, 8, 16})});
    CHECK(products(shard(experts, std::vector<std::int32_t>(experts.dims.size(), 1), ops::pass::forward)) == list{{4, 16, 32, 16}});
    auto const conv = infer(ops::conv2d{.out = 64, .kernel = {3, 3}, .padding = {1, 1}}, {f32({8, 16, 28, 28})});
    CHECK(products(shard(conv, {1, 1, 1, 1, 1}, ops::pass::forward)) == list{{1, 8 * 28 * 28, 64, 16 * 9}});
    auto const grouped = infer(ops::conv2d{.out = 64, .kernel = {3, 3}, .padding = {1, 1}, .groups = 4}, {f32({8, 16, 28, 28})});
    CHECK(products(shard(grouped, std::vector<std::int32_t>(grouped.dims.size(), 1), ops::pass::forward)) == list{{4, 8 * 28 * 28, 16, 4 * 9}});
    CHECK(products(shard(infer(ops::einsum{.equation = "sl->sl"}, {f32({2, 3})}), {1, 1}, ops::pass::forward)).empty());
}

TEST_CASE("windows of 3 x 3 and 5 x 5 that move by one take fewer multiplications") {
    auto const conv = [](std::int64_t kernel, std::int64_t stride, std::int64_t dilation = 1) {
        return infer(
            ops::conv2d{.out = 8, .kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {1, 1}, .dilation = {dilation, dilation}},
            {f32({2, 4, 16, 16})});
    };
    CHECK(winograd_saving(conv(3, 1)) == 2.25);
    CHECK(winograd_saving(conv(5, 1)) == doctest::Approx(100.0 / 36));
    for (auto const& op :
         {conv(1, 1), conv(3, 2), conv(3, 1, 2), conv(7, 1), infer(ops::conv2d{.out = 8, .kernel = {3, 3}, .groups = 4}, {f32({2, 4, 16, 16})}),
          infer(ops::linear{.out = 3}, {f32({4, 5})}), infer(ops::conv2d{.out = 8, .kernel = {3, 5}, .padding = {1, 1}}, {f32({2, 4, 16, 16})}),
          infer(ops::conv1d{.out = 8, .kernel = 3}, {f32({2, 4, 16})})})
        CHECK(winograd_saving(op) == 1);
}

TEST_CASE("tiles that stick out, and a last round that is not full") {
    double const whole = 2.0 * 256 * 128 * (1024 + product_overhead);
    CHECK(tiled_flops({1, 256, 128, 1024}, 1) == whole);
    CHECK(tiled_flops({1, 256 * 3, 128 * 5, 1024}, 1) == 15 * whole);
    CHECK(tiled_flops({1, 256 * 3, 128 * 5, 1024}, 15) == 15 * whole);
    CHECK(tiled_flops({1, 256 * 3, 128 * 5, 1024}, 0) == 2.0 * 256 * 3 * 128 * 5 * 1024);
    // 100 columns are 128.
    CHECK(tiled_flops({1, 256, 100, 1024}, 1) == whole);
    // Of few and deep tiles k is split: 16 multiprocessors share one.
    CHECK(tiled_flops({1, 256, 128, 65536}, 16) < 2.0 * 256 * 128 * 65536 * 1.2);
    CHECK(tiled_flops({1, 256, 128, 64}, 16) > 2.0 * 256 * 128 * 64 * 2);
}

TEST_CASE("a product that grows is never faster, and none takes less than its flops") {
    std::mt19937_64 rng{7};
    auto const draw = [&](std::uint64_t most) { return static_cast<double>(1 + uniform_index(rng, most)); };
    for (int n = 0; n < 20000; ++n) {
        product_extents const p{draw(n % 3 ? 1 : 40), draw(3000), draw(3000), draw(n % 2 ? 300 : 30000)};
        auto const processors = static_cast<std::uint32_t>(draw(150));
        auto grown = p;
        for (auto* const extent : {&grown.batch, &grown.m, &grown.n, &grown.k})
            if (uniform_index(rng, 2)) *extent += draw(n % 5 ? 40 : 4000);
        INFO(n, ": ", p.batch, " x ", p.m, " x ", p.n, " x ", p.k, " on ", processors);
        CHECK(tiled_flops(p, processors) >= p.flops());
        CHECK(tiled_flops(grown, processors) >= tiled_flops(p, processors));
    }
}
