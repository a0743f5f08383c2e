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

#include <parsearch/core/compiled.hpp>
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
[[nodiscard]] edge_delays delays_of(edge_plan const& p, std::size_t producers, std::size_t consumers, bool gradients);

/// All choices of a space, and the delays along the edges that are within the limits.
class choice_tables {
  public:
    /// Throws what the oracle throws. Complexity: O(configurations + pairs of configurations within the limits) plans.
    choice_tables(std::shared_ptr<workload const> const& w, choice_source const& space, table_limits const& limits = {});

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
    void add_choices(std::uint32_t op, choice_source const& space);

    sim::planner planner_;
    std::vector<std::vector<tabled_choice>> choices_;
    std::vector<std::vector<edge_delays>> edges_;                   ///< producer's choice major
    std::map<std::vector<std::uint32_t>, std::uint32_t> readers_{}; ///< by layout and devices, while choices are tabulated
    std::vector<std::uint32_t> key_{};
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/bounds/choice_tables.ipp>
#endif
