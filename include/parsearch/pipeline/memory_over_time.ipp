#pragma once
// How much memory a plan takes on a device, moment by moment.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/pipeline/memory_over_time.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/weight_gradients.hpp>

namespace parsearch::pipeline::detail {

/// Follows the activations of one device through an iteration.
class activation_steps {
  public:
    activation_steps(graph::dense_graph const& g, pipeline_plan const& plan, sim::report const& r, std::uint32_t device);

    [[nodiscard]] std::vector<memory_step> steps(byte_count always) &&;

  private:
    static constexpr auto never = std::numeric_limits<std::int64_t>::max();
    /// An operator in one micro-batch: its first start, that of its recomputation, start and end of its backward, the end of its gradients of
    /// weights where these are computed by themselves.
    struct moments {
        std::int64_t begin = never, again = never, back = never, end = -1, weights = -1;
    };
    /// An operator that keeps a tensor until its backward is over, or its gradients of weights.
    struct keeper {
        std::uint32_t op = 0;
        byte_count bytes = 0;
        bool waits = false; ///< gradients of weights need it
    };
    using keepers = std::vector<keeper>; ///< of one tensor
    /// For how long tensors are there: from forward until backward, from their recomputation, or with copies to the host and back.
    enum class stay : std::uint8_t { kept, again, offloaded };
    using holder = std::pair<stay, stage_segment>; ///< with the segment, but for what is kept
    /// When a copy to the host ends, and the one back begins.
    struct copy_times {
        std::int64_t out = never, back = never;
    };

    [[nodiscard]] std::size_t at(std::size_t op, std::size_t micro_batch) const noexcept { return op * micro_batches_ + micro_batch; }
    [[nodiscard]] byte_count here(std::size_t op, byte_count bytes) const noexcept { return shards_here_[op] * bytes; }
    [[nodiscard]] holder holder_of(std::size_t op) const { return again_[op] ? holder{stay::again, segment_at(how_, op)} : outside_of(op); }
    /// Of what an operator that computes again reads from outside of its segment, and of what others keep.
    [[nodiscard]] holder outside_of(std::size_t op) const {
        return how_.offloads(op) ? holder{stay::offloaded, segment_at(how_, op)} : holder{stay::kept, {}};
    }

    /// A tensor at its largest for as long as one of its keepers needs it, in each micro-batch; those of a segment from its recomputation on, or but
    /// for while it is on the host. Then what waits for gradients of weights.
    void add(holder const& where, keepers const& all);
    void change(std::int64_t begin, std::int64_t end, byte_count bytes) {
        if (begin >= end) return;
        changes_.emplace_back(begin, bytes);
        changes_.emplace_back(end, -bytes);
    }

    /// Gradients that wait for those of weights.
    void add_waiting_gradients(std::size_t op);

    /// What its producer or readers keep of a tensor, but for what a segment reads from outside.
    void add_kept(std::size_t op, std::uint32_t slot);
    void keep(std::map<holder, keepers>& all, keeper who) {
        if (shards_here_[who.op] == 0) return;
        who.bytes = here(who.op, who.bytes);
        all[holder_of(who.op)].push_back(who);
    }
    void keep_at_readers(std::map<holder, keepers>& all, std::size_t op, std::uint32_t slot);

    /// What segments that are computed again read of a tensor from outside: from their first pass until their backward.
    void add_inputs_of_segments(std::size_t op, std::uint32_t slot);

    graph::dense_graph const& g_;
    pipelining const& how_;
    std::size_t micro_batches_;
    std::vector<byte_count> shards_here_; ///< by operator, how many
    std::vector<sim::shard_memory> shards_;
    std::vector<moments> when_;                                            ///< by operator, then micro-batch
    std::vector<bool> again_;                                              ///< of each operator, whether its forward runs again
    std::map<std::pair<stage_segment, std::uint32_t>, copy_times> copies_; ///< by segment and micro-batch
    std::vector<std::pair<std::int64_t, byte_count>> changes_;
};

} // namespace parsearch::pipeline::detail

namespace parsearch::pipeline::detail {

PARSEARCH_INLINE activation_steps::activation_steps(graph::dense_graph const& g, pipeline_plan const& plan, sim::report const& r,
                                                    std::uint32_t device)
    : g_(g), how_(plan.how), micro_batches_(plan.how.micro_batches), shards_here_(g.size(), 0), when_(g.size() * micro_batches_) {
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& c = plan.strategy[op];
        for (std::int64_t n = 0; n < c.shards(); ++n) shards_here_[op] += static_cast<std::uint32_t>(c.device(n)) == device;
        shards_.push_back(sim::memory_of(g.operations[op], c.degrees()));
    }
    again_ = computed_again(g, how_);
    for (std::uint32_t t = 0; t < r.tasks.size(); ++t) {
        auto const kind = r.tasks.kind[t];
        if (auto const run = r.run_of(t); kind == sim::task_kind::transfer && r.tasks.label[t].number == device) {
            auto const segment = segment_at(how_, r.tasks.label[t].op);
            if (run.part == sim::task_part::to_host) copies_[{segment, run.micro_batch}].out = r.schedule.end[t];
            if (run.part == sim::task_part::from_host) copies_[{segment, run.micro_batch}].back = r.schedule.start[t];
        }
        if (r.tasks.resource[t] != device || (kind != sim::task_kind::forward && kind != sim::task_kind::backward)) continue;
        auto const run = r.run_of(t);
        auto& w = when_[at(r.tasks.label[t].op, run.micro_batch == sim::task_run::once ? 0 : run.micro_batch)];
        if (run.part == sim::task_part::weight_gradients) w.weights = std::max(w.weights, r.schedule.end[t]);
        else if (kind == sim::task_kind::backward) {
            w.back = std::min(w.back, r.schedule.start[t]);
            w.end = std::max(w.end, r.schedule.end[t]);
        } else {
            auto& from = run.part == sim::task_part::again ? w.again : w.begin;
            from = std::min(from, r.schedule.start[t]);
        }
    }
}

PARSEARCH_INLINE std::vector<memory_step> activation_steps::steps(byte_count always) && {
    for (std::size_t op = 0; op < g_.size(); ++op) {
        if (g_.operations[op].work != ops::work_class::source && g_.operations[op].work != ops::work_class::view && g_.trains[op])
            add(holder_of(op), {{static_cast<std::uint32_t>(op), here(op, shards_[op].saved), true}});
        add_waiting_gradients(op);
        for (std::uint32_t slot = 0; slot < g_.operations[op].outputs.size(); ++slot) {
            if (g_.operations[op].work != ops::work_class::view) add_kept(op, slot);
            add_inputs_of_segments(op, slot);
        }
    }
    std::map<std::int64_t, byte_count> change;
    for (auto const& [time, bytes] : changes_) change[time] += bytes;
    std::vector<memory_step> out{{picoseconds{0}, always}};
    auto now = always;
    for (auto const& [time, bytes] : change) {
        if (bytes == 0) continue;
        now += bytes;
        if (time == 0) out.back().bytes = now;
        else out.push_back({picoseconds{time}, now});
    }
    return out;
}

PARSEARCH_INLINE void activation_steps::add(holder const& where, keepers const& all) {
    byte_count most = 0;
    for (auto const& k : all) most = std::max(most, k.bytes);
    if (most == 0) return;
    std::vector<std::pair<std::int64_t, byte_count>> waiting; // until when
    for (std::size_t m = 0; m < micro_batches_; ++m) {
        auto begin = never, end = std::int64_t{-1};
        waiting.clear();
        for (auto const& k : all) {
            auto const& w = when_[at(k.op, m)];
            begin = std::min(begin, where.first == stay::again ? w.again : w.begin);
            end = std::max(end, w.end);
            if (k.waits && w.weights >= 0) waiting.emplace_back(w.weights, k.bytes);
        }
        auto const copies = where.first == stay::offloaded ? copies_.find({where.second, static_cast<std::uint32_t>(m)}) : copies_.end();
        if (copies == copies_.end()) {
            change(begin, end, most);
        } else {
            change(begin, copies->second.out, most);
            change(copies->second.back, end, most);
        }
        std::ranges::sort(waiting, std::greater{});
        byte_count largest = 0; // of those that wait as long, or longer
        for (std::size_t i = 0; i < waiting.size(); ++i) {
            largest = std::max(largest, waiting[i].second);
            change(std::max(end, i + 1 < waiting.size() ? waiting[i + 1].first : end), waiting[i].first, largest);
        }
    }
}

PARSEARCH_INLINE void activation_steps::add_waiting_gradients(std::size_t op) {
    if (!cuts_backward(how_.order) || weight_gradient_share(g_, op) == 0) return;
    auto const bytes = here(op, waiting_gradients(g_.operations[op], shards_[op]));
    for (std::size_t m = 0; m < micro_batches_; ++m)
        if (auto const& w = when_[at(op, m)]; w.weights >= 0) change(w.back, w.weights, bytes);
}

PARSEARCH_INLINE void activation_steps::add_kept(std::size_t op, std::uint32_t slot) {
    std::map<holder, keepers> all;
    if (g_.operations[op].outputs[slot].saved && g_.trains[op]) keep(all, {static_cast<std::uint32_t>(op), shards_[op].outputs[slot]});
    keep_at_readers(all, op, slot);
    for (auto const& [where, k] : all) add(where, k);
}

PARSEARCH_INLINE void activation_steps::keep_at_readers(std::map<holder, keepers>& all, std::size_t op, std::uint32_t slot) {
    for (auto const number : g_.out(op)) {
        auto const& e = g_.edges[number];
        if (e.slot != slot) continue;
        auto const& reader = g_.operations[e.consumer];
        if (reader.work == ops::work_class::view)
            for (std::uint32_t s = 0; s < reader.outputs.size(); ++s) keep_at_readers(all, e.consumer, s);
        else if (reader.inputs[e.input].saved && g_.trains[e.consumer] && !(again_[e.consumer] && enters(g_, how_, e)))
            keep(all, {e.consumer, shards_[e.consumer].inputs[e.input], true});
    }
}

PARSEARCH_INLINE void activation_steps::add_inputs_of_segments(std::size_t op, std::uint32_t slot) {
    std::map<holder, keepers> all;
    for (auto const number : g_.out(op)) {
        auto const& e = g_.edges[number];
        if (e.slot != slot || shards_here_[e.consumer] == 0 || !again_[e.consumer] || !enters(g_, how_, e)) continue;
        all[outside_of(e.consumer)].push_back(
            {e.consumer, here(e.consumer, shards_[e.consumer].inputs[e.input]), g_.operations[e.consumer].inputs[e.input].saved});
    }
    for (auto const& [where, k] : all) add(where, k);
}

} // namespace parsearch::pipeline::detail

namespace parsearch::pipeline {

PARSEARCH_INLINE std::vector<memory_step> memory_over_time(graph::dense_graph const& g, pipeline_plan const& plan, sim::report const& r,
                                                           std::uint32_t device) {
    if (plan.strategy.size() != g.size() || plan.how.stage.size() != g.size())
        throw invalid_input("a plan of ", plan.strategy.size(), " configurations: the graph has ", g.size(), " operators, must be one each");
    if (device >= r.memory.size()) throw invalid_input("memory of device ", device, ": the simulation has ", r.memory.size());
    auto const& use = r.memory[device];
    auto const always = use.total() - use.activations;
    if (use.activations == 0) return {{picoseconds{0}, always}};
    return detail::activation_steps(g, plan, r, device).steps(always);
}

} // namespace parsearch::pipeline
