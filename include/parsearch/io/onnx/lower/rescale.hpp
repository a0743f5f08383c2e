#pragma once
/// Gives a graph whose batch is built in another one: finds what must change where a constant says the old batch.
///
/// The graph is walked twice, first with its own batch. The second walk compares every value with what it was: a tensor whose shape has
/// changed carries the batch on the axis that differs, and a node that is told a shape by a constant must be told another.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx::detail {

/// What the second walk adds to its network.
struct rescaling_edits {
    std::function<value_id(std::vector<std::int64_t>)> constant;                 ///< a fixed list of integers
    std::function<value_id(value_id, std::vector<std::int64_t> const&)> widened; ///< a value repeated to a shape
};

/// The new shape of a reshaped tensor that was `old_in` and became `old_out`, and is `new_in` now: the batch goes on where it went before.
/// Nothing where more than one axis has changed or no axis of the output can carry it.
///
/// The batch of an axis that grew is its outermost factor. It goes to the axis of the output, within what that axis was divided into, whose
/// extent is the old batch; else, where the batch is not leading and the output is a matrix, to the rows; else to the axis that begins where it
/// begins.
[[nodiscard]] inline std::optional<std::vector<std::int64_t>> follow_reshape(std::vector<std::int64_t> const& old_in,
                                                                             std::vector<std::int64_t> const& new_in,
                                                                             std::vector<std::int64_t> const& old_out, std::int64_t batch) {
    if (old_in.size() != new_in.size()) return std::nullopt;
    std::size_t k = 0;
    while (k < old_in.size() && old_in[k] == new_in[k]) ++k;
    if (k == old_in.size() ||
        !std::equal(old_in.begin() + static_cast<std::ptrdiff_t>(k) + 1, old_in.end(), new_in.begin() + static_cast<std::ptrdiff_t>(k) + 1))
        return std::nullopt;
    std::int64_t before = 1;
    for (std::size_t i = 0; i < k; ++i) before *= old_in[i];
    auto const after = before * old_in[k]; // the axis covers [before, after) of the strides
    std::optional<std::size_t> exact, first;
    std::int64_t reach = 1;
    for (std::size_t j = 0; j < old_out.size(); ++j) {
        auto const next = reach * old_out[j];
        if (!exact && old_out[j] == batch && reach >= before && next <= after) exact = j;
        if (!first && next > before) first = j;
        reach = next;
    }
    auto const to = exact ? exact : old_out.size() == 2 && before > 1 ? std::optional<std::size_t>{0} : first;
    if (!to) return std::nullopt;
    auto out = old_out;
    __extension__ typedef __int128 wide;
    auto const grown = static_cast<wide>(out[*to]) * new_in[k];
    if (grown % old_in[k] != 0 || grown / old_in[k] > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    out[*to] = static_cast<std::int64_t>(grown / old_in[k]);
    return out;
}

class rescaling {
  public:
    /// Nothing is rescaled.
    rescaling() = default;
    /// `old` is the network of the first walk, at batch `from`; the data inputs are given batch `to` in the second.
    rescaling(network old, std::int64_t from, std::int64_t to) : old_(std::make_shared<network const>(std::move(old))), from_(from), to_(to) {
        for (value_id v = 0; v < old_->values.size(); ++v) by_name_.emplace(old_->values[v].name, v);
    }

    [[nodiscard]] bool active() const noexcept { return old_ != nullptr; }

    /// A shape that the file gives and that begins with the old batch, with the new one.
    [[nodiscard]] std::vector<std::int64_t> scaled_leading(std::vector<std::int64_t> shape) const {
        if (active() && !shape.empty() && shape[0] == from_) shape[0] = to_;
        return shape;
    }

    /// What `v` was in the first walk; null where it was not there.
    [[nodiscard]] value const* before(value const& v) const { return named(v.name); }

    /// Changes what `n`, whose first output has the name `output`, reads.
    void follow(network const& net, node& n, std::string const& output, rescaling_edits const& edits) const {
        if (!active() || !n.domain.empty() || n.inputs.empty()) return;
        auto const* const made = named(output);
        if (n.type == "Reshape") reshape(net, n, made, edits);
        else if (n.type == "Expand") expand(net, n, made, edits);
        else if (n.type == "Slice") slice(net, n, made, edits);
        else if (n.type == "Resize") resize(net, n, made, edits);
        else if (n.type == "Concat") align(net, n, edits, 0, true);
        else if (n.type == "MatMul") align(net, n, edits, 2, false);
        else if (n.type == "LSTM" || n.type == "GRU" || n.type == "RNN") states(net, n, edits);
        else if (broadcasts(n.type)) align(net, n, edits, 0, false);
    }

  private:
    std::shared_ptr<network const> old_;
    std::map<std::string_view, value_id> by_name_; // of names in `*old_`, which copies share
    std::int64_t from_ = 0, to_ = 0;

    using extents = std::vector<std::int64_t>;

    [[nodiscard]] value const* named(std::string const& name) const {
        auto const at = by_name_.find(name);
        return at == by_name_.end() ? nullptr : &old_->values[at->second];
    }
    [[nodiscard]] static bool broadcasts(std::string_view type) {
        for (auto const t : {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Where", "And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater",
                             "GreaterOrEqual", "Min", "Max", "Sum", "Mean"})
            if (type == t) return true;
        return false;
    }
    /// The old value of input `i` where its rank is that of the new one, else null.
    [[nodiscard]] value const* old_input(network const& net, node const& n, std::size_t i) const {
        if (i >= n.inputs.size() || n.inputs[i] == no_value) return nullptr;
        auto const* const was = before(net[n.inputs[i]]);
        return was != nullptr && was->shape.extents.size() == net[n.inputs[i]].shape.extents.size() ? was : nullptr;
    }
    /// The integers that input `i` holds where they are those that it held: what is computed from shapes has followed already.
    [[nodiscard]] extents const* unchanged_integers(network const& net, node const& n, std::size_t i) const {
        auto const* const was = old_input(net, n, i);
        auto const* const now = i < n.inputs.size() ? integers_of(net, n.inputs[i]) : nullptr;
        return was != nullptr && now != nullptr && was->contents && *was->contents == *net[n.inputs[i]].contents ? now : nullptr;
    }

    void reshape(network const& net, node& n, value const* made, rescaling_edits const& edits) const {
        auto const* const was = old_input(net, n, 0);
        auto const* const target = unchanged_integers(net, n, 1);
        if (was == nullptr || made == nullptr || target == nullptr || target->empty()) return;
        auto const& now = net[n.inputs[0]].shape.extents;
        // A leading extent that is left open, or taken from the input, follows by itself.
        if (was->shape.extents == now || target->front() == -1 || (target->front() == 0 && attribute_of(n, "allowzero", std::int64_t{0}) == 0))
            return;
        if (auto to = follow_reshape(was->shape.extents, now, made->shape.extents, from_)) n.inputs[1] = edits.constant(std::move(*to));
    }

    void expand(network const& net, node& n, value const* made, rescaling_edits const& edits) const {
        auto const* const was = old_input(net, n, 0);
        if (was == nullptr || made == nullptr) return;
        auto const now = net[n.inputs[0]].shape.extents;
        auto to = made->shape.extents;
        if (to.size() < now.size()) return;
        auto const lead = to.size() - now.size();
        if (unchanged_integers(net, n, 1) == nullptr) { // the target has followed, a constant that is repeated has not
            auto const* const target = n.inputs.size() > 1 ? integers_of(net, n.inputs[1]) : nullptr;
            if (target == nullptr || target->size() != to.size() || net[n.inputs[0]].from != origin::fixed) return;
            auto wide = now;
            for (std::size_t i = 0; i < now.size(); ++i)
                if (now[i] == from_ && (*target)[lead + i] == to_) wide[i] = to_;
            if (wide != now && from_ != 1) n.inputs[0] = edits.widened(n.inputs[0], wide);
            return;
        }
        bool changed = false;
        for (std::size_t i = 0; i < now.size(); ++i)
            if (now[i] != was->shape.extents[i]) to[lead + i] = now[i], changed = true;
        if (!changed && from_ > 1 && !to.empty() && to[0] == from_ && (lead > 0 || now[0] == 1)) to[0] = to_, changed = true;
        if (changed) n.inputs[1] = edits.constant(std::move(to));
    }

    /// A slice that took all of an axis takes all of it.
    void slice(network const& net, node& n, value const* made, rescaling_edits const& edits) const {
        auto const* const was = old_input(net, n, 0);
        if (was == nullptr || made == nullptr || made->shape.extents.size() != was->shape.extents.size()) return;
        auto const& now = net[n.inputs[0]].shape.extents;
        bool const by_attribute = has_attribute(n, "ends");
        auto const held = [&](std::size_t i, std::string_view name) -> std::optional<extents> {
            if (by_attribute) return attribute_of(n, name, extents{});
            auto const* const v = i < n.inputs.size() ? integers_of(net, n.inputs[i]) : nullptr;
            return v != nullptr ? std::optional{*v} : std::nullopt;
        };
        auto ends = held(2, "ends");
        auto const axes = held(3, "axes");
        if (!ends) return;
        bool changed = false;
        for (std::size_t k = 0; k < ends->size(); ++k) {
            auto axis = axes && k < axes->size() ? (*axes)[k] : static_cast<std::int64_t>(k);
            if (axis < 0) axis += static_cast<std::int64_t>(now.size());
            if (axis < 0 || axis >= static_cast<std::int64_t>(now.size())) return;
            auto const i = static_cast<std::size_t>(axis);
            if (now[i] == was->shape.extents[i] || made->shape.extents[i] != was->shape.extents[i] || (*ends)[k] < was->shape.extents[i]) continue;
            (*ends)[k] = std::numeric_limits<std::int64_t>::max();
            changed = true;
        }
        if (!changed) return;
        if (by_attribute) n.attributes.insert_or_assign("ends", attribute{*ends});
        else n.inputs[2] = edits.constant(std::move(*ends));
    }

    void resize(network const& net, node& n, value const* made, rescaling_edits const& edits) const {
        auto const* const was = old_input(net, n, 0);
        auto const* const sizes = unchanged_integers(net, n, 3);
        if (was == nullptr || made == nullptr || sizes == nullptr || sizes->size() != was->shape.extents.size()) return;
        auto to = *sizes;
        for (std::size_t i = 0; i < to.size(); ++i)
            if (to[i] == was->shape.extents[i]) to[i] = net[n.inputs[0]].shape.extents[i];
        n.inputs[3] = edits.constant(std::move(to));
    }

    /// Repeats an input over the new batch where another has it and this one still has the old. Axes are compared from the last, the last
    /// `skip` left out. Broadcasting repeats an extent of 1 by itself, Concat does not.
    void align(network const& net, node& n, rescaling_edits const& edits, std::size_t skip, bool joins) const {
        std::size_t rank = 0;
        for (auto const v : n.inputs)
            if (v != no_value) rank = std::max(rank, net[v].shape.extents.size());
        auto axis = attribute_of(n, "axis", std::int64_t{-1});
        if (axis < 0) axis += static_cast<std::int64_t>(rank);
        for (std::size_t back = skip; back < rank; ++back) {
            if (joins && static_cast<std::int64_t>(rank - 1 - back) == axis) continue;
            std::optional<std::int64_t> was_extent, now_extent;
            for (std::size_t i = 0; i < n.inputs.size(); ++i) {
                auto const* const was = old_input(net, n, i);
                if (was == nullptr || was->shape.extents.size() <= back) continue;
                auto const a = was->shape.extents.size() - 1 - back;
                if (was->shape.extents[a] != net[n.inputs[i]].shape.extents[a])
                    was_extent = was->shape.extents[a], now_extent = net[n.inputs[i]].shape.extents[a];
            }
            if (!was_extent || (*was_extent == 1 && !joins)) continue;
            for (auto& v : n.inputs) {
                if (v == no_value || net[v].shape.extents.size() <= back) continue;
                auto to = net[v].shape.extents;
                auto const a = to.size() - 1 - back;
                if (to[a] != *was_extent || (to[a] != 1 && net[v].from != origin::fixed)) continue;
                to[a] = *now_extent;
                v = edits.widened(v, to);
            }
        }
    }

    /// Initial states and lengths of a recurrence.
    void states(network const& net, node& n, rescaling_edits const& edits) const {
        auto const* const was = old_input(net, n, 0);
        if (was == nullptr || was->shape.extents.size() != 3) return;
        bool const batch_first = attribute_of(n, "layout", std::int64_t{0}) != 0;
        std::size_t const axis = batch_first ? 0 : 1;
        auto const from = was->shape.extents[axis], to = net[n.inputs[0]].shape.extents[axis];
        for (std::size_t i = 4; i <= 6 && i < n.inputs.size() && from != to; ++i) {
            auto const v = n.inputs[i];
            auto const at = i == 4 ? 0 : axis;
            if (v == no_value || net[v].shape.extents.size() <= at || net[v].shape.extents[at] != from) continue;
            if (net[v].from != origin::fixed && from != 1) continue;
            auto shape = net[v].shape.extents;
            shape[at] = to;
            n.inputs[i] = edits.widened(v, shape);
        }
    }
};

} // namespace parsearch::io::onnx::detail
