#pragma once
/// A hash for tables by words and by configurations.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::sim {

/// A multiplicative hash of words: quick, and not for words that someone chose to collide.
struct word_hash {
    [[nodiscard]] static constexpr std::uint64_t step(std::uint64_t h, std::uint64_t word) noexcept {
        h = (h ^ word) * 0x9e3779b97f4a7c15;
        return h ^ (h >> 29);
    }
    [[nodiscard]] std::size_t operator()(std::vector<std::uint32_t> const& words) const noexcept {
        std::uint64_t h = words.size();
        for (auto const w : words) h = step(h, w);
        return static_cast<std::size_t>(h);
    }
    [[nodiscard]] std::size_t operator()(std::uint64_t word) const noexcept { return static_cast<std::size_t>(step(0, word)); }
    [[nodiscard]] std::size_t operator()(space::configuration const& c) const noexcept;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/task/word_hash.ipp>
#endif
