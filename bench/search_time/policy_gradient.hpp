#pragma once
/// REINFORCE over configurations, after Mirhoseini et al. (Device placement optimization with reinforcement learning, ICML 2017), without their
/// network: a distribution of its own for each group of operators.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/concepts/searcher.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/portable_math.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/kernel/kernel.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/space/likely_configurations.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace bench {

namespace ps = parsearch;

/// Operators that all get the same configuration, and those from which it is drawn.
template <class C> struct policy_group {
    std::vector<std::size_t> operators;
    std::vector<C> choices;
};

/// The operators of a parallelization with their likely configurations; those of one kind that have the same ones are a group.
template <class P> std::vector<policy_group<ps::space::configuration>> alike_operators(P const& problem) {
    ps::space::likely_options options;
    options.per_node = ps::topology::devices_per_node(problem.topology());
    std::vector<policy_group<ps::space::configuration>> groups;
    auto const& operations = problem.graph().operations;
    for (std::size_t op = 0; op < problem.size(); ++op) {
        auto choices = ps::space::likely_configurations(operations[op], problem.space().of(op), problem.topology().size(), options);
        std::size_t n = 0;
        while (n < groups.size() && (operations[groups[n].operators.front()].kind != operations[op].kind || groups[n].choices != choices)) ++n;
        if (n == groups.size()) groups.push_back({.operators = {}, .choices = std::move(choices)});
        groups[n].operators.push_back(op);
    }
    return groups;
}

struct policy_gradient_options {
    std::optional<std::uint64_t> evaluations = 1500;
    std::size_t batch = 10; ///< strategies drawn per step
    double rate = 0.5;      ///< of a step
    double decay = 0.9;     ///< of the baseline, a moving average of the batches' mean rewards
};

/// Chances in proportion to 2^logit.
inline std::vector<double> softmax(std::vector<double> logits) {
    auto const most = *std::ranges::max_element(logits);
    double sum = 0;
    for (auto& l : logits) sum += l = ps::binary_exp(l - most);
    for (auto& l : logits) l /= sum;
    return logits;
}

/// A number that is drawn with these chances.
template <ps::RandomBits R> std::size_t draw(std::vector<double> const& chances, R& rng) {
    auto left = ps::uniform_unit(rng);
    std::size_t n = 0;
    while (n + 1 < chances.size() && left >= chances[n]) left -= chances[n++];
    return n;
}

/// The cheapest strategy that is drawn while a policy learns from what strategies cost. Each group has a softmax over its choices, at first uniform;
/// the reward is the negative logarithm of the cost. Advantages are in standard deviations of the batch. Operators of no group keep what `seed` gives
/// them. The same on every platform: logarithms and exponentials are to base 2 and the library's own.
template <class P, class S, class C, ps::RandomBits R>
    requires ps::SearchProblem<P, S>
ps::search_result<S, ps::problem_cost_t<P, S>> policy_gradient(P const& problem, S const& seed, std::vector<policy_group<C>> const& groups, R& rng,
                                                               policy_gradient_options const& options = {}) {
    using cost = ps::problem_cost_t<P, S>;
    ps::search::kernel<S, cost> run("policy_gradient", {.time = {}, .evaluations = options.evaluations, .stop = {}}, {});
    auto evaluate = problem.evaluator();
    std::vector<std::vector<double>> logits, chances; // of each group, by choice
    for (auto const& g : groups) logits.emplace_back(g.choices.size(), 0.0);
    std::optional<double> baseline;
    for (;;) {
        chances.clear();
        for (auto const& l : logits) chances.push_back(softmax(l));
        std::vector<std::vector<std::size_t>> drawn; // of each strategy, by group
        std::vector<double> rewards;
        while (rewards.size() < options.batch) {
            if (auto const reason = run.due()) return run.finish(*reason);
            auto s = seed;
            drawn.emplace_back();
            for (std::size_t g = 0; g < groups.size(); ++g) {
                auto const n = drawn.back().emplace_back(draw(chances[g], rng));
                for (auto const op : groups[g].operators) ps::set_configuration(s, op, groups[g].choices[n]);
            }
            auto const price = evaluate(s);
            run.count_evaluation();
            rewards.push_back(-ps::binary_log(ps::cost_traits<cost>::value(price)));
            run.offer(std::move(s), price);
        }
        auto const size = static_cast<double>(rewards.size());
        double mean = 0, variance = 0;
        for (auto const r : rewards) mean += r / size;
        for (auto const r : rewards) variance += ps::unfused((r - mean) * (r - mean)) / size;
        if (!baseline) baseline = mean;
        if (variance > 0)
            for (std::size_t k = 0; k < rewards.size(); ++k) {
                auto const step = options.rate * (rewards[k] - *baseline) / (size * std::sqrt(variance));
                for (std::size_t g = 0; g < groups.size(); ++g)
                    for (std::size_t n = 0; n < logits[g].size(); ++n)
                        logits[g][n] += ps::unfused(step * ((n == drawn[k][g] ? 1.0 : 0.0) - chances[g][n]));
            }
        baseline = ps::unfused(options.decay * *baseline) + ps::unfused((1 - options.decay) * mean);
    }
}

} // namespace bench
