#pragma once
/// Fabrics by name: "fabric:random_regular,servers=16,gpus_per_server=4,degree=4,interface=100Gbps".

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/paths/path_table.hpp>
#include <parsearch/fabric/paths/routing.hpp>
#include <parsearch/fabric/servers/server_cluster.hpp>
#include <parsearch/io/described/described.hpp>
#include <parsearch/io/text/device_names.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::io {

/// "100Gbps" (bits), "12.5GBps" (bytes): a rate of a link.
template <> struct option_value<bandwidth> {
    struct unit {
        std::string_view name;
        double bytes, of; ///< so many bytes per second are `of` of it
    };
    static constexpr std::array<unit, 7> units{
        {{"Gbps", 1e9, 8}, {"Tbps", 1e12, 8}, {"Mbps", 1e6, 8}, {"GBps", 1e9, 1}, {"MBps", 1e6, 1}, {"kBps", 1e3, 1}, {"Bps", 1, 1}}};
    /// A positive number and a unit.
    static bool read(std::string_view s, bandwidth& v) {
        auto const digits = std::min(s.find_first_not_of("0123456789."), s.size());
        for (auto const& u : units) {
            if (s.substr(digits) != u.name) continue;
            double number = 0;
            if (!option_value<double>::read(s.substr(0, digits), number)) return false;
            v.bytes_per_second = number * u.bytes / u.of;
            return v.bytes_per_second > 0 && std::isfinite(v.bytes_per_second);
        }
        return false;
    }
    /// In Gbps where that reads back to the same, else in bytes.
    static std::string print(bandwidth v) {
        auto const gigabits = plain(v.bytes_per_second * 8 / 1e9) + "Gbps";
        bandwidth again;
        return read(gigabits, again) && again == v ? gigabits : plain(v.bytes_per_second) + "Bps";
    }
    static std::string allowed() { return "a rate in bits or bytes per second such as 100Gbps, 400Gbps or 12.5GBps"; }
    static constexpr std::string_view placeholder = "RATE";

  private:
    /// The digits of a number without an exponent, as few as read back to it.
    static std::string plain(double x) {
        std::array<char, 400> out; // the largest number has 309
        auto const end = std::to_chars(out.data(), out.data() + out.size(), x, std::chars_format::fixed).ptr;
        return {out.data(), end};
    }
};

template <>
inline constexpr auto enumerators<fabric::routing> =
    std::array{fabric::routing::shortest, fabric::routing::ecmp, fabric::routing::k_shortest, fabric::routing::coin_change};
template <>
inline constexpr auto enumerators<fabric::inside_server> =
    std::array{fabric::inside_server::direct, fabric::inside_server::one_switch, fabric::inside_server::merged};

/// Servers of GPUs, their interfaces and how these are joined.
struct fabric_options {
    std::uint32_t servers = 16, gpus_per_server = 4;
    std::uint32_t degree = 4; ///< interfaces per server
    bandwidth interface {
        100e9 / 8
    };
    std::chrono::nanoseconds latency{1000};
    std::string device = "a100";
    std::optional<fabric::inside_server> inside{};
    fabric::routing routing = fabric::routing::shortest;
    std::uint32_t paths = 4;
    std::uint64_t wiring_seed = 0;
    std::uint32_t servers_per_rack = 4;
    double ratio = 2;
    std::vector<std::uint32_t> extents{}, steps{};
    std::uint64_t rounds = 5;
    friend bool operator==(fabric_options const&, fabric_options const&) = default;
};
template <>
inline constexpr auto described<fabric_options> = boost::hana::make_tuple(
    field("servers", &fabric_options::servers, "servers"), field("gpus_per_server", &fabric_options::gpus_per_server, "GPUs of a server"),
    field("degree", &fabric_options::degree,
          "interfaces of a server. Servers that are joined with each other have one at each end of a link; one that is joined with a switch has all "
          "of them "
          "in one link, of degree times their rate"),
    field("interface", &fabric_options::interface, "rate of an interface in each direction"),
    field("latency", &fabric_options::latency, "of a link between servers or switches"),
    field("device", &fabric_options::device, "the GPU; its links inside a server and to the interfaces are those of NODESxGPUSxDEVICE"),
    field("inside", &fabric_options::inside,
          "how the GPUs of a server are joined: a link for every pair, one switch, or merged to one device as fast as all; none: as the device's "
          "nodes have it"),
    field("routing", &fabric_options::routing,
          "the way between two servers: one shortest path, all shortest paths by hash of the flow, several short paths by hash, or fewest jumps on a "
          "circulant"),
    field("paths", &fabric_options::paths, "paths of each pair of servers with k_shortest"),
    field("wiring_seed", &fabric_options::wiring_seed, "of random networks, and of the hash that chooses paths"),
    field("servers_per_rack", &fabric_options::servers_per_rack, "servers on a rack's switch"),
    field("ratio", &fabric_options::ratio, "what a rack's servers can send to what leaves the rack, at least 1"),
    field("extents", &fabric_options::extents, "servers in each dimension; none: degree / 2 dimensions, as equal as the number of servers allows"),
    field("steps", &fabric_options::steps,
          "servers are joined with those so many further on; none: degree / 2 steps that make short paths, as topology finding takes them"),
    field(
        "rounds", &fabric_options::rounds,
        "searches, each followed by a wiring for what it found, at most, from each beginning: wired for data parallelism, an ideal switch, a random "
        "network, a fat tree that costs as much; the budget of the search is for all of them together"));

/// A fabric: its name, the network that it makes, a line about it, and the options that only it (and others that name them) has.
struct fabric_entry {
    std::string_view name;
    fabric::network (*make)(fabric_options const&, link_description const& interface); ///< null: it depends on a model, see `fabric::co_optimize`
    std::string_view help;
    std::array<std::string_view, 2> own{};
};

namespace detail {

/// All interfaces of a server as one link.
[[nodiscard]] inline link_description joined(fabric_options const& o, link_description each) {
    if (o.degree < 1) throw invalid_input("degree is 0: must be at least 1");
    each.rate.bytes_per_second *= o.degree;
    return each;
}

/// `n` in at most `dimensions` factors, ascending: again and again the smallest whose power would reach what is left.
[[nodiscard]] std::vector<std::uint32_t> even_extents(std::uint32_t n, std::uint32_t dimensions);

[[nodiscard]] fabric::network named_torus(fabric_options const& o, link_description const& interface);

[[nodiscard]] fabric::network named_circulant(fabric_options const& o, link_description const& interface);

[[nodiscard]] fabric::network named_random(fabric_options const& o, link_description const& interface);

} // namespace detail

/// The fabrics. Networks of switches give each server one link of degree * interface.
inline constexpr std::array fabrics{
    fabric_entry{"ideal_switch",
                 [](fabric_options const& o, link_description const& each) { return fabric::ideal_switch(o.servers, detail::joined(o, each)); },
                 "one switch without limits of its own; each server has one link of degree * interface"},
    fabric_entry{"fat_tree",
                 [](fabric_options const& o, link_description const& each) { return fabric::fat_tree(o.servers, detail::joined(o, each)); },
                 "three layers of switches that do not block; each server has one link of degree * interface"},
    fabric_entry{"oversubscribed",
                 [](fabric_options const& o, link_description const& each) {
                     return fabric::oversubscribed(o.servers, detail::joined(o, each), {.servers_per_rack = o.servers_per_rack, .ratio = o.ratio});
                 },
                 "a switch per rack, all joined with a layer above of less rate; each server has one link of degree * interface",
                 {"servers_per_rack", "ratio"}},
    fabric_entry{"random_regular", detail::named_random, "servers joined at random, each with as many others as it has interfaces (Jellyfish)"},
    fabric_entry{"fully_connected", [](fabric_options const& o, link_description const& each) { return fabric::fully_connected(o.servers, each); },
                 "an interface of each server for every other"},
    fabric_entry{"torus", detail::named_torus, "servers joined with their neighbours in every dimension, around the ends", {"extents"}},
    fabric_entry{"circulant",
                 detail::named_circulant,
                 "servers joined with those some steps further on, which makes rings to all-reduce in (TotientPerms)",
                 {"steps"}},
    fabric_entry{
        "topoopt", nullptr, "servers wired for the traffic of the strategy, which is searched on what was wired, in turns (TopoOpt)", {"rounds"}}};

/// The names of the fabrics, comma separated.
[[nodiscard]] inline std::string fabric_names() {
    std::string out;
    for (auto const& f : fabrics) out += text(out.empty() ? "" : ", ", f.name);
    return out;
}

/// The fabric of that name. Throws `invalid_input` listing the names where there is none.
[[nodiscard]] inline fabric_entry const& find_fabric(std::string_view name) {
    for (auto const& f : fabrics)
        if (f.name == name) return f;
    throw invalid_input("fabric '", name, "' is not known: must be one of ", fabric_names());
}

/// Whether fabric `f` has the option of that name.
[[nodiscard]] inline bool has_fabric_option(fabric_entry const& f, std::string_view option) {
    auto const owns = [&](fabric_entry const& e) { return std::find(e.own.begin(), e.own.end(), option) != e.own.end(); };
    return has_option<fabric_options>(option) && (owns(f) || std::none_of(fabrics.begin(), fabrics.end(), owns));
}

/// What the options say of servers: GPUs and links as nodes of the device have them (`topology::nodes`). Of a PCIe tree there is one switch, and the
/// way to the interfaces is a GPU's PCIe link. Throws `invalid_input` on an unknown device or no GPUs.
[[nodiscard]] fabric::server_options servers_of(fabric_options const& o);

/// Which paths the options say.
[[nodiscard]] inline fabric::routing_options paths_of(fabric_options const& o) { return {.policy = o.routing, .k = o.paths, .seed = o.wiring_seed}; }

/// A fabric as it was asked for.
struct asked_fabric {
    fabric_entry const* entry = nullptr;
    fabric_options options{};
};

inline constexpr std::string_view fabric_prefix = "fabric:";

/// Takes "NAME,key=value,..." apart. Throws `invalid_input` naming the fabric, the option, its value and what is allowed: also on an option that
/// only other fabrics have, and on `paths` without `k_shortest`.
[[nodiscard]] asked_fabric read_fabric(std::string_view given);

/// A fabric and the cluster that it makes.
struct named_fabric {
    fabric::network network;
    topology::cluster cluster;
};

/// The fabric of "NAME,key=value,..." and its cluster. Networks without rings of their own have those that `disjoint_rings` finds. Throws
/// `invalid_input` naming the fabric and the rule that is broken, and on a fabric that depends on a model.
[[nodiscard]] named_fabric make_fabric(std::string_view given);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/names/fabric_name.ipp>
#endif
