#pragma once
/// Refuses optional functions that are there with other parameters or answers: they would be left out without a word.

#include <concepts>
#include <cstddef>

#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch::detail::near_miss {

void node_of() = delete;
void transfer_time() = delete;
void collective_time() = delete;

/// Converts to what a parameter asks for.
struct anything {
    template <class T> operator T() const; // NOLINT: conversion is the point
};

template <class T, class D>
concept answers_node_of = requires(T const& t, D const& d) { static_cast<std::size_t>(t.node_of(d)); } ||
                          requires(T const& t, D const& d) { static_cast<std::size_t>(node_of(t, d)); };
template <class T, class D>
concept member_node_of = requires { &T::node_of; } || requires { &T::template node_of<D>; } || requires(T& t, D& d) { t.node_of(d); } ||
                         requires(T& t, anything a) { t.node_of(a); } || requires(T& t, anything a) { t.node_of(a, a); };
template <class T, class D>
concept free_node_of = requires(T& t, D& d) { node_of(t, d); } || requires(T& t, anything a) { node_of(t, a); } ||
                       requires(T& t, anything a) { node_of(a, t); } || requires(T& t, anything a) { node_of(t, a, a); };

template <class O>
concept answers_transfer_time = requires(O const& o, byte_count b, link_description const& l) {
    { o.transfer_time(b, l) } -> std::convertible_to<picoseconds>;
} || requires(O const& o, byte_count b, link_description const& l) {
    { transfer_time(o, b, l) } -> std::convertible_to<picoseconds>;
};
template <class O>
concept member_transfer_time = requires { &O::transfer_time; } || requires(O& o, anything a) { o.transfer_time(a); } ||
                               requires(O& o, anything a) { o.transfer_time(a, a); } || requires(O& o, anything a) { o.transfer_time(a, a, a); };
template <class O>
concept free_transfer_time = requires(O& o, anything a) { transfer_time(o, a); } || requires(O& o, anything a) { transfer_time(o, a, a); } ||
                             requires(O& o, anything a) { transfer_time(o, a, a, a); };

template <class O>
concept member_collective_time =
    requires { &O::collective_time; } || requires(O& o, anything a) { o.collective_time(a); } || requires(O& o, anything a) {
        o.collective_time(a, a);
    } || requires(O& o, anything a) { o.collective_time(a, a, a); } || requires(O& o, anything a) { o.collective_time(a, a, a, a); };
template <class O>
concept free_collective_time = requires(O& o, anything a) { collective_time(o, a); } || requires(O& o, anything a) {
    collective_time(o, a, a);
} || requires(O& o, anything a) { collective_time(o, a, a, a); } || requires(O& o, anything a) { collective_time(o, a, a, a, a); };

/// Of the topology `T` with devices `D`. Constants by themselves: a compiler would tell all that the concepts ask.
template <class T, class D> constexpr void refuse_in_topology() {
    if constexpr (!answers_node_of<T, D>) {
        constexpr bool member = member_node_of<T, D>, free = free_node_of<T, D>;
        static_assert(!member, "the topology has a member node_of that can not be called with a device handle: t.node_of(d) must answer the number "
                               "of its node");
        static_assert(!free, "the topology has a function node_of that can not be called with a constant topology and a device handle: node_of(t, d) "
                             "must answer the number of its node");
    }
}
/// Of the oracle `O`.
template <class O> constexpr void refuse_in_oracle() {
    if constexpr (!answers_transfer_time<O>) {
        constexpr bool member = member_transfer_time<O>, free = free_transfer_time<O>;
        static_assert(!member, "the oracle has a member transfer_time that can not be called as transfer_time(byte_count, link_description) and "
                               "answer picoseconds");
        static_assert(!free, "the oracle has a function transfer_time that can not be called as transfer_time(oracle, byte_count, link_description), "
                             "the oracle constant, and answer picoseconds");
    }
    if constexpr (!HasCollectiveTime<O>) {
        constexpr bool member = member_collective_time<O>, free = free_collective_time<O>;
        static_assert(!member, "the oracle has a member collective_time that can not be called as collective_time(collective_kind, byte_count, "
                               "collective_group) and answer picoseconds");
        static_assert(!free, "the oracle has a function collective_time that can not be called as collective_time(oracle, collective_kind, "
                             "byte_count, collective_group), the oracle constant, and answer picoseconds");
    }
}

} // namespace parsearch::detail::near_miss
