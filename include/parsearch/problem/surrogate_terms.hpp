#pragma once
/// The terms of an additive cost that resembles the simulated one.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/interruption.hpp>
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

    /// Once `stop` is requested or `end` has come, calls throw `interrupted`.
    explicit surrogate_terms(std::shared_ptr<sim::workload const> work, std::stop_token stop = {},
                             std::optional<std::chrono::steady_clock::time_point> end = {})
        : planner_(std::move(work)), loads_(planner_.input().topology.links.size()), end_(end) {
        planner_.stop_at(std::move(stop));
    }
    /// With a pricing of an equal topology, and devices and oracle that answer alike: it remembers groups of devices.
    surrogate_terms(std::shared_ptr<sim::workload const> work, pricing_type price)
        : planner_(std::move(work), std::move(price)), loads_(planner_.input().topology.links.size()) {}
    /// The pricing, for the next one; nothing is asked of these terms any more.
    [[nodiscard]] pricing_type take_pricing() { return planner_.take_pricing(); }

    [[nodiscard]] sim::workload const& input() const noexcept { return planner_.input(); }

    [[nodiscard]] operator_term of_operator(std::uint32_t op, space::configuration const& c);
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
                                                   std::span<space::configuration const> to);

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
    [[nodiscard]] bool is_brought(std::uint32_t number, space::configuration const& to);

    /// Bytes that the largest shard keeps for the whole iteration; a tensor that several operators keep counts for each, working buffers for none.
    [[nodiscard]] byte_count kept_by_shard(std::uint32_t op, space::configuration const& c) const;
    /// Of operator `op`, which does `operation`.
    [[nodiscard]] byte_count kept_by_shard(std::uint32_t op, ops::operation const& operation, std::span<std::int32_t const> degrees) const;

    void require_time() const {
        if (end_ && std::chrono::steady_clock::now() >= *end_) throw interrupted();
    }

    static constexpr std::size_t most_remembered = std::size_t{1} << 26;
    sim::planner planner_;
    link_loads loads_;
    std::optional<std::chrono::steady_clock::time_point> end_;
};

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/surrogate_terms.ipp>
#endif
