#pragma once
/// Reads additive problems of PaSE's benchmarks ("PWC1", little endian): int32 V, E; V times { int32 K; K float64 vertex costs };
/// E times { int32 u, v; K_u * K_v float64 edge costs, row major in u }.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/search/additive_cost.hpp>

namespace support {

/// Throws `parsearch::invalid_input` naming file and position where the file is not of this format.
inline parsearch::search::additive_problem<double> read_pase(std::filesystem::path const& file) {
    static_assert(std::endian::native == std::endian::little && sizeof(double) == 8, "the file's numbers are read as they are");
    using parsearch::invalid_input;
    std::ifstream in(file, std::ios::binary);
    if (!in) throw invalid_input(file.string(), ": cannot be opened");
    auto const left = [&, size = static_cast<std::uint64_t>(std::filesystem::file_size(file))] {
        return size - static_cast<std::uint64_t>(in.tellg());
    };
    auto const read = [&](void* to, std::uint64_t bytes, char const* what) {
        if (left() < bytes) throw invalid_input(file.string(), ": ends within ", what);
        in.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    };
    auto const number = [&](char const* what, std::int32_t below) {
        std::int32_t n = 0;
        read(&n, sizeof n, what);
        if (n < 0 || n >= below) throw invalid_input(file.string(), ": ", what, " is ", n, ": must be from 0 to ", below - 1);
        return static_cast<std::size_t>(n);
    };
    auto const costs = [&](std::uint64_t count, char const* what) {
        if (left() / sizeof(double) < count) throw invalid_input(file.string(), ": ends within ", what);
        std::vector<double> out(static_cast<std::size_t>(count));
        read(out.data(), count * sizeof(double), what);
        return out;
    };
    char mark[4];
    read(mark, sizeof mark, "the mark");
    if (std::memcmp(mark, "PWC1", 4) != 0) throw invalid_input(file.string(), ": does not begin with PWC1");
    constexpr std::int32_t most = 1 << 24;
    auto const vertices = number("the number of vertices", most), edges = number("the number of edges", most);
    std::vector<std::vector<double>> own;
    for (std::size_t v = 0; v < vertices; ++v) own.push_back(costs(number("a number of configurations", most), "vertex costs"));
    std::vector<parsearch::operator_pair> ends;
    std::vector<std::vector<double>> tables;
    for (std::size_t e = 0; e < edges; ++e) {
        auto const u = number("an edge's vertex", static_cast<std::int32_t>(vertices)),
                   v = number("an edge's vertex", static_cast<std::int32_t>(vertices));
        ends.push_back({u, v});
        tables.push_back(costs(std::uint64_t{own[u].size()} * own[v].size(), "edge costs"));
    }
    if (left() > 0) throw invalid_input(file.string(), ": has ", left(), " bytes after the last edge");
    return parsearch::search::additive_problem<double>({std::move(own), std::move(ends), std::move(tables)});
}

} // namespace support
