#include <parsearch/pipeline/shared_blocks.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;

TEST_CASE("shared_blocks: what moves for two operators that share weights over two devices, by hand") {
    // Operators 0 and 1, of blocks 5 and 7, share a tensor of weights; two devices, and two links behind them.
    sim::task_graph one;
    one.clear(5);
    for (std::uint32_t const op : {1U, 0U})
        for (std::uint32_t d = 0; d < 2; ++d) one.add(d, 3, sim::task_kind::backward, {op, d});
    sim::task_label const sync{0, 0, sim::task_label::no_edge, sim::traffic_kind::weight_gradient};
    for (std::uint32_t t = 0; t < 4; ++t) one.after(t);
    one.add(4, 0, sim::task_kind::barrier, sync); // 4
    for (std::uint32_t link = 0; link < 2; ++link) {
        one.after(4);
        one.add(2 + link, 7, sim::task_kind::collective, sync); // 5, 6
    }
    one.after(5);
    one.after(6);
    one.add(4, 0, sim::task_kind::barrier, sync); // 7
    one.after(7);
    one.add(0, 1, sim::task_kind::update, {0, 0});
    CHECK(pipeline::moves(one, 4));
    CHECK(pipeline::synchronises(one, 5));
    CHECK(!pipeline::moves(one, 8));
    CHECK(!pipeline::synchronises(one, 0));

    sim::iteration_plan plan;
    plan.operators.resize(2);
    plan.class_of = {0, 0};
    plan.classes = {{.members = {0, 1}}};
    pipeline::sharing_plan const sharing{{{.parts = 2,
                                           .weights = {{.link = 1, .duration = 7}, {.link = 0, .duration = 7}},
                                           .gradients = {{.link = 0, .duration = 4}, {.link = 1, .duration = 4}}}}};
    pipeline::pipelining how{.stage = {0, 0}, .sharded = pipeline::sharded_states::parameters, .block = {5, 7}};
    auto const all = pipeline::blocks_with_shared_weights(one, plan, 2, how, sharing);
    REQUIRE(all.blocks.size() == 2);
    using times = pipeline::shared_block::link_times;
    auto const &home = all.blocks.at(5), &other = all.blocks.at(7);
    CHECK(home.first == 4);
    CHECK(home.gather == times{{2, 4}, {3, 4}}); // half of 7, rounded up, in the order of links
    CHECK(home.reduce == times{{2, 2}, {3, 2}});
    CHECK(home.once.empty());
    CHECK(home.contributors == std::vector<std::uint32_t>{0, 1, 2, 3});
    CHECK(other.gather == home.gather); // it reads them, too
    CHECK(other.reduce.empty());
    CHECK(other.contributors.empty());
    CHECK(all.waits == std::vector<bool>{true, true});
    CHECK(all.reduced_with == std::vector<std::uint32_t>{5, 5, 5, 5, 5, 5, 5, 5, pipeline::shared_block::none});

    // Where parameters are whole, weights are gathered once, behind all reductions.
    how.sharded = pipeline::sharded_states::gradients;
    auto const gradients = pipeline::blocks_with_shared_weights(one, plan, 2, how, sharing);
    REQUIRE(gradients.blocks.size() == 1);
    CHECK(gradients.blocks.at(5).gather.empty());
    CHECK(gradients.blocks.at(5).once == times{{2, 4}, {3, 4}});
}
