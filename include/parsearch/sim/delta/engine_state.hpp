#pragma once
/// What `engine` keeps of tasks and runs.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <parsearch/sim/delta/blocks.hpp>

namespace parsearch::sim {

/// When a task was ready and ended, in picoseconds; and, while it is scheduled, how many predecessors it waits for and which task of its
/// block became ready with it before.
struct moment {
    std::int64_t ready = 0, end = 0;
    std::uint32_t waits = 0, chain = 0;
};

/// What a run may stop at: every task of block b is followed by tasks that take `after[b]` at least, and the last counted task of a
/// device by `after_device`.
struct run_limits {
    std::int64_t bound = std::numeric_limits<std::int64_t>::max();
    std::span<std::int64_t const> after{};
    std::int64_t after_device = 0;
};

/// A block in a run.
struct block_state {
    std::vector<moment> next; ///< of the proposal
    std::vector<std::uint32_t> predecessors; ///< how many each task has
    std::uint64_t touched_in = 0; ///< the run that `next` is of
    bool counts = true;
    bool stale = true; ///< `predecessors` are to be counted
    bool roots = false; ///< some task has none
    bool inner = false; ///< some task waits for another of the block
    bool instant = false; ///< and some that is no barrier takes no time
    std::uint32_t open_last = 0;    ///< last task of the newest bundle
    std::int64_t open_ready = -1;   ///< its time; -1: there is none to add to
    std::int64_t next_enabled = 0;
};
/// What a block waits for, or what waits for it.
struct connection {
    std::uint32_t block = 0;
    dependence const* some = nullptr; ///< nothing where there are no pairs
    dependence const* all = nullptr;
};

/// Tasks of a block that become ready at one time: a chain from `first`.
struct bundle {
    std::int64_t ready = 0;
    std::uint32_t block = 0, first = 0;
    friend bool operator>(bundle const& a, bundle const& b) noexcept { return a.ready != b.ready ? a.ready > b.ready : a.block > b.block; }
};

/// The resources just before the tasks of (time, block) and later ones start; in_order: before `block`.
struct checkpoint {
    std::int64_t time = -1;
    std::uint32_t block = 0;
    std::int64_t longest = 0;
    std::vector<std::int64_t> free, done;
};

} // namespace parsearch::sim
