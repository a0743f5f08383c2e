// A scheduler that has types of its own, none of which knows parsearch: a graph with its own nodes and edges, a cluster with
// named machines, a cost model, a plan. The glue between the two worlds is marked. Every algorithm then runs on them.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <parsearch/problem/problem.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>

// ---- The scheduler, as it was before it heard of parsearch ---------------------------------------------------------------------
namespace scheduler {

struct job;
struct stream { // an edge: output `port` of a job
    job const* from = nullptr;
    int port = 0;
};
struct job { // a node: a matrix product, or a spectral filter, an operator that parsearch has never heard of
    enum class type { source, product, filter } what{};
    std::string name;
    std::vector<stream> feeds{};
    std::int64_t rows = 0, in = 0, out = 0;
};
struct program {
    std::vector<std::unique_ptr<job>> jobs;
    job* add(job j) { return jobs.emplace_back(std::make_unique<job>(std::move(j))).get(); }
};

struct site { // a cluster: machines by name, and a pipe from each to a switch and back
    std::vector<std::string> machines;
    double pipe_gigabytes_per_second = 10;
};

struct decision { // what the scheduler stores per job: how many ways to split the rows, and from which machine on
    int ways = 1, first = 0;
    friend bool operator==(decision const&, decision const&) = default;
};
struct plan {
    std::vector<decision> of_job;
    friend bool operator==(plan const&, plan const&) = default;
};

} // namespace scheduler

// ---- Glue: the graph ---------------------------------------------------------------------------------------------------------------
namespace scheduler {
namespace ps = parsearch;

std::vector<job const*> operators(program const& p) {
    std::vector<job const*> out;
    for (auto const& j : p.jobs) out.push_back(j.get());
    return out;
}
std::vector<ps::tensor_source<job const*>> inputs(program const&, job const* j) {
    std::vector<ps::tensor_source<job const*>> out;
    for (auto const& s : j->feeds) out.push_back({s.from, static_cast<std::uint32_t>(s.port)});
    return out;
}
job const& description(program const&, job const* j) { return *j; }

// What a job computes: an iteration space and how each tensor is indexed. A filter is a new kind of operator: rows are samples, it
// has two outputs (the filtered rows, and their energy), and its weights are one value per column, which splitting rows replicates.
ps::ops::operation describe(job const& j) {
    using namespace ps::ops;
    auto const rows = axis{.extent = j.rows, .terms = {{.dim = 0}}};
    auto const tensor_in = [&](std::int64_t columns) { return operand{.name = "x", .axes = {rows, {.extent = columns}}, .saved = true}; };
    operation op{
        .kind = "filter", .work = work_class::elementwise, .dims = {{"row", j.rows, dim_kind::sample}, {"column", j.out, dim_kind::parameter}}};
    auto const columns = axis{.extent = j.out, .terms = {{.dim = 1}}};
    op.outputs = {{.name = "y", .axes = {rows, columns}}};
    double const points = static_cast<double>(j.rows * j.out);
    switch (j.what) {
    case job::type::source: op.kind = "source", op.work = work_class::source; break;
    case job::type::product: {
        op.kind = "product", op.work = work_class::matmul, op.flops = 2 * points * static_cast<double>(j.in);
        op.inputs = {tensor_in(j.in)};
        op.inputs[0].gradient_flops = op.flops;
        op.weights = {{.name = "w", .axes = {columns, {.extent = j.in}}, .gradient_flops = op.flops}};
        break;
    }
    case job::type::filter:
        op.flops = 50 * points;
        op.inputs = {{.name = "x", .axes = {rows, columns}, .saved = true, .gradient_flops = op.flops}};
        op.weights = {{.name = "response", .axes = {columns}, .gradient_flops = points}};
        op.outputs.push_back({.name = "energy", .axes = {rows}}); // split columns leave partial sums of it
        break;
    }
    return op;
}

// ---- Glue: the cluster -------------------------------------------------------------------------------------------------------------
std::vector<std::string> const& devices(site const& s) { return s.machines; }
ps::device_description describe_device(site const&, std::string const& machine) {
    return {.kind = machine.substr(0, machine.find('-')), .memory = std::int64_t{16} << 30}; // "big-0" is of kind "big"
}
std::vector<std::string> links(site const& s) {
    std::vector<std::string> out;
    for (auto const& m : s.machines) out.insert(out.end(), {m + " up", m + " down"});
    return out;
}
ps::link_description describe_link(site const& s, std::string const&) {
    return {.rate = {s.pipe_gigabytes_per_second * 1e9}, .latency = std::chrono::microseconds(5)};
}
std::vector<std::string> route(site const&, std::string const& from, std::string const& to) { return {from + " up", to + " down"}; }

// ---- Glue: the plan ----------------------------------------------------------------------------------------------------------------
// The scheduler splits rows only, dim 0 of every operator here.
ps::space::configuration configuration_of(plan const& p, std::size_t job) {
    auto const d = p.of_job[job];
    return {.rank = 2, .degree = {d.ways, 1}, .stride = {1, 0}, .start = d.first};
}
void set_configuration(plan& p, std::size_t job, ps::space::configuration const& c) { p.of_job[job] = {c.degree[0], c.start}; }

} // namespace scheduler
// ---- End of the glue -----------------------------------------------------------------------------------------------------------------

namespace {

scheduler::program make_program() {
    using type = scheduler::job::type;
    scheduler::program p;
    auto* const data = p.add({.what = type::source, .name = "data", .rows = 4096, .out = 1024});
    auto* left = data;
    auto* right = data;
    for (int i = 0; i < 4; ++i) {
        left = p.add({.what = type::product, .name = "left" + std::to_string(i), .feeds = {{left}}, .rows = 4096, .in = 1024, .out = 1024});
        right = p.add({.what = type::filter, .name = "right" + std::to_string(i), .feeds = {{right}}, .rows = 4096, .in = 1024, .out = 1024});
    }
    return p;
}

template <class Result> void print(char const* what, Result const& r, scheduler::program const& p) {
    std::printf("%-14s %9.3f ms after %6llu evaluations:", what, parsearch::to_seconds(r.cost) * 1e3,
                static_cast<unsigned long long>(r.stats.evaluations));
    for (std::size_t i = 0; i < p.jobs.size(); ++i) std::printf(" %s=%dx@%d", p.jobs[i]->name.c_str(), r.best.of_job[i].ways, r.best.of_job[i].first);
    std::printf("\n");
}

} // namespace

int main() {
    namespace ps = parsearch;
    auto const program = make_program();
    scheduler::site const site{.machines = {"big-0", "big-1", "small-0", "small-1", "small-2", "small-3"}};

    // The oracle is a lambda: 20 Tflop/s on a big machine, 5 on a small one, or 400 GB/s, and 10 us to launch.
    auto const oracle = [](ps::ops::shard_work const& work, std::string const& machine) {
        double const peak = machine.starts_with("big") ? 20e12 : 5e12;
        return std::chrono::microseconds(10) + ps::from_seconds(std::max(work.flops / peak, work.bytes / 400e9));
    };

    // The scheduler cannot split columns: its plans would lose such a configuration, so the space is told.
    auto const problem = ps::make_problem(program, site, oracle, {.space = {.parameter = false, .placements = ps::space::placements::contiguous}});
    scheduler::plan const start{std::vector<scheduler::decision>(program.jobs.size())};

    std::mt19937_64 rng{1};
    print("greedy", ps::search::greedy(problem, start, rng), program);
    print("mcmc", ps::search::mcmc(problem, start, rng, {.evaluations = 20000}), program);
}
