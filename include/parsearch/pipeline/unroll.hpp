#pragma once
/// The task graph of a pipeline: that of one micro-batch, once for each of them, in the order in which stages launch.

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/offloading.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/recomputation.hpp>
#include <parsearch/pipeline/shared_blocks.hpp>
#include <parsearch/pipeline/weight_gradients.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::pipeline {

/// Where a task of a pipeline comes from.
struct task_origin {
    std::uint32_t task = 0;        ///< of the task graph of one micro-batch
    std::uint32_t micro_batch = 0; ///< the last one that its stage launches for what is done once: synchronisation and updates
    bool again = false;            ///< forward that is computed once more
    bool weights = false;          ///< of a backward task that is cut, the part of gradients of weights
    block_transfer moves{};        ///< of a block's weights: `task` is the first of their synchronisation
    host_copy copies{};            ///< of what a segment offloads: `task` is the last of its forward on the device, or the first behind the copy back
    friend bool operator==(task_origin const&, task_origin const&) = default;
};

/// Unrolls task graphs over micro-batches; keeps its buffers from one to the next.
///
/// Forward and backward tasks, and what moves for them, come once per micro-batch, in the order of `launches`. In a stage that recomputes the
/// segments, last first, run their forward tasks again right before their backward tasks, but for those of operators whose activations are kept, and
/// for what moves in from these or from outside of the segment: that is kept.
/// Synchronisation comes with the last backward of the first stage that contributes (what stands behind all backward tasks of `one`, at the end), and
/// waits for the gradients of all micro-batches; updates come last. Adding a gradient to that of the micro-batches before takes no time. Where
/// `launch_in_order`, each computation also waits for the one launched before it on its device; where not, that is left to the scheduler.
///
/// Where the order cuts backward, so are the backward tasks of operators with a `weight_gradient_share`: the first part is what other tasks wait for,
/// the second, launched later, waits for the first, and synchronisation and updates wait for it. They come with the last launch of gradients of
/// weights of the only stage that contributes, or at the end.
///
/// With sharded gradients or parameters a group of devices goes through blocks, forward and backward; computing a block again and its backward, or
/// two passes in turn, are one visit. All operators of a visit with weights to share wait until parameters that are sharded are gathered, which
/// begins when the visit before the one before is over: its last computation on each device, and the reduction of its gradients; where gradients
/// alone are, they wait for that reduction. The gradients of a micro-batch are reduced, with those of the whole block of the first operator that has
/// these weights, when all are there. Behind the reductions of all micro-batches come all-reduces across nodes where states are shared within them;
/// where parameters are whole they are gathered then (those updated, but this is timed like a sharded optimizer's, ahead of the update). Updates wait
/// for all of that.
///
/// A stage that offloads runs its segments one by one. On each device one segment of a micro-batch, forward or backward (with what is computed
/// again), is a visit, as long as nothing else is computed there. Where a forward visit has something to offload it is copied to the host when the
/// visit is over; before the backward visit it is copied back, which begins when the visit with something to offload before the one before is over:
/// its copy to the host, or its last computation. For that a forward visit waits, too, so that a device has no more than two visits' activations. A
/// segment whose backward follows its forward is one visit, and stays. Each device has two resources for these copies, behind the links: to its host,
/// and back.
class unroller {
  public:
    /// `one` is what `sim::assembler` makes of a plan of `g` on `devices` devices, or classes of its tasks (`task_classes`); `how` is valid for `g`;
    /// `shared`: its blocks whose weights are shared; `offloaded`: what devices copy to their hosts; `origins`: of each task of `out`. Complexity:
    /// linear in what it makes.
    void run(sim::task_graph const& one, graph::dense_graph const& g, std::uint32_t devices, pipelining const& how, shared_blocks const& shared,
             offload_plan const& offloaded, bool launch_in_order, sim::task_graph& out, std::vector<task_origin>& origins);

    /// What stages launched, in the order of tasks, and the first task of each, and of what comes behind.
    [[nodiscard]] std::vector<launch> const& launched() const noexcept { return launches_; }
    [[nodiscard]] std::vector<std::uint32_t> const& first_tasks() const noexcept { return first_task_; }
    /// What moved for shared weights, by block, in the order of numbers, and the first of each launch, and behind.
    [[nodiscard]] std::vector<std::pair<std::uint32_t, block_transfer>> const& transfers() const noexcept { return transfers_; }
    [[nodiscard]] std::vector<std::size_t> const& first_transfers() const noexcept { return first_transfer_; }

  private:
    enum class part : std::uint8_t { forward, arrival, backward, once }; // arrival: what moves forward into a segment

    /// How far the gradients of a block are.
    struct reduction {
        std::vector<std::uint32_t> left{};    ///< contributors to come, by micro-batch
        std::vector<std::uint32_t> reduced{}; ///< last tasks of the reductions; at last what updates wait for
    };
    /// What a group of devices does between two changes of blocks.
    struct visit {
        std::uint32_t block = none;
        std::vector<std::uint32_t> waits_for{};
        std::map<std::uint32_t, std::uint32_t> last{}; ///< computation, by device
        std::vector<std::uint32_t> reductions{};       ///< last tasks
    };

    /// What a device computes without a change of segment or micro-batch.
    struct segment_visit {
        detail::stage_segment segment{none, none};
        std::uint32_t micro_batch = none, last = none, last_task = none; ///< of its computations the number, and that in one micro-batch
        bool backward = false;
    };
    struct device_visits {
        segment_visit now{};
        std::uint32_t over = none, over_before = none; ///< ends of the last two visits with something to offload
    };

    [[nodiscard]] bool moves(std::uint32_t t) const noexcept { return pipeline::moves(*one_, t); }
    /// Whether transfers of blocks do what task `t` would.
    [[nodiscard]] bool is_replaced(std::uint32_t t) const noexcept { return !shared_->reduced_with.empty() && part_[t] == part::once && moves(t); }

    void sort_tasks(graph::dense_graph const& g);

    /// What moves for a block on all of `links` at once.
    std::uint32_t add_transfer(std::uint32_t block, std::uint32_t m, block_transfer what, shared_block::link_times const& links);

    /// A copy of what `device` offloads of a segment of micro-batch `m`.
    std::uint32_t add_copy(std::uint32_t device, offloaded_part const& what, task_origin const& origin) {
        origins_->push_back(origin);
        return out_->add(first_host_ + 2 * device + (origin.copies == host_copy::from_host ? 1 : 0), what.time, sim::task_kind::transfer,
                         {.op = what.op, .number = device, .edge = sim::task_label::no_edge, .traffic = sim::traffic_kind::activation});
    }

    /// Before computation `t` of micro-batch `m`: where it begins a visit of its device, what that brings and takes away is copied. Answers what `t`
    /// waits for, or `none`.
    std::uint32_t turn_to(std::uint32_t t, std::uint32_t m, bool backward);

    /// Before task `t` of micro-batch `m`, in stage `s`: where it computes and begins a visit, what is offloaded is copied, weights are gathered, or
    /// reductions awaited.
    void come_to(std::uint32_t s, std::uint32_t t, std::uint32_t m, bool backward);
    void come_to_block(std::uint32_t s, std::uint32_t t, std::uint32_t m);

    /// Behind it, as task `number`: gradients of a block may be complete.
    void leave(std::uint32_t s, std::uint32_t t, std::uint32_t m, std::uint32_t number);

    void add(std::uint32_t t, task_origin origin, std::uint32_t& number) { add(t, origin, number, one_->duration[t]); }
    void add(std::uint32_t t, task_origin origin, std::uint32_t& number, std::int64_t duration);

    void add_forward(std::uint32_t stage, std::uint32_t m);

    /// The number of `p` for a task that follows the recomputation of its segment.
    [[nodiscard]] std::uint32_t recomputed(std::uint32_t p, std::uint32_t t, std::uint32_t m) const noexcept {
        bool const together = stage_[p] == stage_[t] && segment_[p] == segment_[t];
        return part_[p] == part::forward && together && runs_again_[one_->label[p].op] ? again_[p] : number_[m][p];
    }

    void add_backward(std::uint32_t stage, std::uint32_t m, bool last);

    /// Picoseconds of backward task `t` that are launched by themselves.
    [[nodiscard]] std::int64_t weights_time(std::uint32_t t) const {
        return is_cut(t) ? weight_gradient_time(one_->duration[t], share_[one_->label[t].op]) : 0;
    }
    [[nodiscard]] bool is_cut(std::uint32_t t) const { return one_->kind[t] == sim::task_kind::backward && share_[one_->label[t].op] > 0; }

    void add_weight_gradients(std::uint32_t stage, std::uint32_t m, bool last);

    void add_once(std::uint32_t t, std::uint32_t m);

    static constexpr auto none = shared_block::none;
    sim::task_graph const* one_ = nullptr;
    sim::task_graph* out_ = nullptr;
    std::vector<task_origin>* origins_ = nullptr;
    pipelining const* how_ = nullptr;
    shared_blocks const* shared_ = nullptr;
    offload_plan const* offloaded_ = nullptr;
    std::uint32_t last_backward_ = none, first_host_ = 0;
    std::vector<part> part_;       ///< of each task of one micro-batch
    std::vector<bool> runs_again_; ///< of each operator
    std::vector<double> share_;    ///< of each operator, of its backward what is launched by itself
    std::vector<std::uint32_t> stage_, segment_, tail_, again_, previous_;
    std::vector<std::vector<std::uint32_t>> forward_, backward_, again_in_; ///< tasks by stage
    std::vector<std::vector<std::uint32_t>> number_, of_weights_;           ///< numbers by micro-batch; of what is launched by itself
    std::map<std::uint32_t, reduction> reductions_;                         ///< of each block whose weights are shared
    std::vector<launch> launches_;
    std::vector<std::uint32_t> first_task_;                           ///< of each launch, and behind
    std::vector<std::size_t> first_transfer_;                         ///< likewise
    std::vector<visit> now_, before_it_;                              ///< of each group of devices
    std::vector<std::pair<std::uint32_t, block_transfer>> transfers_; ///< of the last pipeline
    std::vector<device_visits> on_;                                   ///< of each device; empty where nothing is offloaded
    std::map<std::tuple<std::uint32_t, detail::stage_segment, std::uint32_t>, std::uint32_t> copied_; ///< to hosts: by device, segment, micro-batch
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/unroll.ipp>
#endif
