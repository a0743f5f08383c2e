#pragma once
/// A strategy of one problem as a start for another: after devices have failed or come, or operators changed.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch {

/// What `adapted` answers.
struct adapted_strategy {
    space::flat_strategy strategy;  ///< of the other problem's space
    std::uint64_t other_splits = 0; ///< operators that are split otherwise than before, or are new
    std::uint64_t moved_shards = 0; ///< of the others: shards on another device than before
};

/// The strategy of `to` nearest to `s`, which is one of `from`; operators and devices are the same where their handles are:
///
///     auto const smaller = make_problem(graph, cluster, oracle, options, constraints_of<my_graph, my_cluster>{}.leave_out(broken));
///     auto const start = adapted(problem, plan, smaller).strategy;
///     auto const found = search::greedy(smaller, start, rng);
///
/// An operator keeps its degrees where the space of `to` has them, on the devices of that space that hold most of its shards already, the first of
/// those; else it has what is nearest (`operator_space::nearest`). An operator that `from` does not have has what is nearest to data parallelism.
/// Complexity: O(operators + devices), and for each operator placements of its degrees * shards.
template <class Operator, class Device, Strategy<space::configuration> S>
[[nodiscard]] adapted_strategy adapted(parallelization_of<Operator, Device> const& from, S const& s, parallelization_of<Operator, Device> const& to) {
    std::unordered_map<Operator, std::size_t> number_before;
    for (std::size_t op = 0; op < from.size(); ++op) number_before.emplace(from.handle(op), op);
    std::unordered_map<Device, std::int32_t> number_now;
    for (std::size_t d = 0; d < to.topology().size(); ++d) number_now.emplace(to.device(d), static_cast<std::int32_t>(d));
    constexpr std::int32_t gone = -1;
    std::vector<std::int32_t> now; // the number in `to` of each device of `from`
    for (std::size_t d = 0; d < from.topology().size(); ++d) {
        auto const at = number_now.find(from.device(d));
        now.push_back(at == number_now.end() ? gone : at->second);
    }

    adapted_strategy out{.strategy = data_parallel(to)};
    for (std::size_t op = 0; op < to.size(); ++op) {
        auto const before = number_before.find(to.handle(op));
        auto const& all = to.space().of(op);
        bool const known = before != number_before.end();
        space::configuration const old = known ? space::configuration(configuration_of(s, before->second)) : out.strategy[op];
        auto const split = known ? all.split_of(old) : all.splits();
        if (split == all.splits()) {
            ++out.other_splits;
            out.strategy[op] = all.nearest(old);
            continue;
        }
        auto const moved = [&](space::configuration const& c) {
            std::uint64_t shards = 0;
            for (std::int64_t n = 0; n < c.shards(); ++n) shards += c.device(n) != now[static_cast<std::size_t>(old.device(n))];
            return shards;
        };
        auto const [first, last] = all.placements_of(split);
        auto best = all[first];
        auto least = moved(best);
        for (auto i = first + 1; i < last && least > 0; ++i)
            if (auto c = all[i]; moved(c) < least) {
                least = moved(c);
                best = std::move(c);
            }
        out.moved_shards += to.graph().operations[op].work == ops::work_class::source ? 0 : least;
        out.strategy[op] = std::move(best);
    }
    return out;
}

} // namespace parsearch
