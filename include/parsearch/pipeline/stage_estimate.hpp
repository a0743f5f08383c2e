#pragma once
/// What pipelines of textbook stages take, estimated without their task graphs: which of them to simulate first.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/pipeline/equal_stages.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/replica_times.hpp>
#include <parsearch/pipeline/stage_cuts.hpp>
#include <parsearch/pipeline/stage_places.hpp>
#include <parsearch/pipeline/stage_times.hpp>
#include <parsearch/pipeline/weight_gradients.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/sim/task/pricing.hpp>
#include <parsearch/space/textbook/neighbour_split.hpp>

namespace parsearch::pipeline {

/// Estimates pipelines of equal stages for one problem.
///
/// One micro-batch is simulated on the devices of one replica alone, once for each size of it and way to divide operators. That tells when each
/// operator is done, forward and backward, messages between these devices included. Stages are spans of these times, which are put together
/// micro-batch by micro-batch as `launches` orders them. Behind the last backward come the all-reduces of gradients, one after the other as they
/// become ready, at the rate of the all-reduces of the heaviest weights, which are priced on the problem's own links; then updates. Sharded
/// gradients and parameters take passes of their own (`share_blocks`). Left out:
/// contention of messages between stages, and of what blocks gather with what a replica exchanges; latencies of small all-reduces; activations that
/// several stages keep. Devices are taken to be equal to
/// those of the first stage.
class stage_estimator {
  public:
    /// `cuts_anywhere`: stages may begin at any operator, see `stage_places`.
    explicit stage_estimator(parallelization const& problem, bool cuts_anywhere = false);

    /// The estimate of `how`; nothing where its micro-batches have fewer samples than replicas, or a number that these do not divide (but in
    /// spaces that are uneven). Throws
    /// `invalid_input` where stages or degrees do not divide the devices, or tensor parallelism not the neighbours that share experts, or more
    /// segments are kept or offloaded than there are. Complexity: O(operators + stages * micro_batches), that of `fitted` where `how.fitted`, but for
    /// the first with its size of a replica's micro-batch and split.
    [[nodiscard]] std::optional<stage_estimate> operator()(equal_stages const& how);

    /// How many of `how.segments` segments may keep their activations where all fit, 0 where none, or where no stage of `how` computes again.
    /// Estimates of memory are taken to be 2% too low; they grow by equal steps. Complexity: that of an estimate.
    [[nodiscard]] std::uint32_t most_kept(equal_stages how);

    /// How many of `how.segments` segments must be offloaded at least where all fit, 0 where that does not suffice. Complexity: that of an estimate,
    /// times the logarithm of segments.
    [[nodiscard]] std::uint32_t least_offloaded(equal_stages how);

    /// Stages with the least largest time, of those that fit: each keeps its activations where it can, else computes them again in `how.segments`
    /// segments. Nothing where none fit, there are more than 512 places, a group of devices has several stages, or `how` is not
    /// estimated. Complexity: O(operators), and runs of places for each load that `least_load_cuts` asks for.
    [[nodiscard]] std::optional<fitted_stages> fitted(equal_stages const& how);

  private:
    using cell = detail::replica_times;
    static constexpr std::size_t few = 512; ///< places, among which cuts are found exactly

    /// Of weights whose experts are split, and of all others.
    struct by_experts {
        double others = 0, experts = 0;
        [[nodiscard]] double of(cell const& c, std::size_t i) const { return c.experts[i] ? experts : others; }
    };
    /// Picoseconds per byte of a device's weights, 0 where no other device has them: all-reduces as large as weights, and as gradients, among devices
    /// that have one copy together, and those of parts between copies.
    struct sync_rates {
        by_experts weights{}, gradients{}, across{};
    };
    /// The part of its weights that a device keeps the optimizer's state of.
    struct own_shares {
        by_experts replicas{}; ///< that have one copy together; 0: nothing is shared
        [[nodiscard]] double of(cell const& c, std::size_t i) const {
            auto const among = replicas.of(c, i);
            return among > 0 ? c.own[i] / among : 1;
        }
    };
    /// The same of one kind of weights, and how many copies there are.
    struct sync_cost {
        double weights = 0, gradients = 0, across = 0, copies = 1;
    };
    /// Bytes of weights and their gradients, and of those of them that devices share.
    struct state_bytes {
        double all = 0, shared = 0;
    };

    /// One micro-batch of a replica, where stages begin and which compute again.
    struct division {
        cell const& one;
        std::vector<std::size_t> first;
        std::vector<bool> recompute;
        std::int64_t replicas;
        std::vector<std::uint32_t> blocks{}; ///< where gradients are sharded: of each place
    };
    /// Groups of devices that work on different samples; nothing where these are too few, or not divisible.
    [[nodiscard]] std::optional<std::int64_t> replicas_of(equal_stages const& how) const;
    [[nodiscard]] std::optional<division> divided(equal_stages const& how);

    /// Bytes of a device of group `group`.
    [[nodiscard]] byte_count capacity(std::size_t group, equal_stages const& how) const {
        if (problem_.options().memory == sim::memory_policy::ignore) return std::numeric_limits<byte_count>::max();
        return problem_.topology().devices[group * (problem_.topology().size() / how.groups())].memory;
    }

    [[nodiscard]] static std::size_t end_of(std::span<std::size_t const> first, std::size_t s, std::size_t all) {
        return s + 1 < first.size() ? first[s + 1] : all;
    }

    [[nodiscard]] cell const& cell_of(ops::batch_part part, space::neighbour_split by) {
        if (auto const at = cells_.find({part, by}); at != cells_.end()) return at->second;
        return cells_.emplace(std::pair{part, by}, detail::replica_times_of(problem_, order_, blocks_, part, by)).first->second;
    }

    /// Stages of equal computation and messages: exactly so among few places, elsewhere each cut where it would be best alone.
    [[nodiscard]] std::vector<std::size_t> equal_cuts(cell const& c, equal_stages const& how) const;

    [[nodiscard]] std::vector<stage_times> spans_of(division const& d, equal_stages const& how);

    /// Turns `span`, of the operators from place `begin` to `end`, into that with sharded gradients, or parameters too.
    void share_blocks(division const& d, std::size_t begin, std::size_t end, sharded_states sharded, sync_rates const& rates,
                      stage_times& span) const;

    [[nodiscard]] std::int64_t message(std::size_t from, std::size_t to, byte_count bytes) const;

    /// The end of the iteration, of stages that are done with their last backward at `done`.
    [[nodiscard]] std::int64_t synchronised(division const& d, std::span<std::int64_t const> done, equal_stages const& how);

    /// All replicas have what is not split within one.
    [[nodiscard]] sync_rates rates_of(cell const& c, equal_stages const& how, std::int64_t replicas);
    [[nodiscard]] own_shares shares_of(cell const& c, equal_stages const& how, std::int64_t replicas);

    /// Of a device's weights, what the busiest link is held, those of the other devices of its stage included. `experts`: of weights whose experts
    /// are split, or of all others.
    [[nodiscard]] sync_cost sync_cost_of(cell const& c, equal_stages const& how, std::int64_t replicas, bool experts);

    [[nodiscard]] static state_bytes states_of(cell const& c, std::size_t i, equal_stages const& how) noexcept {
        auto const weights = static_cast<double>(c.weights[i]), gradients = static_cast<double>(c.gradients[i]);
        return {weights + gradients,
                (how.sharded >= sharded_states::parameters ? weights : 0) + (how.sharded >= sharded_states::gradients ? gradients : 0)};
    }
    /// Of those that the operator at place `i` reads and that are counted at another one.
    [[nodiscard]] static state_bytes borrowed_of(cell const& c, std::size_t i, equal_stages const& how) noexcept {
        return c.borrowed[i] > 0 ? states_of(c, c.home[i], how) : state_bytes{};
    }

    /// Bytes of weights and gradients on a device of group `group`: of what is shared its share, and two blocks.
    [[nodiscard]] byte_count weights_of(division const& d, std::uint32_t group, equal_stages const& how, own_shares const& share) const;

    /// Bytes on a device of group `group`.
    [[nodiscard]] byte_count memory_of(division const& d, std::uint32_t group, equal_stages const& how);

    /// Bytes that a device of stage `s` keeps of a micro-batch.
    [[nodiscard]] detail::kept_bytes kept_of(division const& d, std::size_t s, equal_stages const& how) const {
        return detail::kept_bytes_of(d.one, d.first[s], end_of(d.first, s, order_.size()), how, d.recompute[s]);
    }

    /// Bytes of the weights, and in training gradients and optimizer's state, that the operator at place `i` reads, where its stage has no other that
    /// does.
    [[nodiscard]] double borrowed_states(cell const& c, std::size_t i, equal_stages const& how, own_shares const& share) const;

    parallelization problem_;
    std::vector<std::uint32_t> order_; ///< without graph inputs
    std::vector<std::size_t> place_;   ///< of each operator in it
    stage_places places_;
    std::vector<std::uint32_t> blocks_; ///< of each place
    std::int64_t samples_;
    std::map<std::pair<ops::batch_part, space::neighbour_split>, cell> cells_; ///< by part of the batch
    /// By part of the batch, stages and groups of devices.
    std::map<std::tuple<ops::batch_part, space::neighbour_split, std::uint32_t, std::uint32_t>, std::vector<std::size_t>> cuts_;
    std::map<std::tuple<std::size_t, space::neighbour_split, bool, bool>, sync_cost>
        rates_; ///< by devices of a stage, whether of experts, and whether within nodes
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/stage_estimate.ipp>
#endif
