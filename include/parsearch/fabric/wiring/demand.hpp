#pragma once
/// Traffic between servers: point-to-point bytes and the all-reduces of groups.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch::fabric {

/// An all-reduce of `bytes` (the whole tensor) by the servers of `members`: ascending, each once, at least two.
struct all_reduce_demand {
    std::vector<std::uint32_t> members;
    byte_count bytes = 0;
    friend bool operator==(all_reduce_demand const&, all_reduce_demand const&) = default;
};

/// The bytes that servers exchange in an iteration. Servers are numbered from 0. Memory: 8 bytes per ordered pair.
/// Every function that adds throws `invalid_input` naming the value and the rule that it breaks, and then changes nothing.
class demand {
  public:
    /// The most servers, and the most bytes on the wire in all (so that no sum of them overflows).
    static constexpr std::uint32_t max_servers = 1 << 12;
    static constexpr byte_count max_bytes = byte_count{1} << 60;

    /// No traffic between `servers` servers, from 1 to `max_servers`.
    explicit demand(std::uint32_t servers) : servers_(servers) {
        if (servers < 1 || servers > max_servers) throw invalid_input("demand of ", servers, " servers: must be from 1 to ", max_servers);
        bytes_.assign(std::size_t{servers} * servers, 0);
    }

    /// Adds `bytes` sent by server `from` to server `to`, another one.
    void add(std::uint32_t from, std::uint32_t to, byte_count bytes);

    /// Adds an all-reduce of `bytes` by `members`, in any order, at least two, each once. The same group again adds to its bytes.
    void add_all_reduce(std::span<std::uint32_t const> members, byte_count bytes);
    void add_all_reduce(std::initializer_list<std::uint32_t> members, byte_count bytes) {
        add_all_reduce(std::span<std::uint32_t const>(members.begin(), members.size()), bytes);
    }

    [[nodiscard]] std::uint32_t servers() const noexcept { return servers_; }
    /// Point-to-point bytes from one server to another. O(1).
    [[nodiscard]] byte_count between(std::uint32_t from, std::uint32_t to) const noexcept { return bytes_[std::size_t{from} * servers_ + to]; }
    /// The groups that all-reduce, in the order in which they were first added.
    [[nodiscard]] std::vector<all_reduce_demand> const& groups() const noexcept { return groups_; }
    /// All point-to-point bytes.
    [[nodiscard]] byte_count point_to_point_bytes() const noexcept { return point_to_point_; }
    /// What ring all-reduces put on the wire: the sum of 2(g-1) times the bytes of each group of size g.
    [[nodiscard]] byte_count all_reduce_bytes() const noexcept { return all_reduce_; }

    friend bool operator==(demand const&, demand const&) = default;

  private:
    [[nodiscard]] static std::string rule() { return text("bytes must be from 0, and at most ", max_bytes, " on the wire in all"); }
    void check_server(std::uint32_t server, char const* what) const {
        if (server >= servers_) throw invalid_input(what, " of server ", server, ": there are ", servers_, " servers");
    }
    void add_to(byte_count& sum, byte_count bytes, byte_count wire, char const* what) const {
        if (bytes < 0 || wire > max_bytes - point_to_point_ - all_reduce_) throw invalid_input(what, " of ", bytes, " bytes: ", rule());
        sum += wire;
    }

    std::uint32_t servers_;
    std::vector<byte_count> bytes_; ///< row: the sender
    std::vector<all_reduce_demand> groups_;
    std::map<std::vector<std::uint32_t>, std::size_t> group_; ///< its number, by members
    byte_count point_to_point_ = 0, all_reduce_ = 0;
};

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/wiring/demand.ipp>
#endif
