#pragma once
// Machine views: which device of a machine of equal nodes runs which task of a parallel operator.

#include <algorithm>
#include <limits>

#include <parsearch/rewrite/mapping/machine_view.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE machine_device device_of(machine_view const& view, std::span<std::int32_t const> degrees, std::int64_t task) noexcept {
    auto at = view.start;
    for (std::size_t k = degrees.size(); k-- > 0; task /= degrees[k])
        (view.across[k] ? at.node : at.device) += static_cast<std::int32_t>(task % degrees[k]) * view.stride[k];
    return at;
}

PARSEARCH_INLINE space::configuration to_configuration(machine_view const& view, std::span<std::int32_t const> degrees,
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

PARSEARCH_INLINE view_space::view_space(std::vector<std::int32_t> degrees, resource_box const& box, view_options const& options)
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

PARSEARCH_INLINE machine_view view_space::operator[](std::size_t i) const {
    auto const at = static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), i) - first_.begin()) - 1;
    auto const& s = shapes_[at];
    auto const rest = i - first_[at], across = static_cast<std::size_t>(s.device_starts);
    auto out = s.view;
    out.start.node += static_cast<std::int32_t>(rest / across);
    out.start.device += static_cast<std::int32_t>(rest % across);
    return out;
}

PARSEARCH_INLINE std::vector<machine_view> view_space::list() const {
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

PARSEARCH_INLINE void view_space::extend(std::size_t k) {
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

PARSEARCH_INLINE bool view_space::cover(line& l, std::size_t before, std::int32_t degree, std::int32_t stride) {
    for (std::int32_t j = 1; j < degree; ++j)
        for (std::size_t p = 0; p < before; ++p) {
            auto const place = l.places[p] + j * stride;
            if (l.used[static_cast<std::size_t>(place)]) return false;
            l.used[static_cast<std::size_t>(place)] = 1;
            l.places.push_back(place);
        }
    return true;
}

PARSEARCH_INLINE bool view_space::ascends(std::size_t k, bool across, std::int32_t stride) const {
    if (!labels_.empty())
        for (std::size_t j = 0; j < k; ++j)
            if (labels_[j] == labels_[k] && degrees_[j] == degrees_[k] && std::pair(view_.across[j], view_.stride[j]) > std::pair(across, stride))
                return false;
    return true;
}

PARSEARCH_INLINE void view_space::add() {
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

} // namespace parsearch::rewrite
