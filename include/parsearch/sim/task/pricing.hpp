#pragma once
/// Asks a cost oracle for the durations of tasks on a dense topology, checked.

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/any_oracle.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/topology/dense_topology.hpp>
#include <parsearch/topology/group.hpp>

namespace parsearch::sim {

/// A task on a link.
struct hop {
    std::uint32_t link = 0;
    bool follows = false;      ///< it carries on what the hop before it in its message carried: `store_and_forward`, `cut_through`
    std::int64_t duration = 0; ///< picoseconds
};

/// How long the link is held that is held longest.
[[nodiscard]] inline std::int64_t longest_hop(std::span<hop const> links) noexcept {
    std::int64_t out = 0;
    for (auto const& h : links) out = std::max(out, h.duration);
    return out;
}

/// Bytes from a device to another.
struct message {
    std::uint32_t from = 0, to = 0;
    byte_count bytes = 0;
};

/// Durations in picoseconds. Holds a reference to the topology, which must outlive it, and a copy of the oracle.
/// An oracle that answers a negative time is refused with the operator, pass and kind of device.
class pricing {
  public:
    /// `oracle` counts devices as `topology` does.
    pricing(topology::dense_topology const& topology, cost::any_oracle const& oracle, simulation_options const& options = {});

    /// Kinds of devices.
    [[nodiscard]] std::size_t kinds() const noexcept { return example_.size(); }

    /// One shard on a device of kind `kind`.
    [[nodiscard]] std::int64_t shard(ops::shard_work const& work, std::size_t kind, std::string_view op) const;

    /// The links of a message, each with the time for which the message holds it. Appends to `out`.
    /// - streaming: through all of them at once, so it holds each for its own time of the bytes plus the empty-message time (latency) of the others;
    /// - store_and_forward: one after the other, each for its own time;
    /// - cut_through: segment by segment, each link for its time of the segment;
    /// - fair_sharing: all of them at once, each for its time of the bytes without latency.
    /// Throws `invalid_input` where a message has more than a million segments.
    void append_route(std::uint32_t from, std::uint32_t to, byte_count bytes, std::vector<hop>& out);
    /// The links of messages that are sent together, all at once: each is held for the time of all bytes that pass it, plus what the largest latency
    /// of a message has beside its own.
    [[nodiscard]] std::vector<hop> all_to_all_v(std::span<message const> messages);
    /// `bytes` from device `device` to its host, or back.
    [[nodiscard]] std::int64_t host_copy(byte_count bytes, std::uint32_t device) const;
    /// Time of an empty message on each link.
    [[nodiscard]] std::vector<std::int64_t> const& latencies() const noexcept { return idle_; }

    /// The links of a collective over `members` (ascending): the slowest link of its rings (of an all-to-all: of all pairs) is held for the
    /// collective's time, the others in proportion to their load.
    [[nodiscard]] std::vector<hop> collective(collective_kind kind, byte_count bytes, std::vector<std::uint32_t> const& members);
    /// The links on one replica's side of an all-reduce among `members` (ascending) and the like of them of all `simulation_options::replicas`.
    [[nodiscard]] std::vector<hop> all_reduce_of_replicas(byte_count bytes, std::vector<std::uint32_t> const& members);

  private:
    [[nodiscard]] std::vector<hop> collective(collective_kind kind, byte_count bytes, std::vector<std::uint32_t> const& members,
                                              topology::ring_group const& group) const;
    void append_segments(topology::route_links const& route, byte_count bytes, std::vector<hop>& out);
    [[nodiscard]] std::int64_t time_on(std::uint32_t link, byte_count bytes, std::vector<std::int64_t>& known) const {
        if (known[link] == unknown) known[link] = time_of_message(bytes, link);
        return known[link];
    }
    [[nodiscard]] std::int64_t time_of_message(byte_count bytes, std::uint32_t link) const {
        auto const place = [&] { return text("a message of ", bytes, " bytes on link ", link, " of the topology"); };
        auto const t = named(place, [&] { return oracle_.transfer_time(bytes, topology_->links[link]); });
        return checked(t, [&] { return text("the cost oracle answers ", t.count(), " ps for ", place()); });
    }
    /// `f()`, with `place()` in front of what it refuses.
    template <class Place, class F> static picoseconds named(Place const& place, F const& f) {
        try {
            return f();
        } catch (invalid_input const& e) {
            throw invalid_input(place(), ": ", e.what());
        }
    }

    /// The limit keeps the few sums that are made of durations before they are scheduled inside 64 bits.
    template <class What> static std::int64_t checked(picoseconds t, What const& what) {
        if (t < picoseconds::zero() || t > longest) throw invalid_input(what(), ": must be from 0 to ", longest.count(), " (13 days)");
        return t.count();
    }
    static constexpr picoseconds longest{std::int64_t{1} << 60};

    using groups = std::map<std::vector<std::uint32_t>, topology::ring_group>; ///< by members
    topology::ring_group const& describe(std::vector<std::uint32_t> const& members, bool exchange);
    /// That of `members` among those known, or what `make()` answers, which is known then.
    template <class Make> static topology::ring_group const& find(groups& known, std::vector<std::uint32_t> const& members, Make const& make) {
        if (auto const at = known.find(members); at != known.end()) return at->second;
        auto group = make();
        if (known.size() >= remembered_groups) known.clear();
        return known.emplace(members, std::move(group)).first->second;
    }

    /// Times of messages of a size, by link, as far as they are known. Messages of few sizes come in turns.
    std::vector<std::int64_t>& times_of(byte_count bytes);

    struct message_times {
        byte_count bytes = 0;
        std::vector<std::int64_t> known;
    };
    static constexpr byte_count most_segments = 1'000'000;
    static constexpr std::size_t remembered_sizes = 8;
    static constexpr std::size_t remembered_groups = 1 << 14;
    static constexpr std::int64_t unknown = -1;
    static constexpr byte_count none = -1;
    topology::dense_topology const* topology_;
    cost::any_oracle oracle_;
    transfer_model transfers_;
    byte_count segment_;
    std::uint32_t replicas_;
    std::vector<std::uint32_t> example_;  ///< a device of each kind
    std::vector<std::int64_t> idle_;      ///< time of an empty message, by link
    std::vector<byte_count> bytes_on_;    ///< each link, while messages are summed; else none
    std::vector<message_times> messages_; ///< of at most `remembered_sizes` sizes
    groups groups_, exchanges_, of_replicas_;
};

/// Payload bytes that a collective of `bytes` moves in all between `members` devices.
[[nodiscard]] double collective_volume(collective_kind kind, double bytes, double members) noexcept;

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/task/pricing.ipp>
#endif
