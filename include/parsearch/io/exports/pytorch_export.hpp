#pragma once
/// Plans for PyTorch: device meshes, DTensor placements of parameters and activations, styles of parallelize_module, arguments of fully_shard, stages
/// and their schedule, activation checkpoints. See docs/run.md.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/device_mesh.hpp>
#include <parsearch/io/exports/exported_plan.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/pipeline/launch_order.hpp>

namespace parsearch::io {

inline constexpr std::string_view pytorch_format = "parsearch.pytorch";
inline constexpr std::uint64_t pytorch_version = 1;

namespace detail {

class pytorch_writer {
  public:
    explicit pytorch_writer(exported_plan const& p) : p_(p), stages_(stages_of(p)) {}

    [[nodiscard]] ordered_json write();

  private:
    [[nodiscard]] static ordered_json mesh_json(device_mesh const& mesh);

    /// One placement per dim of the mesh: DTensor cuts an axis by the dims of a mesh in their order.
    [[nodiscard]] static ordered_json placements(device_mesh const& mesh, std::vector<axis_numbers> const& split, axis_numbers const& partial,
                                                 std::string const& what);

    /// The module that holds a weight: its name up to the last dot.
    [[nodiscard]] static std::string module_of(std::string const& parameter) {
        auto const dot = parameter.rfind('.');
        return dot == std::string::npos ? parameter : parameter.substr(0, dot);
    }

    void add_operator(std::uint32_t number, ordered_json& parameters, ordered_json& activations, ordered_json& styles);

    /// Whether an operator has weights that one axis of the mesh splits, as a style of torch.distributed.tensor.parallel has it.
    void add_style(std::uint32_t number, mesh_use const& use, device_mesh const& mesh, ordered_json& styles);

    /// How the first input of an operator is split.
    [[nodiscard]] std::vector<axis_numbers> input_split(std::uint32_t number, mesh_use const& use) const {
        auto const& op = p_.graph.operations[number];
        return op.inputs.empty() ? std::vector<axis_numbers>{} : split_of(op, op.inputs.front(), use, p_.graph.names[number]);
    }
    [[nodiscard]] static std::string placement_along(std::uint32_t axis, std::vector<axis_numbers> const& split, bool partial) {
        for (std::size_t i = 0; i < split.size(); ++i)
            if (std::ranges::find(split[i], axis) != split[i].end()) return text("Shard(", i, ')');
        return partial ? "Partial()" : "Replicate()";
    }
    /// How the first reader of an operator has its output along an axis of the mesh.
    [[nodiscard]] std::string read_along(std::uint32_t number, std::uint32_t axis) const;

    [[nodiscard]] ordered_json sharded();

    [[nodiscard]] ordered_json pipelining();

    /// Modules by segment.
    [[nodiscard]] ordered_json checkpoint() const;

    exported_plan const& p_;
    std::vector<exported_stage> stages_;
    std::map<std::string, std::pair<std::uint32_t, ordered_json>> placements_{}; ///< by parameter, the first stage and placement
    std::vector<std::string> notes_{};
    bool told_idle_ = false;
};
} // namespace detail

/// Writes a plan as JSON that PyTorch programs read ("parsearch.pytorch"): what goes into init_device_mesh, distribute_tensor, parallelize_module,
/// fully_shard, pipeline's split_spec and checkpoint. Throws `invalid_input` naming operator, value and rule where `stages_of`, `use_of` or
/// `split_of` do, where an axis is split over dims of the mesh in another order than theirs, where operators place one parameter in two ways or
/// stages, on copies, on activations on hosts, and on orders of micro-batches that torch.distributed.pipelining has no schedule for.
inline void write_pytorch_export(std::ostream& out, exported_plan const& p) { write_json(out, detail::pytorch_writer(p).write()); }

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/exports/pytorch_export.ipp>
#endif
