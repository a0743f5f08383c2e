#pragma once
/// Rotary position embedding spelled out.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/network/match.hpp>
#include <parsearch/ops/attention.hpp>

namespace parsearch::io::onnx::patterns {

namespace detail {

/// Two halves of the last axis of a tensor: each contiguous, or taken alternately.
struct halves {
    value_id whole = no_value;
    bool alternate = false;
    friend bool operator==(halves const&, halves const&) = default;
};

[[nodiscard]] inline bool is_last_axis(rewriting const& net, std::int64_t axis, value_id of) {
    auto const rank = static_cast<std::int64_t>(net.extents(of).size());
    return rank > 0 && (axis == -1 || axis == rank - 1);
}

/// The integers that are attribute `name` or input `i` of `n`.
[[nodiscard]] inline std::vector<std::int64_t> integers_at(rewriting const& net, node const& n, std::string_view name, std::size_t i) {
    if (has_attribute(n, name)) return attribute_of(n, name, std::vector<std::int64_t>{});
    auto const* const list = integers_of(net.net(), input_of(n, i));
    return list ? *list : std::vector<std::int64_t>{};
}

/// The tensor that `v` is half number `second` of.
inline std::optional<halves> half_of(claim& c, value_id v, bool second) {
    auto const& net = c.in();
    std::optional<halves> found;
    auto const sliced = [&] {
        auto const* const n = c.take(v, "Slice");
        if (!n) return false;
        auto const x = n->inputs[0];
        auto const begins = integers_at(net, *n, "starts", 1), ends = integers_at(net, *n, "ends", 2), axes = integers_at(net, *n, "axes", 3);
        auto const steps = integers_at(net, *n, "steps", 4);
        if (begins.size() != 1 || ends.size() != 1 || axes.size() != 1 || steps.size() > 1 || !is_last_axis(net, axes[0], x)) return false;
        auto const size = net.extents(x).back(), step = steps.empty() ? 1 : steps[0];
        auto const begin = begins[0] < 0 ? begins[0] + size : begins[0], end = ends[0] < 0 ? ends[0] + size : ends[0];
        if (size % 2) return false;
        if (step == 1 && begin == (second ? size / 2 : 0) && (second ? end >= size : end == size / 2)) found = {x, false};
        if (step == 2 && begin == second && end >= size - 1 + second) found = {x, true};
        return found.has_value();
    };
    auto const split = [&] {
        if (net.at(v).from != origin::computed) return false;
        auto const& n = net[net.at(v).producer];
        if (!n.domain.empty() || n.type != "Split" || n.outputs.size() != 2 || n.outputs[second] != v) return false;
        auto const x = input_of(n, 0);
        if (x == no_value || net.extents(v).size() != net.extents(x).size() || !is_last_axis(net, attribute_of(n, "axis", std::int64_t{0}), x) ||
            net.extents(v).back() * 2 != net.extents(x).back())
            return false;
        c.add(net.at(v).producer);
        found = {x, false};
        return true;
    };
    // Of pairs: [..., d] as [..., d / 2, 2], of which one is taken.
    auto const gathered = [&] {
        auto const* const n = c.take(v, "Gather");
        auto const index = n ? net.number_at(input_of(*n, 1)) : std::nullopt;
        if (!index || index->known != static_cast<double>(second) || !is_last_axis(net, attribute_of(*n, "axis", std::int64_t{0}), n->inputs[0]))
            return false;
        auto const pairs = n->inputs[0];
        if (net.extents(pairs).back() != 2 || net.extents(v).empty() || net.extents(v).size() + 1 != net.extents(pairs).size()) return false;
        auto const x = c.operand_of(pairs, "Reshape");
        if (!x || net.extents(*x).size() != net.extents(v).size() || net.extents(*x).back() != 2 * net.extents(v).back()) return false;
        found = {*x, true};
        return true;
    };
    (void)(c.attempt(sliced) || c.attempt(split) || c.attempt(gathered));
    return found;
}

/// The two tensors that `v` consists of, one behind the other or alternately, along the last axis.
struct joined {
    value_id first = no_value, second = no_value;
    bool alternate = false;
};
inline std::optional<joined> halves_in(claim& c, value_id v) {
    auto const& net = c.in();
    auto const pair_in = [&](value_id x) -> std::optional<joined> {
        auto const* const n = c.take(x, "Concat");
        if (!n || n->inputs.size() != 2 || !is_last_axis(net, attribute_of(*n, "axis", std::int64_t{0}), x)) return std::nullopt;
        return joined{n->inputs[0], n->inputs[1], false};
    };
    if (auto const direct = pair_in(v)) return direct;
    auto const stacked = c.operand_of(v, "Reshape");
    auto pair = stacked ? pair_in(*stacked) : std::nullopt;
    if (!pair || net.extents(*stacked).back() != 2) return std::nullopt;
    auto const first = c.operand_of(pair->first, "Unsqueeze"), second = c.operand_of(pair->second, "Unsqueeze");
    if (!first || !second || net.extents(*first).size() + 1 != net.extents(*stacked).size()) return std::nullopt;
    return joined{*first, *second, true};
}

/// x of (-x2, x1), where x consists of x1 and x2.
inline std::optional<halves> quarter_turn(claim& c, value_id v) {
    std::optional<halves> found;
    c.attempt([&] {
        auto const both = halves_in(c, v);
        auto const turned = both ? c.operand_of(both->first, "Neg") : std::nullopt;
        auto const second = turned ? half_of(c, *turned, true) : std::nullopt;
        if (!second || second->alternate != both->alternate || half_of(c, both->second, false) != second) return false;
        found = second;
        return true;
    });
    return found;
}

/// Puts the operator in the place of what is claimed, where x has four axes that tables of cosines and sines tell apart.
inline bool put_rotary(rewriting& net, claim const& c, value_id x, value_id cosines, value_id sines, value_id result) {
    auto const& e = net.extents(x);
    if (e.size() != 4 || net.at(x).shape != net.at(result).shape || !c.closed(result)) return false;
    auto const& tables = net.extents(cosines);
    auto const size = tables.empty() ? 0 : tables.back();
    if (tables.size() < 2 || tables.size() > 4 || net.extents(sines) != tables || (size != e[3] && size * 2 != e[3])) return false;
    auto const extent = [&](std::size_t axis) { return axis + tables.size() < 4 ? 1 : tables[axis + tables.size() - 4]; };
    for (std::size_t i = 0; i < 3; ++i)
        if (extent(i) != 1 && extent(i) != e[i]) return false;
    // Positions are the axis along which the tables vary.
    bool const by_position = extent(1) > 1 && extent(2) == 1;
    auto const layout = by_position ? ops::attention_layout::by_position : ops::attention_layout::by_head;
    std::string name;
    for (auto const n : c.nodes())
        if (name.empty() || net[n].type == "Neg" || net[n].type == "Sub") name = net[n].name;
    auto made = recognised("RotaryEmbedding", std::move(name), {x, cosines, sines}, result);
    made.attributes.emplace("heads", by_position ? e[2] : e[1]);
    made.attributes.emplace("layout", static_cast<std::int64_t>(layout));
    made.attributes.emplace("tables", static_cast<std::int64_t>(layout));
    net.replace(c.nodes(), std::move(made));
    return true;
}
} // namespace detail

/// At an Add: x cos + quarter_turn(x) sin.
inline bool recognise_rotary(rewriting& net, std::uint32_t n) {
    auto const result = net[n].outputs[0];
    claim c(net);
    return c.either_order(result, "Add", [&](value_id straight, value_id across) {
        return c.either_order(across, "Mul", [&](value_id turned, value_id sines) {
            auto const x = detail::quarter_turn(c, turned);
            if (!x) return false;
            return c.either_order(straight, "Mul", [&](value_id same, value_id cosines) {
                return same == x->whole && detail::put_rotary(net, c, same, cosines, sines, result);
            });
        });
    });
}

/// At a Concat, or the Reshape behind one: (x1 cos - x2 sin, x2 cos + x1 sin).
inline bool recognise_halved_rotary(rewriting& net, std::uint32_t n) {
    auto const result = net[n].outputs[0];
    claim c(net);
    auto const both = detail::halves_in(c, result);
    if (!both) return false;
    auto const* const difference = c.take(both->first, "Sub");
    if (!difference || difference->inputs.size() != 2) return false;
    auto const left = difference->inputs[0], right = difference->inputs[1];
    return c.either_order(left, "Mul", [&](value_id first, value_id cosines) {
        return c.either_order(right, "Mul", [&](value_id second, value_id sines) {
            auto const is_product = [&](value_id v, value_id x, value_id y) {
                return c.either_order(v, "Mul", [&](value_id a, value_id b) { return a == x && b == y; });
            };
            if (!c.either_order(both->second, "Add",
                                [&](value_id a, value_id b) { return is_product(a, second, cosines) && is_product(b, first, sines); }))
                return false;
            auto const x = detail::half_of(c, first, false);
            return x && x->alternate == both->alternate && detail::half_of(c, second, true) == x &&
                   detail::put_rotary(net, c, x->whole, cosines, sines, result);
        });
    });
}

} // namespace parsearch::io::onnx::patterns
