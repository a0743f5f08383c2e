#include <parsearch/io/files/run_manifest.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

#include <parsearch/io/described/searches.hpp>

#include "support/refusal.hpp"
#include "support/replaced.hpp"

using namespace parsearch;
using namespace std::chrono_literals;
using support::refusal;

namespace {

io::run_manifest made() {
    io::run_manifest m;
    m.model = {"nets/a.onnx,batch=8", "fnv1a64:0123456789abcdef"};
    m.cluster = {"4x8xh100", ""};
    m.start = {"cheapest", ""};
    m.seed = 18446744073709551615U;
    m.search = search::mcmc_options{.time = 10s, .relative_temperature = 0.01};
    m.simulation.optimizer = sim::optimizer::adam;
    m.kernels = {.fusion = graph::fusion::compiled, .host_time = 7us, .f8_products = true, .ring_attention = true};
    m.space.min_shard = 4;
    m.result = {.cost_ps = 123'456'789'012'345,
                .start = "tensor parallel 8",
                .evaluations = 77,
                .proposals = 80,
                .accepted = 30,
                .improved = 2,
                .trajectory = io::hexadecimal(0xfedcba9876543210U),
                .seconds = 10.25,
                .reason = stop_reason::time_budget};
    io::run_figures f;
    f.strategy = "data parallel";
    f.time_ps = 17;
    f.flops_utilisation = 0.3;
    m.strategies = {f};
    m.files = {{"strategy.json", "fnv1a64:0123456789abcdef"}};
    return m;
}
std::string written(io::run_manifest const& m) {
    std::ostringstream out;
    io::write_run_manifest(out, m);
    return out.str();
}
io::run_manifest read(std::string const& text) {
    std::istringstream in(text);
    return io::read_run_manifest(io::json_document(in, "run.json"));
}
} // namespace

TEST_CASE("a manifest is read as it was written") {
    auto const m = made();
    auto const text = written(m);
    auto const again = read(text);
    CHECK(written(again) == text);
    CHECK(again.model == m.model);
    CHECK(again.seed == m.seed);
    CHECK(again.result == m.result);
    CHECK(again.strategies == m.strategies);
    CHECK(again.files == m.files);
    CHECK(again.library == version);
    CHECK(std::get<search::mcmc_options>(again.search.value()).time == 10s);
    CHECK(again.simulation.optimizer == sim::optimizer::adam);
    CHECK(again.kernels == m.kernels);
    CHECK(again.space.min_shard == 4);
    CHECK(text.starts_with("{\n  \"format\": \"parsearch.run\",\n  \"version\": 1,\n"));

    auto eager = m;
    eager.kernels = {};
    CHECK(written(eager).find("kernels") == std::string::npos);
    CHECK(read(written(eager)).kernels == io::kernel_options{});

    CHECK(again.replicas == 1);
    CHECK(again.runtime.empty());
    auto part = m;
    part.replicas = 8;
    part.runtime = "megatron";
    CHECK(read(written(part)).replicas == 8);
    CHECK(read(written(part)).runtime == "megatron");
    CHECK(written(read(written(part))) == written(part));

    CHECK(text.find("lower_bound_ps") == std::string::npos);
    auto bounded = m;
    bounded.lower_bound_ps = 123;
    CHECK(read(written(bounded)).lower_bound_ps == 123);
    CHECK(written(read(written(bounded))) == written(bounded));

    CHECK(text.find("profile") == std::string::npos);
    CHECK(text.find("compute") == std::string::npos);
    auto measured = m;
    measured.profile = io::run_input{"h100", "fnv1a64:0"};
    measured.compute = io::run_sources{.exact = 0.75, .interpolated = 0.125, .roofline = 0.125, .fallback = 0};
    CHECK(read(written(measured)).profile == measured.profile);
    CHECK(read(written(measured)).compute == measured.compute);
    CHECK(written(read(written(measured))) == written(measured));
    CHECK(refusal([&] {
              return read(support::replaced(written(measured), "\"roofline\"", "\"rooflines\""));
          }).starts_with("run.json: compute: option 'rooflines' is not known: must be one of exact, "));
    // Of earlier releases, where the roofline was one source.
    auto earlier = measured;
    earlier.compute = io::run_sources{.exact = 0.75, .fallback = 0.25};
    CHECK(read(support::replaced(written(earlier), "\"published\": 0, \"data_sheet\": 0, ", "")).compute == earlier.compute);
    CHECK(text.find("\"pin\"") == std::string::npos);
    auto pinned = m;
    pinned.pin = {"fc1=s2", "fc2=whole"};
    pinned.forbid = {"loss=s2"};
    CHECK(read(written(pinned)).pin == pinned.pin);
    CHECK(read(written(pinned)).forbid == pinned.forbid);
    CHECK(refusal([&] { return read(support::replaced(written(pinned), "\"fc2=whole\"", "3")); }).starts_with("run.json: pin[1] is 3: must be"));
    CHECK(text.find("rewriting") == std::string::npos);
    CHECK(text.find("rules") == std::string::npos);
    auto joint = m;
    joint.search = rewrite::joint_options{.time = 10s, .beam = 3, .pricing = {.candidates = 17}};
    joint.rules = io::run_input{"rules.json", "fnv1a64:0123456789abcdef"};
    joint.rewriting = io::run_rewriting{
        .applied = {"fuse: a, b", "merge 3 times"}, .operators = 7, .plain_operators = 9, .plain_cost_ps = 11, .plain_evaluations = 3};
    CHECK(written(read(written(joint))) == written(joint));
    CHECK(read(written(joint)).rules == joint.rules);
    CHECK(read(written(joint)).rewriting == joint.rewriting);
    CHECK(std::get<rewrite::joint_options>(*read(written(joint)).search).pricing.candidates == 17);
    CHECK(std::get<rewrite::joint_options>(*read(written(joint)).search).beam == 3);
    CHECK(refusal([&] {
              return read(support::replaced(written(joint), "\"plain_operators\"", "\"operatorz\""));
          }).starts_with("run.json: rewriting.operatorz: unknown member"));
    CHECK(refusal([&] {
              return read(support::replaced(written(joint), "\"fuse: a, b\"", "3"));
          }).starts_with("run.json: rewriting.applied[0] is 3: must be"));
    joint.rewriting->first =
        io::run_rewriting_first{.share = 0.05, .graphs = 12, .evaluations = 30, .estimates = 4, .reason = stop_reason::exhausted};
    CHECK(read(written(joint)).rewriting == joint.rewriting);
    CHECK(refusal([&] {
              return read(support::replaced(written(joint), "\"share\": 0.05", "\"share\": -1"));
          }).starts_with("run.json: rewriting.first.share is -1"));
    CHECK(text.find("failures") == std::string::npos);
    auto failed = m;
    failed.failures = io::run_failures{.links = 9, .tried = 7, .cut_off = 2, .mean = 1.25, .worst = 2, .where = "server 1 - switch 2"};
    CHECK(read(written(failed)).failures == failed.failures);
    failed.failures->mean = failed.failures->worst = std::nullopt;
    CHECK(read(written(failed)).failures == failed.failures);
    CHECK(text.find("rewiring") == std::string::npos);
    auto rewired = m;
    rewired.rewiring = io::run_rewiring{.reconfiguration_ps = 10'000'000, .cost_ps = 90, .one_wiring_ps = 95, .rewirings = 2, .wirings = 7};
    rewired.rewiring->phases = {{.begin_ps = 0, .end_ps = 40, .bytes = 12, .links = {{0, 1, 3}, {1, 2, 1}}},
                                {.begin_ps = 50, .end_ps = 80, .bytes = 1}};
    CHECK(read(written(rewired)).rewiring == rewired.rewiring);
    auto const refused_rewiring = [&](auto const& was, auto const& is) {
        return refusal([&] { return read(support::replaced(written(rewired), was, is)); });
    };
    CHECK(refused_rewiring("\"end_ps\": 40", "\"end_ps\": -4") == "run.json: rewiring.phases[0].end_ps is -4: must not be negative");
    CHECK(refused_rewiring("\"one_wiring_ps\"", "\"other\"").starts_with("run.json: rewiring.other: unknown member"));
    CHECK(text.find("pipelines") == std::string::npos);
    CHECK_FALSE(io::repeatable_pipelines(m).has_value());
    auto piped = m;
    piped.pipelines = io::run_pipelines{.options = {.time = 5s, .max_stages = 3, .sharded_optimizer = false},
                                        .cost_ps = 17,
                                        .evaluations = 12,
                                        .estimates = 34,
                                        .plans = 5,
                                        .seconds = 0.5,
                                        .reason = stop_reason::time_budget};
    CHECK(written(read(written(piped))) == written(piped));
    CHECK(read(support::replaced(written(piped), "\"plans\": 5,", "")).pipelines->plans == 0); // of earlier releases
    CHECK(read(written(piped)).pipelines->options.offload);
    CHECK_FALSE(read(support::replaced(written(piped), "\"offload\": true,", "")).pipelines->options.offload);
    auto const repeated = io::repeatable_pipelines(read(written(piped)));
    REQUIRE(repeated.has_value());
    CHECK(repeated->max_stages == 3);
    CHECK_FALSE(repeated->sharded_optimizer);
    CHECK_FALSE(repeated->time.has_value());
    CHECK(repeated->evaluations == 12);
    CHECK(repeated->estimates == 34);
    piped.pipelines->reason = stop_reason::exhausted;
    CHECK_FALSE(io::repeatable_pipelines(piped)->evaluations.has_value());
    CHECK_FALSE(io::repeatable_rewriting(piped).has_value());
    piped.rewriting = joint.rewriting;
    CHECK_FALSE(io::repeatable_rewriting(piped)->evaluations.has_value());
    CHECK(io::repeatable_rewriting(piped)->max_stages == 3);
    piped.rewriting->first->reason = stop_reason::time_budget;
    CHECK(io::repeatable_rewriting(piped)->evaluations == 30);
    CHECK(io::repeatable_rewriting(piped)->estimates == 4);
    piped.rewriting.reset();
    CHECK(refusal([&] {
              return read(support::replaced(written(piped), "\"cost_ps\": 17", "\"cost_ps\": -17"));
          }).starts_with("run.json: pipelines.cost_ps is -17: must not be negative"));
    CHECK(refusal([&] {
              return read(support::replaced(written(piped), "\"max_stages\"", "\"most_stages\""));
          }).starts_with("run.json: pipelines.options"));
    auto without = m;
    without.search.reset();
    without.result.reason.reset();
    CHECK_FALSE(read(written(without)).search.has_value());
    CHECK(read(written(without)).result.reason == std::nullopt);
    CHECK(written(read(written(without))) == written(without));
}

TEST_CASE("what a manifest must not hold is refused with its place") {
    auto const text = written(made());
    auto const said = [&](std::string const& from, std::string const& to) {
        return refusal([&] { return read(support::replaced(text, from, to)); });
    };
    CHECK(said("\"version\": 1", "\"version\": 2").starts_with("run.json: version is 2: must be 1"));
    CHECK(said("parsearch.run", "parsearch.strategy").find("must be \"parsearch.run\"") != std::string::npos);
    CHECK(said("\"seed\"", "\"sead\"").starts_with("run.json: sead: unknown member"));
    CHECK(said("\"seed\": 18446744073709551615", "\"seed\": -1").starts_with("run.json: seed is -1: must be an integer from 0"));
    CHECK(said("relative_temperature", "rel_temperature")
              .starts_with("run.json: search.options: option 'rel_temperature' is not known: must be one of time, "));
    CHECK(said("\"mcmc\"", "\"anneal\"") == "run.json: search.name: search 'anneal' is not known: must be one of " + io::search_names());
    CHECK(said("\"adam\"", "\"lion\"") == "run.json: simulation.optimizer is \"lion\": must be one of sgd, momentum, adam");
    CHECK(said("\"hash\": \"fnv1a64:0123456789abcdef\"", "\"hush\": \"\"").starts_with("run.json: model.hush: unknown member"));
    CHECK(said(", \"hash\": \"fnv1a64:0123456789abcdef\"", "") == "run.json: model: hash is missing");
    CHECK(
        said("\"time budget\"", "\"boredom\"").starts_with("run.json: result.reason is \"boredom\": must be one of exhausted, evaluation budget, "));
    CHECK(said("\"time_ps\": 17", "\"time_ps\": -17") == "run.json: strategies[0].time_ps is -17: must not be negative");
    CHECK(said("\"seconds\": 10.25", "\"seconds\": -1") == "run.json: result.seconds is -1: must not be negative");
    CHECK(said("fedcba9876543210", "zz") == "run.json: result.trajectory is \"zz\": must be sixteen hexadecimal digits, or empty");
    CHECK(said("\"fits\": true", "\"fits\": 1") == "run.json: strategies[0].fits is 1: must be true or false");
    CHECK_FALSE(refusal([] { return read("{}"); }).empty());
}

TEST_CASE("a search that was ended by the clock is repeated by its evaluations") {
    auto m = made();
    auto const repeated = [&] { return std::get<search::mcmc_options>(io::repeatable_search(m).value()); };
    CHECK(repeated().time == std::nullopt);
    CHECK(repeated().evaluations == 77U);
    CHECK(repeated().relative_temperature == 0.01);
    m.result.reason = stop_reason::stop_requested;
    CHECK(repeated().evaluations == 77U);
    // One that ended by itself ends there again.
    m.result.reason = stop_reason::exhausted;
    CHECK(repeated().evaluations == std::nullopt);
    m.result.reason = stop_reason::no_improvement;
    CHECK(repeated().evaluations == std::nullopt);
    auto timed = m;
    timed.search = rewrite::joint_options{.time = 10s, .beam = 3};
    timed.result.reason = stop_reason::time_budget;
    auto const joint = std::get<rewrite::joint_options>(io::repeatable_search(timed).value());
    CHECK(joint.time == std::nullopt);
    CHECK(joint.evaluations == 77U);
    CHECK(joint.beam == 3);
    std::get<search::mcmc_options>(*m.search).time_patience = 0.5;
    CHECK(repeated().evaluations == 77U);
    CHECK(repeated().time_patience == 0);
    std::get<search::mcmc_options>(*m.search).evaluations = 500;
    m.result.reason = stop_reason::evaluation_budget;
    CHECK(repeated().evaluations == 500U);
    m.search.reset();
    CHECK_FALSE(io::repeatable_search(m).has_value());
}

TEST_CASE("the hash of a file is that of its bytes") {
    auto const path = (std::filesystem::temp_directory_path() / ("parsearch-hash-" + std::to_string(::getpid()))).string();
    auto const hash = [&](std::string const& bytes) {
        std::ofstream(path, std::ios::binary) << bytes;
        return io::hash_of_file(path);
    };
    // Known values of FNV-1a, 64 bits (Noll's test vectors).
    CHECK(hash("") == "fnv1a64:cbf29ce484222325");
    CHECK(hash("a") == "fnv1a64:af63dc4c8601ec8c");
    CHECK(hash("foobar") == "fnv1a64:85944171f73967e8");
    CHECK(hash(std::string(100'000, 'x')) != hash(std::string(100'001, 'x')));
    std::remove(path.c_str());
    CHECK(refusal([&] { return io::hash_of_file(path); }) == path + ": cannot be opened");
}
