#pragma once
/// What pipelines of textbook stages take, estimated without their task graphs: which of them to simulate first.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/stage_cuts.hpp>
#include <parsearch/pipeline/stage_places.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/space/textbook/tensor_parallel.hpp>

namespace parsearch::pipeline {

/// A pipeline of equal stages: each runs on `devices / stages` neighbours, with tensor parallelism of degree `tensor` and data parallelism over the
/// rest.
struct equal_stages {
    std::uint32_t stages = 1;
    std::uint32_t micro_batches = 1;
    std::uint32_t tensor = 1;
    launch_order order = launch_order::one_f_one_b;
    bool sharded_optimizer = false;
    std::uint32_t segments = 0; ///< that each stage computes again; 0: it keeps its activations
    friend bool operator==(equal_stages const&, equal_stages const&) = default;
};

/// An estimate of a pipeline.
struct stage_estimate {
    std::int64_t time = 0;  ///< picoseconds
    byte_count memory = 0;  ///< of the fullest device
    byte_count missing = 0; ///< bytes by which a device of its stage is exceeded, at most
};

/// Estimates pipelines of equal stages for one problem.
///
/// One micro-batch is simulated on the devices of one replica alone, once for each size of it and tensor degree. That tells when each operator is
/// done, forward and backward, messages between these devices included. Stages are spans of these times, which are put together micro-batch by
/// micro-batch as `launches` orders them. Behind the last backward come the all-reduces of gradients, one after the other as they become ready, at
/// the rate of the all-reduces of the heaviest weights, which are priced on the problem's own links; then updates.
/// Left out: contention of messages between stages, latencies of small all-reduces, tensors that several stages keep. Devices are taken to be equal
/// to those of the first stage.
class stage_estimator {
  public:
    /// `cuts_anywhere`: stages may begin at any operator, see `stage_places`.
    explicit stage_estimator(parallelization const& problem, bool cuts_anywhere = false) : problem_(with_graph(problem, problem.graph())) {
        auto const& g = problem_.graph();
        place_.assign(g.size(), 0);
        for (auto const op : g.order)
            if (g.operations[op].work != ops::work_class::source) {
                place_[op] = order_.size();
                order_.push_back(op);
            }
        samples_ = divisible_samples(g);
        places_ = stage_places(g, order_, cuts_anywhere);
    }

    /// The estimate of `how`; nothing where its micro-batches have fewer samples than replicas, or a number that these do not divide. Throws
    /// `invalid_input` where stages or degrees do not divide the devices. Complexity: O(operators + stages * micro_batches), but for the first with
    /// its size of a replica's micro-batch and degree.
    [[nodiscard]] std::optional<stage_estimate> operator()(equal_stages const& how) {
        auto const devices = problem_.topology().size();
        if (how.stages < 1 || how.tensor < 1 || how.micro_batches < 1 || devices % (std::size_t{how.stages} * how.tensor) != 0)
            throw invalid_input("stage_estimator: ", how.stages, " stages of tensor degree ", how.tensor, " and ", how.micro_batches,
                                " micro-batches: must be at least 1, and divide the ", devices, " devices");
        auto const replicas = static_cast<std::int64_t>(devices / how.stages / how.tensor);
        auto const parts = replicas * how.micro_batches;
        if (samples_ % parts != 0 || how.stages > order_.size()) return std::nullopt;
        auto const& one = cell_of(parts, how.tensor);
        auto [cut, is_new] = cuts_.try_emplace({parts, how.tensor, how.stages});
        if (is_new) cut->second = equal_cuts(one, how.stages);
        auto const& first = cut->second;
        auto const stages = spans_of(one, first, how);
        auto const last = run(stages, how);
        stage_estimate out{.time = synchronised(one, first, last, how, replicas)};
        for (std::uint32_t s = 0; s < how.stages; ++s) {
            auto const use = memory_of(one, first[s], end_of(first, s), s, how, replicas);
            auto const device = std::size_t{s} * (devices / how.stages);
            out.memory = std::max(out.memory, use);
            if (problem_.options().memory != sim::memory_policy::ignore)
                out.missing = std::max(out.missing, use - problem_.topology().devices[device].memory);
        }
        return out;
    }

  private:
    /// One micro-batch on the devices of one replica, by place in the order of operators.
    struct cell {
        std::vector<std::int64_t> forward;  ///< end of the forward pass of the operators up to here
        std::vector<std::int64_t> backward; ///< from the end of all forward passes to that of the backward passes down to here
        std::vector<std::int64_t> busy;     ///< computation of a device, both ways
        std::vector<std::int64_t> update;
        std::vector<byte_count> weights, optimizer, activations;
        std::vector<double> own;          ///< the part of the weights that a device would keep the optimizer's state of
        std::vector<byte_count> crossing; ///< bytes that cross before it, a device's share
        byte_count buffers = 0;
    };
    /// What a stage takes for one micro-batch.
    struct span_of_stage {
        std::int64_t forward = 0, backward = 0, again = 0;
        std::int64_t ahead = 0;   ///< the part of `again` that need not wait for gradients
        std::int64_t message = 0; ///< from the stage before, and back to it
    };

    [[nodiscard]] std::size_t end_of(std::span<std::size_t const> first, std::size_t s) const {
        return s + 1 < first.size() ? first[s + 1] : order_.size();
    }

    [[nodiscard]] cell const& cell_of(std::int64_t parts, std::uint32_t tensor) {
        if (auto const at = cells_.find({parts, tensor}); at != cells_.end()) return at->second;
        auto const part = micro_batch_problem(problem_, parts);
        auto const& g = part.graph();
        auto const strategy = space::tensor_parallel(g, tensor, tensor);
        auto simulate = part.simulator();
        auto tasks = simulate.assemble(strategy);
        auto const updates = tasks.duration;
        for (std::uint32_t t = 0; t < tasks.size(); ++t) // once for all micro-batches
            if (tasks.kind[t] == sim::task_kind::update) tasks.duration[t] = 0;
        sim::schedule when;
        sim::scheduler{}.run(tasks, part.options().discipline, when);
        auto const n = order_.size();
        cell out{.forward = std::vector<std::int64_t>(n, 0),
                 .backward = std::vector<std::int64_t>(n, 0),
                 .busy = std::vector<std::int64_t>(n, 0),
                 .update = std::vector<std::int64_t>(n, 0),
                 .weights = std::vector<byte_count>(n, 0),
                 .optimizer = std::vector<byte_count>(n, 0),
                 .activations = std::vector<byte_count>(n, 0),
                 .own = std::vector<double>(n, 1),
                 .crossing = std::vector<byte_count>(n, 0)};
        for (std::uint32_t t = 0; t < tasks.size(); ++t) {
            auto const i = place_[tasks.label[t].op];
            if (tasks.kind[t] == sim::task_kind::forward) out.forward[i] = std::max(out.forward[i], when.end[t]);
            if (tasks.kind[t] == sim::task_kind::backward) out.backward[i] = std::max(out.backward[i], when.end[t]);
            if (tasks.kind[t] == sim::task_kind::update) out.update[i] = std::max(out.update[i], updates[t]);
        }
        for (std::size_t i = 0; i < n; ++i) {
            auto const& p = simulate.plan().operators[order_[i]];
            auto const kind = part.topology().kind[p.devices.front()];
            out.busy[i] = saturating_sum(p.forward[kind], g.trains[order_[i]] && part.options().training ? p.backward[kind] : 0);
            out.activations[i] = activations_of(g, order_[i], strategy);
            if (i > 0) out.forward[i] = std::max(out.forward[i], out.forward[i - 1]);
        }
        for (auto i = n; i-- > 0;) {
            auto& done = out.backward[i];
            done = std::max<std::int64_t>(done - out.forward[n - 1], 0);
            if (i + 1 < n) done = std::max(done, out.backward[i + 1]);
        }
        auto const states = sim::cost_of(part.options().optimizer).states;
        for (auto const& c : simulate.plan().classes) {
            if (c.sync.held.empty()) continue;
            auto const i = place_[c.members.front()];
            out.weights[i] = c.sync.held.front().bytes;
            out.optimizer[i] = sim::optimizer_memory(c.sync.held.front(), states);
            out.own[i] = pipeline::own_share(c.sync, c.sync.held.front());
        }
        // A tensor is counted at its producer; the sum over all is the simulator's.
        auto const& use = simulate.memory().front();
        out.buffers = use.buffers;
        auto const all = std::accumulate(out.activations.begin(), out.activations.end(), byte_count{0});
        for (auto& a : out.activations)
            a = all > 0 ? static_cast<byte_count>(static_cast<double>(use.activations) * (static_cast<double>(a) / static_cast<double>(all))) : 0;
        for (std::size_t i = 0; i < n; ++i)
            for (std::uint32_t slot = 0; slot < g.operations[order_[i]].outputs.size(); ++slot) {
                auto last = i;
                for (auto const e : g.out(order_[i]))
                    if (g.edges[e].slot == slot) last = std::max(last, place_[g.edges[e].consumer]);
                auto const bytes = ops::bytes_of(g.operations[order_[i]].outputs[slot]) / tensor;
                for (auto at = i + 1; at <= last; ++at) out.crossing[at] += bytes;
            }
        return cells_.emplace(std::pair{parts, tensor}, std::move(out)).first->second;
    }

    /// Bytes on a device of what is kept of an operator's outputs until backward, and beside them.
    [[nodiscard]] static byte_count activations_of(graph::dense_graph const& g, std::uint32_t op, space::flat_strategy const& strategy) {
        auto const own = sim::memory_of(g.operations[op], strategy[op].degrees());
        byte_count sum = g.trains[op] ? own.saved : 0;
        for (std::uint32_t slot = 0; slot < own.outputs.size(); ++slot) {
            byte_count kept = g.operations[op].outputs[slot].saved && g.trains[op] ? own.outputs[slot] : 0;
            for (auto const number : g.out(op)) {
                auto const& e = g.edges[number];
                if (e.slot == slot && g.trains[e.consumer] && g.operations[e.consumer].inputs[e.input].saved)
                    kept = std::max(kept, sim::memory_of(g.operations[e.consumer], strategy[e.consumer].degrees()).inputs[e.input]);
            }
            sum += kept;
        }
        return sum;
    }

    /// Stages of equal computation: exactly so among few places, elsewhere each cut where it would be best alone.
    [[nodiscard]] std::vector<std::size_t> equal_cuts(cell const& c, std::uint32_t stages) const {
        constexpr std::size_t few = 512;
        auto const& places = places_.of(stages);
        std::vector<std::int64_t> parts{0};
        for (std::size_t i = 0, next = 0; i < c.busy.size(); ++i) {
            if (next < places.size() && places[next] == i) {
                parts.push_back(0);
                ++next;
            }
            parts.back() = saturating_sum(parts.back(), c.busy[i]);
        }
        std::vector<std::size_t> first{0};
        if (parts.size() <= few) {
            first = balanced_cuts(std::vector<std::vector<std::int64_t>>(stages, parts), std::vector<std::int64_t>(parts.size(), 0));
            for (auto& part : first) part = part == 0 ? 0 : places[part - 1];
            return first;
        }
        std::vector<double> before; // each place
        double sum = 0;
        for (auto const p : parts) before.push_back(sum += static_cast<double>(p));
        before.pop_back();
        std::size_t next = 0; // place that is free
        for (std::uint32_t s = 1; s < stages; ++s) {
            auto const aim = sum * s / stages;
            auto at = static_cast<std::size_t>(std::lower_bound(before.begin(), before.end(), aim) - before.begin());
            if (at > 0 && (at == before.size() || aim - before[at - 1] < before[at] - aim)) --at;
            at = std::clamp(at, next, places.size() - (stages - s));
            first.push_back(places[at]);
            next = at + 1;
        }
        return first;
    }

    [[nodiscard]] std::vector<span_of_stage> spans_of(cell const& c, std::span<std::size_t const> first, equal_stages const& how) {
        std::vector<span_of_stage> out;
        auto const group = problem_.topology().size() / how.stages;
        for (std::size_t s = 0; s < first.size(); ++s) {
            auto const begin = first[s], end = end_of(first, s);
            span_of_stage span{.forward = c.forward[end - 1] - (begin > 0 ? c.forward[begin - 1] : 0),
                               .backward = c.backward[begin] - (end < order_.size() ? c.backward[end] : 0)};
            if (how.segments > 0) {
                span.again = span.forward;
                span.ahead = span.forward / how.segments;
            }
            if (s > 0) span.message = message((s - 1) * group, s * group, c.crossing[begin]);
            out.push_back(span);
        }
        return out;
    }

    [[nodiscard]] std::int64_t message(std::size_t from, std::size_t to, byte_count bytes) const {
        std::int64_t slowest = 0;
        for (auto const l : problem_.topology().route(from, to))
            slowest =
                std::max(slowest, static_cast<std::int64_t>(problem_.workload()->oracle.transfer_time(bytes, problem_.topology().links[l]).count()));
        return slowest;
    }

    /// When each stage is done with its last micro-batch.
    [[nodiscard]] std::vector<std::int64_t> run(std::span<span_of_stage const> stages, equal_stages const& how) const {
        std::vector<std::int64_t> free(how.stages, 0);
        std::vector<std::int64_t> forward(std::size_t{how.stages} * how.micro_batches, 0), backward(forward.size(), 0);
        for (auto const& l : launches(how.order, how.stages, how.micro_batches, problem_.options().training)) {
            auto const& s = stages[l.stage];
            auto const at = std::size_t{l.stage} * how.micro_batches + l.micro_batch;
            if (!l.backward) {
                auto const arrived = l.stage > 0 ? saturating_sum(forward[at - how.micro_batches], s.message) : 0;
                forward[at] = free[l.stage] = saturating_sum(std::max(free[l.stage], arrived), s.forward);
            } else {
                auto const arrived =
                    l.stage + 1 < how.stages ? saturating_sum(backward[at + how.micro_batches], stages[l.stage + 1].message) : forward[at];
                auto const ready = std::max(saturating_sum(free[l.stage], s.ahead), arrived);
                backward[at] = free[l.stage] = saturating_sum(ready, saturating_sum(s.again - s.ahead, s.backward));
            }
        }
        return free;
    }

    /// The end of the iteration, of stages that are done with their last backward at `done`.
    [[nodiscard]] std::int64_t synchronised(cell const& c, std::span<std::size_t const> first, std::span<std::int64_t const> done,
                                            equal_stages const& how, std::int64_t replicas) {
        auto const all = *std::max_element(done.begin(), done.end());
        if (!problem_.options().training) return all;
        auto const rate = replicas > 1 ? all_reduce_rate(how) : 0.0;
        auto out = static_cast<double>(all);
        for (std::size_t s = 0; s < first.size(); ++s) {
            auto link = 0.0, device = static_cast<double>(done[s]);
            for (auto i = end_of(first, s); i-- > first[s];) {
                if (c.weights[i] == 0) continue;
                auto const left = problem_.options().overlap ? c.backward[first[s]] - c.backward[i] : 0;
                auto const ready = static_cast<double>(problem_.options().overlap ? done[s] - left : all);
                link = std::max(link, ready) + rate * static_cast<double>(c.weights[i]);
                device = std::max(device, replicas > 1 ? link : ready) + own_share(c, i, how, replicas) * static_cast<double>(c.update[i]);
            }
            out = std::max(out, device);
        }
        return static_cast<std::int64_t>(std::min(out, static_cast<double>(cost_traits<picoseconds>::infinity().count())));
    }

    /// Picoseconds per byte of a device's weights that the busiest link is held by their all-reduce, those of the other devices of its stage
    /// included.
    [[nodiscard]] double all_reduce_rate(equal_stages const& how) {
        auto const group = problem_.topology().size() / how.stages;
        if (auto const at = rates_.find({group, how.tensor}); at != rates_.end()) return at->second;
        auto const part = micro_batch_problem(problem_, how.micro_batches);
        auto const& g = part.graph();
        auto const strategy = space::tensor_parallel(g, group, how.tensor);
        std::uint32_t heaviest = order_.front();
        byte_count most = -1;
        for (auto const op : order_) {
            byte_count bytes = 0;
            for (auto const& w : g.operations[op].weights) bytes += ops::bytes_of(w);
            if (bytes <= most) continue;
            most = bytes;
            heaviest = op;
        }
        sim::planner plan(part.workload());
        sim::operator_plan placed;
        plan.plan_operator(heaviest, strategy[heaviest], placed);
        sim::class_plan weights{.members = {heaviest}};
        plan.plan_class([&](std::uint32_t) -> space::configuration const& { return strategy[heaviest]; },
                        [&](std::uint32_t) -> sim::operator_plan const& { return placed; }, weights);
        std::map<std::uint32_t, double> load;
        for (auto const& links : weights.all_reduce)
            for (auto const& h : links) load[h.link] += static_cast<double>(h.duration);
        double longest = 0;
        for (auto const& [link, time] : load) longest = std::max(longest, time);
        auto const bytes = weights.sync.held.empty() ? byte_count{0} : weights.sync.held.front().bytes;
        auto const rate = bytes > 0 ? longest / static_cast<double>(bytes) : 0;
        rates_.emplace(std::pair{group, how.tensor}, rate);
        return rate;
    }

    /// The part of an operator's weights that a device updates.
    [[nodiscard]] static double own_share(cell const& c, std::size_t i, equal_stages const& how, std::int64_t replicas) noexcept {
        return how.sharded_optimizer ? c.own[i] / static_cast<double>(replicas) : 1;
    }

    /// Bytes on a device of the stage of the operators from place `begin` to `end`.
    [[nodiscard]] byte_count memory_of(cell const& c, std::size_t begin, std::size_t end, std::uint32_t stage, equal_stages const& how,
                                       std::int64_t replicas) const {
        auto const sum = [&](std::vector<byte_count> const& of) {
            return std::accumulate(of.begin() + static_cast<std::ptrdiff_t>(begin), of.begin() + static_cast<std::ptrdiff_t>(end), byte_count{0});
        };
        if (!problem_.options().training) return sum(c.weights) + c.buffers;
        auto const under_way = byte_count{in_flight(how.order, how.stages, how.micro_batches, stage)};
        auto activations = sum(c.activations) * under_way;
        if (how.segments > 0) {
            auto const narrow = std::min_element(c.crossing.begin() + static_cast<std::ptrdiff_t>(begin) + (end - begin > 1 ? 1 : 0),
                                                 c.crossing.begin() + static_cast<std::ptrdiff_t>(end));
            activations = (c.crossing[begin] + (how.segments - 1) * *narrow) * under_way + sum(c.activations) / how.segments;
        }
        double optimizer = 0;
        for (auto i = begin; i < end; ++i) optimizer += own_share(c, i, how, replicas) * static_cast<double>(c.optimizer[i]);
        return 2 * sum(c.weights) + static_cast<byte_count>(optimizer) + activations + c.buffers;
    }

    parallelization problem_;
    std::vector<std::uint32_t> order_; ///< without graph inputs
    std::vector<std::size_t> place_;   ///< of each operator in it
    stage_places places_;
    std::int64_t samples_;
    std::map<std::pair<std::int64_t, std::uint32_t>, cell> cells_;                                    ///< by parts of the batch and tensor degree
    std::map<std::tuple<std::int64_t, std::uint32_t, std::uint32_t>, std::vector<std::size_t>> cuts_; ///< and number of stages
    std::map<std::pair<std::size_t, std::uint32_t>, double> rates_;                                   ///< by devices of a stage and tensor degree
};

} // namespace parsearch::pipeline
