#pragma once
/// Which devices hold which parts of the weights: all-reduces of their gradients, updates, and memory.

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/task/overlap.hpp>

namespace parsearch::sim {

/// A shard of an operator.
struct shard_ref {
    std::uint32_t op = 0, shard = 0;
    friend auto operator<=>(shard_ref const&, shard_ref const&) = default;
};

/// Parts of weights that the same two or more devices hold, of several `simulation_options::replicas` also one in each: their gradients are summed
/// by one all-reduce, after every shard of these devices that computes some of them.
struct sync_group {
    std::vector<std::uint32_t> devices; ///< ascending
    std::int64_t elements = 0;
    byte_count bytes = 0, gradients = 0; ///< of the weights; of their gradients
    std::vector<shard_ref> contributors;
    std::uint32_t replicas = 1; ///< that have such devices

    /// How many devices hold these weights.
    [[nodiscard]] std::size_t holders() const noexcept { return devices.size() * replicas; }
};

/// The weights on one device.
struct held_weights {
    std::uint32_t device = 0;
    std::int64_t elements = 0;
    byte_count bytes = 0, gradients = 0; ///< of the weights; of their gradients
    byte_count cache = 0;                ///< bytes of caches, which are no weights to be trained
    std::vector<std::uint32_t> groups;   ///< sync groups that this device is in
    std::vector<shard_ref> contributors; ///< its shards that compute gradients of weights which are on no other device
};

/// The weights of a set of operators that share parameters (or of one operator).
struct sync_plan {
    std::vector<sync_group> groups;
    std::vector<held_weights> held; ///< by device, ascending
};

/// Positions of a part of a tensor, by axis.
using region = std::vector<ops::interval>;
struct region_order {
    bool operator()(region const& a, region const& b) const noexcept {
        return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                            [](auto const& x, auto const& y) { return x.begin != y.begin ? x.begin < y.begin : x.end < y.end; });
    }
};
/// Elements that two regions have in common, and those of one.
[[nodiscard]] inline std::int64_t common_elements(region const& a, region const& b) noexcept { return detail::common_elements(a, b); }
[[nodiscard]] inline std::int64_t elements_of(region const& r) noexcept { return common_elements(r, r); }
/// Distinct parts of one weight tensor, each with the shards that hold it.
using weight_parts = std::map<region, std::vector<shard_ref>, region_order>;

/// How shards hold a weight tensor: that of operator `op` at place `weight`, the last of those that share it.
struct held_tensor {
    std::uint32_t op = 0, weight = 0;
    weight_parts parts{}; ///< of which none overlap
};

namespace detail {

/// The order of holders of weights, which decides ties: that of their lists on all devices. There the second replica's follow on those of the first,
/// so that one which begins as another does, but ends sooner, comes behind it.
struct holders_order {
    bool replicated = false;
    bool operator()(std::vector<std::uint32_t> const& a, std::vector<std::uint32_t> const& b) const noexcept {
        auto const [at, other] = std::ranges::mismatch(a, b);
        if (at == a.end() || other == b.end()) return replicated ? a.size() > b.size() : a.size() < b.size();
        return *at < *other;
    }
};

/// Cuts parts that overlap (operators that share a tensor but split it differently) into parts that do not.
[[nodiscard]] weight_parts refine(weight_parts parts);
} // namespace detail

/// Bytes that the update of weights moves beside the optimizer's states: weight and gradient are read, the weight is written. Of a `sync_group` or
/// `held_weights`.
template <class Weights> [[nodiscard]] constexpr byte_count update_traffic(Weights const& w) noexcept { return 2 * w.bytes + w.gradients; }

/// The update of `elements` parameters, those of `op` first, of which `traffic` is the `update_traffic`. Each 4-byte state is read and written. The
/// shard is the whole of `op`.
[[nodiscard]] ops::shard_work update_work(ops::operation const& op, std::int64_t elements, byte_count traffic, optimizer by);

/// The weight tensors of operators `members` (one sharing class of `g`), those that share a name as one. `degrees(op)` answers for a member its
/// degrees. Complexity: that of `plan_sync`.
template <class Degrees>
[[nodiscard]] std::vector<held_tensor> held_tensors(graph::dense_graph const& g, std::span<std::uint32_t const> members, Degrees const& degrees) {
    // Shared tensors by name, others by operator and number.
    std::map<std::pair<std::string_view, std::pair<std::uint32_t, std::uint32_t>>, held_tensor> tensors;
    for (auto const op : members) {
        auto const& operation = g.operations[op];
        for (std::uint32_t w = 0; w < operation.weights.size(); ++w) {
            auto const& weight = operation.weights[w];
            auto const own = weight.parameter.empty() ? std::pair{op, w} : std::pair<std::uint32_t, std::uint32_t>{};
            auto& tensor = tensors[{weight.parameter, own}];
            tensor.op = op;
            tensor.weight = w;
            detail::shard_regions const regions(operation, weight, degrees(op));
            for (std::uint32_t n = 0; n < regions.size(); ++n)
                if (region r(regions[n].begin(), regions[n].end()); elements_of(r) > 0) tensor.parts[std::move(r)].push_back({op, n});
        }
    }
    std::vector<held_tensor> out;
    out.reserve(tensors.size());
    for (auto& [name, tensor] : tensors) {
        tensor.parts = detail::refine(std::move(tensor.parts));
        out.push_back(std::move(tensor));
    }
    return out;
}

/// Plans synchronisation for operators `members` (one sharing class of `g`). `degrees(op)` and `devices(op)` answer for a
/// member its degrees and the device of each shard. Exact for any mix of splits.
/// Complexity: O(shards log shards) for equal splits; operators that split a shared tensor differently pay for the cut grid.
template <class Degrees, class Devices>
[[nodiscard]] sync_plan plan_sync(graph::dense_graph const& g, std::span<std::uint32_t const> members, simulation_options const& options,
                                  Degrees const& degrees, Devices const& devices) {
    struct share {
        std::int64_t elements = 0;
        byte_count bytes = 0, gradients = 0, cache = 0;
        std::vector<shard_ref> contributors;
    };
    std::map<std::vector<std::uint32_t>, share, detail::holders_order> by_holders({options.replicas > 1});
    for (auto const& tensor : held_tensors(g, members, degrees)) {
        auto const* const operand = &g.operations[tensor.op].weights[tensor.weight];
        for (auto const& [r, shards] : tensor.parts) {
            std::vector<std::uint32_t> holders;
            for (auto const s : shards) holders.push_back(devices(s.op)[s.shard]);
            make_set(holders);
            auto& held = by_holders[std::move(holders)];
            if (operand->cache) {
                held.cache += elements_of(r) * ops::size_of(operand->type);
                continue;
            }
            held.elements += elements_of(r);
            held.bytes += elements_of(r) * ops::size_of(operand->type);
            held.gradients += elements_of(r) * gradient_size(options.gradients, operand->type);
            held.contributors.insert(held.contributors.end(), shards.begin(), shards.end());
        }
    }
    sync_plan plan;
    std::map<std::uint32_t, held_weights> held;
    for (auto& [holders, amount] : by_holders) {
        make_set(amount.contributors);
        auto const group = static_cast<std::uint32_t>(plan.groups.size());
        bool const synchronised = holders.size() * options.replicas > 1;
        for (auto const d : holders) {
            auto& h = held[d];
            h.device = d;
            h.elements += amount.elements;
            h.bytes += amount.bytes;
            h.gradients += amount.gradients;
            h.cache += amount.cache;
            if (synchronised) h.groups.push_back(group);
            else h.contributors = amount.contributors;
        }
        if (synchronised)
            plan.groups.push_back({holders, amount.elements, amount.bytes, amount.gradients, std::move(amount.contributors), options.replicas});
    }
    for (auto& [d, h] : held) plan.held.push_back(std::move(h));
    return plan;
}

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/task/gradient_sync.ipp>
#endif
