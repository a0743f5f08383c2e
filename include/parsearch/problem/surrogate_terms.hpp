#pragma once
/// The terms of an additive cost that resembles the simulated one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch {

/// What an operator under one configuration adds to an additive cost.
struct operator_term {
    picoseconds work{};            ///< its busiest device: forward, backward and updates; and the reduction of partial sums that nobody reads
    picoseconds synchronisation{}; ///< the busiest link while its weights are synchronised, where it shares them with no other
    byte_count memory = 0;         ///< on its fullest device: weights and what training keeps beside them, activations kept until backward
    friend bool operator==(operator_term const&, operator_term const&) = default;
};

/// Prices single operators and edges of a workload, each a function of the configurations named in the call alone.
/// An edge's term is how long its busiest link moves data, there and, in training, back. Terms of graph inputs are zero, and of an edge that brings
/// an operator what an earlier one of its inputs does. A tensor that several operators read counts for each of them.
class surrogate_terms {
  public:
    using pricing_type = sim::pricing;

    /// Once `stop` is requested, calls throw `interrupted`.
    explicit surrogate_terms(std::shared_ptr<sim::workload const> work, std::stop_token stop = {})
        : planner_(std::move(work)), loads_(planner_.input().topology.links.size()) {
        planner_.stop_at(std::move(stop));
    }
    /// With a pricing of an equal topology, and devices and oracle that answer alike: it remembers groups of devices.
    surrogate_terms(std::shared_ptr<sim::workload const> work, pricing_type price)
        : planner_(std::move(work), std::move(price)), loads_(planner_.input().topology.links.size()) {}
    /// The pricing, for the next one; nothing is asked of these terms any more.
    [[nodiscard]] pricing_type take_pricing() { return planner_.take_pricing(); }

    [[nodiscard]] sim::workload const& input() const noexcept { return planner_.input(); }

    [[nodiscard]] operator_term of_operator(std::uint32_t op, space::configuration const& c) {
        auto const& w = planner_.input();
        if (w.graph.operations[op].work == ops::work_class::source) return {};
        sim::operator_plan p;
        planner_.plan_operator(op, c, p);
        std::map<std::uint32_t, std::int64_t> busy; // by device
        std::map<std::uint32_t, std::int64_t> shards;
        for (auto const d : p.devices) {
            auto const kind = w.topology.kind[d];
            busy[d] = saturating_sum(busy[d], saturating_sum(p.forward[kind], p.backward[kind]));
            ++shards[d];
        }
        std::int64_t moved = 0, synchronised = 0, most = 0;
        for (auto const& partial : p.partial_outputs)
            moved = saturating_sum(moved, loads_.busiest([&](auto const& f) { std::for_each(partial.forward.begin(), partial.forward.end(), f); }));
        if (auto const number = w.class_of[op]; w.options.training && number != sim::iteration_plan::none && w.classes[number].size() == 1) {
            sim::class_plan weights{.members = {op}};
            planner_.plan_class([&](std::uint32_t) -> auto const& { return c; }, [&](std::uint32_t) -> auto const& { return p; }, weights);
            synchronised = loads_.busiest([&](auto const& f) {
                for (auto const& hops : weights.all_reduce) std::for_each(hops.begin(), hops.end(), f);
                for (auto const& server : weights.servers)
                    for (auto const& client : server.clients) {
                        std::for_each(client.push.begin(), client.push.end(), f);
                        std::for_each(client.pull.begin(), client.pull.end(), f);
                    }
            });
            for (std::size_t i = 0; i < weights.update.size(); ++i)
                if (auto const t = weights.update[i]; t != sim::class_plan::no_update) {
                    auto& sum = busy[weights.sync.held[i].device];
                    sum = saturating_sum(sum, t);
                }
        }
        std::int64_t longest = 0;
        for (auto const& [d, t] : busy) longest = std::max(longest, t);
        for (auto const& [d, n] : shards) most = std::max(most, n);
        return {picoseconds{saturating_sum(longest, moved)}, picoseconds{synchronised}, most * kept_by_shard(op, c)};
    }
    /// One term per configuration.
    [[nodiscard]] std::vector<operator_term> of_operator(std::uint32_t op, std::span<space::configuration const> choices) {
        std::vector<operator_term> out;
        for (auto const& c : choices) out.push_back(of_operator(op, c));
        return out;
    }

    [[nodiscard]] picoseconds of_edge(std::uint32_t number, space::configuration const& from, space::configuration const& to) {
        return of_edge(number, std::span(&from, 1), std::span(&to, 1)).front();
    }
    /// One term per pair, row major in `from`.
    [[nodiscard]] std::vector<picoseconds> of_edge(std::uint32_t number, std::span<space::configuration const> from,
                                                   std::span<space::configuration const> to) {
        auto const& g = planner_.input().graph;
        auto const& e = g.edges[number];
        std::vector<picoseconds> out(from.size() * to.size());
        if (g.operations[e.producer].work == ops::work_class::source) return out;
        std::vector<sim::operator_plan> made(from.size()), read(to.size());
        for (std::size_t i = 0; i < from.size(); ++i) planner_.place_operator(e.producer, from[i], made[i]);
        bool const passed_on = g.operations[e.consumer].inputs[e.input].passed_on; // then what its reader takes matters
        for (std::size_t j = 0; j < to.size(); ++j)
            if (passed_on) planner_.plan_operator(e.consumer, to[j], read[j]);
            else planner_.place_operator(e.consumer, to[j], read[j]);
        std::vector<bool> brought(to.size(), false);
        for (std::size_t j = 0; j < to.size(); ++j) brought[j] = is_brought(number, to[j]);
        for (std::size_t i = 0; i < from.size(); ++i)
            for (std::size_t j = 0; j < to.size(); ++j) {
                if (brought[j]) continue;
                auto const p = planner_.plan_edge(number, from[i], made[i], to[j], read[j]);
                auto const awaited = [&](std::vector<sim::hop> const& messages, std::vector<sim::hop> sim::collective_plan::*pass) {
                    return loads_.busiest([&](auto const& f) {
                        std::for_each(messages.begin(), messages.end(), f);
                        for (auto const& c : p.collectives)
                            if (c.awaited) std::for_each((c.*pass).begin(), (c.*pass).end(), f);
                    });
                };
                auto const there = awaited(p.forward, &sim::collective_plan::forward), back = awaited(p.backward, &sim::collective_plan::backward);
                out[i * to.size() + j] = picoseconds{saturating_sum(there, back)};
            }
        if (planner_.table_bytes() > most_remembered) planner_.forget(); // there may be one for each thread
        return out;
    }

  private:
    /// Adds up how long hops hold each link.
    class link_loads {
      public:
        explicit link_loads(std::size_t count) : busy_(count, 0) {}
        /// How long the busiest link is, of all hops that `for_hops(f)` hands to `f`.
        template <class ForHops> std::int64_t busiest(ForHops const& for_hops) {
            touched_.clear();
            std::int64_t longest = 0;
            for_hops([&](sim::hop const& h) {
                auto& b = busy_[h.link];
                if (b == 0) touched_.push_back(h.link);
                longest = std::max(longest, b = saturating_sum(b, h.duration));
            });
            for (auto const l : touched_) busy_[l] = 0;
            return longest;
        }

      private:
        std::vector<std::int64_t> busy_;
        std::vector<std::uint32_t> touched_;
    };

    /// Whether an earlier input of the consumer reads the same parts of the same tensor.
    [[nodiscard]] bool is_brought(std::uint32_t number, space::configuration const& to) {
        auto const& readers = planner_.input().readers;
        auto const group = readers.group_of(number);
        if (group == sim::shared_reads::none) return false;
        auto const& edges = planner_.input().graph.edges;
        auto const layout = [&](std::uint32_t e) { return planner_.layout_of_input(edges[e].consumer, edges[e].input, to); };
        auto const before = readers[group].first(static_cast<std::size_t>(std::ranges::find(readers[group], number) - readers[group].begin()));
        return std::ranges::any_of(before,
                                   [&](std::uint32_t e) { return edges[e].consumer == edges[number].consumer && layout(e) == layout(number); });
    }

    /// Bytes that the largest shard keeps for the whole iteration; a tensor that several operators keep counts for each, working buffers for none.
    [[nodiscard]] byte_count kept_by_shard(std::uint32_t op, space::configuration const& c) const {
        auto const& operation = planner_.input().graph.operations[op];
        if (operation.work == ops::work_class::view) return 0;
        auto const cut = ops::cut_dim(operation, c.degrees());
        if (!cut) return kept_by_shard(op, operation, c.degrees());
        auto const most = ops::on_most_samples(operation, c.degrees(), *cut);
        return kept_by_shard(op, most.op, most.degrees());
    }
    /// Of operator `op`, which does `operation`.
    [[nodiscard]] byte_count kept_by_shard(std::uint32_t op, ops::operation const& operation, std::span<std::int32_t const> degrees) const {
        auto const& w = planner_.input();
        auto const box = ops::middle_shard(operation, degrees);
        sim::held_weights held;
        for (auto const& weight : operation.weights) {
            auto const elements = ops::shard_elements(weight, box);
            if (weight.cache) {
                held.cache += elements * ops::size_of(weight.type);
                continue;
            }
            held.elements += elements;
            held.bytes += elements * ops::size_of(weight.type);
            held.gradients += elements * sim::gradient_size(w.options.gradients, weight.type);
        }
        auto sum = sim::weight_memory(held, w.options, sim::cost_of(w.options.optimizer).states);
        if (!w.options.training || !w.graph.trains[op]) return sum;
        auto const kept = [&](ops::operand const& o) { return o.saved ? ops::shard_elements(o, box) * ops::size_of(o.type) : 0; };
        for (auto const& o : operation.inputs) sum += kept(o);
        for (auto const& o : operation.outputs) sum += kept(o);
        return sum + static_cast<byte_count>(ops::work_of_shard(operation.saved_bytes, operation, degrees));
    }

    static constexpr std::size_t most_remembered = std::size_t{1} << 26;
    sim::planner planner_;
    link_loads loads_;
};

} // namespace parsearch
