// The best plan that an engineer would write by hand: data, tensor and pipeline parallelism of all degrees that divide the devices, experts of
// mixtures split as far as they can be or not, sequences split where a replica has one sample, micro-batches, states sharded in all ways (ZeRO-1,
// ZeRO-2, FSDP, HSDP), whole blocks computed again or not; blocks all alike, stages of as many blocks, 1F1B. Each is simulated as any plan is. Shares
// no code with the search of such plans: what it finds is what the search must not be worse than. Prints the best as JSON.
//
//   textbook --model MODEL --cluster CLUSTER     (see --help); ./bench/run textbook runs all cases and plans them, too

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/io/names/cluster_name.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/space/textbook/context_parallel.hpp>
#include <parsearch/space/textbook/expert_parallel.hpp>

#include "blocks.hpp"
#include "guarded.hpp"
#include "tools/model.hpp"

namespace bench {
namespace {

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;

struct hand_plan {
    std::uint32_t data, tensor, context, groups, rounds, experts, micro_batches, heads;
    pipeline::sharded_states sharded;
    bool again;

    // Roughly, of the time that work alone takes: bubbles, work done twice, messages.
    [[nodiscard]] double effort() const {
        return (1 + (groups - 1.0) / micro_batches / rounds) * (again ? 4.0 / 3 : 1) * (1 + 0.05 * (tensor - 1)) * (1 + 0.01 * (context - 1)) *
               (1 + 0.002 * micro_batches) * (experts > 1 ? 1 : 1.001) *
               (sharded >= pipeline::sharded_states::gradients ? 1 + 0.001 * micro_batches : 1);
    }
    [[nodiscard]] std::string name() const {
        constexpr std::array shared{"", ", sharded optimizer", ", sharded gradients", ", fully sharded", ", sharded within nodes"};
        return fmt::format("data {} x tensor {}{} x pipeline {}{}{}, {} micro-batches{}{}", data, tensor,
                           context > 1 ? fmt::format(" x context {}{}", context, heads > 1 ? fmt::format(" (heads {})", heads) : "") : "", groups,
                           rounds > 1 ? fmt::format(" interleaved {}", rounds) : "", experts > 1 ? fmt::format(", experts {}", experts) : "",
                           micro_batches, shared[static_cast<std::size_t>(sharded)], again ? ", blocks computed again" : "");
    }
};

std::vector<hand_plan> all_plans(ps::parallelization const& problem, std::uint32_t blocks) {
    using enum pipeline::sharded_states;
    std::vector<hand_plan> out;
    auto const& topology = problem.topology();
    auto const devices = static_cast<std::uint32_t>(topology.size());
    auto const samples = static_cast<std::uint64_t>(pipeline::divisible_samples(problem.graph()));
    auto const experts = ps::space::experts_of(problem.graph());
    auto const sequence = ps::space::positions_of(problem.graph()), heads = ps::space::splittable_heads(problem.graph());
    std::uint32_t node = 0; // devices of the first
    while (node < devices && topology.node[node] == topology.node[0]) ++node;
    for (std::uint32_t t = 1; t <= node; t *= 2)
        for (std::uint32_t p = 1; p <= std::min(blocks, devices / t); ++p)
            for (std::uint32_t m = 1; m <= 128; m *= 2)
                for (auto const sharded : {optimizer, none, gradients, parameters, parameters_within_nodes})
                    for (bool const again : {false, true}) {
                        if (devices % (t * p) != 0 || blocks % p != 0) continue;
                        if (sharded == parameters_within_nodes && (devices / p <= node || t == node)) continue; // as over all, or not at all
                        auto const d = devices / t / p;
                        for (std::uint32_t c = 2; c <= d; c *= 2)
                            for (std::uint32_t h = 1; h <= c; h *= 2)
                                if (d % c == 0 && samples == std::uint64_t{d} / c * m && sequence % (std::int64_t{c} * t) == 0 &&
                                    (h == 1 || (t == 1 && heads % h == 0)))
                                    out.push_back({d / c, t, c, p, 1, 1, m, h, sharded, again});
                        if (samples % (std::uint64_t{d} * m) != 0) continue;
                        auto const most = static_cast<std::uint32_t>(std::gcd(experts, std::int64_t{d} * t));
                        for (auto const e : std::set{1U, most}) {
                            for (std::uint32_t rounds = 1; rounds <= (sharded < gradients ? 8 : 1); rounds *= 2)
                                if (rounds == 1 || (p > 1 && m % p == 0 && blocks % (p * rounds) == 0))
                                    out.push_back({d, t, 1, p, rounds, e, m, 1, sharded, again});
                        }
                    }
    std::ranges::stable_sort(out, {}, &hand_plan::effort);
    return out;
}

nlohmann::json best_of(ps::parallelization const& problem, double seconds) {
    auto const& g = problem.graph();
    auto const [block, blocks, behind] = blocks_of(g);
    auto const devices = static_cast<std::uint32_t>(problem.topology().size());
    pipeline::pipeline_simulator simulate(problem);
    std::optional<hand_plan> best;
    auto least = ps::cost_traits<ps::picoseconds>::infinity();
    auto const began = std::chrono::steady_clock::now();
    auto const plans = all_plans(problem, blocks);
    std::size_t tried = 0;
    for (auto const& plan : plans) {
        if (best && std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() > seconds) break;
        ++tried;
        pipeline::pipelining how{
            .stages = plan.groups * plan.rounds, .interleaved = plan.rounds, .micro_batches = plan.micro_batches, .sharded = plan.sharded};
        if (plan.sharded >= pipeline::sharded_states::gradients) how.block = block;
        for (auto const b : block) how.stage.push_back(b * how.stages / blocks);
        if (plan.again) {
            how.recompute.assign(how.stages, true);
            how.segment = block;
        }
        auto const group = devices / plan.groups;
        auto strategy = ps::space::context_parallel(simulate.micro_batches(plan.micro_batches).graph(), group, plan.context, plan.tensor, plan.heads);
        if (plan.experts > 1)
            strategy = ps::space::with_experts_split(simulate.micro_batches(plan.micro_batches).graph(), strategy, group, plan.experts);
        for (std::size_t op = 0; op < g.size(); ++op) strategy[op].start += static_cast<std::int32_t>(how.stage[op] % plan.groups * group);
        auto const cost = simulate.within(how, strategy, least);
        if (!cost || !(*cost < least)) continue;
        least = *cost;
        best = plan;
    }
    nlohmann::json out{{"plans", plans.size()}, {"tried", tried}, {"devices", devices}, {"textbook", nullptr}, {"textbook_ps", nullptr}};
    if (best) {
        out["textbook"] = best->name();
        out["textbook_ps"] = least.count();
    }
    return out;
}

int run(int argc, char** argv) {
    std::string model, cluster;
    auto optimizer = ps::sim::optimizer::adam;
    double seconds = 600;
    CLI::App app{"Finds the best textbook plan of a model on a cluster."};
    app.add_option("--model", model, "as of plan")->required();
    app.add_option("--cluster", cluster, "as of plan")->required();
    app.add_option("--optimizer", optimizer, "sgd, momentum or adam")
        ->transform(CLI::CheckedTransformer(std::vector<std::pair<std::string, ps::sim::optimizer>>{
            {"sgd", ps::sim::optimizer::sgd}, {"momentum", ps::sim::optimizer::momentum}, {"adam", ps::sim::optimizer::adam}}));
    app.add_option("--time", seconds, "seconds, most promising plans first")->check(CLI::Range(0.0, 1e6))->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    auto const named = ps::io::make_named_cluster(cluster);
    auto const loaded = tools::load_model(model, named.cluster.size());
    auto const problem = ps::make_problem(loaded.graph, named.cluster, ps::cost::roofline{named.cluster},
                                          {.simulation = {.optimizer = optimizer, .memory = ps::sim::memory_policy::reject}});
    fmt::print("{}\n", best_of(problem, seconds).dump());
    return 0;
}
} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
