#pragma once
/// A strategy of one problem as a start for another: after devices have failed or come, or operators changed.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
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

/// The number in `to` of each device of `from`, which is there the one of handle `name(handle)`; -1 where there is none. Throws `invalid_input` where
/// two are called alike. Complexity: O(devices).
template <class Operator, class Device, class OtherOperator, class OtherDevice, class Name = std::identity>
[[nodiscard]] std::vector<std::int32_t> device_numbers(parallelization_of<Operator, Device> const& from,
                                                       parallelization_of<OtherOperator, OtherDevice> const& to, Name const& name = {}) {
    static_assert(
        std::is_convertible_v<std::invoke_result_t<Name const&, Device const&>, OtherDevice>,
        "devices of the two problems have handles of different types: say as the last argument, name(handle), what a device of the first is "
        "called in the second");
    std::unordered_map<OtherDevice, std::int32_t> number;
    for (std::size_t d = 0; d < to.topology().size(); ++d) number.emplace(to.device(d), static_cast<std::int32_t>(d));
    std::vector<std::int32_t> out;
    std::vector<bool> taken(number.size(), false);
    for (std::size_t d = 0; d < from.topology().size(); ++d) {
        auto const at = number.find(std::invoke(name, from.device(d)));
        out.push_back(at == number.end() ? -1 : at->second);
        if (at == number.end()) continue;
        auto const there = static_cast<std::size_t>(at->second);
        if (taken[there])
            throw invalid_input("device_numbers: device ", d, said_of_handle(from.device(d)), " is called as one before it, that of number ", there,
                                said_of_handle(to.device(there)), " in the other problem: must be one each");
        taken[there] = true;
    }
    return out;
}

/// The strategy of `to` nearest to `s`, which is one of `from`. Operators are the same where their handles are, devices where `name` of the handle in
/// `from` is the handle in `to`:
///
///     auto const smaller = make_problem(graph, cluster, oracle, options, constraints_of<my_graph, my_cluster>{}.leave_out(broken));
///     auto const start = adapted(problem, plan, smaller).strategy;
///     auto const found = search::greedy(smaller, start, rng);
///
/// An operator keeps its degrees where the space of `to` has them, on the devices of that space that hold most of its shards already, the first of
/// those; else it has what is nearest (`operator_space::nearest`). An operator that `from` does not have has what is nearest to data parallelism.
/// Complexity: O(operators + devices), and for each operator placements of its degrees * shards.
template <class Operator, class Device, class OtherDevice, Strategy<space::configuration> S, class Name = std::identity>
[[nodiscard]] adapted_strategy adapted(parallelization_of<Operator, Device> const& from, S const& s,
                                       parallelization_of<Operator, OtherDevice> const& to, Name const& name = {}) {
    std::unordered_map<Operator, std::size_t> number_before;
    for (std::size_t op = 0; op < from.size(); ++op) number_before.emplace(from.handle(op), op);
    auto const now = device_numbers(from, to, name);
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
