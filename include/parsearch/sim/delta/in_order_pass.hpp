#pragma once
/// The schedule of blocks whose resources run tasks in program order.

#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/delta/engine_state.hpp>

namespace parsearch::sim {

/// One sweep over the blocks from the last checkpoint before the first change on.
class in_order_pass {
  public:
    /// False as soon as the makespan is sure to be above the bound. Complexity: O(V + D), of tasks V and dependences D of the sweep.
    bool run(engine_state& s) const;

  private:
    static bool start_block(engine_state& s, std::uint32_t b, std::uint32_t begin);
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/in_order_pass.ipp>
#endif
