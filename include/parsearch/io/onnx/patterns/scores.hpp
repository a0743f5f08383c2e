#pragma once
/// What lies between the two products of an attention: scaling, masks, softmax.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/network/match.hpp>

namespace parsearch::io::onnx::patterns {

/// How a mask acts on the scores.
enum class mask_kind : std::uint8_t {
    added,
    subtracted,
    multiplied, ///< by 0 or 1 beside another mask, or by some other factor
    keeps,
    drops ///< scores stay where it is true; where it is false
};
struct score_mask {
    value_id value = no_value;
    mask_kind kind = mask_kind::added;
};

/// True where fixed mask `m` is known to leave a query the keys up to its own position and no others: axes ..., queries, keys. Complexity:
/// O(elements).
[[nodiscard]] inline bool is_causal(rewriting const& net, score_mask m) {
    auto const& extents = net.extents(m.value);
    auto const& contents = net.at(m.value).contents;
    if (net.at(m.value).from != origin::fixed || !contents || extents.size() < 2 || extents.back() != extents[extents.size() - 2]) return false;
    auto const length = static_cast<std::size_t>(extents.back());
    auto const leaves = [&](double x) {
        switch (m.kind) {
        case mask_kind::added:
        case mask_kind::subtracted: return x == 0;
        case mask_kind::multiplied: return x == 1;
        case mask_kind::keeps: return x != 0;
        case mask_kind::drops: break;
        }
        return x == 0;
    };
    auto const hides = [&](double x) {
        constexpr double far = 100; // exp(-100) is nothing in single precision
        switch (m.kind) {
        case mask_kind::added: return x <= -far;
        case mask_kind::subtracted: return x >= far;
        case mask_kind::multiplied:
        case mask_kind::keeps: return x == 0;
        case mask_kind::drops: break;
        }
        return x != 0;
    };
    for (std::size_t i = 0; i < contents->size(); ++i) {
        auto const query = i / length % length, key = i % length;
        if (!(key <= query ? leaves(contents->number(i)) : hides(contents->number(i)))) return false;
    }
    return length > 1;
}

/// What leads from the product of queries and keys to the probabilities.
struct score_path {
    std::uint32_t product = 0, softmax = 0; ///< nodes
    std::vector<score_mask> masks;          ///< first applied first
};

namespace detail {

/// The most nodes between the two products.
inline constexpr int longest_score_path = 24;

class score_finder {
  public:
    explicit score_finder(claim& c) : c_(c) {}

    /// The path to the probabilities `v`, of extents [..., lq, lk].
    std::optional<score_path> find(value_id v) {
        auto const& e = net().extents(v);
        if (e.size() < 2) return std::nullopt;
        queries_ = e[e.size() - 2];
        keys_ = e.back();
        if (!to_softmax(v)) return std::nullopt;
        std::reverse(path_.masks.begin(), path_.masks.end());
        return path_;
    }

  private:
    claim& c_;
    score_path path_;
    std::int64_t queries_ = 0, keys_ = 0;

    [[nodiscard]] rewriting const& net() const noexcept { return c_.in(); }
    [[nodiscard]] bool has_scores(value_id v) const {
        if (v == no_value) return false;
        auto const& e = net().extents(v);
        return e.size() >= 2 && e[e.size() - 2] == queries_ && e.back() == keys_;
    }
    /// The input of a node that leaves the scores as they are, if such a node makes `v`.
    std::optional<value_id> passed(value_id v) {
        for (auto const* const type : {"Cast", "Identity", "Dropout", "Reshape", "Squeeze", "Unsqueeze"})
            if (auto const n = net().maker(v, type))
                if (auto const x = net()[*n].inputs[0]; has_scores(x)) {
                    c_.add(*n);
                    return x;
                }
        return std::nullopt;
    }

    bool to_softmax(value_id v) {
        for (int step = 0; step < longest_score_path; ++step) {
            if (auto const x = passed(v)) {
                v = *x;
                continue;
            }
            if (auto const n = net().maker(v, "Softmax")) {
                auto const& softmax = net()[*n];
                auto const rank = static_cast<std::int64_t>(net().extents(v).size());
                auto const axis = attribute_of(softmax, "axis", std::int64_t{softmax.version > 0 && softmax.version < 13 ? 1 : -1});
                if (axis != -1 && axis != rank - 1) return false;
                c_.add(*n);
                path_.softmax = *n;
                return to_product(softmax.inputs[0], 0);
            }
            // Rows that are masked whole have no probabilities: newer exports write 0 for them.
            auto const* const where = c_.take(v, "Where");
            if (!where || where->inputs.size() != 3) return false;
            auto const condition = where->inputs[0];
            auto const none = net().number_at(where->inputs[1]);
            if (!none || !none->may_be(0) || !has_scores(where->inputs[2]) || c_.operand_of(condition, "IsNaN") != where->inputs[2]) return false;
            v = where->inputs[2];
        }
        return false;
    }

    /// True where `v` is such that a score of it is as good as minus infinity.
    [[nodiscard]] bool hides(value_id v) const {
        if (v == no_value || net().at(v).from != origin::fixed) return false;
        auto const& contents = net().at(v).contents;
        for (std::size_t i = 0; contents && i < contents->size(); ++i)
            if (!(contents->number(i) <= -100)) return false;
        return true;
    }

    bool masked(value_id scores, value_id mask, mask_kind kind, int depth) {
        if (scores == no_value || mask == no_value) return false;
        path_.masks.push_back({mask, kind});
        if (to_product(scores, depth + 1)) return true;
        path_.masks.pop_back();
        return false;
    }

    /// From the scores `v` up. What nobody else reads is a tree, so that no node is visited twice.
    bool to_product(value_id v, int depth) {
        if (depth > longest_score_path || !has_scores(v) || net().reads(v) != 1) return false;
        auto const up = [&](value_id x) { return to_product(x, depth + 1); };
        for (auto const* const type : {"MatMul", "Einsum"})
            if (auto const n = net().maker(v, type)) {
                if (net()[*n].inputs.size() != 2 || net()[*n].inputs[1] == no_value) return false;
                c_.add(*n);
                path_.product = *n;
                return true;
            }
        if (c_.attempt([&] {
                auto const x = passed(v);
                return x && up(*x);
            }))
            return true;
        bool const found = c_.either_order(v, "Mul", [&](value_id a, value_id b) {
            return net().number_at(b) ? up(a) : masked(a, b, mask_kind::multiplied, depth);
        }) || c_.either_order(v, "Add", [&](value_id a, value_id b) {
            return net().number_at(b) ? up(a) : masked(a, b, mask_kind::added, depth);
        }) || c_.either_order(v, "Max", [&](value_id a, value_id b) { return net().at(b).from == origin::fixed && hides(b) && up(a); });
        if (found) return true;
        return c_.attempt([&] {
            auto const* const div = c_.take(v, "Div");
            return div && div->inputs.size() == 2 && net().number_at(div->inputs[1]) && up(div->inputs[0]);
        }) || c_.attempt([&] {
            auto const* const sub = c_.take(v, "Sub");
            return sub && sub->inputs.size() == 2 && masked(sub->inputs[0], sub->inputs[1], mask_kind::subtracted, depth);
        }) || c_.attempt([&] {
            auto const* const where = c_.take(v, "Where");
            if (!where || where->inputs.size() != 3) return false;
            auto const condition = where->inputs[0], yes = where->inputs[1], no = where->inputs[2];
            return (hides(no) && masked(yes, condition, mask_kind::keeps, depth)) || (hides(yes) && masked(no, condition, mask_kind::drops, depth));
        });
    }
};
} // namespace detail

/// Finds the path to probabilities `v`, claiming its nodes. Constant time.
[[nodiscard]] inline std::optional<score_path> find_scores(claim& c, value_id v) { return detail::score_finder(c).find(v); }

} // namespace parsearch::io::onnx::patterns
