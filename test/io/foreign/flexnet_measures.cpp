#include <parsearch/io/foreign/flexnet_measures.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/measured_table.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/external_data.hpp"
#include "support/mutations.hpp"
#include "support/refusal.hpp"
#include "support/replaced.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
constexpr char const* small = R"({
	"batch_size": 1024,
	"ngpus": 32,
	"measurements": [
		{
			"name": "Conv2D_11_11_64",
			"pc_str": "4-1-1-1-32",
			"fw_time": 0.796672,
			"bw_time": 1.44486,
			"mem_req": 45920640
		},
		{"name": "Dense_9216_4096", "pc_str": "2-1-32", "fw_time": 0.226202, "bw_time": 0.421171, "mem_req": 305430528},
		{"name": "Dense_9216_4096", "pc_str": "2-2-32", "fw_time": 0.0039936, "bw_time": 0.421171, "mem_req": 1},
		{"name": "Dense_9216_4096", "pc_str": "2-1-16", "fw_time": 1, "bw_time": 1, "mem_req": 305430529},
		{"name": "Softmax", "pc_str": "2-1-1", "fw_time": 0, "bw_time": 1e9, "mem_req": 0}
	]
}
)";
flexnet_measures read(std::string const& text) {
    std::istringstream in(text);
    return read_flexnet_measures(in, "m.json");
}
std::string written(flexnet_measures const& m) {
    std::ostringstream out;
    write_flexnet_measures(out, m);
    return out.str();
}
std::string refused(std::string const& part, std::string const& by) {
    return support::refusal([&] { return to_profile(read(support::replaced(small, part, by)), "a100").size(); });
}
flexnet_measures read_file(std::filesystem::path const& path) {
    std::ifstream in(path);
    return read_flexnet_measures(in, path.string());
}
} // namespace

TEST_CASE("FlexNet measures: a file by hand, and its table") {
    auto const m = read(small);
    CHECK(m.batch == 1024);
    CHECK(m.devices == 32);
    REQUIRE(m.measurements.size() == 5);
    CHECK(m.measurements[0] == flexnet_measurement{"Conv2D_11_11_64", {1, 1, 1, 32}, 0.796672, 1.44486, 45920640});
    CHECK(read(written(m)) == m);

    auto const p = to_profile(m, "a100");
    REQUIRE(p.size() == 10);
    CHECK(p.entries()[0] == cost::profile_entry{.device = "a100",
                                                .kernel = {"flexnet:Conv2D_11_11_64", ops::pass::forward, {{"s", 32}}, "1-1-1-*"},
                                                .time = picoseconds{796'672'000},
                                                .memory = 45920640});
    // A dense layer is the linear of a search: spelled as it asks for it.
    std::vector<ops::tensor> const x{{{1024, 9216}}};
    auto const op = ops::linear{.out = 4096}.infer(x);
    std::vector<std::int32_t> const degrees{32, 1, 1};
    auto const work = ops::work_of(op, degrees, ops::pass::backward);
    auto const* const found = p.find("a100", cost::kernel_of(work));
    REQUIRE(found);
    CHECK(found->time == picoseconds{421'171'000});
    CHECK(found->flops == work.flops);
    CHECK(found->bytes == work.bytes);
    CHECK(found->work == ops::work_class::matmul);
    CHECK(to_string(p.entries()[2].kernel) == "linear forward s=32 o=4096 k=9216 (x:f32[s,k] weight:f32[o,k] bias:f32[o] -> y:f32[s,o])");
    // Split otherwise, or of another memory, it is not.
    CHECK(to_string(p.entries()[4].kernel) == "flexnet:Dense_9216_4096 forward s=32 (2-*)");
    CHECK(to_string(p.entries()[6].kernel) == "flexnet:Dense_9216_4096 forward s=64 (1-*)");

    std::vector<std::string> losses;
    CHECK(to_flexnet(p, "a100", {1024, 32}, losses) == m);
    CHECK(losses.empty());
    CHECK(to_flexnet(p, "h100", {1024, 32}, losses).measurements.empty());
    // For another batch the same parts are of other degrees; where GPUs share the samples of a device, of fewer.
    CHECK(gpus_per_device(m) == 1);
    CHECK(to_flexnet(p, "a100", {1024, 32, 4}, losses).measurements[1].degrees == std::vector<std::int64_t>{1, 8});
    CHECK(to_flexnet(p, "a100", {4096, 32}, losses).measurements[0].degrees == std::vector<std::int64_t>{1, 1, 1, 128});
    CHECK(losses.empty());
}

TEST_CASE("FlexNet measures: what the format cannot say is told") {
    cost::profile p;
    auto const dense = [&](std::int64_t samples, ops::pass pass) {
        auto e = io::detail::dense_entry(samples, 64, 16, pass);
        e.device = "a100";
        e.time = picoseconds{5'000'000'000};
        return e;
    };
    for (auto const pass : {ops::pass::forward, ops::pass::backward}) p.add(dense(8, pass));
    p.add(dense(3, ops::pass::forward));
    p.add(dense(4, ops::pass::forward));
    auto half = dense(8, ops::pass::forward);
    half.kernel.operands.replace(half.kernel.operands.find("f32"), 3, "f16");
    p.add(half);
    p.add({.device = "a100", .kernel = {"update", ops::pass::update, {{"flops", 8}, {"bytes", 8}}, ""}, .time = picoseconds{1}});
    p.add({.device = "a100", .kernel = {"flexnet:Flat", ops::pass::forward, {{"s", 8}}, "x-*"}, .time = picoseconds{1}});
    p.add({.device = "a100", .kernel = {"flexnet:Pool", ops::pass::forward, {{"s", 8}}, "1-*"}, .time = picoseconds{1}});
    p.add({.device = "a100", .kernel = {"flexnet:Pool", ops::pass::backward, {{"s", 8}}, "1-*"}, .time = picoseconds{1}});
    p.add({.device = "a100", .kernel = {"flexnet:Dense_64_16", ops::pass::forward, {{"s", 8}}, "1-*"}, .time = picoseconds{1}});
    std::vector<std::string> losses;
    auto const m = to_flexnet(p, "a100", {16, 4}, losses);
    CHECK(m == flexnet_measures{16, 4, {{"Dense_64_16", {1, 2}, 5, 5, 8 * (8 * 64 + 64 * 16 + 16 + 8 * 16)}}});
    REQUIRE(losses.size() == 7);
    CHECK(losses[0].ends_with("is left out: its samples do not divide the batch of 16"));
    CHECK(losses[1].ends_with("is left out: FlexNet's names say the sizes of dense layers in f32 with bias alone"));
    CHECK(losses[2] == "kernel 'update flops=8 bytes=8' is left out: FlexNet measures no updates");
    CHECK(losses[3] ==
          "kernel 'flexnet:Flat forward s=8 (x-*)' is left out: an operation of FlexNet's has one dim, s, and degrees such as \"1-1-*\" as operands");
    CHECK(losses[4] == "kernel 'flexnet:Dense_64_16 forward s=8 (1-*)' is left out: another kernel has the same name and degrees");
    CHECK(
        losses[5].ends_with("s=4 o=16 k=64 (x:f32[s,k] weight:f32[o,k] bias:f32[o] -> y:f32[s,o])' is left out: its backward pass was not measured"));
    CHECK(losses[6] == "kernel 'flexnet:Pool forward s=8 (1-*)' is left out: the memory that it needs is not known");
    CHECK(support::refusal([&] {
              return to_flexnet(p, "a100", {0, 4}, losses).batch;
          }) == "FlexNet measures for a batch of 0 on 4 devices of 1 GPUs: all must be at least 1, and GPUs at most 2147483648");
}

TEST_CASE("FlexNet measures: what is wrong is named") {
    CHECK(refused("\"ngpus\"", "\"gpus\"") == "m.json: gpus: unknown member: known are batch_size, ngpus, measurements");
    CHECK(refused("\"ngpus\": 32,", "") == "m.json: ngpus is missing");
    CHECK(refused("1024", "0") == "m.json: batch_size is 0: must be an integer from 1 to 9223372036854775807");
    CHECK(refused("1024", "1000") ==
          "m.json: measurements[0].pc_str is \"4-1-1-1-32\": must split the 1000 samples of batch_size into equal parts, not 32");
    CHECK(refused("4-1-1-1-32", "4-1-1-32") == "m.json: measurements[0].pc_str is \"4-1-1-32\": must begin with the number of degrees that follow");
    for (auto const* const bad : {"4-1-1-1-", "4-1-1-1-0", "4-1-1-1--1", "4-1-1-1-+2", "4-1-1-1-01", "4-1-1-1-99999999999999999999", ""})
        CHECK(refused("4-1-1-1-32", bad) == text("m.json: measurements[0].pc_str is \"", bad, "\": must be positive integers between dashes"));
    CHECK(refused("4-1-1-1-32", "0").find("must be positive integers") != std::string::npos);
    CHECK(refused("4-1-1-1-32", "1").find("must begin with the number of degrees") != std::string::npos);
    CHECK(refused("0.796672", "-0.1") == "m.json: measurements[0].fw_time is -0.1: must be a number of at least 0");
    CHECK(refused("1e9", "2e9") == "m.json: measurements[4].bw_time is 2000000000.0: must be at most 1e9 (ms)");
    CHECK(refused("45920640", "0.5") == "m.json: measurements[0].mem_req is 0.5: must be an integer from 0 to 9223372036854775807");
    CHECK(refused("\"Softmax\"", "\"\"") == "m.json: measurements[4].name is \"\": must not be empty");
    CHECK(refused("\"2-2-32\", \"fw_time\": 0.0039936, \"bw_time\": 0.421171, \"mem_req\": 1}",
                  R"("2-1-32", "fw_time": 1, "bw_time": 1, "mem_req": 305430528})") ==
          "measurements[2] (\"Dense_9216_4096\"): is there twice at the same degrees: must be once");
    CHECK(support::refusal([] {
              return to_profile({10, 1, {{"Flat", {1, 3}, 1, 1, 1}}}, "a100").size();
          }) == "measurements[0] (\"Flat\"): its last degree must split the 10 samples of the batch into equal parts");
    CHECK(support::refusal([] {
              return to_profile({10, 1, {{"Dense_1_1", {1, 0}, 1, 1, 64}}}, "a100").size();
          }).find("its last degree must split") != std::string::npos);
    CHECK(support::refusal([] {
              return to_profile({10, 1, {{"Flat", {1, 1}, -1, 1, 1}}}, "a100").size();
          }).find("must be finite, not negative") != std::string::npos);
}

TEST_CASE("FlexNet measures: more parts than samples are refused, whatever comes before them") {
    flexnet_measures m{.batch = 8, .devices = 16, .measurements = {}};
    m.measurements.push_back({.name = "Dense_4_4", .degrees = {1, 16}, .forward_ms = 1, .backward_ms = 1, .memory = 8 * (1 * 8 + 20)});
    CHECK(support::refusal([&] { (void)to_profile(m, "gpu"); }).find("its last degree must split the 8 samples of the batch into equal parts") !=
          std::string::npos);
    CHECK(gpus_per_device(m) == 1);
}

TEST_CASE("FlexNet measures: whatever a file holds, measures or a refusal") {
    auto const counts = support::read_mutations(21, 2000, small, [&](std::string const& text) {
        auto const m = read(text);
        CHECK(read(written(m)) == m);
        auto const p = to_profile(m, "a100");
        std::vector<std::string> losses;
        auto const back = to_flexnet(p, "a100", {m.batch, m.devices, gpus_per_device(m)}, losses);
        CHECK(losses.empty());
        // Times are whole picoseconds after the first time.
        CHECK(to_profile(back, "a100") == p);
    });
    CHECK(counts.read > 250);
    CHECK(counts.refused > 1500);
}

TEST_CASE("data: FlexNet measures: the real files read, become tables and are written again equal") {
    std::size_t read_in_all = 0, dense = 0;
    for (std::string const name : {"alexnet", "candle16", "dlrm16", "transformer16", "vgg16"}) {
        CAPTURE(name);
        auto const file = support::external_data("flexnet/measures/" + name + ".json");
        if (!file) return;
        auto const m = read_file(*file);
        read_in_all += m.measurements.size();
        CHECK(read(written(m)) == m);
        CHECK(written(read(written(m))) == written(m));
        auto const p = to_profile(m, "a100_sxm");
        CHECK(p.size() == 2 * m.measurements.size());
        for (auto const& e : p.entries()) dense += e.kernel.op == "linear" && e.kernel.pass == ops::pass::forward;
        std::vector<std::string> losses;
        auto const gpus = gpus_per_device(m);
        CHECK(to_flexnet(p, "a100_sxm", {m.batch, m.devices, gpus}, losses) == m);
        CHECK(losses.empty());
        // The memory of dense layers tells that the GPUs of a server of four ran a quarter each. Of the transformer's, of three axes, it does not.
        bool const servers = name == "candle16" || name == "dlrm16" || name == "vgg16";
        CHECK(gpus == (servers ? 4 : 1));
        for (auto const& one : m.measurements)
            if (one.name.starts_with("Dense") && one.degrees.size() == 2) {
                auto const layer = io::detail::dense_layer_of(one);
                REQUIRE(layer);
                CHECK(layer->samples * one.degrees.back() * gpus == m.batch);
            }
    }
    CHECK(read_in_all == 184);
    CHECK(dense > 80);
}

TEST_CASE("data: FlexNet measures: a search finds the dense layers of a file") {
    auto const file = support::external_data("flexnet/measures/dlrm16.json");
    if (!file) return;
    auto const cluster = topology::dgx_a100(2);
    auto const p = to_profile(read_file(*file), cluster.describe_device(0).kind); // 1024 x 1024 on 1 to 16 devices
    cost::measured_table const oracle(p, cluster, cost::roofline{cluster});
    auto const problem = make_problem(models::mlp({.features = 1024, .hidden = {1024, 1024}, .classes = 1024, .batch = 16384}), cluster, oracle);
    (void)simulate(problem, data_parallel(problem));
    // The layers are equal: forward, backward, and backward without the gradient of the data, which the first layer does not need and
    // nobody measured.
    CHECK(oracle.statistics().of(cost::cost_source::exact) >= 2);
    for (auto const& m : oracle.missing())
        if (m.kernel.op == "linear") CHECK(m.kernel.operands.find("x:f32") == 0);
}
