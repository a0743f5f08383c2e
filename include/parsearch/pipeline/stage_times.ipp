#pragma once
// What stages take for a micro-batch, and when they are done with all of them.

#include <algorithm>

#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/stage_times.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE std::vector<std::int64_t> ends_of(std::span<stage_times const> stages, launch_rule const& r, bool training) {
    std::vector<std::int64_t> free; // of each group of devices
    for (std::uint32_t g = 0; g < r.groups(); ++g) free.push_back(stages[g].head);
    std::vector<std::int64_t> forward(std::size_t{r.stages} * r.micro_batches, 0), backward(forward.size(), 0), done(r.stages, 0);
    for (auto const& l : launches(r, training)) {
        auto const& s = stages[l.stage];
        auto& device = free[r.group_of(l.stage)];
        auto const at = std::size_t{l.stage} * r.micro_batches + l.micro_batch;
        switch (l.pass) {
        case launch_pass::forward: {
            auto const arrived = l.stage > 0 ? saturating_sum(forward[at - r.micro_batches], s.message) : 0;
            forward[at] = device = saturating_sum(std::max(device, arrived), s.forward);
            break;
        }
        case launch_pass::backward: {
            auto const arrived = l.stage + 1 < r.stages ? saturating_sum(backward[at + r.micro_batches], stages[l.stage + 1].message) : forward[at];
            auto const ready = std::max(saturating_sum(device, s.ahead), arrived);
            backward[at] = device = saturating_sum(ready, saturating_sum(s.again - s.ahead, s.backward));
            break;
        }
        case launch_pass::weight_gradients: device = saturating_sum(device, s.weights); break;
        }
        done[l.stage] = device;
    }
    for (std::size_t s = 0; s < stages.size(); ++s) done[s] = saturating_sum(done[s], stages[s].tail);
    return done;
}

} // namespace parsearch::pipeline
