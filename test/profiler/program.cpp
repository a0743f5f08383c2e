#include "profiler/program/program.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <parsearch/io/files/profile_file.hpp>
#include <parsearch/io/names/zoo.hpp>

#include "fake_device.hpp"
#include "run_program.hpp"
#include "scratch.hpp"

using namespace parsearch;
using namespace parsearch::profiler;
using support::has;
using support::new_script;
using support::outcome;
using support::run;
using support::text_of;
namespace fs = std::filesystem;

namespace {

// Samples end by their error, however slow this machine is.
std::vector<std::string> const small{
    "--model", "zoo:mlp,features=64,hidden=64,classes=16,batch=64", "--cluster", "1x4xh100", "--kernel-time", "1h", "--warm-up", "0ms", "--from-idle",
    "0ms"};
std::vector<std::string> with(std::vector<std::string> a, std::vector<std::string> const& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}
} // namespace

TEST_CASE("program: measures, and the table says what the device took") {
    support::scratch const dir;
    auto const script = new_script();
    auto const o = run(script, with(small, {"--out", dir / "t.json", "--machine", "a test"}));
    CAPTURE(o.err);
    REQUIRE(o.code == ok);
    io::profile_notes notes;
    auto const t = support::read_table(dir / "t.json", &notes);
    CHECK(notes.device == script->name);
    CHECK(notes.machine == "a test");
    CHECK(notes.memory == script->memory);
    CHECK(notes.libraries.at("cudnn") == "9.1.0");
    CHECK(notes.begin->sm_mhz == 1980);
    CHECK(notes.end->temperature_c == 41);
    CHECK(t.size() > 50);
    CHECK(t.failures().empty());
    for (auto const& e : t.entries()) {
        CHECK(e.device == "h100_sxm");
        CHECK(e.flops.has_value());
        CHECK(e.bytes.has_value());
        CHECK(e.runs >= 5);
        CHECK(e.spread == picoseconds{0});
        CHECK(e.time >= picoseconds{e.kernel.pass == ops::pass::update ? 1 : 2'000'000});
        CHECK(e.implementation.starts_with("fake, "));
        CHECK(e.implementation.find('\n') == std::string::npos);
    }
    CHECK(t.links().size() == 3);
    for (auto const& l : t.links()) CHECK(std::abs(to_seconds(l.fitted.latency) / 3e-6 - 1) < 0.01);
    CHECK(has(o.out, text(t.size(), " kernels")));
    // Equal requests give equal tables.
    REQUIRE(run(new_script(), with(small, {"--out", dir / "again.json"})).code == ok);
    CHECK(support::read_table(dir / "again.json") == t);
    // A new table is never written over what is there.
    auto const before = text_of(dir / "t.json");
    auto const second = run(new_script(), with(small, {"--out", dir / "t.json"}));
    CHECK(second.code == bad_input);
    CHECK(has(second.err, "is there already"));
    CHECK(text_of(dir / "t.json") == before);
}

TEST_CASE("program: the device works before anything is timed, and what held its clocks down is noted") {
    support::scratch const dir;
    auto const script = new_script();
    std::vector<std::string> first;
    script->on_prepare = [&](std::span<launch const> sequence) {
        if (first.empty()) first.push_back(to_string(sequence.front()));
    };
    script->throttled_by = {"power cap", "heat"};
    auto asked = small;
    asked.back() = "30ms"; // --from-idle
    auto const begin = std::chrono::steady_clock::now();
    REQUIRE(run(script, with(asked, {"--out", dir / "t.json", "--kernels-only", "--operators", "relu"})).code == ok);
    CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds{30});
    CHECK(first == std::vector<std::string>{"matmul 4096x4096x4096 f32"});
    io::profile_notes notes;
    auto const some = static_cast<std::int64_t>(support::read_table(dir / "t.json", &notes).size());
    CHECK(some > 0);
    CHECK(notes.throttled == std::map<std::string, std::int64_t>{{"heat", some}, {"power cap", some}});
    // Those of a run that goes on are added.
    script->throttled_by = {"heat"};
    REQUIRE(run(script, with(small, {"--resume", dir / "t.json", "--kernels-only"})).code == ok);
    auto const all = static_cast<std::int64_t>(support::read_table(dir / "t.json", &notes).size());
    CHECK(all > some);
    CHECK(notes.throttled == std::map<std::string, std::int64_t>{{"heat", all}, {"power cap", some}});
    // A device that cannot run that work is measured all the same.
    auto const other = new_script();
    other->on_prepare = [](std::span<launch const> sequence) {
        if (auto const* const m = std::get_if<matmul>(&sequence.front()); m != nullptr && m->m == 4096) throw launch_failure("too large");
    };
    CHECK(run(other, with(asked, {"--out", dir / "u.json", "--kernels-only"})).code == ok);
    CHECK(run(other, {"--name-device", "--from-idle", "-1ms"}).code == bad_input);
}

TEST_CASE("program: a device is told what is measured next") {
    support::scratch const dir;
    auto const script = new_script();
    std::vector<launch> told;
    std::size_t unexpected = 0, calls = 0;
    script->on_foresee = [&](std::span<launch const> next) {
        ++calls;
        told.assign(next.begin(), next.end());
    };
    script->on_prepare = [&](std::span<launch const> sequence) {
        for (auto const& l : sequence) // one update is timed as many
            if (!std::holds_alternative<optimizer_update>(l) && std::ranges::find(told, l) == told.end()) ++unexpected;
    };
    auto const table = dir / "t.json";
    REQUIRE(run(script, with(small, {"--out", table, "--kernels-only"})).code == ok);
    CHECK(calls == (support::read_table(table).size() + 255) / 256);
    CHECK(unexpected == 0);
    told.clear();
    REQUIRE(run(script, with(small, {"--validate", "--profile", table, "--iterations", "2"})).code == ok);
    CHECK(!told.empty());
    CHECK(unexpected == 0);
}

TEST_CASE("program: Ctrl-C loses nothing, and --resume makes the table that an uninterrupted run makes") {
    support::scratch const dir;
    REQUIRE(run(new_script(), with(small, {"--out", dir / "whole.json"})).code == ok);
    auto const whole = support::read_table(dir / "whole.json");
    auto script = new_script();
    std::size_t rounds = 0;
    for (outcome o{.code = profiler::interrupted}; o.code == profiler::interrupted; ++rounds) {
        REQUIRE(rounds < 100);
        // In the middle of the twentieth kernel.
        auto const last = script->prepared + 20;
        bool sent = false;
        script->on_run = [&, last] {
            if (script->prepared < last || sent) return;
            sent = true;
            ::kill(::getpid(), SIGINT);
            for (int i = 0; i < 200; ++i) ::usleep(1000); // until the watch has seen it
        };
        o = run(script, with(small, {"--resume", dir / "t.json"}));
        CAPTURE(o.err);
        REQUIRE((o.code == ok || o.code == profiler::interrupted));
        if (o.code == profiler::interrupted) {
            CHECK(has(o.err, "--resume"));
            CHECK(support::read_table(dir / "t.json").size() == (rounds + 1) * 19);
        }
    }
    CHECK(rounds > 2);
    CHECK(support::read_table(dir / "t.json") == whole);
    // Nothing is left to do.
    auto const idle = new_script();
    auto const o = run(idle, with(small, {"--resume", dir / "t.json"}));
    CHECK(o.code == ok);
    CHECK(idle->prepared == 0);
    CHECK(has(o.out, text("0 measured, 0 failed, ", whole.size(), " were there")));
}

TEST_CASE("program: a second Ctrl-C ends at once and harms nothing") {
    support::scratch const dir;
    std::fflush(nullptr);
    auto const child = ::fork();
    if (child == 0) {
        auto const script = new_script();
        script->on_run = [&] {
            if (script->prepared < 10) return;
            ::kill(::getpid(), SIGINT);
            ::usleep(300'000);
            ::kill(::getpid(), SIGINT);
            ::sleep(20);
        };
        ::_exit(run(script, with(small, {"--out", dir / "t.json"})).code);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGINT);
    CHECK(support::read_table(dir / "t.json").entries().size() <= 9); // what was saved, whole
    REQUIRE(run(new_script(), with(small, {"--resume", dir / "t.json"})).code == ok);
}

TEST_CASE("program: what fails is in the table with its reason, and is tried again only when that is asked for") {
    support::scratch const dir;
    auto const script = new_script();
    script->on_prepare = [&](std::span<launch const> sequence) {
        if (std::holds_alternative<matmul>(sequence.front())) throw launch_failure("cublasLt: no algorithm\nfor this \xff");
    };
    auto const o = run(script, with(small, {"--out", dir / "t.json", "--kernels-only"}));
    CAPTURE(o.err);
    REQUIRE(o.code == ok);
    auto const t = support::read_table(dir / "t.json");
    CHECK(t.failures().size() > 20);
    CHECK(t.links().empty());
    for (auto const& f : t.failures()) {
        CHECK(f.kernel.op == "linear");
        CHECK(f.reason == "cublasLt: no algorithm for this ?");
    }
    auto const fixed = new_script();
    REQUIRE(run(fixed, with(small, {"--resume", dir / "t.json", "--kernels-only"})).code == ok);
    CHECK(fixed->prepared == 0);
    REQUIRE(run(fixed, with(small, {"--resume", dir / "t.json", "--kernels-only", "--retry-failed"})).code == ok);
    CHECK(fixed->prepared == static_cast<std::int64_t>(t.failures().size()));
    CHECK(support::read_table(dir / "t.json").failures().empty());
    // What does not fit is not tried.
    auto const little = new_script();
    little->memory = 1000;
    REQUIRE(run(little, with(small, {"--out", dir / "little.json", "--kernels-only"})).code == ok);
    CHECK(little->prepared == 0);
    CHECK(has(support::read_table(dir / "little.json").failures().front().reason, "of memory: the device has 1000 B"));
}

TEST_CASE("program: a device that breaks down ends the run, not the table") {
    support::scratch const dir;
    auto const script = new_script();
    script->on_run = [&] {
        if (script->prepared == 30) throw device_failure("an illegal memory access was encountered");
    };
    auto const o = run(script, with(small, {"--out", dir / "t.json"}));
    CHECK(o.code == failed);
    CHECK(has(o.err, "illegal memory access"));
    CHECK(support::read_table(dir / "t.json").size() == 29);
    CHECK(has(support::read_table(dir / "t.json").failures().at(0).reason, "illegal memory access"));
    auto const next = new_script();
    CHECK(run(next, with(small, {"--resume", dir / "t.json"})).code == ok);
    CHECK(support::read_table(dir / "t.json").failures().size() == 1);
}

TEST_CASE("program: files that are wrong are said and left alone") {
    support::scratch const dir;
    auto const script = new_script();
    auto const refused = [&](std::string const& name, std::string const& with_text, std::string_view message) {
        std::ofstream(dir / name, std::ios::binary) << with_text;
        auto const o = run(script, with(small, {"--resume", dir / name}));
        CAPTURE(o.err);
        CHECK(o.code == bad_input);
        CHECK(has(o.err, message));
        CHECK(text_of(dir / name) == with_text);
    };
    refused("broken.json", R"({"format": "parsearch.profile", "version": 1, "kernels": [)", "broken.json");
    refused("other.json", R"({"format": "parsearch.topology", "version": 1})", "parsearch.profile");
    refused("empty.json", "", "empty.json");
    refused("a100.json", R"({"format": "parsearch.profile", "version": 1, "measured": {"device": "NVIDIA A100"}, "kernels": []})",
            "was measured on 'NVIDIA A100'");
    CHECK(script->prepared == 0);
    CHECK(run(script, with(small, {"--resume", dir.folder.string()})).code == bad_input);
    auto const nowhere = run(script, with(small, {"--out", dir / "no/such/t.json"}));
    CHECK(nowhere.code == failed);
    CHECK(has(nowhere.err, "cannot be written: No such file or directory"));
    CHECK(script->prepared == 0);
    // A folder that becomes unwritable while it runs: the old table stays.
    if (::geteuid() != 0) {
        auto const closing = new_script();
        closing->on_prepare = [&](auto) { fs::permissions(dir.folder, fs::perms::owner_read | fs::perms::owner_exec); };
        auto const o = run(closing, with(small, {"--out", dir / "t.json"}));
        fs::permissions(dir.folder, fs::perms::owner_all);
        CHECK(o.code == failed);
        CHECK(support::read_table(dir / "t.json").empty());
    } else {
        MESSAGE("skipped: nothing is unwritable for root");
    }
}

TEST_CASE("program: no device, wrong options, kinds") {
    support::scratch const dir;
    auto const none = new_script();
    none->devices = 0;
    auto const o = run(none, with(small, {"--out", dir / "t.json"}));
    CHECK(o.code == device_missing);
    CHECK(o.err == "parsearch-profile: GPU 0 was asked for: there are 0\n");
    CHECK_FALSE(fs::exists(dir / "t.json"));
    CHECK(run(new_script(), with(small, {"--out", dir / "t.json", "--device", "3"})).code == device_missing);
    auto const says = [&](std::vector<std::string> const& arguments, std::string_view message) {
        auto const r = run(new_script(), arguments);
        CAPTURE(r.err);
        CAPTURE(message);
        CHECK(r.code == bad_input);
        CHECK(has(r.err, message));
        CHECK(r.out.empty());
    };
    says({}, "--cluster is missing");
    says({"--cluster", "1x8xh100"}, "--model is missing");
    says(small, "none of --list, --out and --resume");
    says(with(small, {"--list", "--out", dir / "x"}), "more than one of");
    says(with(small, {"--list", "--types", "bf16,complex"}), "complex");
    says({"--model", "zoo:mlp,type=f32", "--cluster", "1x8xh100", "--list", "--types", "bf16"}, "has a type of its own");
    says(with(small, {"--list", "--degrees", "1,zwei"}), "--degrees is 'zwei'");
    says(with(small, {"--list", "--passes", "sideways"}), "sideways");
    says(with(small, {"--list", "--operators", "conv9d"}), "conv9d");
    says(with(small, {"--list", "--target-error", "0"}), "--target-error is '0'");
    says({"--model", "zoo:mlp", "--cluster", "1x4xh100", "--list", "--kernel-time", "soon"}, "soon");
    says(with(small, {"--list", "--kind", "tpu"}), "--kind is 'tpu'");
    says(with(small, {"--list", "--unknown", "guess"}), "--unknown is 'guess'");
    says(with(small, {"--kernels", "--out", dir / "x"}), "--kernels is given without --list");
    says(with(small, {"--retry-failed", "--out", dir / "x"}), "without --resume");
    says(with(small, {"--out", dir / "x", "--device", "-1"}), "--device is '-1': must be gpu, cpu or a number from 0 on");
    says(with(small, {"--out", dir / "x", "--data-parallel"}), "--data-parallel requires --validate");
    auto const core = run(new_script(), with(small, {"--out", dir / "x", "--device", "cpu"}));
    CHECK(core.code == device_missing);
    CHECK(core.err ==
          "parsearch-profile: no device: --device cpu is asked for, and this parsearch-profile measures a gpu: must be that of cpu_profiler/\n");
    CHECK(run(new_script(), with(small, {"--list", "--device", "gpu"})).code == ok);
    says({"--model", "zoo:nothing", "--cluster", "1x8xh100", "--list"}, "nothing");
    says({"--model", "nowhere.onnx", "--cluster", "1x8xh100", "--list"}, "there is no such file");
    says({"--nonsense"}, "--nonsense");
    CHECK(has(run(new_script(), {"--help"}).out, "Exit codes"));
    CHECK(has(run(new_script(), {"--version"}).out, "parsearch-profile "));
    // Another device than the cluster's is said, not refused: a kind is a name.
    auto const other = new_script();
    other->name = "NVIDIA A100-SXM4-80GB";
    auto const a100 = run(other, with(small, {"--out", dir / "a100.json", "--links-only"}));
    CHECK(a100.code == ok);
    CHECK(has(a100.err, "the device is 'NVIDIA A100-SXM4-80GB'"));
    // What needs several devices is left out with a word.
    CHECK(has(a100.err, "peer copies and collectives are not measured: one device is used"));
}

TEST_CASE("program: --name-device says what clusters call the device that is there") {
    auto const said = [](std::string const& name, std::vector<std::string> const& more = {}) {
        auto const script = new_script();
        script->name = name;
        return run(script, with({"--name-device"}, more));
    };
    for (auto const& [name, device] : {std::pair{"NVIDIA H100 80GB HBM3", "h100"},
                                       {"NVIDIA H200", "h200"},
                                       {"NVIDIA A100-SXM4-80GB", "a100"},
                                       {"Tesla V100-SXM2-16GB", "v100"},
                                       {"Tesla K80", "k80"}}) {
        auto const o = said(name);
        CHECK(o.code == ok);
        CHECK(o.out == std::string(device) + "\n");
        CHECK(o.err.empty());
    }
    for (std::string const name : {"NVIDIA GH200 480GB", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA GeForce RTX 4090"}) {
        auto const o = said(name);
        CHECK(o.code == bad_input);
        CHECK(has(o.err, "the device is '" + name + "': is none of those that clusters name, which are k80, "));
    }
    CHECK(said("NVIDIA H200", {"--device", "3"}).code == device_missing);
}

TEST_CASE("program: --fused measures kernels of fused operators beside the others") {
    support::scratch const dir;
    auto const more = with(small, {"--kernels-only", "--passes", "forward", "--degrees", "1"});
    REQUIRE(run(new_script(), with(more, {"--out", dir / "plain.json"})).code == ok);
    REQUIRE(run(new_script(), with(more, {"--fused", "--out", dir / "fused.json"})).code == ok);
    auto const plain = support::read_table(dir / "plain.json"), fused = support::read_table(dir / "fused.json");
    std::size_t found = 0;
    for (auto const& e : plain.entries()) CHECK(fused.find(e.device, e.kernel));
    for (auto const& e : fused.entries()) found += e.kernel.op == "linear+relu";
    CHECK(found > 0);
    CHECK(fused.size() == plain.size() + found);
    // A sum before a normalization is measured as the joint search fuses it, and as one kernel with the normalization.
    std::vector<std::string> const transformer{"--model",
                                               "zoo:bert,layers=1,batch=2",
                                               "--cluster",
                                               "1x1xh100",
                                               "--kernel-time",
                                               "1ms",
                                               "--warm-up",
                                               "0ms",
                                               "--kernels-only",
                                               "--passes",
                                               "forward",
                                               "--degrees",
                                               "1",
                                               "--fused",
                                               "--from-idle",
                                               "0ms",
                                               "--out",
                                               dir / "bert.json"};
    REQUIRE(run(new_script(), transformer).code == ok);
    std::map<std::string, std::size_t> kinds;
    auto const of_bert = support::read_table(dir / "bert.json");
    for (auto const& e : of_bert.entries()) ++kinds[e.kernel.op];
    for (auto const* kind : {"linear", "linear+dropout+add", "layer_norm", "dropout_add_layer_norm"}) {
        CAPTURE(kind);
        CHECK(kinds[kind] > 0);
    }
}

TEST_CASE("program: several devices: peers and collectives") {
    support::scratch const dir;
    auto const script = new_script();
    script->devices = 4;
    auto const links = run(script, with(small, {"--out", dir / "t.json", "--links-only"}));
    REQUIRE(links.code == ok);
    CHECK_FALSE(has(links.err, "not measured"));
    auto const t = support::read_table(dir / "t.json");
    CHECK(t.empty());
    CHECK(t.links().size() == 4);
    CHECK(t.collectives().size() == 8); // of 2 and of 4
    auto const* const reduce = t.find_collective("h100_sxm", collective_kind::all_reduce, 4);
    REQUIRE(reduce);
    CHECK(std::abs(to_seconds(reduce->fitted.latency) / 4e-5 - 1) < 0.01);
    CHECK(std::abs(reduce->fitted.rate.bytes_per_second / 2e11 - 1) < 0.01);
    CHECK(reduce->implementation == "replayed up to 16777216 bytes");
    CHECK(t.find_link("h100_sxm", cost::link_kind::peer)->implementation == "replayed up to 1048576 bytes");
    auto const without = new_script();
    without->devices = 4;
    without->groups = false;
    without->replays = false;
    auto const o = run(without, with(small, {"--out", dir / "u.json", "--links-only"}));
    CHECK(o.code == ok);
    CHECK(has(o.err, "collectives of 2 are not measured: built without NCCL"));
    auto const u = support::read_table(dir / "u.json");
    REQUIRE(u.links().size() == 4);
    for (auto const& link : u.links()) CHECK(link.implementation == "submitted one by one");
}

TEST_CASE("program: devices that are given twice or are not there are refused") {
    support::scratch const dir;
    auto const twice = run(new_script(), with(small, {"--out", dir / "t.json", "--device", "0", "--device", "0"}));
    CHECK(twice.code == bad_input);
    CHECK(has(twice.err, "--device is 0 twice: must be another device each time"));
    auto const beyond = run(new_script(), with(small, {"--out", dir / "t.json", "--device", "0", "--device", "99"}));
    CHECK(beyond.code == device_missing);
    CHECK(has(beyond.err, "no device: --device 99 is asked for, and there are "));
    CHECK_FALSE(std::filesystem::exists(dir / "t.json"));
}

TEST_CASE("program: kernels of operators in copies are listed") {
    auto const script = new_script();
    auto const plain = run(script, with(small, {"--list"})), copies = run(script, with(small, {"--space.copies", "2", "--list"}));
    CAPTURE(copies.err);
    CHECK(plain.code == ok);
    CHECK(copies.code == ok);
    CHECK(copies.out.size() >= plain.out.size());
}

TEST_CASE("program: --list needs no device, and knows every model of the zoo") {
    auto const script = new_script();
    script->devices = 0;
    std::vector<std::string> names;
    boost::hana::for_each(io::zoo, [&](auto const& entry) { names.emplace_back(entry.name); });
    for (auto const& name : names) {
        CAPTURE(name);
        auto const o = run(script, {"--model", "zoo:" + name, "--cluster", "1x8xh100", "--list", "--degrees", "1,2,4,8"});
        CAPTURE(o.err);
        CHECK(o.code == ok);
        CHECK(has(o.out, "all "));
        CAPTURE(o.out);
        CHECK_FALSE(has(o.out, "cannot be measured")); // every operator of the zoo has launches
    }
    auto const both = run(script, with(small, {"--list", "--kernels", "--types", "bf16,f32"}));
    CHECK(both.code == ok);
    CHECK(has(both.out, "matmul"));
    CHECK(has(both.out, "x:bf16[s,k]"));
    CHECK(has(both.out, "x:f32[s,k]"));
    CHECK(script->prepared == 0);
}
