#include <parsearch/io/flatbuffers/task_graph_file.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/flexnet/export_plan.hpp>
#include <parsearch/flexnet/simulate.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/external_data.hpp"
#include "support/flexnet_task_graphs.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::flexnet;

namespace {
std::string written(task_graph const& g) {
    std::ostringstream out;
    io::write_flexnet_task_graph(out, g);
    return out.str();
}
task_graph read(std::string const& bytes) { return io::read_flexnet_task_graph(std::as_bytes(std::span(bytes)), "g.fbuf"); }
/// The real files, and how many tasks each has.
std::vector<std::pair<std::filesystem::path, std::size_t>> real_files() {
    std::vector<std::pair<std::filesystem::path, std::size_t>> out;
    std::map<std::string, std::size_t> const known{{"100dlrm_16", 1278}, {"100transformer_16", 2020}, {"100vgg_16", 768}};
    auto const folder = support::external_data("flexnet/taskgraphs");
    if (!folder) return {};
    for (auto const& entry : std::filesystem::directory_iterator(*folder)) {
        if (entry.path().extension() != ".fbuf") continue;
        auto const at = known.find(entry.path().stem().string());
        REQUIRE(at != known.end());
        out.emplace_back(entry.path(), at->second);
    }
    REQUIRE(out.size() == known.size());
    std::sort(out.begin(), out.end());
    return out;
}
} // namespace

TEST_CASE("FlexNet files: what is written is read, and written again equal") {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const g = support::random_task_graph(rng);
        auto const bytes = written(g);
        auto const back = read(bytes);
        CHECK(back == g);
        CHECK(written(back) == bytes);
        std::istringstream in(bytes);
        CHECK(io::read_flexnet_task_graph(in) == g);
        CHECK(io::detail::bound_of_bytes(g) >= bytes.size());
    }
    task_graph const least{.nodes = 1};
    CHECK(read(written(least)) == least);
}

TEST_CASE("FlexNet files: what is no file of a task graph is refused") {
    CHECK(support::refusal([] { return read("").nodes; }) ==
          "g.fbuf: 0 bytes that are no FlatBuffer of a task graph: must be whole, with all offsets inside");
    CHECK(support::refusal([] { return read("a text, not a buffer").nodes; }).find("20 bytes that are no FlatBuffer") != std::string::npos);
    CHECK(support::refusal([] { return io::read_flexnet_task_graph(std::filesystem::path("/no/such/file.fbuf")).nodes; }) ==
          "/no/such/file.fbuf: cannot be read");
    std::mt19937_64 rng(1);
    auto const bytes = written(support::random_task_graph(rng));
    for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 97)
        CHECK_FALSE(support::refusal([&] { return read(bytes.substr(0, size)).nodes; }).empty());
    // Rules are told with the name of the file.
    CHECK(support::refusal([] { return written({}); }) == "FlexNet task graph: nnode is 0: there must be at least one node");
    std::ostringstream closed;
    closed.setstate(std::ios::badbit);
    CHECK(support::refusal([&] { return io::write_flexnet_task_graph(closed, {.nodes = 1}), 0; }) ==
          "FlexNet task graph cannot be written: the stream has failed");
}

TEST_CASE("FlexNet files: enumerations and references of a file are checked, and the file is named") {
    flatbuffers::FlatBufferBuilder b;
    namespace fb = FlatBufTaskGraph;
    std::vector const tasks{fb::CreateTask(b, static_cast<fb::SimTaskType>(7), 40)};
    b.Finish(fb::CreateTaskGraph(b, 1, 1, 0, 0, 0, 0, 0, 0, b.CreateVector(tasks)));
    CHECK(support::refusal([&] {
              return read({reinterpret_cast<char const*>(b.GetBufferPointer()), b.GetSize()}).nodes;
          }) == "g.fbuf: tasks[0] (taskid 40) has type 7: must be from 0 to 6");
}

TEST_CASE("FlexNet files: a list that is named from many places is read at most as often as it could be there") {
    flatbuffers::FlatBufferBuilder b;
    namespace fb = FlatBufTaskGraph;
    std::vector<std::uint64_t> const long_list(10'000, 1);
    auto const next = b.CreateVector(long_list);
    std::vector<flatbuffers::Offset<fb::Task>> tasks;
    for (std::uint64_t i = 0; i < 1000; ++i) tasks.push_back(fb::CreateTask(b, fb::SimTaskType::TASK_BARRIER, i, 0, 0, 0, next));
    b.Finish(fb::CreateTaskGraph(b, 1, 1, 0, 0, 0, 0, 0, 0, b.CreateVector(tasks)));
    CHECK(support::refusal([&] {
              return read({reinterpret_cast<char const*>(b.GetBufferPointer()), b.GetSize()}).nodes;
          }) == "g.fbuf: its lists have more entries than the file has bytes: must not share them");
}

TEST_CASE("FlexNet files: whatever bytes a file has, a task graph or a refusal") {
    std::size_t graphs = 0, refusals = 0;
    std::mt19937_64 rng(7);
    for (int i = 0; i < 4000; ++i) {
        CAPTURE(i); // of one sequence, from the seed above
        auto bytes = written(support::random_task_graph(rng));
        for (auto changes = 1 + uniform_index(rng, 3); changes > 0; --changes)
            bytes[uniform_index(rng, bytes.size())] = static_cast<char>(uniform_index(rng, 256));
        try {
            auto const g = read(bytes);
            ++graphs;
            CHECK(written(read(written(g))) == written(g));
        } catch (invalid_input const& e) {
            ++refusals;
            CHECK(std::string(e.what()).starts_with("g.fbuf: "));
        }
    }
    CHECK(graphs > 150);
    CHECK(refusals > 2500);
}

TEST_CASE("data: FlexNet files: the real files read, with sensible values, and are written again equal") {
    for (auto const& [path, tasks] : real_files()) {
        CAPTURE(path.string());
        auto const g = io::read_flexnet_task_graph(path);
        auto const bytes = written(g);
        CHECK(read(bytes) == g);
        CHECK(written(read(bytes)) == bytes);
        CHECK(g.tasks.size() == tasks);
        // 16 servers of one (merged) GPU on an ideal switch, 100 Gb/s.
        CHECK(g.nodes == 16);
        CHECK(g.switches == 1);
        CHECK(g.gpus_per_node == 1);
        CHECK(g.link_bytes_per_ms == 12.5e6F);
        CHECK(g.connections.size() == 16);
        CHECK(g.routes.size() == 256);
        CHECK(g.rings.empty());
        for (auto const& c : g.connections) CHECK((c.from == 16 && c.links == 1));
        for (auto const& o : g.operators) CHECK(o.name.find('_') != std::string::npos);
        for (auto const& d : g.devices)
            CHECK((d.type == device_type::gpu ? d.node < 16 && d.property == d.node
                                              : d.type == device_type::nominal_network && d.node == device::no_node));
        for (auto const& t : g.tasks) {
            CHECK(t.runtime_ms < 50);
            CHECK((t.bytes > 0) == (t.type == task_type::nominal_comm || t.type == task_type::all_reduce));
        }
    }
}

TEST_CASE("data: FlexNet files: the simulation of the real files adds up to what they hold") {
    for (auto const& [path, tasks] : real_files()) {
        CAPTURE(path.string());
        auto const g = io::read_flexnet_task_graph(path);
        // All on the star: a server sends its messages and its part of all-reduces up, and gets the same in all down.
        std::map<std::uint64_t, std::int64_t> work;
        std::map<std::uint64_t, double> up, down; // by server
        double all = 0;
        std::map<std::uint64_t, device> by_id;
        for (auto const& d : g.devices) by_id.emplace(d.id, d);
        for (auto const& t : g.tasks) {
            auto const bytes = static_cast<double>(t.bytes);
            if (t.type == task_type::forward || t.type == task_type::backward)
                work[t.device] += std::llround(static_cast<double>(t.runtime_ms) * 1e9);
            if (t.type == task_type::nominal_comm) {
                up[by_id.at(t.device).property / 17] += bytes;
                down[by_id.at(t.device).property % 17] += bytes;
                all += bytes;
            }
            if (t.type != task_type::all_reduce) continue;
            auto const size = static_cast<double>(t.next.size());
            for (auto const m : t.next) {
                up[m] += 2 * (size - 1) / size * bytes;
                down[m] += 2 * (size - 1) / size * bytes;
            }
            all += 2 * (size - 1) * bytes;
        }
        auto const i = simulate(g);
        REQUIRE(i.devices.size() == 16);
        for (std::size_t d = 0; d < 16; ++d) CHECK(i.compute[d].count() == work.at(g.devices[i.devices[d]].id));
        REQUIRE(i.carriers.size() == 32);
        double carried = 0, most = 0;
        for (std::size_t c = 0; c < 32; ++c) {
            auto const& link = i.carriers[c];
            auto const bytes = static_cast<double>(i.bytes[c]);
            carried += bytes;
            most = std::max(most, bytes);
            // An all-reduce cuts its bytes in whole ones.
            CHECK(std::abs(bytes - (link.to == 16 ? up.at(link.from) : down.at(link.to))) <= 2 * static_cast<double>(g.tasks.size()));
        }
        CHECK(carried == 2 * all); // exactly, on two links each
        CHECK(to_seconds(i.time) * 1e3 >= most / 12.5e6);
        CHECK(i.time >= *std::max_element(i.compute.begin(), i.compute.end()));
        CHECK(simulate(read(written(g))).time == i.time);
    }
}

TEST_CASE("FlexNet files: a plan goes out to a file and comes back as it was") {
    auto const cluster = topology::nodes({.count = 4, .gpus_per_node = 2, .device = topology::v100_sxm});
    auto const p =
        make_problem(models::mlp({.features = 256, .hidden = {512, 512}, .classes = 64, .batch = 64}), cluster, cost::roofline{cluster}, {});
    for (auto const& s : {data_parallel(p), one_weird_trick(p), tensor_parallel(p, 2), operation_parallel(p)}) {
        auto const g = export_plan(p, s).graph;
        auto const back = read(written(g));
        CHECK(back == g);
        auto const there = simulate(g), here = simulate(back);
        CHECK(here.time == there.time);
        CHECK(here.time > picoseconds{0});
        CHECK(here.compute == there.compute);
        CHECK(here.bytes == there.bytes);
        CHECK(std::count_if(here.bytes.begin(), here.bytes.end(), [](auto b) { return b > 0; }) > 0);
    }
}
