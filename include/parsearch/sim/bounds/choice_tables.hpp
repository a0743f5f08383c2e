#pragma once
/// What bounds on partial strategies are made of: for every operator the durations under each configuration of its space, for every edge the
/// least delays between shards under each pair of configurations.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/sim/bounds/choice_source.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/sim/task/pricing.hpp>

namespace parsearch::sim {

/// Work that keeps a link busy.
struct link_work {
    std::uint32_t link = 0;
    std::int64_t forward = 0, backward = 0;
};

/// One configuration of an operator.
struct tabled_choice {
    space::configuration configuration;
    operator_plan plan;
    std::vector<std::int64_t> forward, backward; ///< of each shard
    std::vector<std::uint32_t> read;             ///< of each input, a number for the parts that shards read and the devices: equal where both are
};

/// One pair of configurations at the ends of an edge. `there(s, t)`: from the end of producer shard s to the start of consumer shard t, at
/// least; `back(t, s)`: the same of gradients; `never` where t does not wait for s.
class edge_delays {
  public:
    static constexpr std::int64_t never = -(std::int64_t{1} << 60);

    edge_delays() = default;
    edge_delays(std::size_t producers, std::size_t consumers)
        : consumers_(static_cast<std::uint32_t>(consumers)), there_(producers * consumers, never), back_(producers * consumers, never) {}
    [[nodiscard]] std::int64_t there(std::size_t s, std::size_t t) const noexcept { return there_[s * consumers_ + t]; }
    [[nodiscard]] std::int64_t back(std::size_t t, std::size_t s) const noexcept { return back_[s * consumers_ + t]; }
    void raise_there(std::size_t s, std::size_t t, std::int64_t by) noexcept { raise(there_[s * consumers_ + t], by); }
    void raise_back(std::size_t t, std::size_t s, std::int64_t by) noexcept { raise(back_[s * consumers_ + t], by); }

    std::vector<link_work> links{};

  private:
    static void raise(std::int64_t& delay, std::int64_t by) noexcept { delay = std::max(delay, by); }
    std::uint32_t consumers_ = 0;
    std::vector<std::int64_t> there_, back_;
};

/// The least delays that the movement `p` puts between shards: a message takes as long as its slowest link, a collective waits for all
/// that send and takes as long as its slowest link.
[[nodiscard]] inline edge_delays delays_of(edge_plan const& p, std::size_t producers, std::size_t consumers, bool gradients) {
    edge_delays out(producers, consumers);
    if (!p.table) return out;
    auto const add = [&](std::span<hop const> hops, std::int64_t link_work::*pass) {
        for (auto const& h : hops) {
            auto at = std::find_if(out.links.begin(), out.links.end(), [&](auto const& l) { return l.link == h.link; });
            if (at == out.links.end()) at = out.links.insert(at, link_work{.link = h.link});
            (*at).*pass = saturating_sum((*at).*pass, h.duration);
        }
    };
    for (auto const& c : p.collectives) {
        add(c.forward, &link_work::forward);
        if (gradients) add(c.backward, &link_work::backward);
        if (!c.awaited) continue;
        for (auto const s : c.producers)
            for (auto const t : c.consumers) {
                out.raise_there(s, t, longest_hop(c.forward));
                if (gradients) out.raise_back(t, s, longest_hop(c.backward));
            }
    }
    for (std::size_t i = 0; i < p.table->pairs.size(); ++i) {
        if (p.collective_of[i] >= 0) continue;
        auto const& pair = p.table->pairs[i];
        auto const hops = [](std::vector<hop> const& all, std::vector<std::uint32_t> const& first, std::size_t n) {
            return std::span(all).subspan(first[n], first[n + 1] - first[n]);
        };
        auto const there = hops(p.forward, p.first_forward, i);
        add(there, &link_work::forward);
        out.raise_there(pair.producer, pair.consumer, longest_hop(there));
        if (!gradients) continue;
        auto const back = hops(p.backward, p.first_backward, i);
        add(back, &link_work::backward);
        out.raise_back(pair.consumer, pair.producer, longest_hop(back));
    }
    return out;
}

/// All choices of a space, and the delays along the edges that are within the limits.
class choice_tables {
  public:
    /// Throws what the oracle throws. Complexity: O(configurations + pairs of configurations within the limits) plans.
    choice_tables(std::shared_ptr<workload const> const& w, choice_source const& space, table_limits const& limits = {}) : planner_(w) {
        auto const& g = w->graph;
        std::size_t total = 0;
        for (std::size_t op = 0; op < g.size(); ++op) total += space.count(op);
        planner_.stop_at(limits.stop);
        if (total > limits.choices) return;
        choices_.resize(g.size());
        for (std::uint32_t op = 0; op < g.size(); ++op) add_choices(op, space);
        readers_.clear();
        edges_.resize(g.edges.size());
        std::size_t left = limits.pairs, delays_left = limits.delays;
        for (std::uint32_t e = 0; e < g.edges.size(); ++e) {
            auto const [producer, slot, consumer, input] = g.edges[e];
            if (g.operations[producer].work == ops::work_class::source) continue;
            auto const pairs = choices_[producer].size() * choices_[consumer].size();
            if (pairs > std::min(left, limits.pairs_per_edge)) continue;
            auto const delays = shards(producer) * shards(consumer);
            if (delays > delays_left) continue;
            left -= pairs;
            delays_left -= delays;
            bool const gradients = w->options.training && g.carries_gradient(g.edges[e]);
            edges_[e].reserve(pairs);
            for (auto const& from : choices_[producer])
                for (auto const& to : choices_[consumer])
                    edges_[e].push_back(delays_of(planner_.plan_edge(e, from.configuration, from.plan, to.configuration, to.plan),
                                                  from.forward.size(), to.forward.size(), gradients));
        }
    }

    /// False where the space is beyond the limits: then nothing below may be called.
    [[nodiscard]] bool known() const noexcept { return !choices_.empty(); }
    [[nodiscard]] std::vector<tabled_choice> const& choices(std::size_t op) const noexcept { return choices_[op]; }
    [[nodiscard]] bool has_edge(std::size_t e) const noexcept { return !edges_[e].empty(); }
    [[nodiscard]] edge_delays const& edge(std::size_t e, std::size_t from, std::size_t to) const noexcept {
        return edges_[e][from * choices_[planner_.input().graph.edges[e].consumer].size() + to];
    }
    [[nodiscard]] sim::planner& planner() noexcept { return planner_; }
    [[nodiscard]] workload const& input() const noexcept { return planner_.input(); }
    [[nodiscard]] std::stop_token const& stop() const noexcept { return planner_.stop(); }

  private:
    /// Over all choices.
    [[nodiscard]] std::size_t shards(std::uint32_t op) const noexcept {
        std::size_t sum = 0;
        for (auto const& c : choices_[op]) sum += c.forward.size();
        return sum;
    }
    void add_choices(std::uint32_t op, choice_source const& space) {
        auto const& w = planner_.input();
        for (std::size_t i = 0, n = space.count(op); i < n; ++i) {
            tabled_choice c{.configuration = space.choice(op, i), .plan = {}, .forward = {}, .backward = {}, .read = {}};
            space::validate(c.configuration, w.graph.operations[op], w.topology.size(), w.graph.names[op]);
            planner_.plan_operator(op, c.configuration, c.plan);
            for (auto const d : c.plan.devices) {
                c.forward.push_back(c.plan.forward[w.topology.kind[d]]);
                c.backward.push_back(c.plan.backward[w.topology.kind[d]]);
            }
            for (std::uint32_t input = 0; input < w.graph.operations[op].inputs.size(); ++input) {
                key_.assign(1, planner_.layout_of_input(op, input, c.configuration));
                key_.insert(key_.end(), c.plan.devices.begin(), c.plan.devices.end());
                c.read.push_back(readers_.try_emplace(key_, static_cast<std::uint32_t>(readers_.size())).first->second);
            }
            choices_[op].push_back(std::move(c));
        }
    }

    sim::planner planner_;
    std::vector<std::vector<tabled_choice>> choices_;
    std::vector<std::vector<edge_delays>> edges_;                   ///< producer's choice major
    std::map<std::vector<std::uint32_t>, std::uint32_t> readers_{}; ///< by layout and devices, while choices are tabulated
    std::vector<std::uint32_t> key_{};
};

} // namespace parsearch::sim
