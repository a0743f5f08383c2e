#include <parsearch/io/exports/serving_flags.hpp>

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include <parsearch/core/error.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
/// On two nodes of four.
parallelization problem_of(graph::operator_graph const& g, bool training = false) {
    auto const cluster = topology::nodes({.count = 2, .gpus_per_node = 4, .device = topology::h100_sxm});
    return make_problem(g, cluster, cost::roofline{cluster}, {.simulation = {.training = training}});
}
models::gpt_options step{.layers = 4, .hidden = 32, .heads = 4, .sequence = 1, .vocabulary = 64, .batch = 32, .inference = true, .cached = 15};

/// The flags of `stages` stages, cut evenly, a line each; notes left out but for `noted`.
std::string written(parallelization const& problem, std::uint32_t stages, std::uint32_t micro_batches, space::neighbour_split by,
                    std::string* noted = nullptr) {
    pipeline::detail::stage_builder build(problem);
    auto c = build.balanced(stages, 1, micro_batches, by);
    auto const plan = build.plan(c);
    auto const part = pipeline::micro_batch_problem(problem, micro_batches);
    std::ostringstream out;
    write_vllm_flags(out, {.graph = part.graph(),
                           .topology = problem.topology(),
                           .plan = plan,
                           .options = problem.options(),
                           .notes = {.model = "gpt", .topology = "2x4"}});
    std::istringstream lines(out.str());
    std::string flags;
    for (std::string line; std::getline(lines, line);)
        if (!line.starts_with('#')) flags += line + '\n';
        else if (noted) *noted += line + '\n';
    return flags;
}
std::string refused(parallelization const& problem, std::uint32_t stages, std::uint32_t micro_batches, space::neighbour_split by) {
    return support::refusal([&] { return written(problem, stages, micro_batches, by); });
}
} // namespace

TEST_CASE("vLLM: engines of several devices, in stages") {
    auto const problem = problem_of(models::gpt(step));
    std::string notes;
    CHECK(written(problem, 2, 4, {.tensor = 2}, &notes) == "--tensor-parallel-size 2\n--pipeline-parallel-size 2\n--data-parallel-size 2\n"
                                                           "--max-num-seqs 16\n--dtype float32\n--gpu-memory-utilization 0.9\n");
    CHECK(notes == "# vLLM, gpt on 2x4: vllm serve MODEL $(grep -v '^#' FILE)\n"
                   "# not said: --max-model-len, and --max-num-batched-tokens of a prefill, which its passes may not exceed\n"
                   "# it divides samples into micro-batches by itself\n"
                   "# over nodes of 4 devices: --distributed-executor-backend ray on a cluster of Ray\n");
    auto half = step;
    half.type = ops::dtype::bf16;
    CHECK(written(problem_of(models::gpt(half)), 1, 1, {.tensor = 4}) ==
          "--tensor-parallel-size 4\n--pipeline-parallel-size 1\n--data-parallel-size 2\n--max-num-seqs 16\n--dtype bfloat16\n"
          "--gpu-memory-utilization 0.9\n--data-parallel-size-local 1\n");
    half.type = ops::dtype::f16;
    half.sequence = 16; // a prefill
    half.cached = 0;
    CHECK(written(problem_of(models::gpt(half)), 1, 1, {.tensor = 8}) ==
          "--tensor-parallel-size 8\n--pipeline-parallel-size 1\n--data-parallel-size 1\n--max-num-seqs 32\n--dtype float16\n"
          "--gpu-memory-utilization 0.9\n");
}

TEST_CASE("vLLM: the memory that it may use") {
    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = 4, .device = topology::h100_sxm});
    sim::simulation_options options{.training = false};
    options.memory_kept_free = 0.07;
    auto const problem = make_problem(models::gpt(step), cluster, cost::roofline{cluster}, {.simulation = options});
    CHECK(written(problem, 1, 1, {.tensor = 4}).ends_with("--gpu-memory-utilization 0.93\n"));
}

TEST_CASE("vLLM: stages of different numbers of layers are told beside") {
    auto odd = step;
    odd.layers = 5;
    std::string notes;
    (void)written(problem_of(models::gpt(odd)), 2, 2, {.tensor = 1}, &notes);
    bool const first = notes.find("export VLLM_PP_LAYER_PARTITION=3,2\n") != std::string::npos;
    CHECK((first || notes.find("export VLLM_PP_LAYER_PARTITION=2,3\n") != std::string::npos));
}

TEST_CASE("vLLM: experts over all devices of a stage") {
    auto const problem = problem_of(models::moe({.layers = 2,
                                                 .hidden = 32,
                                                 .heads = 4,
                                                 .kv_heads = 4,
                                                 .feed_forward = 64,
                                                 .experts = 8,
                                                 .sequence = 1,
                                                 .vocabulary = 64,
                                                 .batch = 32,
                                                 .inference = true,
                                                 .cached = 15}));
    auto const flags = written(problem, 1, 1, {.tensor = 1, .experts = 8});
    CHECK(flags.find("--data-parallel-size 8\n--enable-expert-parallel\n--max-num-seqs 4\n") != std::string::npos);
    CHECK(written(problem, 1, 1, {.tensor = 8}).find("expert") == std::string::npos);
    CHECK(refused(problem, 1, 1, {.tensor = 1, .experts = 4}) ==
          "vLLM takes no such plan: experts are split over 4 of the 8 devices of a stage: it splits them over all, or with one replica as other "
          "layers, must be 8");
    CHECK(refused(problem, 1, 1, {.tensor = 2}).find("experts are split over 1 of the 8 devices of a stage") != std::string::npos);
}

TEST_CASE("vLLM: degrees of a strategy that has no name") {
    for (std::int64_t const sequence : {1, 16}) {
        INFO("sequence ", sequence);
        auto const problem = problem_of(models::moe({.layers = 2,
                                                     .hidden = 32,
                                                     .heads = 8,
                                                     .kv_heads = 8,
                                                     .feed_forward = 64,
                                                     .experts = 8,
                                                     .sequence = sequence,
                                                     .vocabulary = 64,
                                                     .batch = 64,
                                                     .inference = true,
                                                     .cached = sequence > 1 ? 0 : 15}));
        auto const part = pipeline::micro_batch_problem(problem, 1);
        for (auto const by : {space::neighbour_split{.experts = 8}, {.tensor = 2, .experts = 8}, {.tensor = 8}}) {
            std::ostringstream out;
            write_vllm_flags(out,
                             {.graph = part.graph(),
                              .topology = problem.topology(),
                              .plan = {.how = pipeline::unpipelined(part.graph()), .strategy = space::split_among_neighbours(part.graph(), 8, by)},
                              .options = problem.options()});
            CHECK(out.str().find(text("--tensor-parallel-size ", by.tensor, "\n")) != std::string::npos);
            CHECK((out.str().find("--enable-expert-parallel\n") != std::string::npos) == (by.experts > 1));
            CHECK(out.str().find(text("--max-num-seqs ", 64 * by.tensor / 8, "\n")) != std::string::npos);
        }
    }
}

TEST_CASE("vLLM: what it does not serve") {
    CHECK(refused(problem_of(models::gpt({.layers = 2, .hidden = 32, .heads = 4, .sequence = 16, .vocabulary = 64, .batch = 32}), true), 1, 1, {}) ==
          "vLLM takes no such plan: it is of training: the runtime serves, --inference plans that");
    CHECK(refused(problem_of(models::mlp({.batch = 32})), 1, 1, {}) == "vLLM takes no such plan: no operator is attention: it serves transformers");
    auto prefill = step;
    prefill.sequence = 16;
    prefill.cached = 0;
    prefill.batch = 4;
    CHECK(refused(problem_of(models::gpt(prefill)), 1, 1, {.tensor = 1, .context = 2}).find("context parallelism is 2: it splits no positions") !=
          std::string::npos);
    auto wide = step;
    wide.type = ops::dtype::f64;
    CHECK(refused(problem_of(models::gpt(wide)), 1, 1, {}).find("weights are f64") != std::string::npos);
}
