#pragma once
/// Classes of tasks that run at the same times whatever else happens: those of devices that do the same.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/pipeline/offloading.hpp>
#include <parsearch/pipeline/shared_blocks.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>

namespace parsearch::pipeline {

/// A micro-batch on one device, link and so on of each class.
struct task_classes {
    sim::task_graph tasks;                           ///< one of each class; numbered in the order of their first
    std::uint32_t devices = 0;                       ///< classes of devices; those of links follow, and barriers
    std::vector<std::uint32_t> of_task, of_resource; ///< class of each
    std::vector<std::uint32_t> task, resource;       ///< the first of each class

    [[nodiscard]] bool is_first(std::uint32_t r) const noexcept { return resource[of_resource[r]] == r; }
};

/// What blocks do on one resource of each class.
[[nodiscard]] shared_blocks fold(shared_blocks const& all, task_classes const& classes);
/// What one device of each class copies.
[[nodiscard]] offload_plan fold(offload_plan const& all, task_classes const& classes);

/// Finds classes; keeps its buffers from one to the next.
///
/// Resources of a class have the same sequence of classes of tasks. Tasks of a class are alike (operator, edge, kind, duration), have the same place
/// on a resource of the same class, and wait for tasks of the same classes. So by induction over time all of a class are ready, start and end
/// together, under either discipline, and when the micro-batch is unrolled. Classes are found by refining hash values (Paige and Tarjan, Three
/// partition refinement algorithms, SIAM J. Comput. 16, 1987, have the idea), and what they say is then checked task by task: where it does not hold
/// nothing is folded.
class task_classes_finder {
  public:
    /// Of `one`, which `sim::assembler` made, so that the shards of an operator and what moves for it come together: tasks on `devices` devices;
    /// `shared` and `offloaded`: what else resources do (`unroller`). False where there are no fewer classes than tasks. Complexity: O(tasks +
    /// waits), times the rounds until classes are found, a few.
    [[nodiscard]] bool find(sim::task_graph const& one, std::uint32_t devices, shared_blocks const& shared, offload_plan const& offloaded,
                            task_classes& out);

  private:
    [[nodiscard]] static std::uint64_t both(std::uint64_t a, std::uint64_t b) noexcept { return split_mix(a * 0x9e3779b97f4a7c15 + b)(); }
    [[nodiscard]] std::uint32_t barrier() const noexcept { return one_->resources - 1; }

    void begin_with(shared_blocks const& shared, offload_plan const& offloaded);

    void refine();

    std::size_t count_resources() {
        sequence_ = of_resource_;
        make_set(sequence_);
        return sequence_.size();
    }

    /// Numbers for values, in the order of their first. `first`: of each.
    static void number_values(std::span<std::uint64_t const> values, std::vector<std::uint32_t>& numbers, std::vector<std::uint32_t>& first);

    void number(task_classes& out);

    /// Whether tasks and resources of a class are as `task_classes` says.
    bool hold(task_classes const& out, shared_blocks const& shared, offload_plan const& offloaded);

    bool blocks_hold(task_classes const& out, shared_blocks const& shared);
    bool copies_hold(task_classes const& out, offload_plan const& offloaded);

    static constexpr auto none = ~std::uint32_t{0};
    sim::task_graph const* one_ = nullptr;
    std::uint32_t devices_ = 0;
    std::vector<std::uint64_t> of_resource_, of_task_, alike_, sequence_; ///< hash values
    std::vector<std::uint32_t> waits_, seen_;
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/folding/task_classes.ipp>
#endif
