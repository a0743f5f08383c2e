#include <parsearch/concepts/near_miss.hpp>

#include <concepts>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/concepts/device_topology.hpp>

namespace near_miss_test {
struct gpu {};
struct socket {};
using parsearch::byte_count, parsearch::collective_group, parsearch::collective_kind, parsearch::picoseconds;

// Nothing to refuse.
struct without {};
struct right {
    [[nodiscard]] int node_of(gpu) const { return 0; }
};
struct any_device {
    template <class D> [[nodiscard]] int node_of(D const&) const { return 0; }
};
struct by_function {
    std::vector<int> node_of;
};
inline std::size_t node_of(by_function const&, gpu const&) { return 0; }
/// Has it where what it is made of has.
template <class T> struct around {
    T inner;
    template <class D>
        requires requires(T const& t, D const& d) { t.node_of(d); }
    [[nodiscard]] auto node_of(D const& d) const {
        return inner.node_of(d);
    }
};
struct other {};
inline int node_of(other const&, int, int) { return 0; } // of another type

// Members to refuse.
struct member_of_two {
    [[nodiscard]] int node_of(gpu, int) const { return 0; }
};
struct not_constant {
    [[nodiscard]] int node_of(gpu) { return 0; }
};
struct overloads {
    [[nodiscard]] int node_of(socket) const { return 0; }
    [[nodiscard]] int node_of(socket, int) const { return 0; }
};
struct template_of_two {
    template <class D> [[nodiscard]] int node_of(D const&, int) const { return 0; }
};
struct template_of_pointers {
    template <class D> [[nodiscard]] int node_of(D*) const { return 0; }
};
struct named {
    [[nodiscard]] std::string node_of(gpu) const { return {}; }
};
struct only_data {
    std::vector<int> node_of;
};

// Functions to refuse.
struct of_sockets {};
inline int node_of(of_sockets const&, socket const&) { return 0; }
struct turned {};
inline int node_of(gpu const&, turned const&) { return 0; }
struct changed {};
inline int node_of(changed&, gpu) { return 0; }
struct changed_device {};
inline int node_of(changed_device const&, gpu&) { return 0; }
struct of_three {};
template <class D> int node_of(of_three const&, D const&, int) { return 0; }

// Oracles.
struct asked {
    [[nodiscard]] picoseconds collective_time(collective_kind, byte_count, collective_group const&) const { return {}; }
};
template <class O> struct keeping {
    O inner;
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const
        requires parsearch::HasCollectiveTime<O>
    {
        return inner.collective_time(kind, bytes, group);
    }
};
struct no_kind {
    template <class Group> [[nodiscard]] picoseconds collective_time(byte_count, Group const&) const { return {}; }
};
struct free_seconds {};
inline double collective_time(free_seconds const&, collective_kind, byte_count, collective_group const&) { return 0; }
struct transfers_of_bytes {};
inline picoseconds transfer_time(transfers_of_bytes const&, byte_count) { return {}; }
} // namespace near_miss_test

using namespace near_miss_test;
namespace near_miss = parsearch::detail::near_miss;

namespace {
template <class T>
concept NodesAnswered = near_miss::answers_node_of<T, gpu>;
template <class T>
concept NodesLeftOut = !NodesAnswered<T> && !near_miss::member_node_of<T, gpu> && !near_miss::free_node_of<T, gpu>;
template <class T>
concept MemberRefused = !NodesAnswered<T> && near_miss::member_node_of<T, gpu> && !near_miss::free_node_of<T, gpu>;
template <class T>
concept FunctionRefused = !NodesAnswered<T> && !near_miss::member_node_of<T, gpu> && near_miss::free_node_of<T, gpu>;
template <class O>
concept CollectivesLeftOut = !parsearch::HasCollectiveTime<O> && !near_miss::member_collective_time<O> && !near_miss::free_collective_time<O>;
} // namespace

TEST_CASE("near_miss: what is right or not there at all is let be, also where it is there under a condition") {
    static_assert(NodesAnswered<right> && NodesAnswered<any_device> && NodesAnswered<by_function> && NodesAnswered<around<right>>);
    static_assert(NodesLeftOut<without> && NodesLeftOut<around<without>>);
    static_assert(parsearch::HasCollectiveTime<asked> && parsearch::HasCollectiveTime<keeping<asked>>);
    static_assert(CollectivesLeftOut<without> && CollectivesLeftOut<keeping<without>>);
    static_assert(!near_miss::member_transfer_time<without> && !near_miss::free_transfer_time<without>);
    near_miss::refuse_in_topology<by_function, gpu>();
    near_miss::refuse_in_topology<around<without>, gpu>();
    near_miss::refuse_in_oracle<keeping<asked>>();
    near_miss::refuse_in_oracle<keeping<without>>();
    auto const oracle = [](int, gpu) { return picoseconds{1}; };
    near_miss::refuse_in_oracle<decltype(oracle)>();
}

TEST_CASE("near_miss: other parameters and other answers are seen, of members, of templates and of functions") {
    static_assert(MemberRefused<member_of_two> && MemberRefused<not_constant> && MemberRefused<overloads> && MemberRefused<template_of_two>);
    static_assert(MemberRefused<template_of_pointers> && MemberRefused<named> && MemberRefused<only_data>);
    static_assert(FunctionRefused<of_sockets> && FunctionRefused<turned> && FunctionRefused<changed> && FunctionRefused<changed_device>);
    static_assert(FunctionRefused<of_three>);
    static_assert(near_miss::member_collective_time<no_kind> && !parsearch::HasCollectiveTime<no_kind>);
    static_assert(near_miss::free_collective_time<free_seconds> && !parsearch::HasCollectiveTime<free_seconds>);
    static_assert(near_miss::free_transfer_time<transfers_of_bytes> && !near_miss::answers_transfer_time<transfers_of_bytes>);
}
