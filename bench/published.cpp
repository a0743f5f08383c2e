// Prices runs as they were published: a JSON array of runs in, a line of JSON for each out, which says why where there is no price. ./bench/run
// published reads the files that have them.
//
//   published RUNS.json [--memory 8GiB]     (see --help)

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <new>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/fusion.hpp>
#include <parsearch/io/files/topology_file.hpp>
#include <parsearch/io/text/device_names.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/group.hpp>
#include <parsearch/topology/nodes.hpp>

#include "guarded.hpp"
#include "published/run.hpp"
#include "tools/limits.hpp"
#include "tools/model.hpp"

namespace bench {
namespace {

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;

// A device by its preset, and what the run or a fit says of it instead, read as the kind of a topology file is.
ps::topology::device_spec device_of(nlohmann::json const& said, ps::topology::device_spec const& preset) {
    auto const name = said.value("kind", preset.kind);
    nlohmann::json kind{{"preset", preset.kind}};
    for (auto const& [ours, theirs] : {std::pair{"memory", "memory_bytes"}, {"memory_rate", "memory_bytes_per_second"}, {"reached", "reached"}})
        if (said.contains(ours)) kind[theirs] = said.at(ours);
    nlohmann::json const one{{"format", ps::io::topology_format},
                             {"version", ps::io::topology_version},
                             {"kinds", {{name, kind}}},
                             {"devices", nlohmann::json::array({{{"kind", name}}})}};
    std::istringstream in(one.dump());
    return ps::io::read_topology_json(in, "device").describe_device(0);
}

// Nodes of eight of a preset, or fewer devices on one; what the run says of its memory replaces the preset's.
ps::topology::cluster cluster_of(nlohmann::json const& device, std::uint32_t devices) {
    auto const* const preset = ps::io::find_device(device.at("preset").get<std::string>());
    if (!preset) throw ps::invalid_input("unknown device '", device.at("preset").get<std::string>(), "'");
    auto const per_node = std::min(devices, 8U);
    if (devices % per_node != 0) throw ps::invalid_input(devices, " devices: must be a multiple of 8, or fewer");
    ps::topology::nodes_options o{.count = devices / per_node, .gpus_per_node = per_node, .device = *preset, .nvls = device.value("nvls", false)};
    auto const joined = ps::topology::complete(o);
    o.intra = joined.intra;
    o.intra_link = joined.intra_link;
    if (o.count > 1) {
        o.nics_per_node = joined.nics;
        o.nic = joined.nic;
        o.host_link = joined.host_link;
    }
    o.device = device_of(device, *preset);
    return ps::topology::nodes(o);
}

// A roofline of runs that split sequences among tensor ranks in the simulation, and did not: norms, dropouts and sums of all positions on each rank.
class published_oracle {
  public:
    published_oracle(ps::topology::cluster const& c, published_run const& run)
        : roofline_(c, {.f8_products = run.f8_products}), whole_(!run.sequence_parallel) {}
    [[nodiscard]] ps::picoseconds operator()(ps::ops::shard_work work, std::size_t device) const {
        auto const& op = *work.op;
        if (whole_ && (op.work == ps::ops::work_class::normalization || op.work == ps::ops::work_class::elementwise))
            for (std::size_t k = 0; k < op.dims.size(); ++k)
                if (op.dims[k].name == "l") {
                    work.flops *= work.degrees[k];
                    work.bytes *= work.degrees[k];
                    work.degrees[k] = 1;
                }
        return roofline_(work, device);
    }
    [[nodiscard]] ps::picoseconds collective_time(ps::collective_kind kind, ps::byte_count bytes, ps::collective_group const& group) const {
        return roofline_.collective_time(kind, bytes, group);
    }

  private:
    ps::cost::roofline roofline_;
    bool whole_;
};

nlohmann::json all_reduce(nlohmann::json const& asked) {
    auto const devices = asked.at("devices").get<std::uint32_t>();
    auto const cluster = cluster_of(asked.at("device"), devices);
    std::vector<std::uint32_t> all(devices);
    std::iota(all.begin(), all.end(), 0U);
    auto const group = ps::topology::describe_group(ps::topology::read_topology(cluster).topology, all);
    auto const time =
        ps::cost::roofline{cluster}.collective_time(ps::collective_kind::all_reduce, asked.at("bytes").get<ps::byte_count>(), group.shape);
    return {{"seconds", ps::to_seconds(time)}};
}

ps::parallelization problem_of(nlohmann::json const& asked, published_run const& run) {
    auto const cluster = cluster_of(asked.at("device"), run.devices());
    auto const model =
        fmt::format("{},batch={}", asked.at("model").get<std::string>(), std::uint64_t{run.data} * run.micro_batch * run.micro_batches);
    return ps::make_problem(
        ps::graph::with_fused_kernels(tools::load_model(model, run.devices()).graph, run.fusion), cluster, published_oracle(cluster, run),
        {.simulation = {.overlap = asked.at("overlap").get<bool>(),
                        .optimizer = asked.at("optimizer") == "adam" ? ps::sim::optimizer::adam : ps::sim::optimizer::momentum,
                        .gradients = asked.at("gradients") == "of_weights" ? ps::sim::gradient_type::of_weights : ps::sim::gradient_type::f32_of_bf16,
                        .memory = ps::sim::memory_policy::ignore}});
}

struct placed_run {
    pipeline::pipelining how;
    ps::space::flat_strategy strategy;
};
placed_run place(pipeline::pipeline_simulator& simulate, ps::parallelization const& problem, published_run const& run) {
    placed_run out{pipelining_of(run, problem.graph()), {}};
    auto const group = run.devices() / run.groups;
    out.strategy = ps::space::context_parallel(simulate.micro_batches(run.micro_batches).graph(), group, run.context, run.tensor);
    for (std::size_t op = 0; op < out.strategy.size(); ++op)
        out.strategy[op].start += static_cast<std::int32_t>(out.how.stage[op] % run.groups * group);
    return out;
}

// What a task of a pipeline takes while it is made and scheduled, as measured.
constexpr double bytes_per_task = 110;

// How many tasks each device has, from one micro-batch on one node or a little more. What is computed again and the blocks that are gathered add to
// them, by factors as measured.
double tasks_of_a_device(nlohmann::json const& asked, published_run run) {
    auto const passes = run.micro_batches * (run.again == again::none ? 1.0 : 1.1) * (run.sharded == sharded_states::parameters ? 1.3 : 1.0);
    while (run.data > 1 && run.replica() * (run.data - 1) >= 8) --run.data;
    if (run.devices() > 8 && run.devices() % 8 != 0) run.data *= 8;
    auto const problem = problem_of(asked, run);
    pipeline::pipeline_simulator simulate(problem);
    auto const placed = place(simulate, problem, run);
    auto one = simulate.micro_batches(run.micro_batches).simulator();
    return passes * static_cast<double>(one.assemble(placed.strategy).size()) / run.devices();
}

nlohmann::json training(nlohmann::json const& asked, double memory) {
    auto run = asked.at("run").get<published_run>();
    auto const per_device = tasks_of_a_device(asked, run) * bytes_per_task;
    auto const fits = [&] { return (run.devices() <= 8 || run.devices() % 8 == 0) && per_device * run.devices() <= memory; };
    while (run.data > 1 && !fits()) --run.data;
    if (!fits())
        throw ps::invalid_input("the simulation of one replica takes ", std::ceil(per_device * run.devices() / 1e9), " GB: --memory allows less");
    auto const problem = problem_of(asked, run);
    pipeline::pipeline_simulator simulate(problem);
    auto const placed = place(simulate, problem, run);
    auto const time = simulate.simulate(placed.how, placed.strategy);
    ps::byte_count fullest = 0;
    for (auto const& m : simulate.memory()) fullest = std::max(fullest, m.total());
    return {{"seconds", ps::to_seconds(time)}, {"replicas", run.data}, {"memory", fullest}, {"tasks", simulate.tasks().size()}};
}

int run(int argc, char** argv) {
    std::string file;
    double memory = static_cast<double>(tools::half_of_memory().value_or(std::uint64_t{8} << 30));
    CLI::App app{"Prices runs as they were published."};
    app.add_option("runs", file, "a JSON array of them")->required()->check(CLI::ExistingFile);
    app.add_option_function<std::string>(
           "--memory", [&](std::string const& given) { memory = static_cast<double>(*tools::read_memory(given)); },
           "what the program may take, as 8GiB: larger runs have fewer replicas (default: half of the machine's)")
        ->check([](std::string const& given) { return tools::read_memory(given) ? "" : "'" + given + "' is no size of memory, as 8GiB is"; });
    CLI11_PARSE(app, argc, argv);
    std::ifstream in(file);
    for (auto const& asked : nlohmann::json::parse(in)) {
        auto const began = std::chrono::steady_clock::now();
        nlohmann::json out;
        try {
            out = asked.contains("run") ? training(asked, memory) : all_reduce(asked);
        } catch (ps::invalid_input const& e) {
            out = {{"error", e.what()}};
        } catch (std::bad_alloc const&) {
            out = {{"error", "memory does not suffice"}};
        }
        out["wall_s"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        fmt::print("{}\n", out.dump());
        std::fflush(stdout);
    }
    return 0;
}
} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
