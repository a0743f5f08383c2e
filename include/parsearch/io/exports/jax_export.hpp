#pragma once
/// Plans for JAX: meshes, a PartitionSpec per parameter and activation, micro-batches, stages, what is computed again; and the graph, so that a
/// program can run it. See docs/run.md.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/io/exports/device_mesh.hpp>
#include <parsearch/io/exports/exported_plan.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/sim/report.hpp>

namespace parsearch::io {

inline constexpr std::string_view jax_format = "parsearch.jax";
inline constexpr std::uint64_t jax_version = 1;

namespace detail {

/// What of a weight's states its replicas share, as JAX can say it: axes of the mesh behind those that split one axis of it.
struct shared_axis {
    std::size_t axis = 0;
    axis_numbers over{};
};

/// A weight whose replicas share gradients or parameters: what a transfer of its block moves of it.
struct shared_weight {
    std::uint32_t block = 0;
    byte_count bytes = 0, gradients = 0;                ///< of one of its parts on one replica
    std::uint32_t parts = 1, replicas = 1, sharing = 1; ///< `sharing`: of the replicas, those that share

    struct amount {
        byte_count bytes;
        std::uint32_t devices, groups;
    };
    [[nodiscard]] amount moved(collective_kind kind) const noexcept {
        if (kind == collective_kind::all_reduce) return {gradients / sharing, replicas / sharing, parts * sharing};
        return {kind == collective_kind::all_gather ? bytes : gradients, sharing, parts * (replicas / sharing)};
    }
};

class jax_writer {
  public:
    explicit jax_writer(exported_plan const& p) : p_(p), stages_(stages_of(p, node_ends(p))) {}

    [[nodiscard]] ordered_json write();

  private:
    /// Where nodes end, for states that are shared within them.
    [[nodiscard]] static std::vector<std::int32_t> node_ends(exported_plan const& p) {
        if (p.plan.how.sharded != pipeline::sharded_states::parameters_within_nodes) return {};
        return {static_cast<std::int32_t>(std::min<std::size_t>(node_size(p), p.topology.size() / p.plan.how.launching().groups()))};
    }

    [[nodiscard]] static ordered_json shape_of(ops::operand const& o) {
        auto out = ordered_json::array();
        for (auto const& a : o.axes) out.push_back(a.extent);
        return out;
    }
    [[nodiscard]] static ordered_json names_of(device_mesh const& mesh, axis_numbers const& axes) {
        auto out = ordered_json::array();
        for (auto const a : axes) out.push_back(mesh.axes[a].name);
        return out;
    }
    [[nodiscard]] static ordered_json spec_of(device_mesh const& mesh, std::vector<axis_numbers> const& split) {
        auto out = ordered_json::array();
        for (auto const& axes : split) out.push_back(names_of(mesh, axes));
        return out;
    }

    [[nodiscard]] ordered_json operator_of(std::uint32_t number);

    /// A weight of an operator: which parameter it is and how it indexes it. The first that names a parameter says where that is.
    [[nodiscard]] ordered_json weight_of(std::uint32_t number, ops::operand const& w, mesh_use const& use, device_mesh const& mesh);

    /// Devices from one end of the sharing replicas to the other.
    [[nodiscard]] std::int32_t sharing_within(device_mesh const& mesh) const {
        return p_.plan.how.sharded == pipeline::sharded_states::parameters_within_nodes ? node_ends(p_).front() : mesh.devices();
    }

    [[nodiscard]] shared_weight shared_weight_of(std::uint32_t number, ops::operand const& w, std::vector<axis_numbers> const& split,
                                                 axis_numbers const& beside, device_mesh const& mesh) const;

    /// The first axis that the replicas which share divide; nothing where they divide none.
    [[nodiscard]] std::optional<shared_axis> shared_axis_of(ops::operand const& w, std::vector<axis_numbers> const& split, axis_numbers const& beside,
                                                            device_mesh const& mesh) const;

    /// What moves, and memory by device, as simulated.
    [[nodiscard]] ordered_json predicted() const;

    exported_plan const& p_;
    std::vector<exported_stage> stages_;
    ordered_json parameters_ = ordered_json::array();
    std::unordered_map<std::string, std::uint32_t> stage_of_parameter_{};
    std::vector<shared_weight> shared_{};
    std::vector<std::string> notes_{};
    std::size_t idle_ = 0, summed_ = 0;
    std::string first_idle_{}, first_summed_{};
};
} // namespace detail

/// Writes a plan as JSON that JAX programs read ("parsearch.jax"). Units are in the names; shapes are those of a micro-batch. What JAX cannot say is
/// in `notes`, or refused: throws `invalid_input` naming operator, value and rule where `stages_of`, `use_of` or `split_of` do, where a parameter is
/// of several stages, and where activations are on hosts.
inline void write_jax_export(std::ostream& out, exported_plan const& p) { write_json(out, detail::jax_writer(p).write()); }

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/exports/jax_export.ipp>
#endif
