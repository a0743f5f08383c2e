// Four models on two clusters: what data parallelism, an expert strategy, greedy search and MCMC take per iteration.
//
//   zoo [seconds per search]     (default 10)

#include <parsearch/parsearch.hpp>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

namespace ps = parsearch;

namespace {

void print_row(std::string const& what, ps::sim::report const& r, ps::picoseconds data_parallel, bool fits) {
    std::printf("  %-26s %10.2f ms %8.2fx %12.2f GB %10.2f GB%s\n", what.c_str(), ps::to_seconds(r.makespan) * 1e3,
                ps::to_seconds(data_parallel) / ps::to_seconds(r.makespan), r.bytes_moved() / 1e9, static_cast<double>(r.peak_memory()) / 1e9,
                fits ? "" : "  (does not fit)");
}

// Plans one model on one cluster. `make_expert` makes the expert strategy of the problem. The searches start from that or from
// data parallelism, whichever costs less; a strategy that does not fit the memory costs a second per GB over.
template <class MakeExpert>
void plan(std::string const& title, ps::graph::operator_graph const& model, ps::topology::cluster const& cluster, std::chrono::nanoseconds time,
          std::string const& expert_name, MakeExpert const& make_expert, ps::sim::optimizer optimizer = ps::sim::optimizer::sgd) {
    auto const problem = ps::make_problem(model, cluster, ps::cost::roofline{cluster}, {.simulation = {.optimizer = optimizer}});
    auto const data_parallel = ps::data_parallel(problem);
    auto const expert = make_expert(problem);
    auto const baseline = ps::simulate(problem, data_parallel);
    auto cost_of = problem.evaluator();
    auto const& start = cost_of(expert) < cost_of(data_parallel) ? expert : data_parallel;
    auto const show = [&](std::string const& what, auto const& strategy) {
        auto const report = ps::simulate(problem, strategy);
        bool fits = true;
        for (std::size_t d = 0; d < report.memory.size(); ++d) fits = fits && report.memory[d].total() <= problem.topology().devices[d].memory;
        print_row(what, report, baseline.makespan, fits);
    };
    std::printf("\n%s: %zu operators on %zu devices\n", title.c_str(), problem.size(), problem.topology().size());
    std::printf("  %-26s %13s %9s %15s %13s\n", "strategy", "iteration", "speed-up", "moved", "peak memory");
    show("data parallel", data_parallel);
    show(expert_name, expert);
    std::fflush(stdout);

    std::mt19937_64 rng{42};
    auto const greedy = ps::search::greedy(problem, start, rng, {.time = time});
    show("greedy", greedy.best);
    std::fflush(stdout);
    auto const mcmc = ps::search::mcmc(problem, start, rng, {.time = time});
    show("MCMC", mcmc.best);
    std::printf("  greedy simulated %llu strategies and ended by %s, MCMC %llu by %s\n", static_cast<unsigned long long>(greedy.stats.evaluations),
                std::string(name_of(greedy.reason)).c_str(), static_cast<unsigned long long>(mcmc.stats.evaluations),
                std::string(name_of(mcmc.reason)).c_str());
}

} // namespace

int main(int argc, char** argv) {
    double seconds = 10;
    if (argc > 2 || (argc == 2 && (std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), seconds).ptr != argv[1] + std::strlen(argv[1]) ||
                                   !(seconds > 0 && seconds <= 3600)))) {
        std::fprintf(stderr, "usage: zoo [seconds per search]: a number above 0, at most 3600%s%s\n", argc > 1 ? "; given: " : "",
                     argc > 1 ? argv[1] : "");
        return 2;
    }
    auto const time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));

    std::printf("Predicted time of a training iteration. Gradients are all-reduced over rings while backward still runs, so data parallelism\n"
                "is hard to beat where computation hides them; docs/results.md has the networks where it does not.\n");
    auto const p100 = ps::topology::p100_cluster(4);
    auto const layers_over_node = [](auto const& problem) { return ps::operation_parallel(problem); };
    auto const trick = [](auto const& problem) { return ps::one_weird_trick(problem); };
    auto const megatron = [](auto const& problem) { return ps::tensor_parallel(problem, 8); };

    plan("Inception-v3, batch 1024, 4 x 4 P100", ps::models::inception_v3({.batch = 64 * 16}), p100, time, "one weird trick", trick);
    plan("NMT, batch 1024, 4 x 4 P100", ps::models::nmt({.batch = 64 * 16}), p100, time, "layers over the node", layers_over_node);
    plan("GPT 1.3B, bf16, batch 64, 4 x 8 H100",
         ps::models::gpt(
             {.layers = 24, .hidden = 2048, .heads = 16, .sequence = 2048, .vocabulary = 51200, .batch = 64, .type = ps::ops::dtype::bf16}),
         ps::topology::dgx_h100(4), time, "tensor parallel 8", megatron);
    plan("GPT 6.7B, bf16, Adam, batch 64, 4 x 8 H100",
         ps::models::gpt(
             {.layers = 32, .hidden = 4096, .heads = 32, .sequence = 2048, .vocabulary = 51200, .batch = 64, .type = ps::ops::dtype::bf16}),
         ps::topology::dgx_h100(4), time, "tensor parallel 8", megatron, ps::sim::optimizer::adam);
}
