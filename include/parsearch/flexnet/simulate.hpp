#pragma once
/// Simulates task graphs of FlexNet on their own network: iteration time, time of each device, bytes on each link.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/topological_order.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/flexnet/flexnet_task_graph.hpp>
#include <parsearch/flexnet/validate.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>

namespace parsearch::flexnet {

/// What carries bytes, in one direction.
struct carrier {
    enum class type : std::uint8_t {
        network, ///< all parallel links from vertex `from` to vertex `to`
        inside,  ///< from GPU `from` to GPU `to` of the same node
        local    ///< the device at position `from` of the file
    };
    type what = type::local;
    std::uint32_t from = 0, to = 0;
    double bytes_per_ms = 0;
    friend bool operator==(carrier const&, carrier const&) = default;
};

/// "vertex 3 -> vertex 16", "gpu 0 -> gpu 1" or "nic_out device 12345" of `g`.
[[nodiscard]] std::string name_of(task_graph const& g, carrier const& c);

/// The tasks of a file for `sim::scheduler`. Resources: the devices that compute, then the carriers, then one for all barriers.
struct lowered {
    sim::task_graph tasks{};
    std::vector<std::uint32_t> source{};    ///< of each task: the position of the file's task that it is part of, or a barrier of
    std::vector<std::uint32_t> computing{}; ///< positions of the devices that compute
    std::vector<carrier> carriers{};        ///< connections in the file's order, both directions each; then what else is used, by first use
    std::vector<byte_count> bytes{};        ///< on each carrier in all
};

namespace detail {

class lowering {
  public:
    lowering(task_graph const& g, id_index index);

    lowered run() &&;

  private:
    static constexpr auto none = ~std::uint32_t{0};
    static constexpr std::size_t most_pieces = std::size_t{1} << 24;

    struct piece {
        std::uint32_t carrier = 0;
        byte_count bytes = 0;
    };

    template <class... Parts> [[noreturn]] void refuse(Parts const&... parts) const {
        auto const& t = g_.tasks[place_];
        throw invalid_input("FlexNet task graph: tasks[", place_, "] (", flexnet::name_of(t.type), ", taskid ", t.id, ") ", parts...);
    }

    std::uint32_t find_or_add(carrier const& c) {
        auto const [at, fresh] = number_.try_emplace({c.what, {c.from, c.to}}, static_cast<std::uint32_t>(out_.carriers.size()));
        if (fresh) out_.carriers.push_back(c);
        return at->second;
    }

    /// The rate of a device, or what the file says of its type; 0 where it says nothing.
    [[nodiscard]] double rate_of(device const& d) const;
    /// An NVLink device whose property is sender * GPUs + receiver, of two GPUs of one node, is what joins these.
    [[nodiscard]] bool joins_gpus(device const& d) const;
    [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> gpus_of(device const& d) const {
        auto const n = std::uint64_t{g_.nodes} * g_.gpus_per_node;
        return {static_cast<std::uint32_t>(d.property / n), static_cast<std::uint32_t>(d.property % n)};
    }
    void join_gpus(device const& d) {
        if (!joins_gpus(d)) return;
        auto const [from, to] = gpus_of(d);
        inside_rate_.try_emplace({from, to}, rate_of(d));
    }
    std::uint32_t inside(std::uint32_t from, std::uint32_t to) {
        auto const known = inside_rate_.find({from, to});
        return find_or_add({carrier::type::inside, from, to, known == inside_rate_.end() ? static_cast<double>(g_.gpu_bytes_per_ms) : known->second});
    }

    /// Adds to the bytes that the task in hand puts on a carrier.
    void put(std::uint32_t on, byte_count bytes);
    void put_on_link(std::uint32_t from, std::uint32_t to, byte_count bytes) {
        auto const at = number_.find({carrier::type::network, {from, to}});
        if (at == number_.end()) refuse("sends from vertex ", from, " to vertex ", to, ": no connection joins them");
        put(at->second, bytes);
    }
    /// Over the paths of the route, each with its part of the bytes; where the file has no route, over the connection.
    void put_on_route(std::uint32_t from, std::uint32_t to, byte_count bytes);
    /// From GPU to GPU.
    void put_between(std::uint64_t from, std::uint64_t to, byte_count bytes) {
        auto const a = node_of_gpu_.at(from), b = node_of_gpu_.at(to);
        if (a == b) put(inside(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)), bytes);
        else put_on_route(a, b, bytes);
    }

    /// Every member sends what `fabric::ring_traffic` says to the next, over all rings of the group's size, each with an equal part of the bytes; a
    /// ring of several jumps passes the members between. Without rings: one, in the order of the list.
    void all_reduce(task const& t);

    void cut(task const& t);

    [[nodiscard]] std::int64_t time_on(piece const& p) const;

    /// A task comes after those that it waits for; of those that could be next, the first of the file.
    void put_in_order();
    std::uint32_t add_part(std::uint32_t t, std::uint32_t on, std::int64_t duration, sim::task_kind kind) {
        out_.source.push_back(t);
        return out_.tasks.add(on, duration, kind, {.op = t});
    }
    [[nodiscard]] std::uint32_t number_of(task const& t) const { return compute_number_[index_.device.at(t.device)]; }
    /// The product is exact: 24 bits of the float, 21 of 10^9 = 2^9 * 5^9.
    [[nodiscard]] static std::int64_t time_of_work(task const& t) { return std::llround(static_cast<double>(t.runtime_ms) * 1e9); }

    task_graph const& g_;
    id_index index_;
    lowered out_;
    std::vector<std::uint32_t> compute_number_; ///< of each device
    std::map<std::uint64_t, std::uint32_t> node_of_gpu_;
    std::map<std::pair<carrier::type, std::pair<std::uint32_t, std::uint32_t>>, std::uint32_t> number_; ///< of carriers
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> route_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> inside_rate_; ///< of GPUs that a device joins
    std::map<std::uint64_t, std::uint32_t> rings_;                          ///< by size of the group
    std::vector<byte_count> put_;                                           ///< by carrier, of the task in hand; -1: none
    std::vector<std::uint32_t> touched_;
    std::vector<piece> pieces_;
    std::vector<std::size_t> first_piece_; ///< of each task
    std::size_t place_ = 0, steps_ = 0;
};
} // namespace detail

/// The tasks of `g` for `sim::scheduler`. Computation takes its runtime on its device. A message takes all links of its way at once, each for its
/// bytes over the link's bandwidth, one message at a time; it has arrived when all are done. An all-reduce takes the links of its rings in the same
/// way; nothing waits for it. The estimates of messages and all-reduces in the file are not read. See docs/formats.md. Throws `invalid_input` as
/// `validate` does, and naming the task where the file says no way or bandwidth for what it sends, or where there are too many hops. Complexity: O(n
/// log n) in tasks, dependencies and hops.
[[nodiscard]] inline lowered lower(task_graph const& g) { return detail::lowering(g, validate(g)).run(); }

/// What an iteration takes.
struct iteration {
    picoseconds time{};                   ///< until the last task, all-reduces included, is done
    std::vector<std::uint32_t> devices{}; ///< positions of the devices that compute
    std::vector<picoseconds> compute{};   ///< of each of these, in all
    std::vector<carrier> carriers{};      ///< all directions of connections, and what else carries bytes
    std::vector<byte_count> bytes{};      ///< on each of these
};

/// Simulates an iteration of `g`: see `lower`. Tasks run on devices and links by `order`. Deterministic on every platform. Throws as `lower` does.
[[nodiscard]] iteration simulate(task_graph const& g, sim::discipline order = sim::discipline::fifo);

} // namespace parsearch::flexnet

#ifndef PARSEARCH_COMPILED
#include <parsearch/flexnet/simulate.ipp>
#endif
