#pragma once
/// The devices of a stage as a grid with named axes, and what a plan splits over which of them: how JAX and PyTorch say where data are.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::io {

/// `size` devices, `stride` apart.
struct mesh_axis {
    std::string name;
    std::int32_t size = 1, stride = 1;
    friend bool operator==(mesh_axis const&, mesh_axis const&) = default;
};

/// Device (i0, i1, ...) of the grid is number `first` + sum of i_a * stride_a of the topology.
struct device_mesh {
    std::int32_t first = 0;
    std::vector<mesh_axis> axes{}; ///< the one of the largest stride first; none: one device

    [[nodiscard]] std::int32_t devices() const noexcept {
        std::int32_t n = 1;
        for (auto const& a : axes) n *= a.size;
        return n;
    }
    friend bool operator==(device_mesh const&, device_mesh const&) = default;
};

/// Numbers of axes of a mesh over which one thing is split, the outermost first.
using axis_numbers = std::vector<std::uint32_t>;

/// How one operator uses a mesh.
struct mesh_use {
    std::vector<axis_numbers> dims{}; ///< of each iteration dim, the axes that split it
    axis_numbers idle{};              ///< axes along which the plan uses one device only
};

/// The same configuration without a list of devices; nothing where these are not evenly spaced along each dim. A degree of 1 gets the stride 0.
[[nodiscard]] std::optional<space::configuration> evenly_spaced(space::configuration c);

namespace detail {

/// As `evenly_spaced`; refuses by name what is not, strides that go backwards, and parts of two sizes.
[[nodiscard]] space::configuration strided(space::configuration const& c, ops::operation const& op, std::string_view name);

[[nodiscard]] inline bool is_source(ops::operation const& op) noexcept { return op.work == ops::work_class::source; }
} // namespace detail

/// The mesh of `devices` devices from `first` on which the operators `which` of `g` are split: an axis between any two neighbouring distances at
/// which some dim begins or ends to be split, and those of `also`. Axes are named by what they split: "data" (samples alone), "model" (other dims),
/// "idle" (nothing), with a number behind the second of a name. Throws `invalid_input` naming the operator and the distance where these are not
/// multiples of each other, or shards are not evenly spaced. Complexity: linear in the operators' dims.
[[nodiscard]] device_mesh mesh_of(graph::dense_graph const& g, std::span<space::configuration const> strategy, std::span<std::uint32_t const> which,
                                  std::int32_t first, std::int32_t devices, std::span<std::int32_t const> also = {});

/// Over which axes of `mesh` the configuration of an operator splits its dims. Throws `invalid_input` naming the operator where two shards share a
/// device, or where its devices begin inside of an axis that it splits over.
[[nodiscard]] mesh_use use_of(device_mesh const& mesh, ops::operation const& op, space::configuration const& given, std::string_view name);

/// Over which axes of a mesh each axis of `o` is split. Throws `invalid_input` naming the operator and the axis where the pieces are not contiguous
/// and equal, as of windows that overlap.
[[nodiscard]] std::vector<axis_numbers> split_of(ops::operation const& op, ops::operand const& o, mesh_use const& use, std::string_view name);

/// The axes along which the shards of an operator have partial sums of its output `o`, or copies of the operand where that is one that it reads:
/// those of dims that do not index it.
[[nodiscard]] axis_numbers axes_beside(ops::operand const& o, mesh_use const& use);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/exports/device_mesh.ipp>
#endif
