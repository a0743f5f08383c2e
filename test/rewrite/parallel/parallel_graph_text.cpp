#include <parsearch/rewrite/parallel/parallel_graph_text.hpp>

#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/parallel/conversion.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

TEST_CASE("text of a parallel graph: a line per node, and the results") {
    parallel_graph g;
    auto const x = g.reshard(g.add_input("x", {{8, 4}}), resharding::pipeline, 0, 2);
    auto const w = g.reshard(g.add_weight("w", {{6, 4}}), resharding::partition, 0, 3);
    auto const fc = g.add_operator("fc", ops::linear{.out = 6, .bias = false}.infer(std::vector<ops::tensor>{{{8, 4}}}),
                                   {g.reshard(x, resharding::replicate, 0, 3), w});
    auto const cut = g.add_operator("cut", ops::split{.axis = 1, .sizes = {2, 4}}.infer(std::vector<ops::tensor>{{{8, 6}}}),
                                    {g.reshard({fc, 0}, resharding::combine, 1, 3)});
    g.set_results({{cut, 0}, {cut, 1}});
    CHECK(to_string(g) == "0: input x -> f32[8,4]\n"
                          "1: pipeline of axis 0 by 2, of 0 -> f32[8,4] 2 micro-batches of axis 0\n"
                          "2: weight w -> f32[6,4]\n"
                          "3: partition of axis 0 by 3, of 2 -> f32[6/3,4]\n"
                          "4: replicate by 3, of 1 -> f32[8,4] 3 copies 2 micro-batches of axis 0\n"
                          "5: fc, linear, o3 2 micro-batches, of 4 3 -> f32[8,6/3] 2 micro-batches of axis 0\n"
                          "6: combine of axis 1 by 3, of 5 -> f32[8,6] 2 micro-batches of axis 0\n"
                          "7: cut, split, 2 micro-batches, of 6 -> f32[8,2] 2 micro-batches of axis 0, f32[8,4] 2 micro-batches of axis 0\n"
                          "results: 7 7.1\n");
    CHECK(to_string(operator_split{.degree = {1, 2, 1}, .copies = 4, .sums = 2}, g[fc]->operation) == "o2 copies4 sums2");
    CHECK(to_string(parallel_graph{}) == "results:\n");
}
