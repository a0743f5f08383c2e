#pragma once
// A hash for tables by words and by configurations.

#include <parsearch/sim/task/word_hash.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE std::size_t word_hash::operator()(space::configuration const& c) const noexcept {
    std::uint64_t h = c.rank;
    for (std::uint32_t k = 0; k < c.rank; ++k)
        h = step(h, static_cast<std::uint64_t>(static_cast<std::uint32_t>(c.degree[k])) << 32 | static_cast<std::uint32_t>(c.stride[k]));
    h = step(h, static_cast<std::uint32_t>(c.start));
    for (auto const d : c.listed) h = step(h, static_cast<std::uint32_t>(d));
    return static_cast<std::size_t>(h);
}

} // namespace parsearch::sim
