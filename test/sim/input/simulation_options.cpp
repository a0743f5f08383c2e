#include <parsearch/sim/input/simulation_options.hpp>

#include <doctest/doctest.h>

using namespace parsearch;

TEST_CASE("options: names") {
    CHECK(sim::name_of(sim::movement::pairwise) == "pairwise");
    CHECK(sim::name_of(sim::movement::collective) == "collective");
    CHECK(sim::name_of(sim::discipline::fifo) == "fifo");
    CHECK(sim::name_of(sim::discipline::in_order) == "in_order");
}

TEST_CASE("options: what optimizers keep per parameter") {
    CHECK(sim::cost_of(sim::optimizer::sgd).states == 0);
    CHECK(sim::cost_of(sim::optimizer::momentum).states == 1);
    CHECK(sim::cost_of(sim::optimizer::adam).states == 2);
    CHECK(sim::cost_of(sim::optimizer::sgd).flops == 2); // multiply by the rate, subtract
    CHECK(sim::cost_of(sim::optimizer::momentum).flops == 4);
}
