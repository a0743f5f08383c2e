#include <parsearch/io/files/profile_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/resnet.hpp>

#include "support/json_schema.hpp"
#include "support/mutations.hpp"
#include "support/refusal.hpp"
#include "support/replaced.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
std::string written(cost::profile const& p, profile_notes const& notes = {}) {
    std::ostringstream out;
    write_profile_json(out, p, notes);
    return out.str();
}
cost::profile read(std::string const& text, profile_notes* notes = nullptr) {
    std::istringstream in(text);
    return read_profile_json(in, "m.json", notes);
}
support::json_schema const& schema() {
    static support::json_schema const made("profile");
    return made;
}
constexpr char const* small = R"({
  "format": "parsearch.profile",
  "version": 1,
  "measured": {
    "machine": "DGX H100",
    "device": "NVIDIA H100",
    "memory_bytes": 85029158912,
    "compute_capability": "9.0",
    "driver": "550.54",
    "libraries": {"cuBLAS": "12.4.5", "cuDNN": "9.1"},
    "date": "2025-03-01",
    "begin": {"sm_mhz": 1980, "memory_mhz": 2619, "temperature_c": 34},
    "end": {"temperature_c": -1},
    "throttled": {"heat": 2, "power cap": 12}
  },
  "kernels": [
    {
      "device": "h100_sxm",
      "op": "linear",
      "pass": "forward",
      "dims": [["s", 64], ["o", 1024], ["k", 512]],
      "operands": "x:bf16[s,k] weight:bf16[o,k] -> y:bf16[s,o]",
      "time_ps": 5300000,
      "runs": 20,
      "spread_ps": 0,
      "flops": 67108864,
      "bytes": 1245184.5,
      "work": "matmul",
      "memory_bytes": 2490368,
      "implementation": "cublasLt algorithm 66"
    },
    {"device": "h100_sxm", "op": "update", "pass": "update", "dims": [["flops", 0], ["bytes", 24]], "time_ps": 7}
  ],
  "failures": [{"device": "h100_sxm", "op": "linear", "pass": "backward", "dims": [["s", 9]], "operands": "->", "reason": "no such kernel"}],
  "links": [
    {"device": "h100_sxm", "kind": "peer", "latency_ps": 2, "bytes_per_second": 1.5e+11, "largest_error": 0.25, "points": [[0, 2], [1024, 8]]}
  ],
  "collectives": [
    {"device": "h100_sxm", "kind": "reduce_scatter", "size": 8, "latency_ps": 3, "bytes_per_second": 3, "largest_error": 0, "points": [[1, 1]]},
    {"device": "h100_sxm", "kind": "reduce_scatter", "size": 4, "latency_ps": 0, "bytes_per_second": 0.5, "implementation": "replayed"}
  ]
}
)";
std::string refused(std::string const& part, std::string const& by) {
    return support::refusal([&] { return read(support::replaced(small, part, by)).size(); });
}
} // namespace

TEST_CASE("profile JSON: a document by hand, written as it was read") {
    profile_notes notes;
    auto const p = read(small, &notes);
    CHECK(schema().complaint(std::string(small)) == "");
    CHECK(notes == profile_notes{.machine = "DGX H100",
                                 .device = "NVIDIA H100",
                                 .memory = 85029158912,
                                 .compute_capability = "9.0",
                                 .driver = "550.54",
                                 .libraries = {{"cuBLAS", "12.4.5"}, {"cuDNN", "9.1"}},
                                 .date = "2025-03-01",
                                 .begin = device_state{.sm_mhz = 1980, .memory_mhz = 2619, .temperature_c = 34},
                                 .end = device_state{.temperature_c = -1},
                                 .throttled = {{"heat", 2}, {"power cap", 12}}});
    REQUIRE(p.size() == 2);
    CHECK(p.entries()[0] ==
          cost::profile_entry{
              .device = "h100_sxm",
              .kernel = {"linear", ops::pass::forward, {{"s", 64}, {"o", 1024}, {"k", 512}}, "x:bf16[s,k] weight:bf16[o,k] -> y:bf16[s,o]"},
              .time = picoseconds{5300000},
              .runs = 20,
              .spread = picoseconds{0},
              .flops = 67108864,
              .bytes = 1245184.5,
              .work = ops::work_class::matmul,
              .memory = 2490368,
              .implementation = "cublasLt algorithm 66"});
    CHECK(p.entries()[1] == cost::profile_entry{.device = "h100_sxm",
                                                .kernel = {"update", ops::pass::update, {{"flops", 0}, {"bytes", 24}}, ""},
                                                .time = picoseconds{7}});
    CHECK(p.failures() == std::vector<cost::profile_failure>{{"h100_sxm", {"linear", ops::pass::backward, {{"s", 9}}, "->"}, "no such kernel"}});
    CHECK(p.links() == std::vector<cost::link_model>{{.device = "h100_sxm",
                                                      .kind = cost::link_kind::peer,
                                                      .fitted = {picoseconds{2}, {1.5e11}, 0.25},
                                                      .points = {{0, picoseconds{2}}, {1024, picoseconds{8}}}}});
    REQUIRE(p.collectives().size() == 2);
    CHECK(p.collectives()[1] == cost::collective_model{.device = "h100_sxm",
                                                       .kind = collective_kind::reduce_scatter,
                                                       .size = 4,
                                                       .fitted = {picoseconds{0}, {0.5}, {}},
                                                       .points = {},
                                                       .implementation = "replayed"});
    CHECK(written(p, notes) == small);
    CHECK(read(written({})) == cost::profile{});
}

TEST_CASE("profile JSON: the example of the documentation") {
    auto const example = support::documented_example("parsearch.profile");
    CHECK(schema().complaint(example) == "");
    profile_notes notes;
    auto const p = read(example, &notes);
    CHECK(p.size() == 1);
    CHECK(read(written(p, notes)) == p);
}

TEST_CASE("profile JSON: what is wrong is named") {
    CHECK(refused("parsearch.profile", "profile") == "m.json: format is \"profile\": must be \"parsearch.profile\"");
    CHECK(refused("\"driver\"", "\"drivers\"") == "m.json: measured.drivers: unknown member: known are machine, device, memory_bytes, "
                                                  "compute_capability, driver, libraries, date, begin, end, throttled");
    CHECK(refused("\"9.1\"", "9.1") == "m.json: measured.libraries.cuDNN is 9.1: must be a string");
    for (auto const* const date : {"2025-13-01", "2025-3-1", "01.03.2025", "2025-03-00", "20a5-03-01", ""})
        CHECK(refused("2025-03-01", date) == text("m.json: measured.date is \"", date, "\": must be like 2025-03-01"));
    CHECK(refused("\"forward\"", "\"inference\"") == "m.json: kernels[0].pass is \"inference\": must be one of forward, backward, update");
    CHECK(refused("[\"s\", 64]", "[\"s\"]") == "m.json: kernels[0].dims[0] is an array of 1: must be a name and an extent");
    CHECK(refused("[\"s\", 64]", "[\"s\", 64.0]") == "m.json: kernels[0].dims[0][1] is 64.0: must be an integer from 0 to 9223372036854775807");
    CHECK(refused("[\"s\", 64]", "[\"s\", 0]").ends_with("dim 's' is 0: must be at least 1"));
    CHECK(refused("[\"s\", 64]", "[\"k\", 64]").ends_with("dim 'k' is there twice: must be once"));
    CHECK(refused("[[\"flops\", 0]", "[[\"a\",0],[\"b\",0],[\"c\",0],[\"d\",0],[\"e\",0],[\"f\",0],[\"g\",0],[\"h\",0],[\"i\",0],[\"j\",0]") ==
          "m.json: kernels[1].dims is an array of 11: must have at most 10");
    CHECK(refused("\"time_ps\": 7", "\"time_ps\": 7.5") == "m.json: kernels[1].time_ps is 7.5: must be an integer from 0 to 9223372036854775807");
    CHECK(refused("\"time_ps\": 7", "\"time_s\": 7") == "m.json: kernels[1].time_s: unknown member: known are device, op, pass, dims, operands, "
                                                        "time_ps, runs, spread_ps, flops, bytes, work, memory_bytes, implementation");
    CHECK(refused("\"runs\": 20", "\"runs\": 0") == "m.json: kernels[0].runs is 0: must be an integer from 1 to 9223372036854775807");
    CHECK(refused("\"kernels\": [",
                  R"("kernels": [{"device": "h100_sxm", "op": "update", "pass": "update", "dims": [["flops", 0], ["bytes", 24]], "time_ps": 8},)") ==
          "m.json: kernels[2]: kernel 'update flops=0 bytes=24' on 'h100_sxm' is in the profile twice: must be once");
    CHECK(refused("1245184.5", "-1") == "m.json: kernels[0].bytes is -1: must be a number of at least 0");
    CHECK(refused("\"matmul\"", "\"mathmul\"").find("kernels[0].work is \"mathmul\": must be one of matmul, convolution, ") != std::string::npos);
    CHECK(refused("2490368", "-1") == "m.json: kernels[0].memory_bytes is -1: must be an integer from 0 to 9223372036854775807");
    CHECK(refused("\"reason\": \"no such kernel\"", "\"reason\": \"\"") ==
          "m.json: failures[0]: kernel 'linear backward s=9 (->)' on 'h100_sxm': the reason of its failure is empty: must say why");
    CHECK(
        refused("\"failures\": [",
                R"("failures": [{"device": "h100_sxm", "op": "update", "pass": "update", "dims": [["flops", 0], ["bytes", 24]], "reason": "?"},)") ==
        "m.json: failures[0]: kernel 'update flops=0 bytes=24' on 'h100_sxm' is in the profile twice: must be once");
    CHECK(refused("\"peer\"", "\"nvlink\"") == "m.json: links[0].kind is \"nvlink\": must be one of host_to_device, device_to_host, peer, local");
    CHECK(refused("1.5e+11", "0") == "m.json: links[0].bytes_per_second is 0: must be a number above 0");
    CHECK(refused("[1024, 8]", "[1024]") == "m.json: links[0].points[1] is an array of 1: must be bytes and picoseconds");
    CHECK(refused("\"size\": 4", "\"size\": 8") == "m.json: collectives[1]: reduce_scatter of 8 on 'h100_sxm' is in the profile twice: must be once");
    CHECK(refused("\"size\": 4", "\"size\": 1") == "m.json: collectives[1].size is 1: must be an integer from 2 to 4294967295");
    CHECK(refused("\"sm_mhz\": 1980", "\"sm_mhz\": -1") == "m.json: measured.begin.sm_mhz is -1: must be an integer from 0 to 9223372036854775807");
    CHECK(support::refusal([] { return written({}, {.memory = -1}); }) == "the memory of a profile's device is -1 bytes: must not be negative");
    CHECK(support::refusal([] { return written({}, {.end = device_state{.sm_mhz = -5}}); }) ==
          "a clock of a profile's device is -5 MHz: must not be negative");
    CHECK(support::refusal([] { return written({}, {.date = "today"}); }) == "the date of a profile is \"today\": must be like 2025-03-01");
}

TEST_CASE("profile JSON: reader and schema know the same members") {
    auto const said = [](std::string const& text) { return support::refusal([&] { return read(text).size(); }); };
    CHECK(support::members_known(nlohmann::json::parse(small), said) == schema().members());
}

TEST_CASE("profile JSON: the kernels of networks and random ones read back equal") {
    constexpr std::uint64_t seed = 8;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    auto const below = [&](std::uint64_t n) { return static_cast<std::int64_t>(uniform_index(rng, n)); };
    cost::profile p;
    auto const add = [&](cost::kernel k) {
        cost::profile_entry e{
            .device = below(2) ? "h100_sxm" : "gpu \"\xe2\x82\xac\"", .kernel = std::move(k), .time = picoseconds{below(std::uint64_t{1} << 60)}};
        if (below(2)) e.runs = 1 + below(1000);
        if (below(2)) e.spread = picoseconds{below(1000)};
        if (below(2)) e.flops = static_cast<double>(below(std::uint64_t{1} << 53)) / 3;
        if (below(2)) e.bytes = static_cast<double>(below(std::uint64_t{1} << 53)) * 1e9;
        if (below(2)) e.work = static_cast<ops::work_class>(below(ops::work_classes));
        if (below(2)) e.memory = below(std::uint64_t{1} << 63);
        if (p.knows(e.device, e.kernel)) return;
        if (below(8)) p.add(std::move(e));
        else p.add_failure({e.device, std::move(e.kernel), "out of memory"});
    };
    for (auto const& g : {graph::read_graph(models::gpt({.layers = 1})).graph, graph::read_graph(models::resnet({})).graph})
        for (auto const& op : g.operations)
            for (auto const pass : {ops::pass::forward, ops::pass::backward, ops::pass::update}) {
                std::vector<std::int32_t> degrees(op.dims.size(), 1);
                add(cost::kernel_of(ops::work_of(op, degrees, pass)));
            }
    for (int i = 0; i < 2000; ++i) {
        cost::kernel k{.op = text("op ", below(1000)), .pass = static_cast<ops::pass>(below(3)), .dims = {}, .operands = below(2) ? "" : "->\n\ty"};
        for (auto d = below(4); d > 0; --d) k.dims.push_back({text('d', d), 1 + static_cast<std::int64_t>(uniform_bits(rng) >> (1 + below(63)))});
        for (auto& d : k.dims) d.extent = std::max<std::int64_t>(1, d.extent & std::numeric_limits<std::int64_t>::max());
        add(std::move(k));
    }
    auto const model = [&](auto& m) {
        m.fitted = {picoseconds{below(std::uint64_t{1} << 60)}, {static_cast<double>(1 + below(std::uint64_t{1} << 53)) / 7}, {}};
        if (below(2)) m.fitted.largest_error = static_cast<double>(below(std::uint64_t{1} << 53)) / 11;
        if (below(2)) m.implementation = "submitted one by one";
        for (auto n = below(4); n > 0; --n) m.points.push_back({below(std::uint64_t{1} << 63), picoseconds{below(std::uint64_t{1} << 60)}});
    };
    for (auto const kind : cost::link_kinds) {
        cost::link_model m{.device = "h100_sxm", .kind = kind};
        model(m);
        p.add_link(std::move(m));
    }
    for (std::uint32_t size = 2; size < 20; ++size) {
        cost::collective_model m{.device = "h100_sxm", .kind = static_cast<collective_kind>(below(6)), .size = size};
        model(m);
        p.add_collective(std::move(m));
    }
    CHECK(p.size() > 1500);
    CHECK(p.failures().size() > 100);
    auto const text = written(p);
    CHECK(schema().complaint(text) == "");
    bool const equal = read(text) == p;
    CHECK(equal);
    CHECK(written(read(text)) == text);
}

TEST_CASE("profile JSON: whatever a document holds, a profile or a refusal; what is read fits the schema") {
    auto const counts = support::read_mutations(12, 2000, small, [&](std::string const& text) {
        profile_notes notes;
        auto const p = read(text, &notes);
        CHECK(schema().complaint(text) == "");
        CHECK(read(written(p, notes)) == p);
    });
    CHECK(counts.read > 250);
    CHECK(counts.refused > 2000);
}
