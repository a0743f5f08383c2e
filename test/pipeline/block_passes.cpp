#include <parsearch/pipeline/block_passes.hpp>

#include <vector>

#include <doctest/doctest.h>

namespace pipeline = parsearch::pipeline;
using pipeline::block_times;

TEST_CASE("block_passes: what moves quickly takes no time but at the ends") {
    std::vector<block_times> const blocks(4, {.forward = 10, .backward = 20, .gather = 3, .reduce = 2});
    auto const p = pipeline::passes_of(blocks);
    CHECK(p.forward == 40);
    CHECK(p.backward == 80);
    CHECK(p.head == 3);
    CHECK(p.tail == 2);
}

TEST_CASE("block_passes: a slow link is what a round takes") {
    // A round gathers the blocks between its ends twice, the others once, and reduces each.
    std::vector<block_times> const blocks(4, {.forward = 1, .backward = 1, .gather = 10, .reduce = 5});
    auto const p = pipeline::passes_of(blocks);
    CHECK(p.forward + p.backward == 6 * 10 + 4 * 5);
    CHECK(p.tail > 0);
    // Gradients alone: computation waits for the reduction of the block before the one before.
    std::vector<block_times> const gradients(4, {.forward = 1, .backward = 1, .reduce = 10, .once = 10});
    auto const q = pipeline::passes_of(gradients);
    CHECK(q.forward + q.backward == doctest::Approx(4 * 10).epsilon(0.1)); // the second round waits for what is left of the first
    CHECK(q.head <= 0);
    CHECK(q.tail >= 2 * 10 + 10); // the last two blocks at least
}

TEST_CASE("block_passes: what comes once is behind the last backward, on one link or on two") {
    std::vector<block_times> blocks(3, {.forward = 10, .backward = 10, .gather = 1, .reduce = 2});
    for (auto& b : blocks) b.across = 7;
    CHECK(pipeline::passes_of(blocks).tail == 2 + 7); // that of the block before is over
    for (auto& b : blocks) b.across = 100;
    CHECK(pipeline::passes_of(blocks).tail == 3 * 100 - (2 * 10 - 2)); // one after the other from the first reduction on
    CHECK(pipeline::passes_of(blocks).backward == 30);
}

TEST_CASE("block_passes: one block is gathered once, and reduced while the next micro-batch is computed") {
    std::vector<block_times> blocks{{.forward = 10, .backward = 20, .gather = 5, .reduce = 4}};
    auto p = pipeline::passes_of(blocks);
    CHECK(p.forward == 10);
    CHECK(p.backward == 20);
    CHECK(p.head == 5);
    CHECK(p.tail == 4);
    blocks[0].reduce = 50;
    blocks[0].across = 3;
    blocks[0].once = 8;
    p = pipeline::passes_of(blocks);
    CHECK(p.backward == 40);
    CHECK(p.tail == 58);
}
