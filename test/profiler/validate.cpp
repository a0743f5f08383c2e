// parsearch-profile --validate and --time-limit, on the fake device.

#include "profiler/program/program.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <parsearch/io/files/profile_file.hpp>

#include "fake_device.hpp"
#include "run_program.hpp"
#include "scratch.hpp"

using namespace parsearch;
using namespace parsearch::profiler;
using support::has;
using support::new_script;
using support::run;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> const networks{"--model",       "zoo:mlp,features=64,hidden=64*3,classes=16,batch=64",
                                        "--model",       "zoo:bert,layers=2,batch=2",
                                        "--cluster",     "1x4xh100",
                                        "--kernel-time", "1ms",
                                        "--warm-up",     "0ms",
                                        "--from-idle",   "0ms",
                                        "--validate"};
std::vector<std::string> with(std::vector<std::string> a, std::vector<std::string> const& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}
nlohmann::json json_of(std::string const& path) {
    std::ifstream in(path);
    return nlohmann::json::parse(in);
}
} // namespace

TEST_CASE("validate: a device whose iteration is the sum of its kernels is predicted exactly") {
    support::scratch const dir;
    auto const script = new_script();
    std::vector<std::size_t> kernels;
    script->on_iterate = [&](auto all) {
        std::size_t updates = 0, count = 0;
        for (auto const& k : all)
            if (auto const* const u = std::get_if<optimizer_update>(&k.front())) {
                ++updates;
                count += u->sets.size();
            } else {
                ++count;
            }
        CHECK(updates == 1); // of all weights
        kernels.push_back(count);
    };
    auto const o = run(script, with(networks, {"--profile", dir / "t.json", "--out", dir / "v.json", "--types", "f32,bf16", "--within", "0"}));
    CAPTURE(o.err);
    CAPTURE(o.out);
    REQUIRE(o.code == ok);
    CHECK(has(o.out, "4 of 4 predictions are within 0%"));
    auto const report = json_of(dir / "v.json");
    CHECK(report["format"] == "parsearch.validation");
    CHECK(report["device"] == script->name);
    CHECK(report["kind"] == "h100_sxm");
    REQUIRE(report["models"].size() == 4);
    REQUIRE(kernels.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        auto const& m = report["models"][i];
        CAPTURE(m.dump());
        CHECK(m["error"] == 0);
        CHECK(m["measured_ps"] == m["predicted_ps"]);
        CHECK(m["sum_ps"] == m["predicted_ps"]);
        CHECK(m["share"]["exact"] == 1);
        CHECK(m["left_out"].empty());
        CHECK(m["iterations_ps"].size() == 20);
        CHECK(m["kernels"] == kernels[i]);
        CHECK(has(o.out, m["model"].get<std::string>()));
    }
    CHECK(report["models"][0]["model"] == "zoo:mlp,features=64,hidden=64*3,classes=16,batch=64,type=f32");
    // What was measured for it is in the table: a second time nothing is.
    auto const again = new_script();
    REQUIRE(run(again, with(networks, {"--profile", dir / "t.json", "--types", "f32,bf16"})).code == ok);
    CHECK(again->prepared == 0);
    // A report is not written over a file.
    auto const refused = run(new_script(), with(networks, {"--profile", dir / "t.json", "--out", dir / "v.json"}));
    CHECK(refused.code == bad_input);
    CHECK(has(refused.err, "is there already"));
}

TEST_CASE("validate: with --fused, iterations run fused, and the table answers for what is fused") {
    support::scratch const dir;
    std::vector<std::int64_t> times;
    for (bool const fused : {false, true}) {
        CAPTURE(fused);
        auto const table = dir / text("t", fused, ".json"), report = dir / text("v", fused, ".json");
        auto arguments = with(networks, {"--profile", table, "--out", report, "--within", "0"});
        if (fused) arguments.emplace_back("--fused");
        auto const script = new_script();
        std::size_t epilogues = 0;
        script->on_iterate = [&](auto all) {
            for (auto const& k : all)
                for (auto const& l : k)
                    if (auto const* const m = std::get_if<matmul>(&l)) epilogues += m->then != activation::none;
        };
        auto const o = run(script, arguments);
        CAPTURE(o.err);
        REQUIRE(o.code == ok);
        CHECK(epilogues == (fused ? 3 + 3 : 0)); // of the perceptron; of BERT's layers and head
        std::size_t kinds = 0, sums = 0;
        auto const measured = support::read_table(table);
        for (auto const& e : measured.entries()) {
            kinds += e.kernel.op.find('+') != std::string::npos;
            sums += e.kernel.op == "dropout_add_layer_norm";
        }
        CHECK((kinds > 0) == fused);
        CHECK(sums == (fused ? 2 : 0)); // BERT's, in either pass
        auto const written = json_of(report);
        CHECK(written["fused"] == fused);
        auto const& models = written["models"];
        for (auto const& m : models) {
            CHECK(m["error"] == 0);
            CHECK(m["share"]["exact"] == 1);
            CHECK(m["left_out"].empty());
            times.push_back(m["measured_ps"].get<std::int64_t>());
        }
    }
    REQUIRE(times.size() == 4);
    CHECK(times[2] < times[0]);
    CHECK(times[3] < times[1]);
}

TEST_CASE("validate: a device that is off is said to be, by as much") {
    support::scratch const dir;
    auto const script = new_script();
    script->iteration = 1.25;
    script->noise = {0, 0.1, -0.1};
    auto const o = run(script, with(networks, {"--profile", dir / "t.json", "--out", dir / "v.json", "--iterations", "9"}));
    CAPTURE(o.err);
    CAPTURE(o.out);
    CHECK(o.code == failed);
    CHECK(has(o.out, "0 of 2 predictions are within 10%"));
    CHECK(has(o.out, "-20.0%"));
    CHECK(has(o.out, "  off\n"));
    auto const written = json_of(dir / "v.json");
    for (auto const& m : written["models"]) {
        CHECK(std::abs(m["error"].get<double>() + 0.2) < 1e-6);
        CHECK(std::abs(m["spread_ps"].get<double>() / m["predicted_ps"].get<double>() / 0.14826 - 1) < 1e-3); // 1.4826 * 0.1
        CHECK(m["iterations_ps"].size() == 9);
    }
    CHECK(run(script, with(networks, {"--profile", dir / "t.json", "--within", "0.21"})).code == ok);
    auto const faster = new_script();
    faster->iteration = 0.8;
    auto const f = run(faster, with(networks, {"--profile", dir / "t.json"}));
    CHECK(f.code == failed);
    CHECK(has(f.out, "+25.0%"));
}

TEST_CASE("validate: what a table does not have is estimated with --no-measure, and the shares say so") {
    support::scratch const dir;
    // A table of one of the two models.
    REQUIRE(run(new_script(), {"--model", "zoo:mlp,features=64,hidden=64*3,classes=16,batch=64", "--cluster", "1x1xh100", "--kernel-time", "1ms",
                               "--warm-up", "0ms", "--from-idle", "0ms", "--kernels-only", "--out", dir / "t.json"})
                .code == ok);
    auto const before = support::text_of(dir / "t.json");
    auto const script = new_script();
    auto const o = run(script, with(networks, {"--profile", dir / "t.json", "--no-measure", "--out", dir / "v.json"}));
    CAPTURE(o.err);
    CAPTURE(o.out);
    CHECK((o.code == ok || o.code == failed));
    CHECK(script->prepared == 0);
    CHECK(support::text_of(dir / "t.json") == before);
    auto const models = json_of(dir / "v.json")["models"];
    CHECK(models[0]["share"]["exact"] == 1);
    CHECK(models[0]["error"] == 0);
    CHECK(models[1]["share"]["exact"] < 0.5);
    double sum = 0;
    for (auto const& [name, part] : models[1]["share"].items()) sum += part.get<double>();
    CHECK(std::abs(sum - 1) < 1e-9);
    auto const missing = run(new_script(), with(networks, {"--profile", dir / "none.json", "--no-measure"}));
    CHECK(missing.code == bad_input);
    CHECK(has(missing.err, "there is no such table"));
}

TEST_CASE("validate: kernels that fail are named, counted and on neither side") {
    support::scratch const dir;
    auto const refuse_softmax = [](std::span<launch const> sequence) {
        for (auto const& l : sequence)
            if (auto const* const s = std::get_if<profiler::softmax>(&l)) throw launch_failure(s->backward ? "no backward engine" : "no engine");
    };
    // They fail when they are measured, or, with --no-measure and a table that does not know of it, in the iteration.
    for (bool const measure : {true, false}) {
        CAPTURE(measure);
        auto const table = dir / (measure ? "t.json" : "u.json"), report = dir / (measure ? "v.json" : "w.json");
        auto const script = new_script();
        if (!measure) REQUIRE(run(new_script(), with(networks, {"--profile", table})).code == ok);
        script->on_prepare = refuse_softmax;
        auto arguments = with(networks, {"--profile", table, "--out", report, "--within", "0"});
        if (!measure) arguments.emplace_back("--no-measure");
        auto const o = run(script, arguments);
        CAPTURE(o.err);
        CAPTURE(o.out);
        REQUIRE(o.code == ok);
        CHECK(has(o.out, "no engine"));
        auto const models = json_of(report)["models"];
        std::size_t names = 0;
        for (auto const& m : models) {
            CHECK(m["error"] == 0);
            for (auto const& k : m["left_out"]) {
                ++names;
                CHECK(k["times"].get<int>() >= 1);
                CHECK(k["predicted_ps"].get<double>() > 0);
                CHECK(has(k["reason"].get<std::string>(), "no "));
            }
            CHECK((m["left_out_share"].get<double>() > 0) == !m["left_out"].empty());
            CHECK(m["left_out_share"] < 1);
        }
        CHECK(names >= 2);
    }
}

TEST_CASE("validate: a model that cannot be run whole is off, and the others are run") {
    support::scratch const dir;
    auto const script = new_script();
    int round = 0;
    script->on_iterate = [&](auto) {
        if (round++ == 0) throw launch_failure("an iteration: needs 90 GiB");
    };
    auto const o = run(script, with(networks, {"--profile", dir / "t.json", "--out", dir / "v.json"}));
    CAPTURE(o.err);
    CAPTURE(o.out);
    CHECK(o.code == failed);
    CHECK(has(o.out, "could not be run whole: an iteration: needs 90 GiB"));
    CHECK(has(o.out, "1 of 2 predictions"));
    auto const models = json_of(dir / "v.json")["models"];
    CHECK(models[0]["failure"] == "an iteration: needs 90 GiB");
    CHECK_FALSE(models[0].contains("error"));
    CHECK(models[1]["error"] == 0);
    auto const broken = new_script();
    broken->on_iterate = [](auto) { throw device_failure("an illegal memory access was encountered"); };
    auto const b = run(broken, with(networks, {"--profile", dir / "t.json"}));
    CHECK(b.code == failed);
    CHECK(has(b.err, "illegal memory access"));
}

TEST_CASE("validate: --list, and options that do not go together") {
    support::scratch const dir;
    auto const listed = run(new_script(), with(networks, {"--list"}));
    CHECK(listed.code == ok);
    CHECK(has(listed.out, "layer_norm"));
    auto const says = [&](std::vector<std::string> const& arguments, std::string_view message) {
        auto const script = new_script();
        auto const r = run(script, arguments);
        CAPTURE(r.err);
        CAPTURE(message);
        CHECK(r.code == bad_input);
        CHECK(has(r.err, message));
        CHECK(script->prepared == 0);
    };
    says(networks, "--validate is given without --profile");
    says(with(networks, {"--resume", dir / "t.json"}), "--profile names its table");
    says(with(networks, {"--profile", dir / "t.json", "--degrees", "1"}), "whole iterations");
    says(with(networks, {"--profile", dir / "t.json", "--passes", "forward"}), "whole iterations");
    says(with(networks, {"--profile", dir / "t.json", "--links-only"}), "whole iterations");
    says(with(networks, {"--profile", dir / "t.json", "--within", "-1"}), "--within is '-1'");
    says(with(networks, {"--profile", dir / "t.json", "--within", "inf"}), "--within is 'inf'");
    says(with(networks, {"--profile", dir / "t.json", "--iterations", "0"}), "--iterations is '0'");
    says(with(networks, {"--profile", dir / "t.json", "--time-limit", "0s"}), "--time-limit is '0s'");
    says({"--model", "zoo:mlp", "--cluster", "1x4xh100", "--profile", dir / "t.json", "--list"}, "--validate");
    CHECK_FALSE(fs::exists(dir / "t.json"));
}

TEST_CASE("time limit: ends as Ctrl-C does, with a code of its own, and --resume goes on") {
    support::scratch const dir;
    std::vector<std::string> const small{"--model",       "zoo:mlp,features=64,hidden=64,classes=16,batch=64",
                                         "--cluster",     "1x4xh100",
                                         "--kernel-time", "1ms",
                                         "--warm-up",     "0ms",
                                         "--from-idle",   "0ms",
                                         "--kernels-only"};
    REQUIRE(run(new_script(), with(small, {"--out", dir / "whole.json"})).code == ok);
    auto const whole = support::read_table(dir / "whole.json");
    auto const slow = new_script();
    slow->on_run = [] { ::usleep(2000); };
    auto const o = run(slow, with(small, {"--resume", dir / "t.json", "--time-limit", "300ms"}));
    CAPTURE(o.err);
    REQUIRE(o.code == out_of_time);
    CHECK(has(o.err, "the time limit is reached; --resume"));
    auto const part = support::read_table(dir / "t.json");
    CHECK(part.size() < whole.size());
    // What there is, is the beginning of the whole.
    for (std::size_t i = 0; i < part.size(); ++i) CHECK(part.entries()[i].kernel == whole.entries()[i].kernel);
    REQUIRE(run(new_script(), with(small, {"--resume", dir / "t.json", "--time-limit", "10min"})).code == ok);
    CHECK(support::read_table(dir / "t.json").size() == whole.size());
    // Of a validation.
    auto const v = run(slow, with(networks, {"--profile", dir / "v.json", "--time-limit", "100ms", "--out", dir / "r.json"}));
    CHECK(v.code == out_of_time);
    CHECK(has(v.err, "the same command goes on"));
    CHECK_FALSE(fs::exists(dir / "r.json"));
    CHECK(run(new_script(), with(networks, {"--profile", dir / "v.json", "--out", dir / "r.json"})).code == ok);
}

TEST_CASE("validate: an interrupt leaves the networks that were run") {
    support::scratch const dir;
    auto const script = new_script();
    bool asked = false; // a second one ends at once
    script->on_iterate = [&](auto) {
        if (!std::exchange(asked, true)) ::kill(::getpid(), SIGINT);
        std::this_thread::sleep_for(std::chrono::seconds{1}); // another thread takes it
    };
    auto const o = run(script, with(networks, {"--profile", dir / "t.json", "--out", dir / "v.json"}));
    CHECK(o.code == profiler::interrupted);
    CHECK(has(o.err, "1 models were not run"));
    auto const report = json_of(dir / "v.json");
    REQUIRE(report["models"].size() == 1);
    CHECK(has(report["models"][0]["model"].get<std::string>(), "zoo:mlp"));
}

TEST_CASE("validate: with --data-parallel, iterations run on all devices too, and wait for their all-reduces") {
    support::scratch const dir;
    auto const script = new_script();
    script->devices = 4;
    script->bend = 1e-6;
    std::vector<byte_count> reduced;
    script->on_iterate_together = [&](auto steps) {
        byte_count sum = 0;
        for (auto const& s : steps) sum += s.all_reduce;
        reduced.push_back(sum);
        CHECK(steps.back().all_reduce == 0); // the updates
        CHECK(std::holds_alternative<optimizer_update>(steps.back().launches.front()));
    };
    std::vector<std::string> const asked{"--model",     "zoo:mlp,features=64,hidden=64*2,classes=16,batch=64",
                                         "--cluster",   "1x4xh100",
                                         "--validate",  "--data-parallel",
                                         "--from-idle", "0ms",
                                         "--warm-up",   "0ms",
                                         "--profile",   dir / "t.json"};
    auto const o = run(script, with(asked, {"--out", dir / "v.json", "--within", "0.5"}));
    CAPTURE(o.err);
    CAPTURE(o.out);
    REQUIRE(o.code == ok);
    auto const rows = json_of(dir / "v.json")["models"];
    REQUIRE(rows.size() == 2);
    CHECK(rows[0]["devices"] == 1);
    CHECK(rows[0]["reducing_ps"] == 0);
    CHECK(rows[1]["devices"] == 4);
    CHECK(reduced == std::vector<byte_count>{4 * (64 * 64 + 64) * 2 + 4 * (64 * 16 + 16)});
    // One after the other, kernels and all-reduces take what was measured; the simulator lets updates run beside all-reduces.
    auto const measured = rows[1]["measured_ps"].get<double>(), sum = rows[1]["sum_ps"].get<double>();
    CHECK(sum == doctest::Approx(measured).epsilon(0.01)); // all-reduces as measured at the sizes next to theirs, which no line fits
    CHECK(rows[1]["predicted_ps"].get<double>() <= sum);
    CHECK(rows[1]["reducing_ps"].get<double>() > 4e7); // 40 us each
    CHECK(has(o.out, "batch=64 on 4"));
    CHECK(has(o.out, "its kernels and all-reduces add up to "));

    auto const few = new_script();
    few->devices = 2;
    auto const refused = run(few, with(asked, {}));
    CHECK(refused.code == bad_input);
    CHECK(has(refused.err, "--data-parallel is given with 2 devices and a cluster of 4: must be as many, two or more"));
    auto const uneven =
        run(script, {"--model", "zoo:mlp,batch=63", "--cluster", "1x4xh100", "--validate", "--data-parallel", "--profile", dir / "u.json"});
    CHECK(uneven.code == bad_input);
    CHECK(has(uneven.err, "must have 4, one for each device"));
}
