#pragma once
/// The paths of flows through a network.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/network/link_index.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/paths/forwarding.hpp>
#include <parsearch/fabric/paths/k_shortest.hpp>
#include <parsearch/fabric/paths/routing.hpp>

namespace parsearch::fabric {

/// Which way each flow takes between two servers of a network. Flows share parallel links, and with `ecmp` and `k_shortest` paths, by hash: the same
/// flow takes the same way, on every platform. With `k_shortest` servers that follow one another in a ring of the network and are joined use
/// their links alone, so that rings stay on the links that were made for them.
/// Memory: `shortest` and `coin_change` 4 bytes per pair of vertices, `ecmp` 4 bytes per server and vertex, `k_shortest` up to k paths per pair of
/// servers.
class path_table {
  public:
    /// Throws `invalid_input` where the network breaks a rule of `validate`, `k` is not from 1 to 1024 with `k_shortest`, or with `coin_change` the
    /// network has switches or its links make no circulant graph. Complexity: O(servers * (vertices + links)); with `k_shortest` that of
    /// `k_shortest_paths` for each pair of servers.
    explicit path_table(network const& n, routing_options const& o = {});

    [[nodiscard]] routing_options const& options() const noexcept { return options_; }
    [[nodiscard]] std::uint32_t servers() const noexcept { return servers_; }
    /// The links of the network by their ends.
    [[nodiscard]] link_index const& links() const noexcept { return index_; }

    /// Appends the links that `flow` passes from server `from` to server `to`, in order; none where they are the same. Precondition here and
    /// below: both are servers. Complexity: O(hops * links of a vertex).
    void append_path(std::uint32_t from, std::uint32_t to, std::uint64_t flow, std::vector<link_direction>& out) const;
    /// The same, by itself.
    [[nodiscard]] std::vector<link_direction> path(std::uint32_t from, std::uint32_t to, std::uint64_t flow) const {
        std::vector<link_direction> out;
        append_path(from, to, flow, out);
        return out;
    }

    /// The vertices of the paths that flows from one server to another can take, both ends included; the first `most` of them. With `ecmp` there can
    /// be exponentially many, in ascending order; with `k_shortest` shorter ones come first.
    [[nodiscard]] std::vector<std::vector<std::uint32_t>> paths(std::uint32_t from, std::uint32_t to,
                                                                std::size_t most = std::numeric_limits<std::size_t>::max()) const;

  private:
    static constexpr std::uint64_t whole_path = ~std::uint64_t{0}; ///< no vertex: where a flow chooses all of its path

    [[nodiscard]] static network const& checked(network const& n) {
        validate(n);
        return n;
    }
    [[nodiscard]] link_direction link(std::uint32_t from, std::uint32_t to, std::uint64_t flow) const {
        auto const all = index_.all_between(from, to);
        return all[all.size() == 1 ? 0 : static_cast<std::size_t>(flow_hash(options_.seed, flow, from) % all.size())].direction;
    }
    void extend(std::vector<std::uint32_t>& path, std::uint32_t to, std::size_t most, std::vector<std::vector<std::uint32_t>>& out) const;
    void find_k_shortest(network const& n, std::vector<std::vector<std::uint32_t>> near);

    routing_options options_;
    std::uint32_t servers_, vertices_;
    link_index index_;
    std::optional<forwarding_table> next_;  ///< shortest, coin_change
    std::vector<std::uint32_t> distance_;   ///< ecmp: row: destination server; column: vertex
    std::vector<std::size_t> first_path_;   ///< k_shortest: of each pair of servers
    std::vector<std::size_t> first_vertex_; ///< of each path, in path_vertices_
    std::vector<std::uint32_t> path_vertices_;
};

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/paths/path_table.ipp>
#endif
