#pragma once
/// Which axes of a tensor hold samples, positions, heads and their elements, followed through Reshape, Transpose and the like.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/ops/attention.hpp>

namespace parsearch::io::onnx::patterns {

/// What a factor of a tensor's extents counts.
enum class role : std::uint8_t {
    samples,
    length,
    heads,
    size,   ///< elements of a head
    joined, ///< samples and heads within, not yet told apart
    parts   ///< tensors that are cut out of one, such as queries, keys and values
};

/// The extents of a tensor of attention as factors with roles.
class head_view {
  public:
    struct factor {
        role what = role::samples;
        std::int64_t extent = 1;
        std::int64_t stride = 1; ///< of heads: how far apart its steps are, counted in heads
        friend bool operator==(factor const&, factor const&) = default;
    };
    using extent_list = std::vector<std::int64_t>;

    /// One factor for each axis.
    explicit head_view(std::vector<factor> const& axes) {
        for (auto const& f : axes) {
            shape_.push_back(f.extent);
            if (f.extent != 1) order_.push_back(f);
        }
    }

    [[nodiscard]] extent_list const& shape() const noexcept { return shape_; }
    /// How often each head was repeated by what `undo_repeat` has undone.
    [[nodiscard]] std::int64_t repeats() const noexcept { return repeats_; }
    [[nodiscard]] std::int64_t extent(role r) const noexcept {
        std::int64_t n = 1;
        for (auto const& f : order_)
            if (f.what == r) n *= f.extent;
        return n;
    }

    /// The same elements in the same order under another shape.
    void reshape(extent_list shape) { shape_ = std::move(shape); }

    /// Axis i becomes what axis `from[i]` is. False where an axis holds a part of a factor that cannot be told apart.
    [[nodiscard]] bool permute(std::span<std::size_t const> from) {
        auto const axes = grouped();
        if (!axes || from.size() != axes->size()) return false;
        order_.clear();
        auto const old = shape_;
        for (std::size_t i = 0; i < from.size(); ++i) {
            shape_[i] = old[from[i]];
            order_.insert(order_.end(), (*axes)[from[i]].begin(), (*axes)[from[i]].end());
        }
        return true;
    }
    /// Undoes a repetition along axes: `before` are the extents that were repeated to this shape. Only heads that follow each other may be equal.
    [[nodiscard]] bool undo_repeat(extent_list before) {
        auto const axes = grouped();
        if (!axes || before.size() > shape_.size()) return false;
        before.insert(before.begin(), shape_.size() - before.size(), 1);
        std::vector<factor> left;
        for (std::size_t i = 0; i < before.size(); ++i) {
            if (before[i] == shape_[i]) {
                left.insert(left.end(), (*axes)[i].begin(), (*axes)[i].end());
                continue;
            }
            auto const& gone = (*axes)[i];
            if (before[i] != 1 || gone.size() != 1 || gone[0].what != role::heads || gone[0].stride != 1 || repeats_ != 1) return false;
            repeats_ = gone[0].extent;
        }
        for (auto& f : left)
            if (f.what == role::heads) {
                if (f.stride % repeats_) return false;
                f.stride /= repeats_;
            }
        order_ = std::move(left);
        shape_ = std::move(before);
        return true;
    }
    /// Puts an axis of `count` parts before axis `at`, of which this is one. False where that cannot be.
    [[nodiscard]] bool insert_parts(std::size_t at, std::int64_t count) {
        auto const axes = grouped();
        if (!axes || at > axes->size() || extent(role::parts) != 1 || count < 2) return false;
        order_.clear();
        for (std::size_t i = 0; i <= axes->size(); ++i) {
            if (i == at) order_.push_back({.what = role::parts, .extent = count});
            if (i < axes->size()) order_.insert(order_.end(), (*axes)[i].begin(), (*axes)[i].end());
        }
        shape_.insert(shape_.begin() + static_cast<std::ptrdiff_t>(at), count);
        return true;
    }

    /// The layout that shape and order are those of; nothing where they are none's. Tells samples and heads apart where it can.
    [[nodiscard]] std::optional<ops::attention_layout> layout() { return found(true); }
    /// The layout that the order is that of, whatever the shape.
    [[nodiscard]] std::optional<ops::attention_layout> layout_by_order() { return found(false); }
    /// The extents under which `layout_by_order` would be `layout`; parts lie before the heads.
    [[nodiscard]] extent_list shape_in(ops::attention_layout l) const {
        auto const s = extent(role::samples), n = extent(role::length), h = extent(role::heads), d = extent(role::size), p = extent(role::parts);
        switch (l) {
        case ops::attention_layout::packed: return {s, n, p * h * d};
        case ops::attention_layout::by_position: return {s, n, h, d};
        case ops::attention_layout::by_head: return {s, h, n, d};
        case ops::attention_layout::transposed: return {s, h, d, n};
        case ops::attention_layout::length_first: break;
        }
        return {n, s, p * h * d};
    }

  private:
    std::vector<factor> order_; ///< outermost first, none of extent 1
    extent_list shape_;
    std::int64_t repeats_ = 1;

    /// The factors of each axis, cut where axes are; joined samples and heads are told apart by that.
    [[nodiscard]] std::optional<std::vector<std::vector<factor>>> grouped() {
        std::vector<std::vector<factor>> axes;
        std::vector<factor> left(order_.rbegin(), order_.rend()), order;
        for (auto const extent : shape_) {
            axes.emplace_back();
            for (std::int64_t have = 1; have != extent;) {
                if (left.empty()) return std::nullopt;
                auto& f = left.back();
                auto const wanted = extent / have;
                if (extent % have) return std::nullopt;
                if (wanted % f.extent == 0) {
                    have *= f.extent;
                    axes.back().push_back(f);
                    left.pop_back();
                    continue;
                }
                if (f.extent % wanted || (f.what != role::heads && f.what != role::joined)) return std::nullopt;
                auto outer = f;
                outer.extent = wanted;
                f.extent /= wanted;
                outer.stride = f.stride * f.extent;
                if (f.what == role::joined) {
                    outer.what = role::samples;
                    outer.stride = 1;
                    f.what = role::heads;
                }
                axes.back().push_back(outer);
                have = extent;
            }
            for (auto& f : axes.back())
                if (f.what == role::joined && axes.back().size() > 1) f.what = role::heads; // of one sample, beside the elements of a head
            order.insert(order.end(), axes.back().begin(), axes.back().end());
        }
        if (!left.empty()) return std::nullopt;
        order_ = std::move(order);
        return axes;
    }

    [[nodiscard]] std::optional<ops::attention_layout> found(bool exact) {
        if (!grouped() || extent(role::joined) != 1) return std::nullopt;
        // The order of roles, with the heads' factors as one where they follow each other as they should.
        std::vector<role> order;
        for (std::size_t i = 0; i < order_.size(); ++i) {
            if (i && order_[i].what == order_[i - 1].what) {
                if (order_[i].what != role::heads || order_[i - 1].stride != order_[i].stride * order_[i].extent) return std::nullopt;
            } else if (std::find(order.begin(), order.end(), order_[i].what) != order.end()) return std::nullopt;
            else order.push_back(order_[i].what);
        }
        using enum role;
        using layout = ops::attention_layout;
        std::pair<layout, std::vector<role>> const known[] = {{layout::packed, {samples, length, parts, heads, size}},
                                                              {layout::length_first, {length, samples, parts, heads, size}},
                                                              {layout::by_position, {samples, length, heads, size}},
                                                              {layout::by_head, {samples, heads, length, size}},
                                                              {layout::transposed, {samples, heads, size, length}}};
        for (auto const& [l, roles] : known) {
            std::vector<role> expected;
            for (auto const r : roles)
                if (extent(r) != 1) expected.push_back(r);
            if (expected == order && (!exact || shape_ == shape_in(l))) return l;
        }
        return std::nullopt;
    }
};

} // namespace parsearch::io::onnx::patterns
