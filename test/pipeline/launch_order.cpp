#include <parsearch/pipeline/launch_order.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/error.hpp>

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
    auto const of = [](launch_order o, std::uint32_t stage) { return written(pipeline::launches_of(o, 3, 4, stage)); };
    CHECK(of(launch_order::one_f_one_b, 0) == "F0 F1 F2 B0 F3 B1 B2 B3");
    CHECK(of(launch_order::one_f_one_b, 1) == "F0 F1 B0 F2 B1 F3 B2 B3");
    CHECK(of(launch_order::one_f_one_b, 2) == "F0 B0 F1 B1 F2 B2 F3 B3");
    CHECK(of(launch_order::gpipe, 1) == "F0 F1 F2 F3 B3 B2 B1 B0");
    CHECK(written(pipeline::launches_of(launch_order::one_f_one_b, 3, 4, 0, false)) == "F0 F1 F2 F3");
    CHECK(written(pipeline::launches_of(launch_order::one_f_one_b, 5, 2, 0)) == "F0 F1 B0 B1");
}

TEST_CASE("launch_order: all stages in one order, each in its own, nothing before what it needs, no more under way than said") {
    for (auto const order : {launch_order::gpipe, launch_order::one_f_one_b})
        for (std::uint32_t stages = 1; stages <= 7; ++stages)
            for (std::uint32_t micro_batches = 1; micro_batches <= 9; ++micro_batches)
                for (bool const training : {true, false}) {
                    INFO(name_of(order), ", ", stages, " stages, ", micro_batches, " micro-batches, training ", training);
                    auto const all = pipeline::launches(order, stages, micro_batches, training);
                    REQUIRE(all.size() == std::size_t{stages} * micro_batches * (training ? 2 : 1));
                    auto const at = [&](launch const& l) {
                        auto const found = std::find(all.begin(), all.end(), l);
                        REQUIRE(found != all.end());
                        return found;
                    };
                    for (std::uint32_t s = 0; s < stages; ++s) {
                        std::vector<launch> own;
                        std::uint32_t under_way = 0, most = 0;
                        for (auto const& l : all)
                            if (l.stage == s) {
                                own.push_back(l);
                                under_way += l.backward ? 0 : 1;
                                most = std::max(most, under_way);
                                under_way -= l.backward ? 1 : 0;
                            }
                        REQUIRE(own == pipeline::launches_of(order, stages, micro_batches, s, training));
                        if (training) REQUIRE(most == pipeline::in_flight(order, stages, micro_batches, s));
                        for (std::uint32_t m = 0; m < micro_batches; ++m) {
                            if (s > 0) REQUIRE(at({s - 1, m, false}) < at({s, m, false}));
                            if (training) REQUIRE(at({s, m, false}) < at({s, m, true}));
                            if (training && s > 0) REQUIRE(at({s, m, true}) < at({s - 1, m, true}));
                        }
                    }
                }
}
