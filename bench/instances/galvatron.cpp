// Galvatron's two levels: even stages, over layers that choose within the memory of a device.
#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <utility>

#include <parsearch/core/cost.hpp>
#include <parsearch/graph/blocks.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/replica_times.hpp>
#include <parsearch/pipeline/stage_cuts.hpp>
#include <parsearch/problem/surrogate_store.hpp>
#include <parsearch/problem/surrogate_terms.hpp>
#include <parsearch/search/budgeted_cost.hpp>
#include <parsearch/search/dominator_dp.hpp>

#include "two_level.hpp"

namespace bench {
namespace {

using ps::byte_count, ps::picoseconds, ps::saturating_sum;
using ps::pipeline::sharded_states;
using ps::pipeline::detail::replica_times;

/// What a layer may choose.
struct layer_choice {
    std::size_t way; ///< number of its degree of tensor parallelism
    bool again;      ///< it is computed again
    friend bool operator==(layer_choice const&, layer_choice const&) = default;
};

/// What layers take on the groups of devices of a number of stages, with a number of micro-batches.
class layer_costs {
  public:
    /// `layers`: where they begin.
    layer_costs(two_level_search& search, ps::parallelization const& problem, std::uint32_t stages, std::uint32_t micro_batches,
                std::span<std::size_t const> layers, std::span<std::uint32_t const> blocks,
                std::map<std::pair<ps::ops::batch_part, std::uint32_t>, replica_times>& known)
        : micro_batches_(micro_batches), layers_(layers), training_(problem.options().training) {
        auto& builder = search.builder();
        auto const& order = builder.order();
        auto const group = problem.topology().size() / stages;
        auto const samples = static_cast<std::int64_t>(search.rules().samples());
        std::vector<ps::space::flat_strategy const*> strategies;
        for (auto const t : builder.degrees(group)) {
            auto const replicas = static_cast<std::int64_t>(group / t);
            if (!std::has_single_bit(t) || samples % (replicas * micro_batches) != 0) continue;
            auto const part = ps::pipeline::part_of_replica(samples, micro_batches, replicas, 1);
            auto at = known.find({part, t});
            if (at == known.end())
                at = known.emplace(std::pair{part, t}, ps::pipeline::detail::replica_times_of(problem, order, blocks, part, {.tensor = t})).first;
            ways_.push_back({t, static_cast<double>(replicas * problem.options().replicas), &at->second, {}});
            strategies.push_back(&builder.strategy(micro_batches, group, {.tensor = t}));
        }
        if (ways_.empty()) return;
        auto const& part = builder.simulator().micro_batches(micro_batches);
        auto const& g = part.graph();
        ps::surrogate_terms terms(part.workload());
        ps::surrogate_store store;
        std::vector<ps::surrogate_tables::choices> candidates;
        for (std::size_t op = 0; op < g.size(); ++op) {
            std::vector<ps::space::configuration> list;
            for (auto const* const s : strategies) list.push_back((*s)[op]);
            candidates.push_back(std::make_shared<std::vector<ps::space::configuration> const>(std::move(list)));
        }
        auto const numbers = store.numbers_of(g);
        auto const tables = store.tables_of(g, numbers, std::move(candidates), [&]() -> auto& { return terms; });
        for (std::size_t w = 0; w < ways_.size(); ++w)
            for (auto const op : order) ways_[w].synchronised.push_back((*tables.operators[op])[w].synchronisation.count());
        // Between layers: what moves more than where both choose as the later does, which is in its time.
        std::vector<std::size_t> layer(g.size(), 0);
        for (std::size_t i = 0, l = 0; i < order.size(); ++i) {
            while (l + 1 < layers.size() && layers[l + 1] <= i) ++l;
            layer[order[i]] = l;
        }
        for (std::size_t e = 0; e < g.edges.size(); ++e) {
            auto const from = layer[g.edges[e].producer], to = layer[g.edges[e].consumer];
            if (from == to || g.operations[g.edges[e].producer].work == ps::ops::work_class::source) continue;
            auto& sum = between_.try_emplace({from, to}, ways_.size() * ways_.size(), 0).first->second;
            for (std::size_t a = 0; a < ways_.size(); ++a)
                for (std::size_t b = 0; b < ways_.size(); ++b) {
                    auto const moved = (*tables.pairs[e])[a * ways_.size() + b].count() - (*tables.pairs[e])[b * ways_.size() + b].count();
                    sum[a * ways_.size() + b] = saturating_sum(sum[a * ways_.size() + b], std::max<std::int64_t>(moved, 0));
                }
        }
    }

    [[nodiscard]] bool empty() const noexcept { return ways_.empty(); }
    [[nodiscard]] std::size_t ways() const noexcept { return ways_.size(); }
    [[nodiscard]] std::uint32_t tensor(std::size_t way) const noexcept { return ways_[way].tensor; }
    /// What layers that follow each other choose costs, row major in the choice of the earlier: by pairs of layers.
    [[nodiscard]] std::map<std::pair<std::size_t, std::size_t>, std::vector<std::int64_t>> const& between() const noexcept { return between_; }

    struct cost {
        std::int64_t time = 0;  ///< of a micro-batch, and its part of what comes once
        byte_count states = 0;  ///< of a device
        byte_count kept = 0;    ///< of a micro-batch
        byte_count largest = 0; ///< while it runs: buffers, what is computed again or gathered
    };
    [[nodiscard]] cost of(std::size_t layer, layer_choice choice, sharded_states sharded) const {
        auto const& way = ways_[choice.way];
        auto const& one = *way.one;
        auto const begin = layers_[layer], end = layer + 1 < layers_.size() ? layers_[layer + 1] : one.forward.size();
        cost out;
        double own = 0, gathered = 0;
        std::int64_t synchronised = 0, update = 0;
        byte_count activations = 0, buffers = 0;
        for (auto i = begin; i < end; ++i) {
            auto const part = [&](sharded_states least) { return sharded >= least ? 1 / way.replicas : 1; };
            auto const weights = static_cast<double>(one.weights[i]), gradients = training_ ? static_cast<double>(one.gradients[i]) : 0;
            auto const keeps = weights * part(sharded_states::parameters) + gradients * part(sharded_states::gradients);
            gathered += weights + gradients - keeps;
            auto const optimizer = one.own[i] * part(sharded_states::optimizer);
            own += keeps + static_cast<double>(one.cache[i]) * micro_batches_;
            if (training_) own += (sharded == sharded_states::none ? 1 : optimizer) * static_cast<double>(one.optimizer[i]);
            synchronised = saturating_sum(synchronised, way.synchronised[i]);
            update = saturating_sum(
                update, static_cast<std::int64_t>((sharded == sharded_states::none ? 1 : optimizer) * static_cast<double>(one.update[i])));
            activations += one.activations[i];
            buffers = std::max(buffers, one.buffers[i]);
        }
        auto forward = one.forward[end - 1] - (begin > 0 ? one.forward[begin - 1] : 0);
        auto backward = one.backward[begin] - (end < one.backward.size() ? one.backward[end] : 0);
        if (choice.again) backward = saturating_sum(backward, forward);
        auto once = update;
        // Half of an all-reduce gathers, half reduces; what moves with each micro-batch does so beside computation.
        if (sharded >= sharded_states::parameters) {
            forward = std::max(forward, synchronised / 2);
            backward = std::max(backward, synchronised);
        } else if (sharded == sharded_states::gradients) {
            backward = std::max(backward, synchronised / 2);
            once = saturating_sum(once, synchronised / 2);
        } else {
            once = saturating_sum(once, synchronised);
        }
        out.time = saturating_sum(saturating_sum(forward, backward), once / micro_batches_);
        out.states = static_cast<byte_count>(own);
        out.kept = !training_ ? 0 : choice.again ? one.crossing[begin] : activations;
        out.largest = buffers + (choice.again ? activations : 0) + (sharded >= sharded_states::gradients ? static_cast<byte_count>(2 * gathered) : 0);
        return out;
    }

  private:
    struct tensor_way {
        std::uint32_t tensor;
        double replicas; ///< of the weights
        replica_times const* one;
        std::vector<std::int64_t> synchronised; ///< how long gradients are, by place
    };
    std::uint32_t micro_batches_;
    std::span<std::size_t const> layers_;
    bool training_;
    std::vector<tensor_way> ways_{};
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::int64_t>> between_{};
};

/// A pipeline whose layers have chosen.
struct chosen_layers {
    std::int64_t time = 0;
    std::uint32_t stages = 1, micro_batches = 1;
    sharded_states sharded = sharded_states::none;
    bool by_memory = false; ///< its cuts
    std::vector<std::size_t> first{};
    std::vector<layer_choice> choices{}; ///< by layer
    double memory = 0;                   ///< within which these were made
};

class galvatron_search {
  public:
    galvatron_search(two_level_search& search, ps::parallelization const& problem) : search_(&search), problem_(&problem) {
        for (auto const& d : problem.topology().devices) capacity_ = std::min(capacity_, static_cast<double>(d.memory));
        if (problem.options().memory == ps::sim::memory_policy::ignore) capacity_ = most_memory;
        blocks_ = search.builder().places().blocks(0, search.builder().order().size());
    }

    void run() {
        std::vector<chosen_layers> all;
        auto const devices = problem_->topology().size();
        for (std::uint32_t stages = 1; stages <= devices && stages <= most_stages; stages *= 2) {
            if (devices % stages != 0 || search_->builder().order().size() < stages) continue;
            auto const& layers = layers_.try_emplace(stages, search_->layers(std::max<std::size_t>(2, stages))).first->second;
            for (auto const m : search_->micro_batches()) {
                if (search_->over()) return;
                auto const& costs =
                    costs_.try_emplace({stages, m}, *search_, *problem_, stages, m, std::span<std::size_t const>(layers), blocks_, times_)
                        .first->second;
                if (costs.empty()) continue;
                for (auto const states : ps::pipeline::all_sharded_states) {
                    std::vector<std::size_t> cut; // for equal time
                    for (bool const by_memory : {false, true}) {
                        if (search_->over()) return;
                        if (states == sharded_states::parameters_within_nodes || !search_->rules().may_shard(states, devices / stages, false) ||
                            (by_memory && stages == 1))
                            continue;
                        chosen_layers c{.stages = stages, .micro_batches = m, .sharded = states, .by_memory = by_memory, .memory = capacity_};
                        bool const fits = choose(c);
                        if (fits && c.first != cut) all.push_back(c);
                        cut = std::move(c.first);
                    }
                }
            }
        }
        std::ranges::stable_sort(all, {}, &chosen_layers::time);
        for (auto& c : all)
            for (int round = 0; round < most_rounds; ++round) {
                if (search_->over() || static_cast<double>(c.time) > likely * static_cast<double>(search_->best())) break;
                auto const filled = search_->consider(stages_of(c));
                if (filled == 0 || !choose_less(c, filled)) break;
            }
    }

  private:
    static constexpr std::uint32_t most_stages = 64;
    static constexpr int most_rounds = 4;             ///< of choices within less and less memory
    static constexpr double likely = 1.25;            ///< of estimates above the best cost
    static constexpr double most_memory = 0x1p49;     ///< where memory is ignored
    static constexpr std::int64_t memory_parts = 512; ///< in which it is counted

    /// Cuts and choices of least time within `c.memory`; false where there are none.
    [[nodiscard]] bool choose(chosen_layers& c) {
        auto const& costs = costs_.at({c.stages, c.micro_batches});
        auto const& layers = layers_.at(c.stages);
        c.first = cuts(c, costs, layers);
        c.choices.clear();
        c.time = 0;
        std::int64_t slowest = 0;
        for (std::uint32_t s = 0; s < c.stages; ++s) {
            auto const begin = std::ranges::lower_bound(layers, c.first[s]) - layers.begin();
            auto const end = s + 1 < c.stages ? std::ranges::lower_bound(layers, c.first[s + 1]) - layers.begin() : std::ssize(layers);
            auto const time =
                choose_in(c, costs, static_cast<std::size_t>(begin), static_cast<std::size_t>(end), std::min(c.stages - s, c.micro_batches));
            if (!time) return false;
            c.time = saturating_sum(c.time, *time);
            slowest = std::max(slowest, *time);
        }
        for (std::uint32_t m = 1; m < c.micro_batches; ++m) c.time = saturating_sum(c.time, slowest);
        return true;
    }

    /// Chooses again, otherwise, where `filled` times the memory of a device was needed.
    [[nodiscard]] bool choose_less(chosen_layers& c, double filled) {
        auto const before = c.choices;
        auto const first = c.first;
        for (c.memory /= filled; c.memory > capacity_ / 2; c.memory *= 0.99) {
            if (!choose(c)) return false;
            if (c.choices != before || c.first != first) return true;
        }
        return false;
    }

    /// Stages of equal time, or of equal memory, where all layers choose alike.
    [[nodiscard]] std::vector<std::size_t> cuts(chosen_layers const& c, layer_costs const& costs, std::vector<std::size_t> const& layers) const {
        auto const n = layers.size();
        std::vector<std::vector<std::int64_t>> loads;
        for (std::uint32_t s = 0; s < c.stages; ++s) {
            auto& of_stage = loads.emplace_back();
            for (std::size_t l = 0; l < n; ++l) {
                auto const cost = costs.of(l, {costs.ways() - 1, false}, c.sharded);
                auto const under_way = static_cast<byte_count>(std::min(c.stages - s, c.micro_batches));
                of_stage.push_back(c.by_memory ? cost.states + under_way * cost.kept : cost.time);
            }
        }
        auto first = ps::pipeline::balanced_cuts(loads, std::vector<std::int64_t>(n, 0));
        for (auto& f : first) f = layers[f];
        return first;
    }

    /// Adds the choices of the layers from `begin` to `end`, of a stage with so many micro-batches under way; answers their time.
    [[nodiscard]] std::optional<std::int64_t> choose_in(chosen_layers& c, layer_costs const& costs, std::size_t begin, std::size_t end,
                                                        std::uint32_t under_way) {
        std::vector<layer_choice> choices;
        for (std::size_t w = 0; w < costs.ways(); ++w)
            for (bool const again : {false, true})
                if (!again || search_->rules().may_recompute()) choices.push_back({w, again});
        std::vector<std::vector<picoseconds>> times;
        std::vector<std::vector<byte_count>> memory;
        // What a layer needs beside the others while it runs, at least.
        byte_count beside = 0;
        for (auto l = begin; l < end; ++l) {
            auto least = std::numeric_limits<byte_count>::max();
            for (auto const& choice : choices) least = std::min(least, costs.of(l, choice, c.sharded).largest);
            beside = std::max(beside, least);
        }
        auto const room = static_cast<byte_count>(c.memory) - beside;
        if (room <= 0) return {};
        auto const unit = std::max<byte_count>(1, room / memory_parts);
        for (auto l = begin; l < end; ++l) {
            auto& of_layer = times.emplace_back();
            auto& bytes = memory.emplace_back();
            for (auto const& choice : choices) {
                auto const cost = costs.of(l, choice, c.sharded);
                of_layer.emplace_back(cost.time);
                auto const all = cost.states + static_cast<byte_count>(under_way) * cost.kept;
                bytes.push_back(std::min((all + unit - 1) / unit, memory_parts + 1));
            }
        }
        std::vector<ps::operator_pair> edges;
        std::vector<std::vector<picoseconds>> moved;
        for (auto const& [ends, table] : costs.between()) {
            if (ends.first < begin || ends.second >= end) continue;
            edges.push_back({ends.first - begin, ends.second - begin});
            auto& out = moved.emplace_back();
            for (auto const& a : choices)
                for (auto const& b : choices) out.emplace_back(table[a.way * costs.ways() + b.way]);
        }
        ps::search::budgeted_problem<picoseconds> const layered(
            ps::search::budgeted_cost<picoseconds>({std::move(times), std::move(edges), std::move(moved)}, std::move(memory), memory_parts));
        std::mt19937_64 unused;
        auto const found = ps::search::dominator_dp(layered, layered.first(), unused, {.time = search_->time_left()});
        if (found.cost == ps::cost_traits<picoseconds>::infinity()) return {};
        for (auto const n : found.best) c.choices.push_back(choices[n]);
        return found.cost.count();
    }

    [[nodiscard]] layered_stages stages_of(chosen_layers const& c) {
        auto& builder = search_->builder();
        auto const group = builder.devices() / c.stages;
        auto const& costs = costs_.at({c.stages, c.micro_batches});
        layered_stages out{.micro_batches = c.micro_batches, .sharded = c.sharded, .first = c.first, .layer = layers_.at(c.stages)};
        for (std::uint32_t s = 0; s < c.stages; ++s) out.device.push_back(static_cast<std::int32_t>(s * group));
        for (auto const& choice : c.choices) out.again.push_back(choice.again);
        out.strategy = builder.strategy(c.micro_batches, group, {.tensor = costs.tensor(c.choices.front().way)});
        for (std::size_t i = 0, l = 0; i < builder.order().size(); ++i) {
            while (l + 1 < out.layer.size() && out.layer[l + 1] <= i) ++l;
            auto const op = builder.order()[i];
            out.strategy[op] = builder.strategy(c.micro_batches, group, {.tensor = costs.tensor(c.choices[l].way)})[op];
        }
        return out;
    }

    two_level_search* search_;
    ps::parallelization const* problem_;
    double capacity_ = most_memory;
    std::vector<std::uint32_t> blocks_;
    std::map<std::uint32_t, std::vector<std::size_t>> layers_; ///< by stages, where they begin
    std::map<std::pair<ps::ops::batch_part, std::uint32_t>, replica_times> times_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, layer_costs> costs_; ///< by stages and micro-batches
};

} // namespace

ps::pipeline::pipeline_result galvatron(ps::parallelization const& problem, ps::pipeline::pipeline_plan start, std::mt19937_64&,
                                        ps::pipeline::partition_options const& options, improvement_observer const& observer) {
    two_level_search search("galvatron", problem, options, observer, std::move(start));
    if (!search.over()) galvatron_search(search, problem).run();
    return search.finish();
}

} // namespace bench
