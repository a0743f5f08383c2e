#pragma once
/// From the operands of an attention up to where samples, positions and heads lie as projections leave them; and from its result down.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/network/match.hpp>
#include <parsearch/io/onnx/patterns/heads.hpp>

namespace parsearch::io::onnx::patterns {

/// Where a walk ends.
struct head_path {
    value_id value = no_value;
    ops::attention_layout layout = ops::attention_layout::packed;
    std::vector<std::int64_t> shape; ///< under which `value` has the layout
    bool exact = true;               ///< it has that shape
    std::int64_t samples = 0, heads = 0;
    std::int64_t part = 0, parts = 1;      ///< it is part number `part` of that shape's last axis
    std::optional<std::uint32_t> rotary{}; ///< a rotary embedding between `value` and where the walk began
    std::vector<std::uint32_t> nodes{};    ///< that are passed by then
};

namespace detail {

/// The most nodes of a walk.
inline constexpr int longest_head_path = 24;

[[nodiscard]] inline bool only_reshapes(std::string_view type) noexcept {
    return type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" || type == "Flatten";
}

/// The permutation of a Transpose of `rank` axes; empty where it is none.
[[nodiscard]] inline std::vector<std::size_t> permutation_of(node const& n, std::size_t rank) {
    std::vector<std::int64_t> perm;
    for (std::size_t i = rank; i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
    perm = attribute_of(n, "perm", perm);
    std::vector<std::size_t> out(rank);
    std::vector<bool> seen(rank);
    if (perm.size() != rank) return {};
    for (std::size_t i = 0; i < rank; ++i) {
        auto const p = perm[i] < 0 ? perm[i] + static_cast<std::int64_t>(rank) : perm[i];
        if (p < 0 || p >= static_cast<std::int64_t>(rank) || seen[static_cast<std::size_t>(p)]) return {};
        seen[static_cast<std::size_t>(p)] = true;
        out[i] = static_cast<std::size_t>(p);
    }
    return out;
}

class head_walk {
  public:
    head_walk(rewriting const& net, value_id v, head_view view) : net_(net), at_(v), view_(std::move(view)) {}

    /// Up from an operand; `scales`: also through products with a number. At most `steps` nodes.
    std::optional<head_path> up(bool scales, int steps) {
        record();
        std::uint32_t readers = 1;
        for (int step = 0; step < steps; ++step) {
            if (net_.at(at_).from != origin::computed || net_.reads(at_) != readers) break;
            readers = 1;
            auto const number = net_.at(at_).producer;
            if (!step_up(number, scales, readers)) break;
            record();
        }
        return std::move(best_);
    }
    /// Down from the result, as long as one node alone reads it.
    std::optional<head_path> down(int steps) {
        record();
        for (int step = 0; step < steps; ++step) {
            auto const number = net_.sole_reader(at_);
            if (!number) break;
            auto const& n = net_[*number];
            if (!n.domain.empty() || input_of(n, 0) != at_ || n.outputs.empty()) break;
            if (only_reshapes(n.type)) view_.reshape(net_.extents(n.outputs[0]));
            else if (n.type != "Transpose" || !view_.permute(permutation_of(n, view_.shape().size()))) break;
            passed_.push_back(*number);
            at_ = n.outputs[0];
            record();
        }
        return std::move(best_);
    }

  private:
    rewriting const& net_;
    value_id at_;
    head_view view_;
    std::int64_t part_ = 0, parts_ = 1;
    std::optional<std::uint32_t> rotary_;
    std::vector<std::uint32_t> passed_;
    std::optional<head_path> best_;

    /// Keeps the last place with a layout, and one that is only in the right order where there is none.
    void record() {
        auto const l = view_.layout_by_order();
        if (!l) return;
        auto shape = view_.shape_in(*l);
        auto const exact = view_.layout();
        if (exact) shape = view_.shape_in(*exact);
        if (parts_ > 1 && !ops::joins_heads(*l)) return;
        if (parts_ == 1 && !exact && best_ && best_->exact) return;
        best_ = head_path{.value = at_,
                          .layout = exact ? *exact : *l,
                          .shape = std::move(shape),
                          .exact = exact.has_value(),
                          .samples = view_.extent(role::samples),
                          .heads = view_.extent(role::heads),
                          .part = part_,
                          .parts = parts_,
                          .rotary = rotary_,
                          .nodes = passed_};
    }

    bool step_up(std::uint32_t number, bool scales, std::uint32_t& readers) {
        auto const& n = net_[number];
        if (input_of(n, 0) == no_value) return false;
        if (n.domain == recognised_domain && n.type == "RotaryEmbedding") return pass_rotary(number);
        if (!n.domain.empty()) return false;
        auto from = n.inputs[0];
        auto const& before = net_.extents(from);
        if (n.type == "Split") return take_part(number, readers);
        if (n.outputs[0] != at_) return false;
        if (only_reshapes(n.type)) view_.reshape(before);
        else if (n.type == "Transpose") {
            auto const perm = permutation_of(n, before.size());
            std::vector<std::size_t> inverse(perm.size());
            for (std::size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = i;
            if (!view_.permute(inverse)) return false;
        } else if (n.type == "Expand" || n.type == "Tile") {
            if (!view_.undo_repeat(before)) return false;
            view_.reshape(before);
        } else if (n.type == "Gather") {
            auto const index = net_.number_at(input_of(n, 1));
            auto const axis = attribute_of(n, "axis", std::int64_t{0});
            auto const rank = static_cast<std::int64_t>(before.size());
            if (!index || !index->known || !net_.extents(n.inputs[1]).empty() || axis < -rank || axis >= rank) return false;
            auto const at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
            auto const place = static_cast<std::int64_t>(*index->known);
            if (!insert_parts(at, before[at], place < 0 ? place + before[at] : place, readers)) return false;
        } else if (scales && (n.type == "Mul" || n.type == "Div") && n.inputs.size() == 2) {
            if (n.type == "Mul" && net_.number_at(from)) from = n.inputs[1];
            else if (!net_.number_at(n.inputs[1])) return false;
            if (from == no_value || net_.extents(from) != net_.extents(at_)) return false;
        } else return false;
        passed_.push_back(number);
        at_ = from;
        return true;
    }

    /// One of several tensors of extent 1 along the axis that a Split cuts.
    bool take_part(std::uint32_t number, std::uint32_t& readers) {
        auto const& n = net_[number];
        auto const& before = net_.extents(n.inputs[0]);
        auto const rank = static_cast<std::int64_t>(before.size());
        auto const axis = attribute_of(n, "axis", std::int64_t{0});
        if (axis < -rank || axis >= rank) return false;
        auto const at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
        auto const which = std::find(n.outputs.begin(), n.outputs.end(), at_) - n.outputs.begin();
        if (before[at] != static_cast<std::int64_t>(n.outputs.size()) || net_.extents(at_).size() != before.size() || net_.extents(at_)[at] != 1)
            return false;
        auto without = before;
        without.erase(without.begin() + static_cast<std::ptrdiff_t>(at));
        view_.reshape(without);
        if (!insert_parts(at, before[at], which, readers)) return false;
        readers = 1; // of what the Split reads
        passed_.push_back(number);
        at_ = n.inputs[0];
        return true;
    }
    bool insert_parts(std::size_t at, std::int64_t count, std::int64_t part, std::uint32_t& readers) {
        if (parts_ != 1 || part < 0 || part >= count || !view_.insert_parts(at, count)) return false;
        part_ = part;
        parts_ = count;
        readers = static_cast<std::uint32_t>(count);
        return true;
    }

    /// Rotates each head: goes on above it, where it may take any layout.
    bool pass_rotary(std::uint32_t number) {
        auto const& n = net_[number];
        auto const layout = view_.layout();
        if (rotary_ || parts_ != 1 || !layout || attribute_of(n, "layout", std::int64_t{0}) != static_cast<std::int64_t>(*layout)) return false;
        rotary_ = number;
        at_ = n.inputs[0];
        return true;
    }
};
} // namespace detail

} // namespace parsearch::io::onnx::patterns
