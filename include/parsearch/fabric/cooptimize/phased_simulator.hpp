#pragma once
/// The time of an iteration during which the links between servers are rewired.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/servers/fabric_problem.hpp>
#include <parsearch/fabric/wiring/demand.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/simulator.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::fabric {

/// From a moment of an iteration to another.
struct time_span {
    picoseconds begin{}, end{};
    friend bool operator==(time_span const&, time_span const&) = default;
};

/// An iteration whose wiring changes.
struct phased_time {
    picoseconds cost{};                  ///< the iteration, the last rewiring included, and what memory costs
    std::vector<time_span> phases;       ///< of each: from when its links are set until the last of its movements has arrived
    std::vector<time_span> movements;    ///< of each: from its first link to its last
    std::vector<std::uint32_t> phase_of; ///< each movement: as asked, or a later one where it waits for one of that
};

/// Simulates a strategy on servers whose links are rewired during the iteration, by an optical switch. A *movement* is a message or a collective
/// that passes servers, as the simulator lists them; each belongs to a phase, and a phase has a wiring.
///
/// - Tasks are those of `sim::simulator`: those of a movement as on the wiring of its phase, all others as on any. They are scheduled by
///   `sim::any_scheduler`, under the discipline and transfer model of the problem. So one phase costs what the problem's evaluator says.
/// - A rewiring begins when all movements of the phase have arrived. It takes its time, in which no movement between servers is on its way; those
///   of the next phase wait for it. Computation, and movement within servers, go on.
/// - After the last phase the first wiring is set back, for the next iteration, which belongs to the iteration. A phase of the same wiring as the
///   one before follows without a delay.
/// - A movement that waits for one of a later phase is of that phase.
/// - Under `in_order` tasks run in the order of their numbers among those that wait for the same rewiring, the others after them.
///
/// Wirings stay until the end: memory is that of a task graph for each that is `alike`, and of one more for each simulation.
class phased_simulator {
  public:
    /// `problem` must outlive it.
    phased_simulator(fabric_problem const& problem, space::flat_strategy s) : problem_(&problem), strategy_(std::move(s)) {}

    /// Makes the tasks on network `n`; answers its number, by which `run` knows it. The same network again keeps its number. Throws `invalid_input`
    /// as `fabric_problem::on`, and where the strategy does not fit. Complexity: that of a simulation and of a cluster.
    std::uint32_t add(network const& n);
    [[nodiscard]] std::vector<network> const& wirings() const noexcept { return wirings_; }
    /// What the problem's evaluator says of the strategy on a wiring alone. Precondition, as of the next three: it is there.
    [[nodiscard]] picoseconds cost_on(std::uint32_t wiring) const { return alone_[wiring].cost; }
    /// When the last movement has arrived on a wiring alone; 0 without any.
    [[nodiscard]] picoseconds arrival_on(std::uint32_t wiring) const { return alone_[wiring].arrival; }
    /// What all movements carry on a wiring alone, counted as in `traffic`.
    [[nodiscard]] byte_count bytes_on(std::uint32_t wiring) const { return alone_[wiring].bytes; }
    /// Whether a wiring has the same movements as the first, which wait for the same: only such are combined. Not always where operators pass inputs
    /// on in a ring: what of these waits for computation depends on rates.
    [[nodiscard]] bool alike(std::uint32_t wiring) const { return alone_[wiring].alike; }

    /// The movements on the first wiring, counted in the order of tasks; 0 until there is a wiring.
    [[nodiscard]] std::size_t movements() const noexcept { return blocks_.movements.size(); }
    /// What servers send each other in some of them: see `traffic_of`, but an all-gather, a reduce-scatter, a broadcast and a reduction each count
    /// as an all-reduce of half the bytes, which puts as much on a ring. Precondition: these are movements.
    [[nodiscard]] demand traffic(std::span<std::uint32_t const> movements) const;

    /// The iteration where movement m is of phase `phase_of[m]`, phase p has wiring number `wiring_of[p]`, and rewiring takes `delay`. Throws
    /// `invalid_input` where a phase, a wiring or that of a movement is not there, `delay` is negative, or a wiring is not `alike`. Complexity: that
    /// of scheduling.
    [[nodiscard]] phased_time run(std::span<std::uint32_t const> phase_of, std::span<std::uint32_t const> wiring_of, picoseconds delay) const;

  private:
    static constexpr auto none = ~std::uint32_t{0};

    /// A block: a task of computation or a barrier alone, or the tasks of a movement, between servers or not. Blocks are the same on all wirings
    /// that are alike.
    struct tasks_on_wiring {
        sim::task_graph tasks;
        std::vector<std::uint32_t> first;    ///< task of each block, and the end
        std::vector<std::uint32_t> block_of; ///< each task
        std::uint32_t directions = 0;        ///< links of the cluster that are the network's, which come first
        std::vector<link_description> links; ///< of the cluster
    };
    struct all_blocks {
        std::vector<std::uint32_t> movement_of;  ///< each block; none: it passes no servers
        std::vector<std::uint32_t> movements;    ///< block of each movement
        std::vector<std::uint32_t> before;       ///< blocks that each block waits for, block by block
        std::vector<std::uint32_t> first_before; ///< of each block, and the end
        friend bool operator==(all_blocks const&, all_blocks const&) = default;
    };
    /// The iteration on a wiring alone.
    struct one_wiring {
        picoseconds cost{}, arrival{};
        byte_count bytes = 0;
        bool alike = true;
    };
    struct merged_tasks;

    void split(tasks_on_wiring& t) const;
    [[nodiscard]] bool passes_servers(tasks_on_wiring const& t, std::uint32_t block) const;
    [[nodiscard]] all_blocks blocks_of(tasks_on_wiring const& t) const;
    [[nodiscard]] bool like_first(tasks_on_wiring const& t, all_blocks const& blocks) const;
    [[nodiscard]] merged_tasks merge(std::span<std::uint32_t const> phase_of, std::span<std::uint32_t const> wiring_of, picoseconds delay) const;

    fabric_problem const* problem_;
    space::flat_strategy strategy_;
    std::vector<network> wirings_;
    std::vector<one_wiring> alone_;         ///< by wiring
    std::vector<tasks_on_wiring> tasks_;    ///< by wiring; empty where it is not alike
    all_blocks blocks_;                     ///< on the first wiring
    std::optional<sim::simulator> first_{}; ///< on the first wiring: its plan tells what movements carry
    picoseconds memory_{};                  ///< what memory costs
    std::uint32_t devices_ = 0;             ///< of the problem
};

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/cooptimize/phased_simulator.ipp>
#endif
