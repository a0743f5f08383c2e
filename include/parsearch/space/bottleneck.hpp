#pragma once
/// A move that changes the operators of the busiest device.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/space/propagate.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// How a device compares what it does, for `bottleneck_move`: two ratios of machines.
struct machine_balance {
    std::int64_t flops_per_byte = 20; ///< flops in the time in which the memory passes a byte
    std::int64_t link_factor = 50;    ///< times that a link takes as long for a byte as the memory does
};

/// A uniform configuration for an operator that is drawn in proportion to what it adds to the load of the busiest device.
///
/// The load is a model, not the simulation: of each operator forward and backward of its shards (the greater of bytes and flops per
/// `machine_balance`, evenly shared), for weights that several devices hold their exchange, and the inputs that do not
/// lie where they are read. It knows no time, so neither idle devices nor overlap. It is taken from the strategy once every `refresh_interval`
/// draws, and is that old at most. Not symmetric: the draw depends on the strategy.
/// Complexity: O(operators * shards + edges) every `refresh_interval` draws, else O(log operators).
class bottleneck_move {
  public:
    static constexpr std::string_view name = "bottleneck";
    static constexpr std::uint32_t refresh_interval = 64;
    double weight = 1;

    /// `g` must outlive the move.
    explicit bottleneck_move(graph::dense_graph const& g, double w = 1, machine_balance const& balance = {}) : weight(w), graph_(&g) {
        for (std::size_t op = 0; op < g.size(); ++op) {
            auto const& operation = g.operations[op];
            auto const one = whole(operation);
            std::int64_t work = 0, weights = 0;
            for (auto const p : {ops::pass::forward, ops::pass::backward}) {
                auto const w_of = ops::work_of(operation, one.degrees(), p, g.input_gradients(op));
                work = sum(work, std::max(bounded(w_of.bytes), bounded(w_of.flops) / balance.flops_per_byte));
            }
            for (auto const& o : operation.weights) weights = sum(weights, product(ops::bytes_of(o), 2 * balance.link_factor));
            work_.push_back(work);
            weights_.push_back(weights);
        }
        for (auto const& e : g.edges) input_.push_back(product(ops::bytes_of(g.operations[e.producer].outputs[e.slot]), balance.link_factor));
    }

    template <Strategy<configuration> S, RandomBits R>
    std::optional<std::uint64_t> operator()(strategy_space const& space, S const& strategy, R& rng, std::vector<change<configuration>>& out) {
        if (drawn_++ % refresh_interval == 0) refresh(space, strategy);
        if (below_.empty()) return std::nullopt;
        auto const at = static_cast<std::int64_t>(uniform_index(rng, static_cast<std::uint64_t>(below_.back())));
        auto const op = candidates_[static_cast<std::size_t>(std::upper_bound(below_.begin(), below_.end(), at) - below_.begin())];
        auto const index = uniform_index(rng, space.of(op).size());
        out.push_back({op, space.of(op)[static_cast<std::size_t>(index)]});
        return index;
    }

    /// What operator `op` of `strategy` adds to each of its devices, in the time in which a memory passes a byte.
    template <Strategy<configuration> S> [[nodiscard]] std::int64_t load_of(S const& strategy, std::size_t op) const {
        auto const& g = *graph_;
        configuration const& c = configuration_of(strategy, op);
        auto const shards = c.shards();
        auto load = work_[op] / ops::work_shards(g.operations[op], c.degrees());
        if (weights_[op] > 0) { // a ring over the holders of a part of the weights
            std::int64_t parts = 1;
            for (std::size_t k = 0; k < c.rank; ++k)
                if (c.degree[k] > 1 && ops::is_indexed_by(g.operations[op].weights[0], k)) parts *= c.degree[k];
            if (parts < shards) load = sum(load, weights_[op] / parts);
        }
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
            auto const& edge = g.edges[e];
            if (g.operations[edge.producer].work == ops::work_class::source) continue;
            auto const stays = carried_over(g, edge, configuration_of(strategy, edge.producer), true);
            if (!stays || !(*stays == c)) load = sum(load, input_[e] / shards);
        }
        return load;
    }

  private:
    // Sums of all operators stay within 64 bits.
    static constexpr std::int64_t most = std::int64_t{1} << 40;
    static std::int64_t bounded(double x) noexcept { return x < static_cast<double>(most) ? static_cast<std::int64_t>(x) : most; }
    static std::int64_t product(std::int64_t a, std::int64_t b) noexcept { return a < most / b ? a * b : most; }
    static std::int64_t sum(std::int64_t a, std::int64_t b) noexcept { return std::min(a + b, most); }

    template <class S> void refresh(strategy_space const& space, S const& strategy) {
        auto const operators = space.size();
        loads_.clear();
        std::fill(device_.begin(), device_.end(), 0);
        for (std::size_t op = 0; op < operators; ++op) {
            loads_.push_back(load_of(strategy, op));
            for_devices(strategy, op, [&](std::size_t d) {
                if (d >= device_.size()) device_.resize(d + 1, 0);
                device_[d] += loads_[op];
            });
        }
        auto const busiest = static_cast<std::size_t>(std::max_element(device_.begin(), device_.end()) - device_.begin());
        candidates_.clear();
        below_.clear();
        for (std::size_t op = 0; op < operators; ++op) {
            if (loads_[op] == 0 || space.of(op).size() < 2) continue;
            bool here = false;
            for_devices(strategy, op, [&](std::size_t d) { here = here || d == busiest; });
            if (!here) continue;
            candidates_.push_back(op);
            below_.push_back(loads_[op] + (below_.empty() ? 0 : below_.back()));
        }
    }
    template <class S, class F> static void for_devices(S const& strategy, std::size_t op, F const& f) {
        configuration const& c = configuration_of(strategy, op);
        for (std::int64_t n = 0, shards = c.shards(); n < shards; ++n) f(static_cast<std::size_t>(c.device(n)));
    }

    graph::dense_graph const* graph_;
    std::vector<std::int64_t> work_, weights_, input_; ///< whole: of each operator, and of each edge
    std::uint64_t drawn_ = 0;
    std::vector<std::int64_t> loads_, device_; ///< at the last refresh: by operator, by device
    std::vector<std::size_t> candidates_;      ///< operators on the busiest device
    std::vector<std::int64_t> below_;          ///< their loads, summed up
};

} // namespace parsearch::space
