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
using pipeline::launch_pass;

namespace {
constexpr char letter(launch_pass p) { return "FBW"[static_cast<std::size_t>(p)]; }
std::string written(std::vector<launch> const& order) {
    std::string out;
    for (auto const& l : order) out += parsearch::text(out.empty() ? "" : " ", letter(l.pass), l.micro_batch);
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
    // W: gradients of weights, as many backward passes behind as there are stages before, or twice as many.
    CHECK(of(launch_order::zb_h1, 0) == "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
    CHECK(of(launch_order::zb_h1, 1) == "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3");
    CHECK(of(launch_order::zb_h1, 2) == "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
    CHECK(of(launch_order::zb_h2, 1) == "F0 F1 F2 B0 F3 B1 B2 W0 B3 W1 W2 W3");
    CHECK(of(launch_order::zb_h2, 2) == "F0 B0 F1 B1 F2 B2 F3 B3 W0 W1 W2 W3"); // 4 behind
    CHECK(written(pipeline::launches_of({launch_order::zb_h1, 3, 4}, 0, false)) == "F0 F1 F2 F3");
}

TEST_CASE("launch_order: several stages on each group of devices") {
    // Stages 0, 2 on group 0 and 1, 3 on group 1. Narayanan et al., SC 2021, figure 4, has the order.
    auto const of = [](launch_order o, std::uint32_t group) {
        std::string out;
        for (auto const& l : pipeline::launches_of({o, 4, 4, 2}, group))
            out += parsearch::text(out.empty() ? "" : " ", letter(l.pass), l.micro_batch, l.stage < 2 ? "" : "'");
        return out;
    };
    CHECK(of(launch_order::one_f_one_b, 0) == "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3");
    CHECK(of(launch_order::one_f_one_b, 1) == "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3");
    CHECK(of(launch_order::zb_h1, 1) == "F0 F1 F0' B0' F1' B1' W0' F2 B0 W1' F3 B1 W0 F2' B2' W1 F3' B3' W2' B2 W3' B3 W2 W3");
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
                        REQUIRE(all.size() == std::size_t{stages} * micro_batches * (!training ? 1 : cuts_backward(order) ? 3 : 2));
                        auto const number = [&](launch const& l) {
                            return (l.stage * micro_batches + l.micro_batch) * 3 + static_cast<std::uint32_t>(l.pass);
                        };
                        std::vector<std::size_t> at(std::size_t{stages} * micro_batches * 3, all.size());
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
                                    under_way += l.pass == launch_pass::forward ? 1 : 0;
                                    most = std::max(most, under_way);
                                    under_way -= l.pass == launch_pass::backward ? 1 : 0;
                                }
                            if (training) REQUIRE(most == pipeline::in_flight(rule, s));
                            for (std::uint32_t m = 0; m < micro_batches; ++m) {
                                auto const when = [&](std::uint32_t stage, launch_pass pass) { return at[number({stage, m, pass})]; };
                                if (s > 0) REQUIRE(when(s - 1, launch_pass::forward) < when(s, launch_pass::forward));
                                if (!training) continue;
                                REQUIRE(when(s, launch_pass::forward) < when(s, launch_pass::backward));
                                if (s > 0) REQUIRE(when(s, launch_pass::backward) < when(s - 1, launch_pass::backward));
                                if (cuts_backward(order)) REQUIRE(when(s, launch_pass::backward) < when(s, launch_pass::weight_gradients));
                            }
                        }
                    }
}

TEST_CASE("launch_order: the fullest moment, by hand") {
    auto const most = [](launch_order o, std::uint32_t stage, int kept, int beside, int left) {
        auto const always = [](int bytes) { return [bytes](std::uint32_t) { return bytes; }; };
        return pipeline::fullest_moment(pipeline::launches_of({o, 3, 4}, stage), always(kept), always(beside), always(left));
    };
    CHECK(most(launch_order::one_f_one_b, 0, 10, 3, 100) == 33); // nothing is left where backward is whole
    CHECK(most(launch_order::zb_h1, 0, 10, 3, 4) == 33);         // B0; what it leaves goes at once
    CHECK(most(launch_order::zb_h1, 0, 10, 0, 25) == 45);        // behind B0
    CHECK(most(launch_order::zb_h1, 2, 10, 3, 4) == 10 + 3 + 2 * 4);
    CHECK(most(launch_order::zb_h2, 2, 10, 3, 20) == 4 * 20);

    auto const moments = [](launch_order o, std::uint32_t stage) {
        std::string out;
        for (auto const& m : pipeline::full_moments({o, 3, 4}, stage)) out += parsearch::text(out.empty() ? "" : " ", m.kept, '+', m.left);
        return out;
    };
    CHECK(moments(launch_order::one_f_one_b, 0) == "3+0");
    CHECK(moments(launch_order::zb_h1, 2) == "1+2");
    CHECK(moments(launch_order::zb_h2, 1) == "3+1 2+2");
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
