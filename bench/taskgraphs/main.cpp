// Task graphs of FlexNet, simulated on their own network (parsearch/flexnet/simulate.hpp): per file the time of an iteration, the work of each device
// and the bytes on each link.
//
//   taskgraphs FILE... [--in-order] [--each] [--gbps RATE]     (see --help)

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <parsearch/flexnet/simulate.hpp>
#include <parsearch/io/flatbuffers/task_graph_file.hpp>

#include "../guarded.hpp"

namespace bench {
namespace {

namespace ps = parsearch;

double ms(ps::picoseconds t) { return ps::to_seconds(t) * 1e3; }

template <class T> T total(std::vector<T> const& all) {
    T sum{};
    for (auto const& one : all) sum += one;
    return sum;
}

void print(std::string const& file, ps::flexnet::task_graph const& g, ps::sim::discipline order, bool each) {
    auto const i = ps::flexnet::simulate(g, order);
    auto const most = i.bytes.empty() ? 0 : *std::max_element(i.bytes.begin(), i.bytes.end());
    auto const [least_work, most_work] = std::minmax_element(i.compute.begin(), i.compute.end());
    fmt::print("{:<24} {:>7} {:>7} {:>12.4f} {:>12.4f} {:>12.4f} {:>16} {:>16}\n", std::filesystem::path(file).filename().string(), g.tasks.size(),
               i.devices.size(), ms(i.time), i.devices.empty() ? 0 : ms(*least_work), i.devices.empty() ? 0 : ms(*most_work), most, total(i.bytes));
    if (!each) return;
    for (std::size_t d = 0; d < i.devices.size(); ++d) {
        auto const& device = g.devices[i.devices[d]];
        fmt::print("    {} {} of node {}: {:.4f} ms\n", name_of(device.type), device.property, device.node, ms(i.compute[d]));
    }
    for (std::size_t c = 0; c < i.carriers.size(); ++c) fmt::print("    {}: {} bytes\n", name_of(g, i.carriers[c]), i.bytes[c]);
}

int run(int argc, char** argv) {
    CLI::App app{"Task graphs of FlexNet, simulated on their own network."};
    std::vector<std::string> files;
    bool in_order = false, each = false;
    double gbps = 0;
    app.add_option("file", files, "files of task graphs")->required()->type_name("FILE");
    app.add_flag("--in-order", in_order, "tasks run in the order of the file, not of the time when they are ready");
    app.add_flag("--each", each, "a line for each device and link");
    app.add_option("--gbps", gbps, "the rate of every link of the network, Gb/s (default: what the file says)")->check(CLI::Range(1e-3, 1e6));
    CLI11_PARSE(app, argc, argv);
    fmt::print("{:<24} {:>7} {:>7} {:>12} {:>12} {:>12} {:>16} {:>16}\n", "file", "tasks", "devices", "iteration ms", "least work", "most work",
               "busiest link B", "all links B");
    for (auto const& file : files) {
        auto graph = ps::io::read_flexnet_task_graph(std::filesystem::path(file));
        if (gbps > 0) graph.link_bytes_per_ms = static_cast<float>(gbps * 1e6 / 8);
        print(file, graph, in_order ? ps::sim::discipline::in_order : ps::sim::discipline::fifo, each);
    }
    return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
