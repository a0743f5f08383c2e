#pragma once
/// The concept `CostOracle`: how long one shard of an operator takes on a device, a message on a link, a collective in a group.

#include <concepts>
#include <type_traits>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/concepts/device_topology.hpp>

namespace parsearch {

namespace detail::cost_oracle_cpo {

void shard_time() = delete;
void transfer_time() = delete;
void collective_time() = delete;

struct shard_time_fn {
    template <class O, class Work, class D> constexpr decltype(auto) operator()(O const& o, Work const& work, D const& device) const {
        if constexpr (requires { o.shard_time(work, device); }) return o.shard_time(work, device);
        else if constexpr (requires { shard_time(o, work, device); }) return shard_time(o, work, device);
        else return o(work, device);
    }
};
struct transfer_time_fn {
    template <class O> picoseconds operator()(O const& o, byte_count bytes, link_description const& link) const {
        if constexpr (requires { o.transfer_time(bytes, link); }) return o.transfer_time(bytes, link);
        else if constexpr (requires { transfer_time(o, bytes, link); }) return transfer_time(o, bytes, link);
        else return link.latency + time_of(bytes, link.rate);
    }
};

template <class O, class Work, class D>
concept has_shard_time = requires(O const& o, Work const& w, D const& d) { o.shard_time(w, d); } || requires(O const& o, Work const& w, D const& d) {
    shard_time(o, w, d);
} || requires(O const& o, Work const& w, D const& d) { o(w, d); };

template <class O>
concept member_collective_time = requires(O const& o, collective_kind k, byte_count b, collective_group const& g) {
    { o.collective_time(k, b, g) } -> std::convertible_to<picoseconds>;
};
template <class O>
concept adl_collective_time = requires(O const& o, collective_kind k, byte_count b, collective_group const& g) {
    { collective_time(o, k, b, g) } -> std::convertible_to<picoseconds>;
};
struct collective_time_fn {
    template <class O>
        requires member_collective_time<O> || adl_collective_time<O>
    picoseconds operator()(O const& o, collective_kind kind, byte_count bytes, collective_group const& group) const {
        if constexpr (member_collective_time<O>) return o.collective_time(kind, bytes, group);
        else return collective_time(o, kind, bytes, group);
    }
};
} // namespace detail::cost_oracle_cpo

/// `shard_time(o, work, device)`: time of one shard of an operator in one pass on one device.
/// Member, then ADL, then a call `o(work, device)`: a lambda is an oracle.
inline constexpr detail::cost_oracle_cpo::shard_time_fn shard_time{};
/// `transfer_time(o, bytes, link)`: how long a message holds a link. Optional: latency + bytes / bandwidth.
inline constexpr detail::cost_oracle_cpo::transfer_time_fn transfer_time{};
/// `collective_time(o, kind, bytes, group)`. Optional: the simulator falls back to `cost::alpha_beta`.
inline constexpr detail::cost_oracle_cpo::collective_time_fn collective_time{};

/// The oracle has its own model of collectives.
template <class O>
concept HasCollectiveTime = detail::cost_oracle_cpo::member_collective_time<O> || detail::cost_oracle_cpo::adl_collective_time<O>;

/// Answers times: `shard_time(o, work, device)` converts to `picoseconds`. See docs/concepts/cost_oracle.md.
template <class O, class Work, class Device>
concept CostOracle = std::copy_constructible<O> && detail::cost_oracle_cpo::has_shard_time<O, Work, Device> &&
                     requires(O const& o, Work const& work, Device const& device) {
                         { parsearch::shard_time(o, work, device) } -> std::convertible_to<picoseconds>;
                     };

} // namespace parsearch
