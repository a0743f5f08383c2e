// Alpa's two levels: cuts into stages on submeshes, over operators of least additive cost.
#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/cost.hpp>
#include <parsearch/graph/blocks.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/pipeline/stage_cuts.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/problem/surrogate_store.hpp>
#include <parsearch/problem/surrogate_terms.hpp>
#include <parsearch/search/additive/minimise.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/space/likely_configurations.hpp>

#include "two_level.hpp"

namespace bench {
namespace {

using ps::byte_count, ps::picoseconds, ps::saturating_sum;
using ps::space::configuration;

constexpr auto never = std::numeric_limits<std::int64_t>::max();

/// A run of layers on a submesh, on one micro-batch: its operators at least cost.
struct stage_run {
    std::int64_t time = 0;  ///< forward, backward, and its part of what comes once
    std::int64_t again = 0; ///< more where layers are computed again
    byte_count states = 0;  ///< of a device: weights, gradients, its share of the optimizer's state
    byte_count kept = 0;    ///< of activations
    byte_count inputs = 0;  ///< of layers
    byte_count largest = 0; ///< activations of a layer
    byte_count buffers = 0;
    std::vector<std::uint32_t> choices{}; ///< of each operator, in its order
    std::size_t variant = 0;

    /// Bytes of a device where the stage keeps `under_way` micro-batches.
    [[nodiscard]] double memory(std::uint32_t under_way, bool computes_again) const {
        auto const n = static_cast<double>(under_way);
        return static_cast<double>(states + buffers) +
               (computes_again ? n * static_cast<double>(inputs) + static_cast<double>(largest) : n * static_cast<double>(kept));
    }
    [[nodiscard]] std::int64_t time_with(bool computes_again) const { return computes_again ? saturating_sum(time, again) : time; }
};

/// The inner level: stages of one number of micro-batches.
class inner_level {
  public:
    /// `layers`: where they begin; `runs`: the same of those that stages are runs of.
    inner_level(two_level_search& search, std::uint32_t micro_batches, std::span<std::size_t const> layers, std::span<std::size_t const> runs,
                std::size_t per_node)
        : search_(&search), builder_(&search.builder()), part_(&builder_->simulator().micro_batches(micro_batches)), micro_batches_(micro_batches),
          samples_(search.rules().samples() / micro_batches), per_node_(per_node), layers_(layers), runs_(runs), terms_(part_->workload()),
          planner_(part_->workload()), numbers_(store_.numbers_of(part_->graph())), shares_(search.rules().may_shard()) {
        auto const& g = part_->graph();
        kinds_ = ps::graph::kinds_between(g, builder_->order(), runs.subspan(1));
        bytes_ =
            ps::graph::crossing_sums(g, builder_->order(), [&](auto op, auto slot) { return ps::ops::bytes_of(g.operations[op].outputs[slot]); });
        place_.resize(g.size());
        for (std::size_t i = 0; i < builder_->order().size(); ++i) place_[builder_->order()[i]] = i;
    }

    /// The ways to do the layers from `begin` to `end` on `devices` neighbours.
    [[nodiscard]] std::vector<stage_run> const& of(std::size_t begin, std::size_t end, std::size_t devices) {
        std::vector<std::uint32_t> key(kinds_.begin() + static_cast<std::ptrdiff_t>(begin), kinds_.begin() + static_cast<std::ptrdiff_t>(end));
        auto const [at, fresh] = known_.try_emplace({devices, std::move(key)});
        if (!fresh) return at->second;
        auto const& variants = on(devices);
        for (std::size_t v = 0; v < variants.size() && !search_->over(); ++v)
            if (auto run = least(variants[v], begin_of(begin), begin_of(end), devices)) {
                run->variant = v;
                at->second.push_back(std::move(*run));
            }
        return at->second;
    }
    /// Writes the configurations of `run`, from layer `begin`, into `s`.
    void put(stage_run const& run, std::size_t begin, std::size_t devices, ps::space::flat_strategy& s) {
        auto const& candidates = on(devices)[run.variant].tables.candidates;
        for (std::size_t n = 0; n < run.choices.size(); ++n) {
            auto const op = builder_->order()[begin_of(begin) + n];
            s[op] = (*candidates[op])[run.choices[n]];
        }
    }
    /// A strategy to write into.
    [[nodiscard]] ps::space::flat_strategy any(std::size_t devices) { return builder_->strategy(micro_batches_, devices, {}); }

  private:
    /// What an operator takes under each of its candidates.
    struct operator_costs {
        std::vector<picoseconds> time;
        std::vector<std::int64_t> forward;
        std::vector<byte_count> states;
    };
    /// Some configurations of each operator on a submesh.
    struct variant {
        ps::surrogate_tables tables;
        std::vector<operator_costs const*> costs; ///< by operator
    };

    [[nodiscard]] std::size_t begin_of(std::size_t layer) const { return layer < runs_.size() ? runs_[layer] : builder_->order().size(); }

    [[nodiscard]] std::vector<variant> const& on(std::size_t devices) {
        auto const [at, fresh] = variants_.try_emplace(devices);
        if (fresh) at->second = variants_of(devices);
        return at->second;
    }

    /// Samples over D, D/2, D/4, ... groups of the D devices, none larger than a node where that can be, and at last any of all such.
    [[nodiscard]] std::vector<variant> variants_of(std::size_t devices) {
        auto const& g = part_->graph();
        using lists = std::vector<std::vector<configuration>>;
        std::vector<variant> out;
        lists all(g.size()), more(g.size());
        auto const add = [](std::vector<configuration>& to, configuration const& c) {
            if (to.size() < most_candidates && std::ranges::find(to, c) == to.end()) to.push_back(c);
        };
        auto const make = [&](lists const& of) {
            std::vector<ps::surrogate_tables::choices> candidates;
            for (auto const& list : of) candidates.push_back(std::make_shared<std::vector<configuration> const>(list));
            variant v{store_.tables_of(g, numbers_, std::move(candidates), [&]() -> auto& { return terms_; }), {}};
            for (std::uint32_t op = 0; op < g.size(); ++op) v.costs.push_back(&costs_of(op, *v.tables.candidates[op], v.tables.operators[op]));
            out.push_back(std::move(v));
        };
        ps::space::strategy_space const space(g, devices, part_->space().options());
        lists likely;
        for (std::size_t op = 0; op < g.size(); ++op)
            likely.push_back(ps::space::likely_configurations(g.operations[op], space.of(op), devices, {.per_node = std::min(devices, per_node_)}));
        for (std::uint32_t neighbours = 1; neighbours <= devices && !search_->over(); neighbours *= 2) { // that work on the same samples
            if (devices % neighbours != 0 || samples_ % (devices / neighbours) != 0) continue;
            lists of(g.size());
            for (auto const& by : splits(devices, neighbours)) {
                auto const& s = builder_->strategy(micro_batches_, devices, by);
                for (std::size_t op = 0; op < g.size(); ++op) {
                    add(of[op], s[op]);
                    add(all[op], s[op]);
                }
            }
            for (std::size_t op = 0; op < g.size(); ++op)
                for (auto const& c : likely[op])
                    if (c.shards() == static_cast<std::int64_t>(devices) && groups_of(g.operations[op], c) == devices / neighbours) {
                        add(of[op], c);
                        add(more[op], c);
                    }
            bool const smallest = out.empty(), whole = std::ranges::none_of(of, [](auto const& list) { return list.empty(); });
            if (!whole || (neighbours > per_node_ && !smallest)) continue;
            // In a group weights are split as far as they can be: costs know no memory, and splitting positions moves less. Where samples do not
            // suffice for smaller groups, positions may be the better.
            if (neighbours > 1 && smallest) make(of);
            for (std::size_t op = 0; op < g.size() && neighbours > 1; ++op) {
                std::int64_t most = 0;
                for (auto const& c : of[op]) most = std::max(most, weight_parts(g.operations[op], c));
                std::erase_if(of[op], [&](auto const& c) { return weight_parts(g.operations[op], c) < most; });
            }
            make(of);
        }
        for (std::size_t op = 0; op < g.size(); ++op)
            for (auto const& c : more[op]) add(all[op], c);
        if (out.size() != 1 && std::ranges::none_of(all, [](auto const& list) { return list.empty(); })) make(all);
        return out;
    }

    /// In how many parts the weights of an operator are; 1 where it has none.
    [[nodiscard]] static std::int64_t weight_parts(ps::ops::operation const& op, configuration const& c) {
        std::int64_t parts = 1;
        for (std::uint32_t k = 0; k < op.dims.size() && !op.weights.empty(); ++k)
            if (ps::ops::is_indexed_by(op.weights.front(), k)) parts *= c.degree[k];
        return parts;
    }
    /// Over how many groups samples are split.
    [[nodiscard]] static std::size_t groups_of(ps::ops::operation const& op, configuration const& c) {
        for (std::size_t k = 0; k < op.dims.size(); ++k)
            if (op.dims[k].kind == ps::ops::dim_kind::sample) return static_cast<std::size_t>(c.degree[k]);
        return 0;
    }

    /// The textbook's ways for groups of `neighbours` of the devices.
    [[nodiscard]] std::vector<ps::space::neighbour_split> splits(std::size_t devices, std::uint32_t neighbours) {
        std::vector<ps::space::neighbour_split> out;
        for (auto const t : builder_->degrees(devices)) {
            if (neighbours % t != 0) continue;
            if (neighbours == t)
                for (auto const e : builder_->expert_degrees(devices, t, true)) out.push_back({.tensor = t, .experts = e});
            else
                for (auto const& by : builder_->context_splits(devices, t))
                    if (by.context == neighbours / t && builder_->splits_positions(micro_batches_, devices, by)) out.push_back(by);
        }
        return out;
    }

    [[nodiscard]] operator_costs const& costs_of(std::uint32_t op, std::vector<configuration> const& candidates,
                                                 std::shared_ptr<std::vector<ps::operator_term> const> const& of) {
        auto const [at, fresh] = costs_.try_emplace(of);
        auto& out = at->second;
        if (!fresh) return out;
        auto const& w = *part_->workload();
        for (std::size_t n = 0; n < candidates.size(); ++n) {
            auto const& term = (*of)[n];
            std::int64_t forward = 0, update = 0;
            byte_count states = 0;
            if (w.graph.operations[op].work != ps::ops::work_class::source) {
                ps::sim::operator_plan p;
                planner_.plan_operator(op, candidates[n], p);
                for (auto const d : p.devices) forward = std::max(forward, p.forward[w.topology.kind[d]]);
                if (w.class_of[op] != ps::sim::iteration_plan::none) {
                    ps::sim::class_plan weights{.members = {op}};
                    planner_.plan_class([&](std::uint32_t) -> auto const& { return candidates[n]; }, [&](std::uint32_t) -> auto const& { return p; },
                                        weights);
                    for (std::size_t i = 0; i < weights.sync.held.size(); ++i) {
                        auto const& held = weights.sync.held[i];
                        auto const part = shares_ ? ps::pipeline::own_share(weights.sync, held) : 1;
                        auto const optimizer = ps::sim::optimizer_memory(held, ps::sim::cost_of(w.options.optimizer).states);
                        states = std::max(states, held.bytes + (w.options.training ? held.gradients : held.cache) +
                                                      (w.options.training ? static_cast<byte_count>(part * static_cast<double>(optimizer)) : 0));
                        if (w.classes[w.class_of[op]].size() == 1 && w.options.training)
                            update = std::max(update, std::max<std::int64_t>(weights.update[i], 0));
                    }
                }
            }
            auto const once = saturating_sum(term.synchronisation.count(), update) / micro_batches_;
            out.time.emplace_back(saturating_sum(std::max<std::int64_t>(term.work.count() - update, 0), once));
            out.forward.push_back(forward);
            out.states.push_back(states);
        }
        return out;
    }

    /// The operators at the places from `begin` to `end` at least cost.
    [[nodiscard]] std::optional<stage_run> least(variant const& v, std::size_t begin, std::size_t end, std::size_t devices) {
        auto const& g = part_->graph();
        auto const& order = builder_->order();
        ps::search::additive::cost_tables<picoseconds> tables;
        std::vector<std::uint32_t> numbers; // of edges
        for (auto i = begin; i < end; ++i) {
            auto const op = order[i];
            tables.operators.emplace_back(v.costs[op]->time.data(), v.costs[op]->time.size());
            for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
                auto const from = g.edges[e].producer;
                if (g.operations[from].work == ps::ops::work_class::source || place_[from] < begin) continue;
                tables.edges.push_back({{place_[from] - begin, i - begin}, {v.tables.pairs[e]->data(), v.tables.pairs[e]->size()}});
                numbers.push_back(e);
            }
        }
        stage_run out;
        auto const found = [&](std::span<std::uint32_t const> choices) { out.choices.assign(choices.begin(), choices.end()); };
        constexpr int most_asked = 1024; // some million operations each
        int asked = 0;
        ps::search::additive::minimise<picoseconds>(
            tables, table_bytes, found, [](auto const&) {}, [&](auto) { return search_->over() || ++asked > most_asked; });
        if (out.choices.empty()) return {};
        for (std::size_t n = 0; n < numbers.size(); ++n) {
            auto const& e = tables.edges[n];
            auto const moved = e.costs[out.choices[e.ends.from] * tables.operators[e.ends.to].size + out.choices[e.ends.to]].count();
            out.time = saturating_sum(out.time, moved);
            out.again = saturating_sum(out.again, moved / 2); // there, and not back
        }
        auto layer = std::ranges::upper_bound(layers_, begin) - layers_.begin();
        byte_count of_layer = 0;
        auto const end_layer = [&] { out.largest = std::max(out.largest, std::exchange(of_layer, 0)); };
        for (auto i = begin; i < end; ++i) {
            auto const op = order[i];
            auto const choice = out.choices[i - begin];
            if (layer < std::ssize(layers_) && layers_[static_cast<std::size_t>(layer)] == i) {
                ++layer;
                end_layer();
                out.inputs += bytes_[i] / static_cast<byte_count>(devices);
            } else if (i == begin) {
                out.inputs += bytes_[i] / static_cast<byte_count>(devices);
            }
            out.time = saturating_sum(out.time, v.costs[op]->time[choice].count());
            out.again = saturating_sum(out.again, v.costs[op]->forward[choice]);
            out.states += v.costs[op]->states[choice];
            auto const configured = [&](std::uint32_t o) -> configuration const& {
                auto const at = place_[o];
                return (*v.tables.candidates[o])[at >= begin && at < end ? out.choices[at - begin] : 0];
            };
            auto const [kept, working] = activations_of(op, configured, [&](std::uint32_t o) { return place_[o] < end; });
            out.kept += kept;
            of_layer += kept;
            out.buffers = std::max(out.buffers, working);
        }
        end_layer();
        return out;
    }

    /// Bytes of a device: what is kept of an operator until backward, a tensor at its largest part; and what it works with. `configured(op)`: the
    /// configuration of an operator of the run, `within(op)`: whether a reader is one.
    template <class Configured, class Within>
    [[nodiscard]] std::pair<byte_count, byte_count> activations_of(std::uint32_t op, Configured const& configured, Within const& within) const {
        auto const& g = part_->graph();
        auto const& operation = g.operations[op];
        if (operation.work == ps::ops::work_class::view) return {0, 0};
        bool const trains = part_->options().training && g.trains[op];
        auto const own = ps::sim::memory_of(operation, configured(op).degrees());
        byte_count kept = trains ? own.saved : 0;
        for (std::uint32_t slot = 0; slot < own.outputs.size() && part_->options().training; ++slot) {
            byte_count most = operation.outputs[slot].saved && g.trains[op] ? own.outputs[slot] : 0;
            for (auto const number : g.out(op)) {
                auto const& e = g.edges[number];
                auto const& reader = g.operations[e.consumer];
                if (e.slot != slot || !g.trains[e.consumer] || !reader.inputs[e.input].saved) continue;
                most = std::max(most, within(e.consumer) ? ps::sim::memory_of(reader, configured(e.consumer).degrees()).inputs[e.input]
                                                         : own.outputs[slot]);
            }
            kept += most;
        }
        return {kept, trains ? 2 * own.working() : own.working()};
    }

    static constexpr std::size_t most_candidates = 20; ///< of an operator, the textbook's first
    static constexpr double table_bytes = 1 << 28;

    two_level_search* search_;
    ps::pipeline::detail::stage_builder* builder_;
    ps::parallelization const* part_; ///< of a micro-batch
    std::uint32_t micro_batches_;
    std::uint64_t samples_; ///< of a micro-batch
    std::size_t per_node_;
    std::span<std::size_t const> layers_, runs_;
    ps::surrogate_terms terms_;
    ps::sim::planner planner_;
    ps::surrogate_store store_;
    std::vector<std::uint64_t> numbers_;
    bool shares_; ///< the optimizer's state
    std::vector<std::uint32_t> kinds_;
    std::vector<std::int64_t> bytes_; ///< that cross each place
    std::vector<std::size_t> place_;
    std::map<std::size_t, std::vector<variant>> variants_; ///< by number of devices
    std::map<std::shared_ptr<std::vector<ps::operator_term> const>, operator_costs> costs_;
    std::map<std::pair<std::size_t, std::vector<std::uint32_t>>, std::vector<stage_run>> known_; ///< by devices, and kinds of layers
};

/// Stages, each the layers up to those of the next, on so many devices.
struct stage_cut {
    std::size_t begin, end, devices;
    stage_run const* run;
};
struct estimated_cuts {
    std::int64_t time = never;
    std::vector<stage_cut> stages{};
    std::uint32_t micro_batches = 1;
    bool again = false;
};

/// The outer level.
class alpa_search {
  public:
    alpa_search(two_level_search& search, ps::parallelization const& problem) : search_(&search), problem_(&problem), layers_(search.layers(2)) {
        find_work();
        runs_ = layers_.size() > most_layers ? joined_layers() : layers_;
        find_submeshes();
    }

    void run() {
        std::vector<estimated_cuts> rest;
        auto const numbers = search_->micro_batches();
        for (auto const m : numbers) {
            if (search_->over()) return;
            inner_.emplace_back(*search_, m, layers_, runs_, per_node_);
            for (bool const again : {false, true}) {
                if (again && !search_->rules().may_recompute()) continue;
                auto memory = optimism * capacity();
                for (int round = 0; round < most_rounds && !search_->over(); ++round) {
                    auto cuts = best_cuts(inner_.back(), m, again, memory);
                    std::ranges::stable_sort(cuts, {}, &estimated_cuts::time);
                    if (cuts.empty()) break;
                    auto const filled = search_->consider(stages_of(inner_.back(), cuts.front()));
                    if (filled == 0) {
                        for (std::size_t n = 1; n < cuts.size(); ++n) rest.push_back(std::move(cuts[n]));
                        break;
                    }
                    auto const& cut = cuts.front().stages;
                    double estimated = 0;
                    for (std::size_t s = 0; s < cut.size(); ++s)
                        estimated = std::max(estimated, cut[s].run->memory(under_way(cut.size() - s - 1, m), again));
                    memory = 0.99 * estimated / filled;
                }
            }
        }
        std::ranges::stable_sort(rest, {}, &estimated_cuts::time);
        for (auto const& c : rest) {
            if (search_->over() || static_cast<double>(c.time) > likely * static_cast<double>(search_->best())) return;
            auto const of = std::ranges::find(numbers, c.micro_batches) - numbers.begin();
            (void)search_->consider(stages_of(inner_[static_cast<std::size_t>(of)], c));
        }
    }

  private:
    static constexpr std::size_t most_layers = 16;
    static constexpr std::size_t most_stages = 16;
    static constexpr int most_rounds = 4;   ///< of cuts with less and less memory
    static constexpr double optimism = 1.1; ///< of the memory at first, as estimates are rough
    static constexpr double likely = 1.5;   ///< of estimates above the best cost
    static constexpr double next_bound = 1.02;
    static constexpr double imbalance = 2; ///< of a stage's part of the work and of the devices

    /// What operators take whole, on one device.
    void find_work() {
        ps::sim::planner plan(problem_->workload());
        std::vector<std::int64_t> forward, backward;
        for (auto const op : search_->builder().order()) {
            plan.time_operator(op, ps::space::whole(problem_->graph().operations[op]), forward, backward);
            work_.push_back(saturating_sum(forward.front(), backward.empty() ? 0 : backward.front()));
        }
    }
    /// The part of it in the layers from `begin` to `end`.
    [[nodiscard]] double share_of(std::size_t begin, std::size_t end) const {
        auto const at = [&](std::size_t layer) {
            return work_.begin() + static_cast<std::ptrdiff_t>(layer < runs_.size() ? runs_[layer] : work_.size());
        };
        return std::accumulate(at(begin), at(end), 0.0) / std::accumulate(work_.begin(), work_.end(), 0.0);
    }
    /// Whether a stage of these on so many devices may be good.
    [[nodiscard]] bool may_be_stage(std::size_t begin, std::size_t end, std::size_t devices) const {
        auto const all = problem_->topology().size();
        if (devices == all) return end - begin == runs_.size();
        auto const of_devices = static_cast<double>(devices) / static_cast<double>(all), of_work = share_of(begin, end);
        return of_work >= of_devices / imbalance && (of_work <= of_devices * imbalance || end - begin == 1);
    }

    /// Neighbours joined so that all are of about equal work.
    [[nodiscard]] std::vector<std::size_t> joined_layers() {
        std::vector<std::int64_t> const crossing(work_.size(), 0);
        return ps::pipeline::balanced_cuts(std::vector(most_layers, work_), crossing, std::span(layers_).subspan(1));
    }

    void find_submeshes() {
        auto const& node = problem_->topology().node;
        std::size_t run = 1;
        per_node_ = 0;
        for (std::size_t d = 1; d <= node.size(); ++d, ++run)
            if (d == node.size() || node[d] != node[d - 1]) per_node_ = std::gcd(per_node_, std::exchange(run, 0));
        for (std::size_t n = 1; n < per_node_ && per_node_ % n == 0; n *= 2) sizes_.push_back(n);
        for (std::size_t n = per_node_; n < node.size(); n *= 2) sizes_.push_back(n);
        sizes_.push_back(node.size());
    }

    [[nodiscard]] double capacity() const {
        if (problem_->options().memory == ps::sim::memory_policy::ignore) return std::numeric_limits<double>::infinity();
        return static_cast<double>(std::ranges::min(problem_->topology().devices, {}, [](auto const& d) { return d.memory; }).memory);
    }

    /// Micro-batches that a stage keeps before so many others.
    [[nodiscard]] static std::uint32_t under_way(std::size_t behind, std::uint32_t micro_batches) {
        return std::min(static_cast<std::uint32_t>(behind + 1), micro_batches);
    }

    /// The best of each number of stages.
    [[nodiscard]] std::vector<estimated_cuts> best_cuts(inner_level& inner, std::uint32_t micro_batches, bool again, double memory) {
        auto const layers = runs_.size(), all = problem_->topology().size(), stages = std::min({layers, most_stages, all});
        // By the layers from `i` to behind `j`, submesh and stages from here to the last: that with the least time.
        struct timed_run {
            std::int64_t time = never;
            stage_run const* run = nullptr;
        };
        std::vector<timed_run> table(layers * layers * sizes_.size() * stages);
        auto const at = [&](std::size_t i, std::size_t j, std::size_t k, std::size_t s) -> timed_run& {
            return table[((i * layers + j) * sizes_.size() + k) * stages + s];
        };
        std::set<std::int64_t> bounds;
        for (std::size_t k = 0; k < sizes_.size(); ++k)
            for (std::size_t i = 0; i < layers; ++i)
                for (auto j = i; j < layers; ++j) {
                    if (search_->over()) return {};
                    if (!may_be_stage(i, j + 1, sizes_[k])) continue;
                    for (auto const& run : inner.of(i, j + 1, sizes_[k]))
                        for (std::size_t s = 0; s < stages; ++s)
                            if (auto const t = run.time_with(again);
                                t < at(i, j, k, s).time && run.memory(under_way(s, micro_batches), again) <= memory)
                                at(i, j, k, s) = {t, &run};
                    for (std::size_t s = 0; s < stages; ++s)
                        if (at(i, j, k, s).time < never) bounds.insert(at(i, j, k, s).time);
                }
        struct step {
            std::int64_t sum = never;
            std::size_t end = 0, submesh = 0;
        };
        // By stages from a layer to the last, that layer, and their devices.
        std::vector<step> steps((stages + 1) * (layers + 1) * (all + 1));
        auto const of = [&](std::size_t s, std::size_t i, std::size_t d) -> step& { return steps[(s * (layers + 1) + i) * (all + 1) + d]; };
        std::vector<estimated_cuts> best(stages + 1);
        auto least = never;
        double last = 0;
        for (auto here = bounds.begin(); here != bounds.end(); ++here) {
            auto const bound = *here, larger = std::next(here) == bounds.end() ? never : *std::next(here);
            if (search_->over()) break;
            auto const total = static_cast<double>(bound) * micro_batches;
            if (least < never && total > likely * static_cast<double>(least)) break;
            if (static_cast<double>(larger) < next_bound * last) continue; // that one allows as much
            last = static_cast<double>(bound);
            std::ranges::fill(steps, step{});
            of(0, layers, 0).sum = 0;
            for (std::size_t s = 1; s <= stages; ++s)
                for (std::size_t i = 0; i < layers; ++i)
                    for (auto j = i; j < layers; ++j)
                        for (std::size_t k = 0; k < sizes_.size(); ++k) {
                            auto const time = at(i, j, k, s - 1).time;
                            if (time > bound) continue;
                            for (auto d = sizes_[k]; d <= all; ++d) {
                                auto const before = of(s - 1, j + 1, d - sizes_[k]).sum;
                                if (before == never) continue;
                                if (auto const sum = saturating_sum(before, time); sum < of(s, i, d).sum) of(s, i, d) = {sum, j + 1, k};
                            }
                        }
            for (std::size_t s = 1; s <= stages; ++s) {
                if (of(s, 0, all).sum == never) continue;
                estimated_cuts cuts{.time = of(s, 0, all).sum, .micro_batches = micro_batches, .again = again};
                std::int64_t slowest = 0;
                for (std::size_t left = s, i = 0, d = all; left > 0; --left) {
                    auto const& next = of(left, i, d);
                    auto const& chosen = at(i, next.end - 1, next.submesh, left - 1);
                    slowest = std::max(slowest, chosen.time);
                    cuts.stages.push_back({i, next.end, sizes_[next.submesh], chosen.run});
                    i = next.end;
                    d -= cuts.stages.back().devices;
                }
                for (std::uint32_t n = 1; n < micro_batches; ++n) cuts.time = saturating_sum(cuts.time, slowest);
                least = std::min(least, cuts.time);
                if (cuts.time < best[s].time) best[s] = std::move(cuts);
            }
        }
        std::erase_if(best, [](auto const& c) { return c.stages.empty(); });
        return best;
    }

    /// On devices, the largest submeshes first.
    [[nodiscard]] layered_stages stages_of(inner_level& inner, estimated_cuts const& cuts) {
        layered_stages out{.micro_batches = cuts.micro_batches, .layer = layers_, .strategy = inner.any(problem_->topology().size())};
        if (search_->rules().may_shard() && std::ranges::any_of(cuts.stages, [](auto const& s) { return s.devices > 1; }))
            out.sharded = ps::pipeline::sharded_states::optimizer;
        out.again.assign(layers_.size(), cuts.again);
        std::vector<std::size_t> by_size(cuts.stages.size());
        std::iota(by_size.begin(), by_size.end(), std::size_t{0});
        std::ranges::stable_sort(by_size, std::ranges::greater{}, [&](auto s) { return cuts.stages[s].devices; });
        out.device.resize(cuts.stages.size());
        std::size_t next = 0;
        for (auto const s : by_size) out.device[s] = static_cast<std::int32_t>(std::exchange(next, next + cuts.stages[s].devices));
        for (auto const& s : cuts.stages) {
            out.first.push_back(runs_[s.begin]);
            inner.put(*s.run, s.begin, s.devices, out.strategy);
        }
        return out;
    }

    two_level_search* search_;
    ps::parallelization const* problem_;
    std::vector<std::size_t> layers_, runs_; ///< where they begin
    std::vector<std::int64_t> work_;         ///< by place
    std::vector<std::size_t> sizes_;         ///< of submeshes
    std::size_t per_node_ = 1;
    std::deque<inner_level> inner_; ///< by number of micro-batches
};

} // namespace

ps::pipeline::pipeline_result alpa(ps::parallelization const& problem, ps::pipeline::pipeline_plan start, std::mt19937_64&,
                                   ps::pipeline::partition_options const& options, improvement_observer const& observer) {
    two_level_search search("alpa", problem, options, observer, std::move(start));
    if (!search.over()) alpa_search(search, problem).run();
    return search.finish();
}

} // namespace bench
