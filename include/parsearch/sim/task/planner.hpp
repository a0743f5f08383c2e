#pragma once
/// Plans the parts of an iteration under given configurations: times and places of an operator's shards, the movement along an edge,
/// the synchronisation and update of shared weights.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/sim/task/assemble.hpp>
#include <parsearch/sim/task/overlap_tables.hpp>
#include <parsearch/sim/task/pricing.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::sim {

/// Makes the parts of an `iteration_plan`, each a function of the configurations named in the call alone. Configurations must fit (see
/// `space::validate`). Every call throws what the oracle throws, and `invalid_input` where it answers a time out of range.
/// Remembers overlap tables and groups of devices within bounds.
class planner {
  public:
    static constexpr std::size_t default_table_bytes = std::size_t{1} << 30;
    /// Where overlap tables take more than `table_bytes` all are forgotten: a strategy with more makes its tables anew each time.
    explicit planner(std::shared_ptr<workload const> w, std::size_t table_bytes = default_table_bytes)
        : work_(std::move(w)), price_(work_->topology, work_->oracle, work_->options), tables_(work_->graph, table_bytes) {}
    /// With a pricing made of an equal topology, devices and oracle, for what it remembers.
    planner(std::shared_ptr<workload const> w, pricing price)
        : work_(std::move(w)), price_(std::move(price)), tables_(work_->graph, default_table_bytes) {}
    /// From now on every call throws `interrupted` once `stop` is requested.
    void stop_at(std::stop_token stop) noexcept { stop_ = std::move(stop); }
    [[nodiscard]] std::stop_token const& stop() const noexcept { return stop_; }
    /// The pricing, for another planner; this one is not used any more.
    [[nodiscard]] pricing take_pricing() noexcept { return std::move(price_); }

    [[nodiscard]] workload const& input() const noexcept { return *work_; }
    /// An assembler of the plans made here.
    [[nodiscard]] assembler make_assembler() const {
        auto const& t = work_->topology;
        return {work_->graph, t.kind, static_cast<std::uint32_t>(t.links.size()), work_->options.transfers, price_.latencies()};
    }

    void plan_operator(std::uint32_t op, space::configuration const& c, operator_plan& p) {
        time_operator(op, c, p.forward, p.backward);
        place_operator(op, c, p);
    }
    /// The durations alone, by kind of device: they follow from the degrees and, of what is cut by speed, from where shards are.
    void time_operator(std::uint32_t op, space::configuration const& c, std::vector<std::int64_t>& forward_times,
                       std::vector<std::int64_t>& backward_times);
    /// Of what `c` cuts by speed along dim `k`, the most samples of a shard on each kind of device; 0 where there is none.
    [[nodiscard]] std::vector<std::int64_t> largest_by_kind(ops::operation const& op, space::configuration const& c, std::uint32_t k) const;
    /// The rest of the plan.
    void place_operator(std::uint32_t op, space::configuration const& c, operator_plan& p);

    /// Lower bounds, in picoseconds, on how long messages of a shard take from the time at which the first may be sent. Collectives are left
    /// out, and nothing is above 2^58. Complexity: O(links of all messages).
    /// Of a consumer's shard: until it has all that it reads along the edge; backward, until all gradients that it sends have arrived.
    /// Of a producer's: until the first of its data has arrived; backward, until it has all gradients.
    struct shard_times {
        std::int64_t there = 0, back = 0;
    };
    struct edge_times {
        std::int64_t last_there = 0, last_back = 0; ///< until the last message of all has arrived
        std::vector<shard_times> consumers{}, producers{};
    };
    [[nodiscard]] edge_times times_of(std::uint32_t number, overlap_table const& t, space::configuration const& from, space::configuration const& to);

    /// Edge `number` between an operator under `from` and one under `to`; `made` and `read` are their plans. Where `read` has no times, nothing of
    /// what is passed on in rings moves while others compute.
    [[nodiscard]] edge_plan plan_edge(std::uint32_t number, space::configuration const& from, operator_plan const& made,
                                      space::configuration const& to, operator_plan const& read);

    /// Class `number`, whose members have the configurations `configuration(op)` and the plans `plan(op)`. `p.members` is set.
    template <class Configurations, class Plans> void plan_class(Configurations const& configuration, Plans const& plan, class_plan& p) {
        static_assert(std::is_lvalue_reference_v<decltype(configuration(0U))> && std::is_lvalue_reference_v<decltype(plan(0U))>,
                      "spans of what these answer are kept: they must answer references");
        auto const& g = work_->graph;
        require_running(stop_);
        p.sync = plan_sync(
            g, p.members, work_->options, [&](std::uint32_t op) { return configuration(op).degrees(); },
            [&](std::uint32_t op) -> std::vector<std::uint32_t> const& { return plan(op).devices; });
        p.all_reduce.clear();
        p.servers.clear();
        p.update.clear();
        if (!work_->options.training) return;
        bool const served = work_->options.synchronisation == synchronisation::parameter_server;
        for (std::uint32_t i = 0; i < p.sync.groups.size(); ++i) {
            auto const& group = p.sync.groups[i];
            if (served) p.servers.push_back(plan_server(group, i, plan));
            else p.all_reduce.push_back(price_.all_reduce_of_replicas(group.gradients, group.devices));
        }
        auto const first = p.members.front();
        auto const degrees = configuration(first).degrees();
        for (auto const& h : p.sync.held) {
            auto elements = h.elements;
            auto traffic = update_traffic(h);
            for (auto const group : h.groups)
                if (served && p.servers[group].server != h.device) {
                    elements -= p.sync.groups[group].elements;
                    traffic -= update_traffic(p.sync.groups[group]);
                }
            auto work = update_work(g.operations[first], elements, traffic, work_->options.optimizer);
            std::copy(degrees.begin(), degrees.end(), work.degrees.begin());
            p.update.push_back(elements == 0 ? class_plan::no_update : price_.shard(work, work_->topology.kind[h.device], g.names[first]));
        }
    }

    /// The number of the layout that input `input` of `op` has under `c`: equal where shards read the same parts. Until `forget`.
    [[nodiscard]] std::uint32_t layout_of_input(std::uint32_t op, std::uint32_t input, space::configuration const& c) {
        return tables_.of_input(op, input, c);
    }
    /// See `iteration_plan::carrier`: the first edge of a tensor whose reader reads the same parts on the same devices, shard by shard.
    /// `configuration(op)` and `plan(op)` answer those of a reader; `parts`: of each operator, or empty: readers of different parts share nothing.
    template <class Configurations, class Plans>
    [[nodiscard]] std::vector<std::uint32_t> carriers(Configurations const& configuration, Plans const& plan,
                                                      std::span<std::uint32_t const> parts = {}) {
        auto const& edges = work_->graph.edges;
        std::vector<std::uint32_t> out(edges.size());
        std::iota(out.begin(), out.end(), std::uint32_t{0});
        auto const alike = [&](std::uint32_t a, std::uint32_t b) {
            auto const &x = edges[a], &y = edges[b];
            return (parts.empty() || parts[x.consumer] == parts[y.consumer]) && plan(x.consumer).devices == plan(y.consumer).devices &&
                   layout_of_input(x.consumer, x.input, configuration(x.consumer)) == layout_of_input(y.consumer, y.input, configuration(y.consumer));
        };
        std::vector<std::uint32_t> first;
        for (std::uint32_t group = 0; group < work_->readers.size(); ++group) work_->readers.find_carriers(group, alike, out, first);
        return out;
    }

    /// Forgets the overlap tables.
    void forget() { tables_.forget(); }
    /// What they take, about.
    [[nodiscard]] std::size_t table_bytes() const noexcept { return tables_.bytes(); }
    /// Overlap tables depend on degrees alone.
    std::shared_ptr<overlap_table const> overlaps(std::uint32_t number, space::configuration const& from, space::configuration const& to) {
        return tables_.of_edge(number, from, to);
    }

  private:
    /// Of an edge to an input that is passed on: of its reader's shards on the kinds of devices that have some, the least times. Parts of what the
    /// reader's iteration space does not index (elements of an attention's heads) are of no use alone: nothing is computed while they come.
    [[nodiscard]] std::optional<ring_times> ring_times_of(graph::edge const& e, space::configuration const& from, space::configuration const& to,
                                                          operator_plan const& read) const;

    /// The links of each pair's message in `hops_`, from `first_hop_[pair]` on; none of pairs that move, or may move, in a collective. `ends(pair)`
    /// answers the devices that send and receive.
    template <class Ends> void find_messages(overlap_table const& t, byte_count element, Ends const& ends) {
        hops_.clear();
        first_hop_.assign(1, 0);
        for (std::size_t i = 0; i < t.pairs.size(); ++i) {
            auto const [here, there] = ends(t.pairs[i]);
            if (here != there &&
                (work_->options.movement == movement::pairwise || (work_->options.movement == movement::collective && t.exchange_of[i] < 0)))
                price_.append_route(static_cast<std::uint32_t>(here), static_cast<std::uint32_t>(there), t.pairs[i].elements * element, hops_);
            first_hop_.push_back(static_cast<std::uint32_t>(hops_.size()));
        }
        busy_.resize(work_->topology.links.size());
    }
    /// How long the busiest link is, of the messages of some pairs: `for_pairs(f)` calls `f(pair)`.
    template <class Pairs> [[nodiscard]] std::int64_t busiest(Pairs const& for_pairs) {
        auto const for_hops = [&](auto const& f) {
            for_pairs([&](std::uint32_t pair) {
                for (auto h = first_hop_[pair]; h < first_hop_[pair + 1]; ++h) f(hops_[h]);
            });
        };
        for_hops([&](hop const& h) { busy_[h.link] = 0; });
        std::int64_t longest = 0;
        for_hops([&](hop const& h) { longest = std::max(longest, busy_[h.link] = saturating_sum(busy_[h.link], h.duration)); });
        return std::min(longest, most_bound);
    }

    /// Outputs that nobody reads are still to be summed: an all-reduce among the shards of each part.
    void plan_unread_partial_sums(std::uint32_t op, space::configuration const& c, operator_plan& p);

    /// The server of a class's only group is its first device (FlexFlow's choice); several groups take turns among their devices.
    template <class Plans> server_plan plan_server(sync_group const& group, std::uint32_t number, Plans const& plan) {
        server_plan out{.server = group.devices[number % group.devices.size()], .clients = {}};
        for (auto const d : group.devices) {
            client_plan client;
            for (auto const s : group.contributors)
                if (plan(s.op).devices[s.shard] == d) client.contributors.push_back(s);
            if (d != out.server) {
                price_.append_route(d, out.server, group.gradients, client.push);
                price_.append_route(out.server, d, group.bytes, client.pull);
            }
            out.clients.push_back(std::move(client));
        }
        return out;
    }

    static constexpr std::int64_t most_bound = std::int64_t{1} << 58; ///< so that a few can be added
    std::stop_token stop_;
    std::shared_ptr<workload const> work_;
    pricing price_;
    std::vector<hop> hops_;
    std::vector<std::uint32_t> first_hop_;
    std::vector<std::int64_t> busy_; ///< of each link
    overlap_tables tables_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/task/planner.ipp>
#endif
