#include <parsearch/topology/device.hpp>

#include <initializer_list>
#include <limits>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::topology;

namespace {
struct described {
    int devices_ = 1;
    std::initializer_list<int> devices() const { return {}; }
    device_spec describe_device(int) const { return h100_sxm; }
};
struct undescribed {
    std::initializer_list<int> devices() const { return {}; }
    device_description describe_device(int) const { return {}; }
};
static_assert(DescribesDeviceSpecs<described>);
static_assert(!DescribesDeviceSpecs<undescribed>);
} // namespace

TEST_CASE("the presets are valid, of different kinds, and faster by generation") {
    device_spec const* before = nullptr;
    for (auto const* d : {&k80, &p100_sxm, &v100_sxm, &a100_sxm, &h100_sxm, &b200_sxm}) {
        CHECK(d->multiprocessors > 0);
        CHECK_NOTHROW(validate(*d, "preset"));
        CHECK(d->contraction.f32 > 0);
        CHECK(d->elementwise.f32 > 0);
        CHECK(d->memory > 0);
        CHECK(d->contraction.f16 >= d->elementwise.f16);
        if (before) {
            CHECK(before->kind != d->kind);
            bool const same_chip = d == &h200_sxm; // as H100, with other memory
            CHECK_UNARY(same_chip ? d->contraction == before->contraction : d->contraction.f32 > before->contraction.f32);
            CHECK(d->memory_rate > before->memory_rate);
            CHECK(d->memory >= before->memory);
        }
        before = d;
    }
}

TEST_CASE("figures of the data sheets") {
    CHECK(k80.contraction.f32 == 4.37e12); // 2,496 cores * 2 flops * 875 MHz
    CHECK(k80.memory == 12ll * 1024 * 1024 * 1024);
    CHECK(p100_sxm.contraction.f16 == 21.2e12);
    CHECK(v100_sxm.contraction.f16 == 125e12);
    CHECK(v100_sxm.elementwise.f16 == 31.4e12);
    CHECK(a100_sxm.contraction.bf16 == 312e12);
    CHECK(h100_sxm.contraction.bf16 == 989.4e12);
    CHECK(h100_sxm.memory_rate.bytes_per_second == 3350e9);
    CHECK(h200_sxm.contraction == h100_sxm.contraction);
    CHECK(h200_sxm.memory_rate.bytes_per_second == 4800e9);
    CHECK(b200_sxm.contraction.bf16 == 2250e12);
    for (auto const* const d : {&h100_sxm, &h200_sxm, &b200_sxm}) {
        CHECK(d->contraction.f8 / d->contraction.bf16 == doctest::Approx(2).epsilon(0.001));
        CHECK(d->reached.matmul.f8 == d->reached.matmul.bf16);
        CHECK(d->reached.runs.matmul.f8 == 0);
    }
    for (auto const* const d : {&k80, &p100_sxm, &v100_sxm, &a100_sxm}) CHECK(d->contraction.f8 == 0);
}

TEST_CASE("parts of peaks are from 0 to 1") {
    auto d = a100_sxm;
    CHECK_NOTHROW(validate(d, "device 3"));
    d.reached.matmul.bf16 = 1.5;
    CHECK_THROWS_WITH_AS(validate(d, "device 3"), "device 3 (a100_sxm) reaches a part of 1.5 in matmul: must be from 0 (not known) to 1",
                         invalid_input);
    d = a100_sxm;
    d.reached.attention.f16 = -0.1;
    CHECK_THROWS_WITH_AS(validate(d, "it"), doctest::Contains("-0.1 in attention"), invalid_input);
    d = a100_sxm;
    d.reached.memory = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH_AS(validate(d, "it"), doctest::Contains("in memory: must be from 0"), invalid_input);
    d = a100_sxm;
    d.reached.error.bf16 = -1;
    CHECK_THROWS_WITH_AS(validate(d, "it"), "it (a100_sxm) has -1 as the error of published runs: must be finite and not negative", invalid_input);
    CHECK(h200_sxm.reached.matmul == h100_sxm.reached.matmul);
    CHECK(h200_sxm.reached.runs == reached_parts::told_by{}); // H100's
    d = a100_sxm;
    d.reached.runs.matmul.f16 = 2.5;
    CHECK_THROWS_WITH_AS(validate(d, "it"), "it (a100_sxm) has 2.5 published runs: must be a whole number", invalid_input);
}
