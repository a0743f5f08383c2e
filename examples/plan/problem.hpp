#pragma once
// What is searched.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/cost/measured_table.hpp>
#include <parsearch/cost/memoized.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/described/described_kernels.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/cluster.hpp>

#include "request.hpp"

namespace plan {

using measured_oracle = ps::cost::measured_table<std::uint32_t, ps::cost::roofline>;

// The roofline; where there is a profile, what was measured first.
class cost_oracle {
  public:
    cost_oracle(ps::topology::cluster const& cluster, ps::cost::profile const* profile, ps::io::kernel_options const& kernels)
        : roofline_(cluster, kernels.roofline()) {
        if (profile) measured_.emplace(measured_oracle(*profile, cluster, roofline_), ps::cost::kind_of_device<std::uint32_t>(cluster));
    }

    [[nodiscard]] ps::picoseconds shard_time(ps::ops::shard_work const& work, std::uint32_t device) const {
        return measured_ ? measured_->shard_time(work, device) : roofline_(work, device);
    }
    [[nodiscard]] ps::picoseconds collective_time(ps::collective_kind kind, ps::byte_count bytes, ps::collective_group const& group) const {
        return roofline_.collective_time(kind, bytes, group);
    }
    void require_devices(std::span<ps::device_description const> devices) const { roofline_.require_devices(devices); }

    [[nodiscard]] ps::cost::cost_answer answer(ps::ops::shard_work const& work, std::uint32_t device) const {
        return measured_ ? measured_->oracle().answer(work, device) : roofline_.answer(work, device);
    }

  private:
    ps::cost::roofline roofline_;
    std::optional<ps::cost::memoized<measured_oracle, ps::cost::kind_of_device<std::uint32_t>>> measured_;
};

} // namespace plan
