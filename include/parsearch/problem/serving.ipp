#pragma once
// Inference under a limit of its latency: which batch serves most.

#include <parsearch/problem/serving.hpp>

namespace parsearch {

PARSEARCH_INLINE served_batch const* best_of(std::vector<served_batch> const& tried) noexcept {
    served_batch const* best = nullptr;
    for (auto const& t : tried)
        if (t.within && (!best || t.per_second() > best->per_second())) best = &t;
    return best;
}

} // namespace parsearch
