#pragma once
/// Machine views: which device of a machine of equal nodes runs which task of a parallel operator.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <range/v3/view/indices.hpp>
#include <range/v3/view/transform.hpp>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/mapping/resource_box.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::rewrite {

/// A device of a machine: the node, and the number within the node.
struct machine_device {
    std::int32_t node = 0, device = 0;
    friend auto operator<=>(machine_device const&, machine_device const&) = default;
};

/// Maps task (i0, i1, ...) of an operator to a device: from `start`, i_k * stride[k] nodes further where `across[k]`, else as many
/// devices further on the same node. In normal form the strides are positive, and 0 within the node (which maps nothing) for dims of
/// degree 1 and past `rank`: two views in normal form map all tasks alike only where they are equal.
/// Source: Unger et al., Unity, OSDI 2022 (machine views of start and strides); strides across and within nodes: the refactored flexflow-train.
struct machine_view {
    std::uint32_t rank = 0; ///< number of task dims
    machine_device start{};
    std::array<std::int32_t, ops::max_dims> stride{};
    std::array<bool, ops::max_dims> across{};

    friend auto operator<=>(machine_view const&, machine_view const&) = default;
};

/// The device of task number `task` (row major, last dim fastest) of an operator split by `degrees`, one per dim of `view`.
[[nodiscard]] machine_device device_of(machine_view const& view, std::span<std::int32_t const> degrees, std::int64_t task) noexcept;

/// The smallest box that holds the devices of all tasks. Precondition: the view is in normal form.
[[nodiscard]] inline resource_box footprint(machine_view const& view, std::span<std::int32_t const> degrees) noexcept {
    resource_box out{.first_node = view.start.node, .nodes = 1, .first_device = view.start.device, .devices = 1};
    for (std::size_t k = 0; k < degrees.size(); ++k) (view.across[k] ? out.nodes : out.devices) += (degrees[k] - 1) * view.stride[k];
    return out;
}

/// The same placement as a configuration of an operator whose iteration dims are the task dims, on devices numbered node by node:
/// node * devices_per_node + device. Throws `invalid_input` where the ranks differ, a degree is below 1, or a device is not on its node.
[[nodiscard]] space::configuration to_configuration(machine_view const& view, std::span<std::int32_t const> degrees, std::int32_t devices_per_node);

/// Which views count as the same, so that one of them is enumerated: the first.
enum class view_equivalence : std::uint8_t {
    tasks,  ///< those that map every task to the same device
    devices ///< those that use the same devices, for any tasks: enough where only the set of devices has a price
};
[[nodiscard]] constexpr std::string_view name_of(view_equivalence e) noexcept { return e == view_equivalence::tasks ? "tasks" : "devices"; }

/// What limits an enumeration of views.
struct view_options {
    view_equivalence equivalence = view_equivalence::tasks;
    /// A label per task dim, or empty. Dims of the same label and degree may change roles (two attribute dims of an elementwise operator,
    /// say): of the views that differ in that alone the one is enumerated whose dims stride in ascending order, within nodes before across.
    std::vector<std::uint32_t> labels{};
};

/// The most classes of views that differ in strides; a view space of more is refused.
inline constexpr std::size_t max_view_shapes = std::size_t{1} << 24;

/// All machine views, in normal form, of an operator split by `degrees` on the devices of `box`: every task on a device of its own, none
/// outside. Any strides and starts count, nested or not, so that these are all placements that such a view can describe. No two of them
/// are the same (see `view_options`). Strides are found once, for any start, by a search that leaves out what collides or does not fit.
/// A sized range: random access is O(log shapes + dims). Making it: O(shapes * tasks), shapes being the combinations of strides that fit
/// or fail at the last dim.
class view_space {
  public:
    /// Throws `invalid_input` on a bad box, degree or label, or where there are more than `max_view_shapes` shapes.
    view_space(std::vector<std::int32_t> degrees, resource_box const& box, view_options const& options = {});

    [[nodiscard]] std::size_t size() const noexcept { return first_.back(); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    /// View number `i` < size(): by strides, then by start, the node first.
    [[nodiscard]] machine_view operator[](std::size_t i) const;

    /// All of them, lazily. The index has 32 bits because the difference of two 64-bit ones is no standard integer.
    [[nodiscard]] auto all() const {
        return ranges::views::transform(ranges::views::indices(static_cast<std::uint32_t>(size())), [this](std::uint32_t i) { return (*this)[i]; });
    }
    /// All of them, in memory. Complexity: O(size()).
    [[nodiscard]] std::vector<machine_view> list() const;

    [[nodiscard]] std::span<std::int32_t const> degrees() const noexcept { return degrees_; }
    [[nodiscard]] resource_box const& box() const noexcept { return box_; }

  private:
    /// Strides, at the lowest start, and how many starts there are.
    struct shape {
        machine_view view;
        std::int32_t node_starts, device_starts;
    };
    /// What the dims so far cover of the devices of a node, or of the nodes.
    struct line {
        std::vector<std::uint8_t> used;
        std::vector<std::int32_t> places; // in the order of tasks; the last dim alone may not be last
    };

    void extend(std::size_t k);
    /// Adds the places that a dim of `degree` and `stride` makes of the first `before`; false where two are the same.
    static bool cover(line& l, std::size_t before, std::int32_t degree, std::int32_t stride);
    /// Whether the dims that may change roles with dim `k` and come before it stride less.
    [[nodiscard]] bool ascends(std::size_t k, bool across, std::int32_t stride) const;
    void add();

    std::vector<std::int32_t> degrees_;
    resource_box box_;
    std::vector<std::uint32_t> labels_;
    std::vector<shape> shapes_;
    std::vector<std::size_t> first_; // number of the first view of each shape, then of all

    // While strides are looked for.
    bool distinct_ = false;
    machine_view view_{};
    std::array<line, 2> lines_{}; // of devices within a node, of nodes
    std::set<std::array<std::vector<std::int32_t>, 2>> seen_;
};

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/mapping/machine_view.ipp>
#endif
