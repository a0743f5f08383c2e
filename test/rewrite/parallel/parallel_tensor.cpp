#include <parsearch/rewrite/parallel/parallel_tensor.hpp>

#include <string>

#include <doctest/doctest.h>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
parallel_tensor const plain = in_one_part({{8, 6}});
} // namespace

TEST_CASE("parallel tensor: each resharding changes its own count, and what undoes it gives the tensor back") {
    auto const cut = resharded(plain, resharding::partition, 0, 4);
    CHECK(cut.degree == std::vector<std::int32_t>{4, 1});
    CHECK(resharded(cut, resharding::combine, 0, 2).degree == std::vector<std::int32_t>{2, 1});
    CHECK(resharded(cut, resharding::combine, 0, 4) == plain);
    auto const twice = resharded(cut, resharding::replicate, 0, 3);
    CHECK(twice.copies == 3);
    CHECK(parts_of(twice) == 12);
    auto sums = plain;
    sums.sums = 6;
    CHECK(resharded(sums, resharding::reduce, 0, 3).sums == 2);
    CHECK(resharded(sums, resharding::reduce, 0, 6) == plain);
    CHECK(to_string(twice) == "f32[8/4,6] 3 copies");
    CHECK(to_string(sums) == "f32[8,6] 6 sums");
}

TEST_CASE("parallel tensor: micro-batches follow each other, and each is held in as many parts") {
    auto const piped = resharded(plain, resharding::pipeline, 0, 2);
    CHECK(piped.micro_batches == 2);
    CHECK(parts_of(piped) == 1);
    CHECK(piped.whole == plain.whole);
    CHECK(to_string(piped) == "f32[8,6] 2 micro-batches of axis 0");
    CHECK(resharded(piped, resharding::pipeline, 0, 4).micro_batches == 8);
    CHECK(resharded(resharded(piped, resharding::pipeline, 0, 2), resharding::batch, 0, 2) == piped);
    CHECK(resharded(piped, resharding::batch, 0, 2) == plain);
    auto const cut = resharded(piped, resharding::partition, 0, 4);
    CHECK(parts_of(cut) == 4);
    CHECK(cut == resharded(resharded(plain, resharding::partition, 0, 4), resharding::pipeline, 0, 2));
    CHECK(to_string(resharded(cut, resharding::replicate, 0, 3)) == "f32[8/4,6] 3 copies 2 micro-batches of axis 0");
    auto const columns = resharded(plain, resharding::pipeline, 1, 3);
    CHECK(columns.sample_axis == 1);
    CHECK_FALSE(columns == resharded(resharded(plain, resharding::pipeline, 1, 3), resharding::pipeline, 1, 2));
    CHECK(resharded(columns, resharding::batch, 1, 3) == plain); // no axis where there is one micro-batch
}

TEST_CASE("parallel tensor: the adjoint of the adjoint is the resharding itself") {
    for (auto const r :
         {resharding::partition, resharding::combine, resharding::replicate, resharding::reduce, resharding::pipeline, resharding::batch}) {
        CHECK(adjoint(r) != r);
        CHECK(adjoint(adjoint(r)) == r);
        CHECK(has_axis(adjoint(r)) == has_axis(r));
    }
}

TEST_CASE("parallel tensor: what cannot be is refused with the reason") {
    CHECK(support::refusal([] { return resharded(plain, resharding::partition, 1, 4); }) ==
          "partition of axis 1 by 4 of f32[8,6]: the parts would not be equal");
    CHECK(support::refusal([] { return resharded(plain, resharding::partition, 2, 2); }) == "partition of axis 2 by 2 of f32[8,6]: there are 2 axes");
    CHECK(support::refusal([] { return resharded(plain, resharding::replicate, 0, 1); }) ==
          "replicate by 1 of f32[8,6]: the degree must be at least 2");
    CHECK(support::refusal([] { return resharded(plain, resharding::combine, 0, 2); }) ==
          "combine of axis 0 by 2 of f32[8,6]: the axis is in 1 parts, which the degree must divide");
    CHECK(support::refusal([] { return resharded(plain, resharding::reduce, 0, 2); }) ==
          "reduce by 2 of f32[8,6]: there are 1 partial sums, which the degree must divide");
    CHECK(support::refusal([] { return resharded(plain, resharding::replicate, 0, 2'000'000); }) ==
          "replicate by 2000000 of f32[8,6]: makes more than 1048576 parts");
    auto const piped = resharded(plain, resharding::pipeline, 0, 4);
    CHECK(support::refusal([&] { return resharded(piped, resharding::pipeline, 0, 4); }) ==
          "pipeline of axis 0 by 4 of f32[8,6] 4 micro-batches of axis 0: the parts would not be equal");
    CHECK(support::refusal([&] { return resharded(piped, resharding::partition, 0, 4); }) ==
          "partition of axis 0 by 4 of f32[8,6] 4 micro-batches of axis 0: the parts would not be equal");
    CHECK(support::refusal([&] { return resharded(piped, resharding::pipeline, 1, 2); }) ==
          "pipeline of axis 1 by 2 of f32[8,6] 4 micro-batches of axis 0: its micro-batches are of axis 0");
    CHECK(support::refusal([&] { return resharded(piped, resharding::batch, 1, 2); }) ==
          "batch of axis 1 by 2 of f32[8,6] 4 micro-batches of axis 0: its micro-batches are of axis 0");
    CHECK(support::refusal([&] { return resharded(piped, resharding::batch, 0, 3); }) ==
          "batch of axis 0 by 3 of f32[8,6] 4 micro-batches of axis 0: there are 4 micro-batches, which the degree must divide");
    CHECK(support::refusal([] { return resharded(plain, resharding::batch, 0, 2); }) ==
          "batch of axis 0 by 2 of f32[8,6]: there are 1 micro-batches, which the degree must divide");
    CHECK(support::refusal([] { return resharded(plain, resharding::pipeline, 2, 2); }) == "pipeline of axis 2 by 2 of f32[8,6]: there are 2 axes");
    CHECK(support::refusal([] { return resharded(plain, resharding::pipeline, 0, 1); }) ==
          "pipeline of axis 0 by 1 of f32[8,6]: the degree must be at least 2");
    CHECK(support::refusal([] { return resharded(plain, resharding::pipeline, 0, 2'000'000); }) ==
          "pipeline of axis 0 by 2000000 of f32[8,6]: makes more than 1048576 micro-batches");
}

TEST_CASE("parallel tensor: what lies between two ways to hold it, in order") {
    parallel_tensor const held{.whole = {{24, 8}}, .degree = {6, 1}, .copies = 1, .sums = 4},
        wanted{.whole = {{24, 8}}, .degree = {4, 2}, .copies = 3, .sums = 2};
    using enum resharding;
    CHECK(reshardings_between(held, wanted) ==
          std::vector<resharding_step>{{reduce, 0, 2}, {combine, 0, 3}, {replicate, 0, 3}, {partition, 0, 2}, {partition, 1, 2}});
    CHECK(reshardings_between(held, held).empty());
    auto now = held;
    for (auto const& step : reshardings_between(held, wanted)) now = resharded(now, step.how, step.axis, step.degree);
    CHECK(now == wanted);
}
