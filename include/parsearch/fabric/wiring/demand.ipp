#pragma once
// Traffic between servers: point-to-point bytes and the all-reduces of groups.

#include <algorithm>

#include <parsearch/fabric/wiring/demand.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE void demand::add(std::uint32_t from, std::uint32_t to, byte_count bytes) {
    check_server(from, "point-to-point demand");
    check_server(to, "point-to-point demand");
    if (from == to) throw invalid_input("point-to-point demand of server ", from, " with itself: must join two servers");
    add_to(point_to_point_, bytes, bytes, "point-to-point demand");
    bytes_[std::size_t{from} * servers_ + to] += bytes;
}

PARSEARCH_INLINE void demand::add_all_reduce(std::span<std::uint32_t const> members, byte_count bytes) {
    if (members.size() < 2) throw invalid_input("all-reduce of ", members.size(), " servers: needs at least two");
    std::vector<std::uint32_t> sorted(members.begin(), members.end());
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        check_server(sorted[i], "all-reduce");
        if (i > 0 && sorted[i] == sorted[i - 1]) throw invalid_input("all-reduce names server ", sorted[i], " twice: a group has each once");
    }
    auto const rounds = static_cast<byte_count>(2 * (sorted.size() - 1));
    if (bytes > max_bytes / rounds) throw invalid_input("all-reduce of ", bytes, " bytes by ", sorted.size(), " servers: ", rule());
    add_to(all_reduce_, bytes, bytes * rounds, "all-reduce");
    auto const [at, fresh] = group_.try_emplace(sorted, groups_.size());
    if (fresh) groups_.push_back({std::move(sorted), bytes});
    else groups_[at->second].bytes += bytes;
}

} // namespace parsearch::fabric
