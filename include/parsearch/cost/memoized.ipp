#pragma once
// Remembers the answers of an oracle that is slow to ask.

#include <parsearch/cost/memoized.hpp>

namespace parsearch::cost {

PARSEARCH_INLINE std::size_t question_hash::operator()(ops::shard_work const& work, std::uint64_t key) const noexcept {
    std::uint64_t h = std::hash<std::string>{}(work.op->kind);
    auto const mix = [&h](std::uint64_t value) { h = (h ^ value) * 0x9e3779b97f4a7c15u ^ (h >> 29); };
    mix(key);
    mix(static_cast<std::uint64_t>(work.pass));
    mix(std::hash<double>{}(work.flops));
    mix(std::hash<double>{}(work.bytes));
    for (std::size_t k = 0; k < work.op->dims.size(); ++k) {
        mix(static_cast<std::uint64_t>(work.op->dims[k].extent));
        mix(static_cast<std::uint64_t>(work.degrees[k]));
    }
    return static_cast<std::size_t>(h);
}

} // namespace parsearch::cost
