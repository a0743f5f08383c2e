#pragma once
/// Whether the order of a graph of tasks is series-parallel.

#include <cstddef>
#include <vector>

#include <parsearch/graph/series_parallel.hpp>

namespace support {

/// Whether the order that the edges generate has an N, so that it is not series-parallel.
inline bool has_n(std::size_t tasks, std::vector<parsearch::graph::task_edge> const& edges) {
    std::vector<std::vector<bool>> before(tasks, std::vector<bool>(tasks, false));
    for (auto const& [a, b] : edges) before[a][b] = true;
    for (std::size_t k = 0; k < tasks; ++k)
        for (std::size_t a = 0; a < tasks; ++a)
            for (std::size_t b = 0; b < tasks; ++b)
                if (before[a][k] && before[k][b]) before[a][b] = true;
    auto const apart = [&](std::size_t a, std::size_t b) { return a != b && !before[a][b] && !before[b][a]; };
    for (std::size_t a = 0; a < tasks; ++a)
        for (std::size_t b = 0; b < tasks; ++b)
            for (std::size_t c = 0; c < tasks; ++c)
                for (std::size_t d = 0; d < tasks; ++d)
                    if (before[a][c] && before[b][c] && before[b][d] && apart(a, b) && apart(c, d) && apart(a, d)) return true;
    return false;
}

} // namespace support
