#pragma once
/// Machine views: which device of a machine of equal nodes runs which task of a parallel operator.

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <range/v3/view/indices.hpp>
#include <range/v3/view/transform.hpp>

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
[[nodiscard]] inline machine_device device_of(machine_view const& view, std::span<std::int32_t const> degrees, std::int64_t task) noexcept {
    auto at = view.start;
    for (std::size_t k = degrees.size(); k-- > 0; task /= degrees[k])
        (view.across[k] ? at.node : at.device) += static_cast<std::int32_t>(task % degrees[k]) * view.stride[k];
    return at;
}

/// The smallest box that holds the devices of all tasks. Precondition: the view is in normal form.
[[nodiscard]] inline resource_box footprint(machine_view const& view, std::span<std::int32_t const> degrees) noexcept {
    resource_box out{.first_node = view.start.node, .nodes = 1, .first_device = view.start.device, .devices = 1};
    for (std::size_t k = 0; k < degrees.size(); ++k) (view.across[k] ? out.nodes : out.devices) += (degrees[k] - 1) * view.stride[k];
    return out;
}

/// The same placement as a configuration of an operator whose iteration dims are the task dims, on devices numbered node by node:
/// node * devices_per_node + device. Throws `invalid_input` where the ranks differ, a degree is below 1, or a device is not on its node.
[[nodiscard]] inline space::configuration to_configuration(machine_view const& view, std::span<std::int32_t const> degrees,
                                                           std::int32_t devices_per_node) {
    if (view.rank != degrees.size() || degrees.size() > ops::max_dims)
        throw invalid_input("a machine view of ", view.rank, " dims for ", degrees.size(), " degrees: must be as many, at most ", ops::max_dims);
    for (std::size_t k = 0; k < degrees.size(); ++k)
        if (degrees[k] < 1) throw invalid_input("a machine view for degree ", degrees[k], " of dim ", k, ": must be at least 1");
    auto const box = footprint(view, degrees);
    if (box.first_device < 0 || box.first_device + box.devices > devices_per_node)
        throw invalid_input("a machine view of ", to_string(box), " on nodes of ", devices_per_node, " devices: must be on one's own node");
    space::configuration c{.rank = view.rank, .start = view.start.node * devices_per_node + view.start.device};
    for (std::size_t k = 0; k < degrees.size(); ++k) {
        c.degree[k] = degrees[k];
        c.stride[k] = degrees[k] == 1 ? 0 : view.across[k] ? view.stride[k] * devices_per_node : view.stride[k];
    }
    return c;
}

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
    view_space(std::vector<std::int32_t> degrees, resource_box const& box, view_options const& options = {})
        : degrees_(std::move(degrees)), box_(box), labels_(options.labels) {
        validate(box, "machine views");
        if (degrees_.size() > ops::max_dims) throw invalid_input("machine views of ", degrees_.size(), " task dims: must be at most ", ops::max_dims);
        if (!labels_.empty() && labels_.size() != degrees_.size())
            throw invalid_input("machine views: ", labels_.size(), " labels for ", degrees_.size(), " task dims: must be none or as many");
        if (options.equivalence > view_equivalence::devices)
            throw invalid_input("machine views: equivalence number ", static_cast<int>(options.equivalence), ": must be one of those declared");
        std::int64_t const devices = std::int64_t{box.nodes} * box.devices;
        std::int64_t tasks = 1;
        for (std::size_t k = 0; k < degrees_.size(); ++k) {
            if (degrees_[k] < 1) throw invalid_input("machine views: degree ", degrees_[k], " of task dim ", k, ": must be at least 1");
            if (tasks <= devices) tasks *= degrees_[k]; // more tasks than devices: there is no view
        }
        first_.push_back(0);
        if (tasks > devices) return;
        lines_[0] = {std::vector<std::uint8_t>(static_cast<std::size_t>(box.devices), 0), {0}};
        lines_[1] = {std::vector<std::uint8_t>(static_cast<std::size_t>(box.nodes), 0), {0}};
        lines_[0].used[0] = lines_[1].used[0] = 1;
        view_.rank = static_cast<std::uint32_t>(degrees_.size());
        view_.start = {box.first_node, box.first_device};
        distinct_ = options.equivalence == view_equivalence::devices;
        extend(0);
        lines_ = {};
        seen_.clear();
    }

    [[nodiscard]] std::size_t size() const noexcept { return first_.back(); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    /// View number `i` < size(): by strides, then by start, the node first.
    [[nodiscard]] machine_view operator[](std::size_t i) const {
        auto const at = static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), i) - first_.begin()) - 1;
        auto const& s = shapes_[at];
        auto const rest = i - first_[at], across = static_cast<std::size_t>(s.device_starts);
        auto out = s.view;
        out.start.node += static_cast<std::int32_t>(rest / across);
        out.start.device += static_cast<std::int32_t>(rest % across);
        return out;
    }

    /// All of them, lazily. The index has 32 bits because the difference of two 64-bit ones is no standard integer.
    [[nodiscard]] auto all() const {
        return ranges::views::transform(ranges::views::indices(static_cast<std::uint32_t>(size())), [this](std::uint32_t i) { return (*this)[i]; });
    }
    /// All of them, in memory. Complexity: O(size()).
    [[nodiscard]] std::vector<machine_view> list() const {
        std::vector<machine_view> out;
        out.reserve(size());
        for (auto const& s : shapes_)
            for (std::int32_t n = 0; n < s.node_starts; ++n)
                for (std::int32_t d = 0; d < s.device_starts; ++d) {
                    out.push_back(s.view);
                    out.back().start.node += n;
                    out.back().start.device += d;
                }
        return out;
    }

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

    void extend(std::size_t k) {
        if (k == degrees_.size()) {
            add();
            return;
        }
        if (degrees_[k] == 1) {
            extend(k + 1);
            return;
        }
        for (bool const across : {false, true}) {
            auto& l = lines_[across];
            auto const length = static_cast<std::int32_t>(l.used.size());
            std::int32_t const far = *std::max_element(l.places.begin(), l.places.end());
            auto const before = l.places.size();
            for (std::int32_t stride = 1; stride <= (length - 1 - far) / (degrees_[k] - 1); ++stride) {
                if (!ascends(k, across, stride)) continue;
                if (cover(l, before, degrees_[k], stride)) {
                    view_.stride[k] = stride;
                    view_.across[k] = across;
                    extend(k + 1);
                }
                for (std::size_t p = before; p < l.places.size(); ++p) l.used[static_cast<std::size_t>(l.places[p])] = 0;
                l.places.resize(before);
            }
        }
        view_.stride[k] = 0;
        view_.across[k] = false;
    }
    /// Adds the places that a dim of `degree` and `stride` makes of the first `before`; false where two are the same.
    static bool cover(line& l, std::size_t before, std::int32_t degree, std::int32_t stride) {
        for (std::int32_t j = 1; j < degree; ++j)
            for (std::size_t p = 0; p < before; ++p) {
                auto const place = l.places[p] + j * stride;
                if (l.used[static_cast<std::size_t>(place)]) return false;
                l.used[static_cast<std::size_t>(place)] = 1;
                l.places.push_back(place);
            }
        return true;
    }
    /// Whether the dims that may change roles with dim `k` and come before it stride less.
    [[nodiscard]] bool ascends(std::size_t k, bool across, std::int32_t stride) const {
        if (!labels_.empty())
            for (std::size_t j = 0; j < k; ++j)
                if (labels_[j] == labels_[k] && degrees_[j] == degrees_[k] && std::pair(view_.across[j], view_.stride[j]) > std::pair(across, stride))
                    return false;
        return true;
    }
    void add() {
        if (distinct_) {
            std::array<std::vector<std::int32_t>, 2> covered{lines_[0].places, lines_[1].places};
            for (auto& places : covered) std::sort(places.begin(), places.end());
            if (!seen_.insert(std::move(covered)).second) return;
        }
        auto const covers = footprint(view_, degrees_);
        shapes_.push_back({view_, box_.nodes - covers.nodes + 1, box_.devices - covers.devices + 1});
        auto const count = static_cast<std::uint64_t>(shapes_.back().node_starts) * static_cast<std::uint64_t>(shapes_.back().device_starts);
        first_.push_back(first_.back() + static_cast<std::size_t>(count));
        if (shapes_.size() > max_view_shapes || first_.back() > std::numeric_limits<std::uint32_t>::max())
            throw invalid_input("machine views on ", to_string(box_), ": more than ", max_view_shapes,
                                " combinations of strides or 2^32 views: limit the box");
    }

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
