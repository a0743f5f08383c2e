#include <parsearch/pipeline/launch_order.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/error.hpp>

#include "support/refusal.hpp"

namespace pipeline = parsearch::pipeline;
using pipeline::launch;
using pipeline::launch_order;

namespace {
std::string written(std::vector<launch> const& order) {
    std::string out;
    for (auto const& l : order) out += parsearch::text(out.empty() ? "" : " ", l.backward ? 'B' : 'F', l.micro_batch);
    return out;
}
} // namespace

TEST_CASE("launch_order: one stage after the other") {
    auto const of = [](launch_order o, std::uint32_t stage) { return written(pipeline::launches_of({o, 3, 4}, stage)); };
    CHECK(of(launch_order::one_f_one_b, 0) == "F0 F1 F2 B0 F3 B1 B2 B3");
    CHECK(of(launch_order::one_f_one_b, 1) == "F0 F1 B0 F2 B1 F3 B2 B3");
    CHECK(of(launch_order::one_f_one_b, 2) == "F0 B0 F1 B1 F2 B2 F3 B3");
    CHECK(of(launch_order::gpipe, 1) == "F0 F1 F2 F3 B3 B2 B1 B0");
    CHECK(of(launch_order::eager_one_f_one_b, 0) == "F0 F1 F2 F3 B0 B1 B2 B3"); // 5 ahead, of 4
    CHECK(of(launch_order::eager_one_f_one_b, 1) == "F0 F1 F2 B0 F3 B1 B2 B3");
    CHECK(of(launch_order::eager_one_f_one_b, 2) == "F0 B0 F1 B1 F2 B2 F3 B3");
    CHECK(written(pipeline::launches_of({launch_order::one_f_one_b, 3, 4}, 0, false)) == "F0 F1 F2 F3");
    CHECK(written(pipeline::launches_of({launch_order::one_f_one_b, 5, 2}, 0)) == "F0 F1 B0 B1");
}

TEST_CASE("launch_order: several stages on each group of devices") {
    // Stages 0, 2 on group 0 and 1, 3 on group 1. Narayanan et al., SC 2021, figure 4, has the order.
    auto const of = [](launch_order o, std::uint32_t group) {
        std::string out;
        for (auto const& l : pipeline::launches_of({o, 4, 4, 2}, group))
            out += parsearch::text(out.empty() ? "" : " ", l.backward ? 'B' : 'F', l.micro_batch, l.stage < 2 ? "" : "'");
        return out;
    };
    CHECK(of(launch_order::one_f_one_b, 0) == "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3");
    CHECK(of(launch_order::one_f_one_b, 1) == "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3");
    CHECK(of(launch_order::gpipe, 0) == "F0 F1 F2 F3 F0' F1' F2' F3' B3' B2' B1' B0' B3 B2 B1 B0");
}

TEST_CASE("launch_order: all stages in one order, each group in its own, nothing before what it needs, no more under way than said") {
    for (auto const order : pipeline::launch_orders)
        for (std::uint32_t groups = 1; groups <= 7; ++groups)
            for (std::uint32_t interleaved = 1; interleaved <= 3; ++interleaved)
                for (std::uint32_t micro_batches = 1; micro_batches <= 9; ++micro_batches)
                    for (bool const training : {true, false}) {
                        if (interleaved > 1 && order != launch_order::gpipe && micro_batches % groups != 0) continue;
                        auto const stages = groups * interleaved;
                        INFO(name_of(order), ", ", stages, " stages, ", interleaved, " rounds, ", micro_batches, " micro-batches, training ",
                             training);
                        pipeline::launch_rule const rule{order, stages, micro_batches, interleaved};
                        pipeline::validate(rule);
                        auto const all = pipeline::launches(rule, training);
                        REQUIRE(all.size() == std::size_t{stages} * micro_batches * (training ? 2 : 1));
                        auto const number = [&](launch const& l) { return (l.stage * micro_batches + l.micro_batch) * 2 + (l.backward ? 1 : 0); };
                        std::vector<std::size_t> at(std::size_t{stages} * micro_batches * 2, all.size());
                        for (std::size_t i = 0; i < all.size(); ++i) {
                            REQUIRE(at[number(all[i])] == all.size());
                            at[number(all[i])] = i;
                        }
                        for (std::uint32_t g = 0; g < groups; ++g) {
                            std::vector<launch> own;
                            for (auto const& l : all)
                                if (l.stage % groups == g) own.push_back(l);
                            REQUIRE(own == pipeline::launches_of(rule, g, training));
                        }
                        for (std::uint32_t s = 0; s < stages; ++s) {
                            std::uint32_t under_way = 0, most = 0;
                            for (auto const& l : all)
                                if (l.stage == s) {
                                    under_way += l.backward ? 0 : 1;
                                    most = std::max(most, under_way);
                                    under_way -= l.backward ? 1 : 0;
                                }
                            if (training) REQUIRE(most == pipeline::in_flight(rule, s));
                            for (std::uint32_t m = 0; m < micro_batches; ++m) {
                                if (s > 0) REQUIRE(at[number({s - 1, m, false})] < at[number({s, m, false})]);
                                if (training) REQUIRE(at[number({s, m, false})] < at[number({s, m, true})]);
                                if (training && s > 0) REQUIRE(at[number({s, m, true})] < at[number({s - 1, m, true})]);
                            }
                        }
                    }
}

TEST_CASE("launch_order: rules that no pipeline can keep are refused") {
    auto const said = [](pipeline::launch_rule const& r) { return support::refusal([&] { pipeline::validate(r); }); };
    CHECK(said({.stages = 0}) == "pipeline: 0 stages: must be at least 1");
    CHECK(said({.stages = 6, .interleaved = 0}) == "pipeline: 6 stages, 0 on each group of devices: must be a divisor");
    CHECK(said({.stages = 6, .interleaved = 4}) == "pipeline: 6 stages, 4 on each group of devices: must be a divisor");
    CHECK(said({.stages = 6, .micro_batches = 4, .interleaved = 2}) ==
          "pipeline: 4 micro-batches of 2 stages on each of 3 groups of devices: interleaved 1f1b takes a multiple of the groups");
    CHECK(said({.order = launch_order::gpipe, .stages = 6, .micro_batches = 4, .interleaved = 2}) == "");
}
