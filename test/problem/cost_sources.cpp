#include <parsearch/problem/cost_sources.hpp>

#include <cstddef>
#include <cstdint>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/rnnlm.hpp>
#include <parsearch/topology/nodes.hpp>

using namespace parsearch;
using cost::cost_source;

namespace {
double busy(sim::report const& r) {
    double sum = 0;
    for (std::uint32_t t = 0; t < r.tasks.size(); ++t)
        if (r.tasks.kind[t] <= sim::task_kind::update) sum += to_seconds(picoseconds{r.tasks.duration[t]});
    return sum;
}
/// A profile of what a table was asked for and lacks; every `each`th kernel is left out.
template <class Table> cost::profile taken(Table const& table, std::size_t each) {
    cost::profile p;
    std::size_t number = 0;
    for (auto const& m : table.missing())
        if (++number % each != 0)
            p.add({.device = m.device, .kernel = m.kernel, .time = picoseconds{static_cast<std::int64_t>(1'000'000 + 1000 * number)}});
    return p;
}
} // namespace

TEST_CASE("compute time by source: adds up to the tasks of the simulation, whatever the strategy") {
    auto const cluster = topology::dgx_a100(1);
    cost::roofline const roofline(cluster);
    auto const check = [&](auto const& model) {
        cost::measured_table const nothing({}, cluster, roofline);
        auto const first = make_problem(model, cluster, nothing);
        for (auto const& s : first.starts()) (void)simulate(first, s);
        cost::measured_table const table(taken(nothing, 3), cluster, roofline);
        auto const problem = make_problem(model, cluster, table);
        bool mixed = false;
        for (auto const& start : problem.named_starts()) {
            CAPTURE(start.name);
            auto const times = compute_time_by_source(problem, table, start.strategy);
            auto const r = simulate(problem, start.strategy);
            CHECK(times.total() == doctest::Approx(busy(r)).epsilon(1e-9));
            CHECK(times.share(cost_source::exact) + times.share(cost_source::interpolated) + times.share(cost_source::roofline) +
                      times.share(cost_source::fallback) ==
                  doctest::Approx(1));
            mixed = mixed || (times.share(cost_source::exact) > 0.1 && times.share(cost_source::exact) < 0.999);
        }
        CHECK(mixed);
        // Nothing measured: all is the fallback's. All measured: nothing is.
        auto const data = data_parallel(first);
        CHECK(compute_time_by_source(first, nothing, data).share(cost_source::fallback) == 1);
        cost::measured_table const all(taken(nothing, 1'000'000), cluster);
        CHECK(compute_time_by_source(first, all, data).share(cost_source::exact) == 1);
    };
    check(models::mlp({.features = 256, .hidden = {512, 256}, .batch = 64}));
    check(models::rnnlm({.batch = 32}));
}

TEST_CASE("compute time by source: nothing computed has no shares") {
    CHECK(source_times{}.total() == 0);
    CHECK(source_times{}.share(cost_source::exact) == 0);
    CHECK(source_times{{1, 2, 0, 1}}.share(cost_source::interpolated) == 0.5);
}
