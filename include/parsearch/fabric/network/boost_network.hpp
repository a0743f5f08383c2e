#pragma once
/// A user's Boost.Graph graph as a network. The only header of `fabric/` that includes Boost.Graph.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>

#include <parsearch/fabric/network/network.hpp>

namespace parsearch::fabric {

/// An undirected graph of Boost.Graph whose vertices are numbered 0, 1, 2, ... by `vertex_index`.
template <class G>
concept BoostNetwork = requires(G const& g) { // first: graph_traits of what is no graph at all does not compile
    { num_vertices(g) } -> std::convertible_to<std::size_t>;
    edges(g);
} && std::convertible_to<typename boost::graph_traits<G>::directed_category, boost::undirected_tag> && requires(G const& g) {
    { get(boost::vertex_index, g, *vertices(g).first) } -> std::convertible_to<std::size_t>;
};

/// The network of graph `g`: vertices 0 to `servers` - 1 are servers (not set: all), the others switches; each edge is a link, in the order of
/// `edges(g)`. `link` is a `link_description` for all of them, or a function of the edge descriptor that returns one. No rings.
/// Throws `invalid_input` where there are fewer vertices than `servers`, and as `validate`.
template <BoostNetwork G, class Link>
    requires std::convertible_to<Link const&, link_description> ||
             std::is_invocable_r_v<link_description, Link const&, typename boost::graph_traits<G>::edge_descriptor>
[[nodiscard]] network network_of(G const& g, Link const& link, std::optional<std::uint32_t> servers = {}) {
    auto const count = num_vertices(g);
    if (count > max_vertices || (servers && *servers > count))
        throw invalid_input("network of a graph of ", count, " vertices, of which ", servers ? *servers : count, " are servers: must be at most ",
                            max_vertices, " vertices, and no more servers than these");
    auto const all = static_cast<std::uint32_t>(count);
    network out{"graph", servers.value_or(all), 0, {}, {}};
    out.switches = all - out.servers;
    auto const number = [&](auto v) { return static_cast<std::uint32_t>(get(boost::vertex_index, g, v)); };
    for (auto [at, end] = edges(g); at != end; ++at) {
        if constexpr (std::convertible_to<Link const&, link_description>) out.links.push_back({number(source(*at, g)), number(target(*at, g)), link});
        else out.links.push_back({number(source(*at, g)), number(target(*at, g)), link(*at)});
    }
    validate(out);
    return out;
}

} // namespace parsearch::fabric
