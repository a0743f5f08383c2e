#pragma once
/// A hash for tables by words and by configurations.

#include <cstddef>
#include <cstdint>
#include <vector>

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
    [[nodiscard]] std::size_t operator()(space::configuration const& c) const noexcept {
        std::uint64_t h = c.rank;
        for (std::uint32_t k = 0; k < c.rank; ++k)
            h = step(h, static_cast<std::uint64_t>(static_cast<std::uint32_t>(c.degree[k])) << 32 | static_cast<std::uint32_t>(c.stride[k]));
        h = step(h, static_cast<std::uint32_t>(c.start));
        for (auto const d : c.listed) h = step(h, static_cast<std::uint32_t>(d));
        return static_cast<std::size_t>(h);
    }
};

} // namespace parsearch::sim
