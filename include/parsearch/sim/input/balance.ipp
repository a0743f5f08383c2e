#pragma once
// Samples divided as devices are fast.

#include <algorithm>
#include <cmath>
#include <limits>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/ops/device_shares.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/sim/input/balance.hpp>

namespace parsearch::sim::detail {

/// The dim of samples of `op`, where any number of them can be by themselves.
PARSEARCH_INLINE std::optional<std::uint32_t> divisible_dim(ops::operation const& op) {
    auto const k = ops::sample_dim(op);
    try {
        if (k) (void)ops::on_samples(op, {.n = op.dims[*k].extent}, {});
        return k;
    } catch (invalid_input const&) {
        return std::nullopt;
    }
}

/// Seconds that a device takes for all operators of `g` on a `part` of their samples along `dims`, one for each where it has some, backward too where
/// `training`.
PARSEARCH_INLINE double time_of_part(graph::dense_graph const& g, std::span<std::optional<std::uint32_t> const> dims, cost::any_oracle const& oracle,
                                     std::uint32_t device, double part, bool training) {
    double sum = 0;
    auto const add = [&](std::size_t op, ops::operation const& mine) {
        std::vector<std::int32_t> const degrees(mine.dims.size(), 1);
        sum += to_seconds(oracle.shard_time(ops::work_of(mine, degrees, ops::pass::forward), device));
        if (training && g.trains[op])
            sum += to_seconds(oracle.shard_time(ops::work_of(mine, degrees, ops::pass::backward, g.input_gradients(op)), device));
    };
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& whole = g.operations[op];
        if (whole.work == ops::work_class::source || whole.work == ops::work_class::view) continue;
        if (!dims[op]) {
            add(op, whole);
            continue;
        }
        auto const extent = whole.dims[*dims[op]].extent;
        std::int64_t const taken = std::llround(part * static_cast<double>(extent));
        add(op, ops::on_samples(whole, {.n = extent, .taken = std::clamp(taken, std::int64_t{1}, extent)}, {}));
    }
    return sum;
}

/// The part of the samples that a device of each kind is to have: of some rounds in which parts are changed in proportion to what they take,
/// beginning with equal ones, the one whose slowest device is fastest.
PARSEARCH_INLINE std::vector<double> parts_by_kind(graph::dense_graph const& g, std::span<std::optional<std::uint32_t> const> dims,
                                                   topology::dense_topology const& t, cost::any_oracle const& oracle, bool training,
                                                   std::size_t kinds) {
    std::vector<std::uint32_t> example(kinds, 0);
    for (std::uint32_t d = 0; d < t.size(); ++d) example[t.kind[d]] = d;
    std::vector<double> part(kinds, 1 / static_cast<double>(t.size())), best = part;
    double least = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 8; ++round) {
        std::vector<double> time;
        for (std::size_t k = 0; k < kinds; ++k) time.push_back(time_of_part(g, dims, oracle, example[k], part[k], training));
        if (auto const slowest = *std::ranges::max_element(time); slowest < least) {
            least = slowest;
            best = part;
        }
        if (*std::ranges::min_element(time) <= 0) break; // nothing takes time there
        double all = 0;
        for (auto const k : t.kind) all += part[k] / time[k];
        for (std::size_t k = 0; k < kinds; ++k) part[k] = part[k] / time[k] / all;
    }
    return best;
}

} // namespace parsearch::sim::detail

namespace parsearch::sim {

PARSEARCH_INLINE void balance_samples(graph::dense_graph& g, topology::dense_topology const& t, cost::any_oracle const& oracle, bool training) {
    std::vector<std::optional<std::uint32_t>> dims;
    for (auto const& op : g.operations) dims.push_back(detail::divisible_dim(op));
    auto const kinds = t.kind.empty() ? std::size_t{0} : std::size_t{1} + *std::ranges::max_element(t.kind);
    std::shared_ptr<ops::device_shares const> shares;
    if (kinds > 1) {
        auto const part = detail::parts_by_kind(g, dims, t, oracle, training, kinds);
        std::vector<double> of_device;
        for (auto const k : t.kind) of_device.push_back(part[k]);
        shares = std::make_shared<ops::device_shares const>(of_device);
    }
    for (std::size_t op = 0; op < g.size(); ++op)
        if (dims[op]) g.operations[op].dims[*dims[op]].shares = shares;
}

} // namespace parsearch::sim
