#pragma once
// Lower bounds on the makespan with one operator changed, from its shape, its messages and the current schedule: no task is made.

#include <parsearch/sim/delta/change_bounds.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE std::int64_t change_bounds::device_load(operator_blocks const& now, operator_blocks const& with, engine const& schedule,
                                                         bool folded) {
    auto const& kind = work_->topology.kind;
    auto const sum = [](operator_shape const& s, std::size_t k) { return s.forward[k] + s.backward[k]; };
    if (now.everywhere && with.everywhere && with.shape->forward.size() == 1)
        return schedule.device_load() - sum(*now.shape, 0) + sum(*with.shape, 0);
    auto const shards = with.configuration.shards();
    std::int64_t most = 0;
    for (auto const d : now.plan.devices) load_[d] -= sum(*now.shape, kind[d]);
    for (std::int64_t n = 0; n < shards; ++n) {
        auto const d = static_cast<std::uint32_t>(with.configuration.device(n));
        load_[d] += sum(*with.shape, kind[d]);
        most = std::max(most, load_[d] + schedule.load(folded ? cache_->folds()->class_of(d) : d));
    }
    for (auto const d : now.plan.devices) load_[d] = 0;
    for (std::int64_t n = 0; n < shards; ++n) load_[static_cast<std::size_t>(with.configuration.device(n))] = 0;
    return most;
}

} // namespace parsearch::sim
