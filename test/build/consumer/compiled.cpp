// The simulators come from the library, not from the headers.
#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/topology/nodes.hpp>

#ifndef PARSEARCH_COMPILED
#error "parsearch::compiled does not say that it is compiled"
#endif

int main() {
    namespace ps = parsearch;
    auto const cluster = ps::topology::nodes({.count = 2, .gpus_per_node = 2, .device = ps::topology::v100_sxm});
    auto const problem =
        ps::make_problem(ps::models::mlp({.features = 64, .hidden = {64}, .classes = 8, .batch = 16}), cluster, ps::cost::roofline{cluster});
    auto const start = ps::data_parallel(problem);
    auto evaluator = problem.evaluator();
    return evaluator(start) == problem.simulator()(start) ? 0 : 1;
}
