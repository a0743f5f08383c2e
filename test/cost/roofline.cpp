#include <parsearch/cost/roofline.hpp>

#include <array>
#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/group.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/product.hpp"

using namespace parsearch;
using namespace parsearch::cost;
using std::chrono::microseconds;

static_assert(CostOracle<roofline, ops::shard_work, std::uint32_t>);
static_assert(HasCollectiveTime<roofline>);

namespace {

/// 1 Tflops f32 and 10 Tflops f16 for products, 0.5 Tflops for the rest, 100 GB/s, 1 us.
topology::device_spec toy(std::string kind = "toy") {
    return {{std::move(kind), 1 << 30}, {.f32 = 1e12, .f16 = 10e12}, {.f32 = 0.5e12}, {100e9}, microseconds{1}};
}
topology::cluster pair(topology::device_spec const& a, topology::device_spec const& b) {
    topology::cluster_builder builder;
    auto const x = builder.add_device(a), y = builder.add_device(b);
    builder.add_duplex_link(x, y, {1e9}, microseconds{1});
    return builder.build();
}
/// Everything at its peak, so that times are round.
roofline_options ideal() {
    return {.efficiency = work_efficiency{.matmul = 1,
                                          .convolution = 1,
                                          .attention = 1,
                                          .recurrent = 1,
                                          .normalization = 1,
                                          .softmax = 1,
                                          .pooling = 1,
                                          .elementwise = 1,
                                          .memory = 1},
            .memory_efficiency = 1};
}
ops::shard_work work(ops::operation const& op, double flops, double bytes, ops::pass pass = ops::pass::forward) {
    ops::shard_work w{.op = &op, .pass = pass, .flops = flops, .bytes = bytes};
    w.degrees.fill(1);
    return w;
}
} // namespace

TEST_CASE("arithmetic or memory, whichever is longer, and a launch") {
    auto const op = support::product(8, 8, 8);
    roofline const oracle(pair(toy(), toy()), ideal());
    CHECK(oracle(work(op, 1e9, 1e6), 0) == microseconds{1000 + 1});  // 1 ms against 10 us
    CHECK(oracle(work(op, 1e6, 1e9), 1) == microseconds{10000 + 1}); // 1 us against 10 ms
    CHECK(oracle(work(op, 1e6, 0), 0) == microseconds{1 + 1});
    CHECK(oracle(work(op, 0, 1e6, ops::pass::update), 0) == microseconds{10 + 1});
    CHECK(oracle(work(op, 0, 0), 0) == picoseconds{0});
}

TEST_CASE("the peak is that of the class and of the type of the first output") {
    roofline const oracle(pair(toy(), toy()), ideal());
    auto op = support::product(8, 8, 8, ops::dtype::f16);
    CHECK(oracle(work(op, 1e9, 0), 0) == microseconds{100 + 1});
    op.work = ops::work_class::softmax; // vector units know no f16: f32's rate
    CHECK(oracle(work(op, 1e9, 0), 0) == microseconds{2000 + 1});
    for (auto const c : {ops::work_class::convolution, ops::work_class::attention, ops::work_class::recurrent}) {
        op.work = c;
        CHECK(oracle(work(op, 1e9, 0), 0) == microseconds{100 + 1});
    }
    for (auto const type : {ops::dtype::f64, ops::dtype::tf32, ops::dtype::bf16, ops::dtype::i8, ops::dtype::i32, ops::dtype::i64}) {
        op = support::product(8, 8, 8, type);
        CHECK(oracle(work(op, 1e9, 0), 0) == microseconds{1000 + 1});
    }
    for (auto const c : {ops::work_class::view, ops::work_class::source}) {
        op.work = c;
        CHECK(oracle(work(op, 1e9, 1e9), 0) == picoseconds{0});
    }
}

TEST_CASE("efficiencies and the launch overhead are settable") {
    auto op = support::product(8, 8, 8);
    roofline_options o = ideal();
    o.efficiency->matmul = 0.5;
    o.memory_efficiency = 0.25;
    o.launch_overhead = microseconds{7};
    roofline const oracle(pair(toy(), toy()), o);
    CHECK(oracle(work(op, 1e9, 0), 0) == microseconds{2000 + 7});
    CHECK(oracle(work(op, 0, 1e6), 0) == microseconds{40 + 7});
    op.work = ops::work_class::elementwise;
    CHECK(oracle(work(op, 1e9, 0), 0) == microseconds{2000 + 7});
    // The defaults: 0.7 of the peak of a matmul, 0.8 of the bandwidth.
    roofline const defaults(pair(toy(), toy()));
    op.work = ops::work_class::matmul;
    CHECK(defaults(work(op, 0.7e9, 0), 0) == microseconds{1000 + 1});
    CHECK(defaults(work(op, 0, 0.8e6), 0) == microseconds{10 + 1});
}

TEST_CASE("devices of several kinds; splitting work that arithmetic bounds") {
    auto fast = toy("fast");
    fast.contraction.f32 = 4e12;
    roofline const oracle(pair(toy(), fast), ideal());
    auto const op = support::product(64, 64, 1 << 20);
    CHECK(oracle(work(op, 1e9, 0), 0) == microseconds{1001});
    CHECK(oracle(work(op, 1e9, 0), 1) == microseconds{251});
    std::array<std::int32_t, 3> const whole{1, 1, 1}, split{2, 2, 1};
    auto const all = ops::work_of(op, whole, ops::pass::forward), part = ops::work_of(op, split, ops::pass::forward);
    CHECK(part.flops * 4 == all.flops);
    CHECK(oracle(part, 1) < oracle(all, 1));
    CHECK(oracle(ops::work_of(op, whole, ops::pass::backward), 1) > oracle(all, 1));
}

TEST_CASE("a large product on H100 takes what it reaches of its peak") {
    roofline const oracle(topology::dgx_h100(1));
    auto const op = support::product(8192, 8192, 8192, ops::dtype::bf16);
    std::array<std::int32_t, 3> const whole{1, 1, 1};
    double const seconds = to_seconds(oracle(ops::work_of(op, whole, ops::pass::forward), 0)), flops = 2.0 * 8192 * 8192 * 8192;
    double const reached = flops / (seconds - 3e-6) / (989.4e12 * topology::h100_sxm.reached.matmul.bf16);
    CHECK(reached > 0.95); // of 2,048 tiles of 256 x 128 the last round has 68 of 132
    CHECK(reached <= 1);
}

TEST_CASE("what a device reaches has precedence over the defaults, what the options say over both") {
    auto device = toy();
    device.reached = {.matmul = {.f32 = 0.4, .f16 = 0.9}, .attention = {.f32 = 0.2}, .memory = 0.5};
    auto const c = pair(device, device);
    auto op = support::product(8, 8, 8);
    CHECK(roofline(c)(work(op, 0.4e9, 0), 0) == microseconds{1000 + 1});
    CHECK(roofline(c)(work(op, 0, 0.5e6), 0) == microseconds{10 + 1});
    CHECK(roofline(c, ideal())(work(op, 1e9, 0), 0) == microseconds{1000 + 1});
    op = support::product(8, 8, 8, ops::dtype::f16);
    CHECK(roofline(c)(work(op, 9e9, 0), 0) == microseconds{1000 + 1});
    op = support::product(8, 8, 8, ops::dtype::bf16); // has no peak of its own: runs as f32
    CHECK(roofline(c)(work(op, 0.4e9, 0), 0) == microseconds{1000 + 1});
    op.work = ops::work_class::convolution; // not told
    CHECK(roofline(c)(work(op, 0.5e9, 0), 0) == microseconds{1000 + 1});
}

TEST_CASE("a larger shard is never faster: random degrees of products, convolutions and attention, and these with one dim split further") {
    std::vector<ops::operation> all;
    for (auto const type : {ops::dtype::bf16, ops::dtype::f32}) {
        ops::tensor const rows{{16, 64, 96}, type}, columns{{16, 96, 32}, type}, images{{16, 32, 24, 24}, type};
        all.push_back(ops::linear{.out = 160}.infer(std::array{rows}));
        all.push_back(ops::batched_matmul{}.infer(std::array{rows, columns}));
        for (auto const groups : {1, 4, 32})
            for (auto const stride : {1, 2})
                all.push_back(ops::conv2d{.out = 64, .kernel = {3, 3}, .stride = {stride, stride}, .padding = {1, 1}, .groups = groups}.infer(
                    std::array{images}));
        for (bool const flash : {false, true})
            all.push_back(ops::multi_head_attention{.heads = 8, .causal = true, .flash = flash}.infer(std::array{rows, rows, rows}));
    }
    for (auto const* const device : {&topology::p100_sxm, &topology::a100_sxm, &topology::h100_sxm}) {
        roofline const oracle(topology::nodes({.count = 1, .gpus_per_node = 2, .device = *device}));
        std::mt19937_64 rng{5};
        for (int n = 0; n < 3000; ++n) {
            auto const& op = all[uniform_index(rng, all.size())];
            std::vector<std::int32_t> few(op.dims.size(), 1);
            for (std::size_t k = 0; k < few.size(); ++k)
                while (op.dims[k].kind != ops::dim_kind::fixed && op.dims[k].extent % (few[k] * 2) == 0 && uniform_index(rng, 3) > 0) few[k] *= 2;
            auto many = few;
            auto const k = uniform_index(rng, few.size());
            if (op.dims[k].kind == ops::dim_kind::fixed || op.dims[k].extent % (many[k] * 2) != 0) continue;
            many[k] *= 2;
            INFO(device->kind, ", ", op.kind, ", number ", n, ", dim ", op.dims[k].name);
            CHECK(oracle(ops::work_of(op, many, ops::pass::forward), 0) <= oracle(ops::work_of(op, few, ops::pass::forward), 0));
            std::uint64_t const wanted = uniform_index(rng, 4);
            CHECK(oracle(ops::work_of(op, many, ops::pass::backward, wanted), 0) <= oracle(ops::work_of(op, few, ops::pass::backward, wanted), 0));
        }
    }
}

TEST_CASE("narrow groups, and sums of products of vectors, take about as long as their memory, not as long as tiles") {
    roofline const oracle(topology::dgx_a100(1));
    auto const time = [&](ops::operation const& op) {
        auto const w = ops::work_of(op, std::vector<std::int32_t>(op.dims.size(), 1), ops::pass::forward);
        return to_seconds(oracle(w, 0)) / (w.bytes / (2039e9 * usual_memory_efficiency) + 3e-6);
    };
    ops::tensor const image{{64, 256, 28, 28}, ops::dtype::f16}, rows{{65536, 1024}, ops::dtype::f16};
    CHECK(time(ops::conv2d{.out = 256, .kernel = {3, 3}, .padding = {1, 1}, .groups = 256}.infer(std::array{image})) < 2); // depthwise
    CHECK(time(ops::conv2d{.out = 256, .kernel = {3, 3}, .padding = {1, 1}, .groups = 64}.infer(std::array{image})) < 4);  // ResNeXt's
    CHECK(time(ops::einsum{.equation = "sd,sd->s"}.infer(std::array{rows, rows})) < 1.1);
    CHECK(time(ops::linear{.out = 1, .bias = false}.infer(std::array{rows})) < 1.1);
}

TEST_CASE("convolutions of f32 on vector units run by Winograd's algorithm, those of tensor cores do not") {
    auto device = toy();
    device.contraction.f32 = device.elementwise.f32; // 0.5 Tflops
    auto const c = pair(device, device);
    for (auto const type : {ops::dtype::f32, ops::dtype::f16}) {
        auto const op = ops::conv2d{.out = 8, .kernel = {3, 3}}.infer(std::array{ops::tensor{{2, 4, 16, 16}, type}});
        auto const time = roofline(c, ideal())(work(op, 2.25e9, 0), 0);
        CHECK(time == (type == ops::dtype::f32 ? microseconds{2000 + 1} : microseconds{225 + 1}));
    }
    auto const op = ops::conv2d{.out = 8, .kernel = {3, 3}}.infer(std::array{ops::tensor{{2, 4, 16, 16}, ops::dtype::f32}});
    CHECK(roofline(pair(toy(), toy()), ideal())(work(op, 2.25e9, 0), 0) == microseconds{2250 + 1}); // units of their own
}

TEST_CASE("products inside of an attention run as products") {
    auto device = toy();
    device.reached = {.matmul = {.f32 = 0.5}, .attention = {.f32 = 0.25}};
    auto op = support::product(8, 8, 8);
    op.work = ops::work_class::attention;
    auto w = work(op, 1e9, 0);
    w.product_flops = 0.6e9;
    CHECK(roofline(pair(device, device))(w, 0) == microseconds{1200 + 1600 + 1});
    w.bytes = 0.16e9; // 2 ms of memory: longer than what is no product
    CHECK(roofline(pair(device, device))(w, 0) == microseconds{1200 + 2000 + 1});
}

TEST_CASE("a kernel takes at least what the host takes to launch it") {
    auto const c = pair(toy(), toy());
    auto o = ideal();
    o.host_time = microseconds{8};
    roofline const oracle(c, o), plain(c, ideal());
    auto op = support::product(8, 8, 8);
    CHECK(oracle(work(op, 1e6, 0), 0) == microseconds{8}); // 1 us, and 1 us of launch
    CHECK(oracle(work(op, 0, 1), 0) == microseconds{8});
    for (double const flops : {7e6, 8e6, 1e9}) CHECK(oracle(work(op, flops, 0), 0) == plain(work(op, flops, 0), 0));
    CHECK(oracle(work(op, 0, 0), 0) == picoseconds{0});
    op.work = ops::work_class::view; // no kernel
    CHECK(oracle(work(op, 1e9, 1e9), 0) == picoseconds{0});
}

TEST_CASE("products of linear layers in f8: at its peak, behind what scaling and casting moves, where that is faster") {
    auto spec = toy();
    spec.contraction.f16 = 1e12;
    spec.contraction.f8 = 2e12;
    auto const c = pair(spec, spec);
    auto o = ideal();
    roofline const plain(c, o);
    o.f8_products = true;
    roofline const in_f8(c, o);
    ops::tensor const x{{1024, 512}, ops::dtype::f16};
    auto const op = ops::linear{.out = 256, .bias = false}.infer(std::array{x});
    std::array<std::int32_t, 3> const whole{1, 1, 1};
    auto const forward = ops::work_of(op, whole, ops::pass::forward), backward = ops::work_of(op, whole, ops::pass::backward);
    double const inputs = 1024 * 512, weights = 256 * 512, outputs = 1024 * 256;
    CHECK(f8_casts(forward) == 4 * inputs + 6 * weights);
    CHECK(f8_casts(backward) == 4 * outputs);
    for (auto const& w : {forward, backward}) {
        double const casts = f8_casts(w) / 100e9, half = w.flops / 2e12, launch = 1e-6;
        CHECK(to_seconds(in_f8(w, 0)) == doctest::Approx(casts + std::max(half, w.bytes / 100e9) + launch));
        CHECK(in_f8(w, 0) < plain(w, 0));
    }
    // Few products of each element: casting does not pay.
    auto const narrow = ops::linear{.out = 8, .bias = false}.infer(std::array{x});
    CHECK(in_f8(ops::work_of(narrow, whole, ops::pass::forward), 0) == plain(ops::work_of(narrow, whole, ops::pass::forward), 0));
    // Products of 32 bits, of no weights, and updates stay as they are.
    auto const single = ops::linear{.out = 256}.infer(std::array{ops::tensor{{1024, 512}}});
    CHECK(in_f8(ops::work_of(single, whole, ops::pass::forward), 0) == plain(ops::work_of(single, whole, ops::pass::forward), 0));
    ops::tensor const a{{4, 512, 512}, ops::dtype::f16};
    auto const scores = ops::batched_matmul{}.infer(std::array{a, a});
    auto const of_scores = ops::work_of(scores, std::array{1, 1, 1, 1}, ops::pass::forward);
    CHECK(in_f8(of_scores, 0) == plain(of_scores, 0));
    CHECK(in_f8(work(op, 1e9, 0, ops::pass::update), 0) == plain(work(op, 1e9, 0, ops::pass::update), 0));
    // An attention's projections, in front of what is between them.
    ops::tensor const y{{8, 256, 512}, ops::dtype::f16};
    auto const attention = ops::multi_head_attention{.heads = 8}.infer(std::array{y, y, y});
    auto const w = ops::work_of(attention, std::vector<std::int32_t>(attention.dims.size(), 1), ops::pass::forward);
    auto const saved = to_seconds(plain(w, 0)) - to_seconds(in_f8(w, 0));
    CHECK(saved == doctest::Approx(w.product_flops / 2e12 - f8_casts(w) / 100e9));
    CHECK(f8_casts(w) == 4 * 4 * 8 * 256 * 512 + 6 * static_cast<double>(ops::parameters_of(attention)));
}

TEST_CASE("f8 on H100: a large layer takes little more than half as long, no published run tells it, and a larger shard is never faster") {
    auto const c = topology::dgx_h100(1);
    roofline const plain(c), in_f8(c, {.f8_products = true});
    auto const op = ops::linear{.out = 14336, .bias = false}.infer(std::array{ops::tensor{{16384, 4096}, ops::dtype::bf16}});
    std::array<std::int32_t, 3> const whole{1, 1, 1};
    auto const w = ops::work_of(op, whole, ops::pass::forward);
    double const ratio = to_seconds(in_f8(w, 0)) / to_seconds(plain(w, 0));
    CHECK(ratio > 0.5);
    CHECK(ratio < 0.65);
    CHECK(plain.answer(w, 0).source == cost_source::published);
    CHECK(in_f8.answer(w, 0).source == cost_source::data_sheet);
    for (auto const pass : {ops::pass::forward, ops::pass::backward})
        for (std::size_t k = 0; k < 3; ++k)
            for (std::int32_t parts = 1; parts <= 512; parts *= 2) {
                auto few = whole, many = whole;
                few[k] = parts;
                many[k] = 2 * parts;
                CHECK(in_f8(ops::work_of(op, many, pass), 0) <= in_f8(ops::work_of(op, few, pass), 0));
            }
}

TEST_CASE("an answer says whether published runs tell the rate that bounds it") {
    auto spec = toy();
    spec.reached.matmul.f16 = 0.5;
    spec.reached.convolution.f32 = 0.5;
    spec.reached.runs.matmul.f16 = 3;
    roofline const r(pair(spec, spec));
    auto const product = ops::linear{.out = 64}.infer(std::vector<ops::tensor>{{{64, 64}, ops::dtype::f16}}),
               single = ops::linear{.out = 64}.infer(std::vector<ops::tensor>{{{64, 64}}}),
               window = ops::conv2d{.out = 4}.infer(std::vector<ops::tensor>{{{1, 4, 8, 8}}}),
               relu = ops::relu{}.infer(std::vector<ops::tensor>{{{64, 64}, ops::dtype::f16}});
    auto const of = [&](ops::operation const& op, double flops, double bytes) { return r.answer(work(op, flops, bytes), 0); };
    CHECK(of(product, 1e10, 1).source == cost_source::published);
    CHECK(of(product, 1e10, 1).time == r(work(product, 1e10, 1), 0));
    CHECK(of(product, 1e10, 1e12).source == cost_source::data_sheet); // by its memory
    CHECK(of(single, 1e10, 1).source == cost_source::data_sheet);     // no part is known
    CHECK(of(window, 1e10, 1).source == cost_source::data_sheet);     // it is of no runs
    CHECK(of(relu, 1e10, 1).source == cost_source::data_sheet);
    CHECK(roofline(pair(spec, spec), ideal()).answer(work(product, 1e10, 1), 0).source == cost_source::data_sheet); // the caller's
}

TEST_CASE("collectives come from alpha_beta, transfers from the default") {
    auto const c = topology::dgx_h100(2);
    roofline const oracle(c);
    auto const t = topology::read_topology(c).topology;
    std::vector<std::uint32_t> const members{0, 1, 8, 9};
    auto const group = topology::describe_group(t, members).shape;
    CHECK(collective_time(oracle, collective_kind::all_reduce, 1 << 20, group) ==
          alpha_beta{}.collective_time(collective_kind::all_reduce, 1 << 20, group));
    CHECK(transfer_time(oracle, 1'000'000, {{1e9}, microseconds{3}}) == microseconds{1003});
}

TEST_CASE("mistakes are named") {
    auto const op = support::product(8, 8, 8);
    roofline const oracle(pair(toy(), toy()));
    double const nan = std::numeric_limits<double>::quiet_NaN();
#define REFUSED(expression, what) CHECK_THROWS_WITH_AS((void)(expression), doctest::Contains(what), invalid_input)
    REFUSED(oracle(work(op, 1, 1), 2), "device 2 asked of a roofline: the topology has 2");
    auto odd = work(op, 1, 1);
    odd.product_flops = 2;
    REFUSED(oracle(odd, 0), "has 2 flops of products: must be from 0 to its flops, 1");
    REFUSED(oracle(work(op, -1, 1), 0), "operator of kind 'product': forward of a shard has -1 flops");
    REFUSED(oracle(work(op, 1, nan), 0), "must not be negative");
    REFUSED(oracle(work(op, std::numeric_limits<double>::infinity(), 1), 0), "must be finite");
    auto const c = pair(toy(), toy());
    roofline_options o{.efficiency = work_efficiency{.convolution = 0}};
    REFUSED(roofline(c, o), "roofline: efficiency of convolution is 0: must be above 0 and at most 1");
    o = {};
    o.memory_efficiency = 1.5;
    REFUSED(roofline(c, o), "efficiency of memory bandwidth is 1.5");
    o.memory_efficiency = nan;
    REFUSED(roofline(c, o), "efficiency of memory bandwidth is");
    o = {};
    o.launch_overhead = picoseconds{-1};
    REFUSED(roofline(c, o), "launch_overhead is -1 ps");
    o = {};
    o.host_time = std::chrono::nanoseconds{-1};
    REFUSED(roofline(c, o), "roofline: host_time is -1 ns: must not be negative");
    o = {.f8_products = true};
    REFUSED(roofline(c, o), "device 0 (toy) has no f8 peak: f8_products needs one, of contraction");
    auto unknown = toy("unknown");
    unknown.memory_rate = {};
    REFUSED(roofline(pair(toy(), unknown)), "device 1 (unknown) has f32 peaks of");

    struct liar { // two devices of one kind that are not equal
        std::vector<int> devices() const { return {0, 1}; }
        topology::device_spec describe_device(int d) const {
            auto spec = toy();
            if (d == 1) spec.elementwise.f32 *= 2;
            return spec;
        }
    };
    REFUSED(roofline(liar{}), "device 1 (toy) differs from an earlier device of this kind");
#undef REFUSED
}
