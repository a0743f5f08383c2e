#pragma once
// A configuration: how one operator is split and where its shards run.

#include <parsearch/space/configuration.hpp>

namespace parsearch::space {

PARSEARCH_INLINE std::int64_t configuration::place(std::int64_t shard) const noexcept {
    if (!listed.empty()) return listed[static_cast<std::size_t>(shard)];
    std::int64_t at = start;
    for (std::size_t k = rank; k-- > 0; shard /= degree[k]) at += shard % degree[k] * stride[k];
    return at;
}

PARSEARCH_INLINE std::string to_string(configuration const& c, ops::operation const& op) {
    std::string split, place;
    for (std::size_t k = 0; k < c.rank; ++k)
        if (c.degree[k] > 1) {
            split += text(split.empty() ? "" : " ", op.dims[k].name, c.degree[k]);
            place += text(place.empty() ? "+" : ",", c.stride[k]);
        }
    if (!c.listed.empty()) {
        place.clear();
        for (auto const d : c.listed) place += text(place.empty() ? "" : ",", d);
        return text(split.empty() ? "whole" : split, " @{", place, '}');
    }
    return text(split.empty() ? "whole" : split, " @", c.start, place);
}

PARSEARCH_INLINE void validate(configuration const& c, ops::operation const& op, std::size_t devices, std::string_view where) {
    auto const wrong = [&](auto const&... what) { return invalid_input("operator '", where, "' (", op.kind, "): configuration ", what...); };
    if (c.rank != op.dims.size()) throw wrong("has ", c.rank, " degrees: the operator has ", op.dims.size(), " iteration dims");
    std::int64_t shards = 1;
    for (std::size_t k = 0; k < c.rank; ++k) {
        auto const& d = op.dims[k];
        if (c.degree[k] < 1 || c.degree[k] > d.extent)
            throw wrong("splits dim '", d.name, "' of extent ", d.extent, " by ", c.degree[k], ": must be from 1 to the extent");
        if (c.degree[k] > 1 && d.kind == ops::dim_kind::fixed)
            throw wrong("splits dim '", d.name, "' by ", c.degree[k], ": the dim is not divisible");
        if (!ops::can_be_in(d, c.degree[k]))
            throw wrong("splits dim '", d.name, "' of extent ", d.extent, " by ", c.degree[k], ": must be a divisor, as the dim repeats work");
        if ((shards *= c.degree[k]) > max_shards) throw wrong("makes more than ", max_shards, " shards: too many");
    }
    if (!c.listed.empty() && c.listed.size() != static_cast<std::size_t>(shards))
        throw wrong("lists ", c.listed.size(), " devices for ", shards, " shards: must be one each");
    if (c.listed.empty()) { // the lowest and the highest device, without walking over the shards
        std::int64_t low = c.start, high = c.start;
        for (std::size_t k = 0; k < c.rank; ++k) (c.stride[k] < 0 ? low : high) += std::int64_t{c.degree[k] - 1} * c.stride[k];
        if (low >= 0 && std::cmp_less(high, devices)) return;
    }
    for (std::int64_t n = 0; n < shards; ++n)
        if (auto const d = c.place(n); d < 0 || std::cmp_greater_equal(d, devices))
            throw wrong("puts shard ", n, " on device ", d, ": the topology has ", devices);
}

} // namespace parsearch::space
