#include <parsearch/problem/cost_sources.hpp>

#include <cstddef>
#include <cstdint>

#include <doctest/doctest.h>

#include <parsearch/cost/measured_table.hpp>
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
/// An oracle of the user's own that tells what it rests on.
template <class F> struct answering {
    F f;
    [[nodiscard]] cost::cost_answer answer(ops::shard_work const& work, std::uint32_t device) const { return f(work, device); }
};
template <class F> answering(F) -> answering<F>; // clang 16 does not deduce for aggregates
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
                      times.share(cost_source::published) + times.share(cost_source::data_sheet) ==
                  doctest::Approx(1));
            mixed = mixed || (times.share(cost_source::exact) > 0.1 && times.share(cost_source::exact) < 0.999);
        }
        CHECK(mixed);
        // Nothing measured: all is the roofline's. All measured: nothing is.
        auto const data = data_parallel(first);
        auto const estimated = compute_time_by_source(first, nothing, data), same = compute_time_by_source(first, roofline, data);
        CHECK(estimated.share(cost_source::published) + estimated.share(cost_source::data_sheet) == doctest::Approx(1));
        CHECK(estimated.share(cost_source::data_sheet) > 0);
        CHECK(estimated.seconds == same.seconds);
        CHECK(compute_time_by_source(first, roofline, data, 3).total() > 2 * same.total());
        CHECK(compute_time_by_source(first, roofline, data, 3).total() < 3 * same.total()); // updates come once
        auto const own = [&](ops::shard_work const& work, std::uint32_t device) {
            return cost::cost_answer{roofline(work, device), cost_source::fallback};
        };
        CHECK(compute_time_by_source(first, answering{own}, data).share(cost_source::fallback) == 1);
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
