#include <parsearch/cost/profile.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/kernel_family.hpp>

#include "support/operator_types.hpp"
#include "support/product.hpp"
#include "support/random_operators.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::cost;

namespace {

std::string spelled(ops::operation const& op, std::vector<std::int32_t> const& degrees, ops::pass pass = ops::pass::forward,
                    std::uint64_t gradients = ~std::uint64_t{0}) {
    return to_string(kernel_of(ops::work_of(op, degrees, pass, gradients)));
}
ops::operation conv(std::int64_t image) {
    std::vector<ops::tensor> const x{{{8, 3, image, image}}};
    return ops::conv2d{.out = 64, .kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}, .bias = false}.infer(x);
}
kernel product(std::int64_t m, ops::pass pass = ops::pass::forward) {
    auto const op = support::product(m, 8, 8);
    return kernel_of(ops::work_of(op, std::vector<std::int32_t>{1, 1, 1}, pass));
}
profile_entry entry(std::int64_t m, std::string device = "H100", ops::pass pass = ops::pass::forward) {
    return {.device = std::move(device), .kernel = product(m, pass), .time = picoseconds{1000 * m}, .runs = 5, .spread = picoseconds{m}};
}
} // namespace

TEST_CASE("kernel: spelled by shard extents and by how dims index operands") {
    auto const op = support::product(64, 32, 16, ops::dtype::bf16);
    CHECK(spelled(op, {1, 1, 1}) == "product forward m=64 n=32 k=16 (x:bf16[m,k] w:bf16[n,k] -> y:bf16[m,n])");
    CHECK(spelled(op, {4, 2, 1}) == "product forward m=16 n=16 k=16 (x:bf16[m,k] w:bf16[n,k] -> y:bf16[m,n])");
    CHECK(spelled(op, {4, 2, 1}, ops::pass::backward) == "product backward m=16 n=16 k=16 (x':bf16[m,k] w':bf16[n,k] -> y:bf16[m,n])");
    CHECK(spelled(op, {4, 2, 1}, ops::pass::backward, 0) == "product backward m=16 n=16 k=16 (x:bf16[m,k] w':bf16[n,k] -> y:bf16[m,n])");
}

TEST_CASE("kernel: windows, parts, blocks and whole axes") {
    // 112 windows of 7 every 2 reach 229 positions, of which 6 - 1 lie outside of 224.
    CHECK(spelled(conv(224), {1, 1, 1, 1, 1}) ==
          "conv2d forward s=8 o=64 h=112 w=112 c=3 (x:f32[s,c,2*h-3:7=224,2*w-3:7=224] weight:f32[o,c,7,7] -> y:f32[s,o,h,w])");
    // The middle one of four parts has both its halos.
    CHECK(spelled(conv(224), {2, 1, 4, 1, 1}).substr(0, 81) == "conv2d forward s=4 o=64 h=28 w=112 c=3 (x:f32[s,c,2*h-3:7,2*w-3:7=224] weight:f32");
    std::vector<ops::tensor> const parts{{{4, 6}}, {{4, 2}}};
    CHECK(spelled(ops::concat{}.infer(parts), {1, 1}) == "concat forward s=4 c=8 (x0:f32[s,c=6] x1:f32[s,c-6=2] -> y:f32[s,c])");
    std::vector<ops::tensor> const qkv(3, {{2, 5, 12}});
    CHECK(spelled(ops::attention{.heads = 3}.infer(qkv), {1, 1, 3, 1}) ==
          "attention forward s=2 lq=5 heads=1 lk=5 (q:f32[s,lq,4*heads:4] k:f32[s,lk,4*heads:4] v:f32[s,lk,4*heads:4] -> y:f32[s,lq,4*heads:4])");
}

TEST_CASE("kernel: the same shard of differently split operators is the same kernel") {
    auto const a = support::product(64, 32, 16), b = support::product(16, 32, 16);
    auto const whole = std::vector<std::int32_t>{1, 1, 1};
    CHECK(kernel_of(ops::work_of(a, std::vector<std::int32_t>{4, 1, 1}, ops::pass::forward)) ==
          kernel_of(ops::work_of(b, whole, ops::pass::forward)));
    CHECK_FALSE(kernel_of(ops::work_of(a, whole, ops::pass::forward)) == kernel_of(ops::work_of(b, whole, ops::pass::forward)));
    // Which axis is which matters even where extents agree.
    std::vector<ops::tensor> const square(2, {{2, 8, 8}});
    auto const plain = ops::batched_matmul{}.infer(square), transposed = ops::batched_matmul{.transpose_b = true}.infer(square);
    std::vector<std::int32_t> const four(4, 1);
    CHECK_FALSE(kernel_of(ops::work_of(plain, four, ops::pass::forward)) == kernel_of(ops::work_of(transposed, four, ops::pass::forward)));
    // Dims whose names say nothing are numbered.
    auto unnamed = a;
    unnamed.dims[0].name = unnamed.dims[1].name = "i";
    unnamed.dims[2].name.clear();
    CHECK(spelled(unnamed, whole) == "product forward #0=64 #1=32 #2=16 (x:f32[#0,#2] w:f32[#1,#2] -> y:f32[#0,#1])");
}

TEST_CASE("kernel: variants of an operation are told apart, and are families of their own") {
    auto op = support::product(64, 32, 16);
    auto const plain = kernel_of(ops::work_of(op, std::vector<std::int32_t>{1, 1, 1}, ops::pass::forward));
    op.variant = "causal";
    auto const causal = kernel_of(ops::work_of(op, std::vector<std::int32_t>{1, 1, 1}, ops::pass::forward));
    CHECK(causal.operands == plain.operands + ", causal");
    CHECK(family_of(causal) != family_of(plain));
    CHECK(output_type(causal) == output_type(plain));
}

TEST_CASE("kernel: updates are told apart by their amounts") {
    auto const op = support::product(64, 32, 16);
    ops::shard_work const w{.op = &op, .pass = ops::pass::update, .flops = 1024, .bytes = 6144};
    CHECK(to_string(kernel_of(w)) == "update flops=1024 bytes=6144");
}

/// Equal kernels must cost the same on an oracle that knows flops alone; seeds are printed on failure.
TEST_CASE("kernel: equal kernels have equal flops, of every operator type") {
    support::for_each_operator_type([](auto type) {
        using op_type = typename decltype(type)::type;
        std::map<kernel, double> flops;
        for (std::uint64_t seed = 1; seed <= 40; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 rng{seed};
            test::drawer draw(rng);
            auto const op = test::random_application<op_type>::draw(draw).infer();
            std::vector<std::int32_t> const degrees(op.dims.size(), 1);
            for (auto const pass : {ops::pass::forward, ops::pass::backward}) {
                auto const w = ops::work_of(op, degrees, pass);
                if (w.flops == 0 && w.bytes == 0) continue;
                auto const [at, fresh] = flops.emplace(kernel_of(w), w.flops);
                CHECK_MESSAGE(at->second == w.flops, to_string(at->first));
            }
        }
    });
}

TEST_CASE("profile: add, find, merge") {
    profile p;
    CHECK(p.empty());
    p.add(entry(8));
    p.add(entry(16));
    p.add(entry(8, "A100"));
    p.add(entry(8, "H100", ops::pass::backward));
    CHECK(p.size() == 4);
    REQUIRE(p.find("H100", product(16)));
    CHECK(*p.find("H100", product(16)) == entry(16));
    CHECK(p.find("A100", product(8))->time == picoseconds{8000});
    CHECK(p.find("A100", product(16)) == nullptr);
    CHECK(p.find("K80", product(8)) == nullptr);
    profile more;
    more.add(entry(32));
    more.merge(p);
    CHECK(more.size() == 5);
    CHECK(more.entries().front() == entry(32));
    CHECK(more.entries().back() == p.entries().back());
    auto const copy = more;
    CHECK(copy == more);
    CHECK_FALSE(copy == p);
    CHECK(copy.find("A100", product(8)) == &copy.entries()[3]);
    profile nothing;
    nothing.merge(nothing);
    CHECK(nothing.empty());
}

TEST_CASE("profile: duplicates are refused and change nothing") {
    profile p;
    p.add(entry(8));
    auto again = entry(8);
    again.time = picoseconds{1};
    auto const expected = "kernel '" + to_string(product(8)) + "' on 'H100' is in the profile twice: must be once";
    CHECK(support::refusal([&] { return p.add(again), 0; }) == expected);
    profile other;
    other.add(entry(4));
    other.add(again);
    CHECK(support::refusal([&] { return p.merge(other), 0; }) == expected);
    CHECK(support::refusal([&] { return p.merge(p), 0; }) == expected);
    CHECK(p.size() == 1);
    CHECK(p.find("H100", product(8))->time == picoseconds{8000});
    CHECK(p.find("H100", product(4)) == nullptr);
}

TEST_CASE("profile: a kernel that failed is known and has no time") {
    profile p;
    p.add(entry(8));
    p.add_failure({"H100", product(16), "out of memory"});
    CHECK(p.find("H100", product(16)) == nullptr);
    REQUIRE(p.find_failure("H100", product(16)));
    CHECK(p.find_failure("H100", product(16))->reason == "out of memory");
    CHECK(p.find_failure("H100", product(8)) == nullptr);
    CHECK(p.find_failure("H100", product(32)) == nullptr);
    CHECK(p.find_failure("A100", product(16)) == nullptr);
    CHECK(p.knows("H100", product(8)));
    CHECK(p.knows("H100", product(16)));
    CHECK_FALSE(p.knows("H100", product(32)));
    CHECK_FALSE(p.knows("A100", product(8)));
    CHECK(p.size() == 1);
    auto const twice = [](std::int64_t m) { return "kernel '" + to_string(product(m)) + "' on 'H100' is in the profile twice: must be once"; };
    CHECK(support::refusal([&] { return p.add(entry(16)), 0; }) == twice(16));
    CHECK(support::refusal([&] { return p.add_failure({"H100", product(8), "slow"}), 0; }) == twice(8));
    CHECK(support::refusal([&] { return p.add_failure({"H100", product(4), ""}), 0; }).ends_with("the reason of its failure is empty: must say why"));
    profile other;
    other.add(entry(16));
    CHECK(support::refusal([&] { return p.merge(other), 0; }) == twice(16));
    auto tried = p;
    tried.clear_failures();
    CHECK_FALSE(tried == p);
    tried.merge(other);
    CHECK(tried.find("H100", product(16))->time == picoseconds{16000});
    CHECK(tried.failures().empty());
}

TEST_CASE("profile: links and collectives, one of each kind") {
    profile p;
    link_model const peer{.device = "H100", .kind = link_kind::peer, .fitted = {picoseconds{5}, {1e9}, {}}, .points = {}};
    collective_model const sum{
        .device = "H100", .kind = collective_kind::all_reduce, .size = 4, .fitted = {picoseconds{5}, {1e9}, 0.5}, .points = {}};
    p.add_link(peer);
    p.add_collective(sum);
    CHECK(*p.find_link("H100", link_kind::peer) == peer);
    CHECK(p.find_link("H100", link_kind::local) == nullptr);
    CHECK(p.find_link("A100", link_kind::peer) == nullptr);
    CHECK(*p.find_collective("H100", collective_kind::all_reduce, 4) == sum);
    CHECK(p.find_collective("H100", collective_kind::all_reduce, 8) == nullptr);
    CHECK(support::refusal([&] { return p.add_link(peer), 0; }) == "peer copies on 'H100' is in the profile twice: must be once");
    CHECK(support::refusal([&] { return p.add_collective(sum), 0; }) == "all_reduce of 4 on 'H100' is in the profile twice: must be once");
    profile other;
    other.add(entry(8));
    other.add_link(peer);
    auto const before = p;
    CHECK_FALSE(support::refusal([&] { return p.merge(other), 0; }).empty());
    CHECK(p == before);
}

TEST_CASE("profile: malformed entries are refused") {
    auto const refused = [](auto const& change) {
        auto e = entry(8);
        change(e);
        auto const said = support::refusal([&] { return profile{}.add(e), 0; });
        auto const at = said.find("': ");
        return at == std::string::npos ? said : said.substr(at + 3);
    };
    CHECK(refused([](auto& e) { e.device.clear(); }) == "device is empty: must be a kind of device");
    CHECK(refused([](auto& e) { e.kernel.op.clear(); }) == "op is empty: must be a kind of operation");
    CHECK(refused([](auto& e) { e.kernel.dims[1].extent = 0; }) == "dim 'n' is 0: must be at least 1");
    CHECK(refused([](auto& e) { e.kernel.dims[1].name = "m"; }) == "dim 'm' is there twice: must be once");
    CHECK(refused([](auto& e) { e.kernel.dims[1].name.clear(); }) == "dims[1] has no name: must have one");
    CHECK(refused([](auto& e) { e.time = picoseconds{-1}; }) == "time is -1 ps: must be from 0 to 1152921504606846976 (13 days)");
    CHECK(refused([](auto& e) { e.time = picoseconds::max(); }).find("time is 9223372036854775807 ps") == 0);
    CHECK(refused([](auto& e) { e.spread = picoseconds{-1}; }) == "spread is -1 ps: must be from 0 to 1152921504606846976 (13 days)");
    CHECK(refused([](auto& e) { e.runs = 0; }) == "runs is 0: must be at least 1");
    CHECK(refused([](auto& e) { e.flops = -1; }) == "flops is -1: must be finite and not negative");
    CHECK(refused([](auto& e) { e.bytes = std::numeric_limits<double>::infinity(); }) == "bytes is inf: must be finite and not negative");
    CHECK(refused([](auto& e) { e.bytes = 0; }).empty());
    CHECK(refused([](auto& e) { e.work = static_cast<ops::work_class>(11); }) == "work is class number 11: unknown");
    CHECK(refused([](auto& e) { e.memory = -1; }) == "memory is -1 bytes: must not be negative");
    CHECK(refused([](auto& e) { e.spread.reset(); }).empty());
    auto wrong = entry(8);
    wrong.kernel.pass = static_cast<ops::pass>(3);
    CHECK(support::refusal([&] { return validate(wrong, "f.json: entries[0]"), 0; }) ==
          "f.json: entries[0]: pass is number 3: must be forward, backward or update");
    CHECK(support::refusal([] { return validate(profile_entry{}, "f.json: entries[2]"), 0; }).find("f.json: entries[2]: kernel '") == 0);
}
