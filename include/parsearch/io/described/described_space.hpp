#pragma once
/// The options of configuration spaces that can be written as text: all but the user's function.

#include <array>

#include <parsearch/io/described/described.hpp>
#include <parsearch/space/operator_space.hpp>

namespace parsearch::io {

template <> inline constexpr auto enumerators<space::placements> = std::array{space::placements::contiguous, space::placements::strided};

template <>
inline constexpr auto described<space::space_options> = boost::hana::make_tuple(
    field("sample", &space::space_options::sample, "the batch may be split (data parallelism)"),
    field("attribute", &space::space_options::attribute, "height, width and sequence may be split"),
    field("parameter", &space::space_options::parameter, "channels, features and heads may be split (tensor parallelism)"),
    field("reduction", &space::space_options::reduction, "what is summed over may be split, which leaves partial sums"),
    field("copies", &space::space_options::copies,
          "in which an operator may run, or a divisor, at least 1: the same work on several devices, so that nothing is sent"),
    field("sums", &space::space_options::sums, "partial sums on which a linear operator may run, or a divisor, at least 1: they are reduced later"),
    field("uneven", &space::space_options::uneven,
          "dims may be in as many parts as divide the devices, although these do not divide the extent: the first shards are larger then"),
    field("min_shard", &space::space_options::min_shard, "the smallest extent that a split may leave, at least 1"),
    field("max_shards", &space::space_options::max_shards, "of one operator; 0: as many as there are devices"),
    field("placements", &space::space_options::placements,
          "the devices of an operator's shards: neighbours from any device, or also every stride that divides the devices evenly"),
    field("all_orders", &space::space_options::all_orders,
          "every order of the split dims over the devices; false: parameter and reduction shards on neighbours"));

} // namespace parsearch::io
