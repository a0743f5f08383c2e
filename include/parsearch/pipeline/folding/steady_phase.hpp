#pragma once
/// The steady phase of a pipeline: rounds that take the same time each, of which a longer pipeline has more.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/unroll.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>

namespace parsearch::pipeline {

/// A part of a pipeline's schedule that repeats: once more of it makes the pipeline longer by `micro_batches` and `time`.
struct steady_phase {
    std::uint32_t micro_batches = 0;
    std::int64_t time = 0;  ///< picoseconds
    std::size_t launch = 0; ///< its first, of as many
    std::size_t launches = 0;
};

/// An unrolled pipeline and its schedule.
struct scheduled_pipeline {
    sim::task_graph const& tasks;
    std::vector<task_origin> const& origins;
    std::vector<launch> const& launched;           ///< in the order of tasks
    std::vector<std::uint32_t> const& first_tasks; ///< of each launch, and behind
    sim::schedule const& when;
    std::uint32_t chained = 0; ///< resources below it run their tasks in the order of their numbers
};

/// Finds steady phases; keeps its buffers from one to the next.
///
/// A schedule is the only one in which each task is ready when the last it waits for ends, each resource takes tasks by (ready, number), and each
/// begins when it is ready and the one before it has ended. In a zone of the numbers of tasks each is as the one a period before, waits for the same
/// a period before, and runs later by one and the same time. Let one more period be put into the zone, and all behind it run later by its time. That
/// is the schedule of the longer pipeline where for each task all that decides when it runs is together somewhere in what was found, as it is there:
///
/// 1. What it waits for is at most e numbers before it, for tasks of the zone or behind it. What its device did before does not count.
/// 2. Let d be the most by which a resource takes a task ahead of one with a smaller number, l the tasks of a period. Two neighbours in the order of
///    a resource are at most 2 d + l apart, and all that the order could have between them is at most d before or behind either. As the found
///    schedule fits the longer one at every period, a zone of max(4 d + 2 l, e + l) is long enough.
/// 3. A task behind the zone may wait for one before it if it also waits for the same of a late micro-batch, and that makes it ready.
/// 4. What a resource with nothing in the zone does behind it does not wait for what it did before. Nothing behind the zone may run when it likes.
///
/// What is computed again counts as its first computation, which has waited for all that came from elsewhere; the gathering and reductions that it
/// waits for besides are also awaited by its backward tasks.
class steady_phase_finder {
  public:
    /// The phase of the shortest period, up to `most` times `unit` micro-batches, after which launches repeat; nothing where there is none, or its
    /// zone is not long enough. Complexity: O(most * (tasks + waits)), and a logarithm where resources overtake.
    [[nodiscard]] std::optional<steady_phase> find(scheduled_pipeline const& p, std::uint32_t micro_batches, std::uint32_t unit, std::uint32_t most);

  private:
    struct zone {
        std::uint32_t begin = 0, end = 0, period = 0; ///< tasks
        std::int64_t time = 0;
    };
    static constexpr auto no_shift = std::numeric_limits<std::int64_t>::min();

    std::optional<steady_phase> with_period(scheduled_pipeline const& p, std::uint32_t micro_batches, std::size_t launches);

    /// How much later the tasks of launch `i` run than those of launch `j`, which are the same `micro_batches` before; `no_shift` where they are
    /// not, or times differ. `known`: a time that is expected, or `no_shift`.
    static std::int64_t shift_of(scheduled_pipeline const& p, std::size_t i, std::size_t j, std::uint32_t micro_batches, std::int64_t known);

    /// Whether 1 to 4 hold.
    bool may_grow(scheduled_pipeline const& p, zone const& z);

    /// Whether for each of `before` there is one at the end of the zone or behind it that is the same of a later micro-batch, and one of them makes
    /// what waits ready.
    bool waits_for_later_ones(scheduled_pipeline const& p, zone const& z, std::span<std::uint32_t const> before, std::int64_t ready);

    /// Whether what resources without a task in the zone do behind it does not wait for what they did before.
    bool has_time_between(scheduled_pipeline const& p, zone const& z);

    /// How far a resource takes a task ahead of one with a smaller number.
    std::uint32_t overtaken(scheduled_pipeline const& p);

    std::optional<std::uint32_t> overtaken_;
    std::vector<std::vector<std::pair<std::int64_t, std::uint32_t>>> latest_; ///< of each resource: ready, task
    std::vector<std::uint32_t> later_;
    std::vector<bool> busy_, used_; ///< of each resource, whether it has tasks in the zone, before it
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/folding/steady_phase.ipp>
#endif
