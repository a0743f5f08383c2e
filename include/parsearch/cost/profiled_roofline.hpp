#pragma once
/// The roofline of a topology's devices; where there is a profile, what was measured first.

#include <cstdint>
#include <optional>
#include <span>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/cost_source.hpp>
#include <parsearch/cost/measured_table.hpp>
#include <parsearch/cost/memoized.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::cost {

/// A `CostOracle` of the devices of a `topology::cluster`: a `roofline`, or in front of it a `memoized` `measured_table` that falls back to it.
/// For one thread, where there is a profile.
class profiled_roofline {
  public:
    /// `measured` may be null, and is copied. Throws as `roofline` and `measured_table` do.
    explicit profiled_roofline(topology::cluster const& cluster, profile const* measured = nullptr, roofline_options const& options = {})
        : roofline_(cluster, options) {
        if (measured) measured_.emplace(table(*measured, cluster, roofline_), kind_of_device<std::uint32_t>(cluster));
    }

    [[nodiscard]] picoseconds shard_time(ops::shard_work const& work, std::uint32_t device) const {
        return measured_ ? measured_->shard_time(work, device) : roofline_(work, device);
    }
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const {
        return roofline_.collective_time(kind, bytes, group);
    }
    void require_devices(std::span<device_description const> devices) const { roofline_.require_devices(devices); }

    /// The time of a shard, with what it rests on; not remembered.
    [[nodiscard]] cost_answer answer(ops::shard_work const& work, std::uint32_t device) const {
        return measured_ ? measured_->oracle().answer(work, device) : roofline_.answer(work, device);
    }

  private:
    using table = measured_table<std::uint32_t, roofline>;
    roofline roofline_;
    std::optional<memoized<table, kind_of_device<std::uint32_t>>> measured_;
};

} // namespace parsearch::cost
