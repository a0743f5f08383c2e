#include <parsearch/rewrite/parallel_tensor.hpp>

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

TEST_CASE("parallel tensor: the adjoint of the adjoint is the resharding itself") {
    for (auto const r : {resharding::partition, resharding::combine, resharding::replicate, resharding::reduce}) {
        CHECK(adjoint(adjoint(r)) == r);
        CHECK(has_axis(adjoint(r)) == has_axis(r));
    }
}

TEST_CASE("parallel tensor: what cannot be is refused with the reason") {
    CHECK(support::refusal([] { return resharded(plain, resharding::partition, 1, 4); }) == "partition of axis 1 by 4 of f32[8,6]: the parts would not be equal");
    CHECK(support::refusal([] { return resharded(plain, resharding::partition, 2, 2); }) == "partition of axis 2 by 2 of f32[8,6]: there are 2 axes");
    CHECK(support::refusal([] { return resharded(plain, resharding::replicate, 0, 1); }) == "replicate by 1 of f32[8,6]: the degree must be at least 2");
    CHECK(support::refusal([] { return resharded(plain, resharding::combine, 0, 2); }) ==
          "combine of axis 0 by 2 of f32[8,6]: the axis is in 1 parts, which the degree must divide");
    CHECK(support::refusal([] { return resharded(plain, resharding::reduce, 0, 2); }) ==
          "reduce by 2 of f32[8,6]: there are 1 partial sums, which the degree must divide");
    CHECK(support::refusal([] { return resharded(plain, resharding::replicate, 0, 2'000'000); }) == "replicate by 2000000 of f32[8,6]: makes more than 1048576 parts");
}
