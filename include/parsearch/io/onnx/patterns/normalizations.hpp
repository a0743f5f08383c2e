#pragma once
/// Layer norm and root-mean-square norm spelled out, and what follows them: weight, bias, conversion.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <parsearch/io/onnx/network/match.hpp>

namespace parsearch::io::onnx::patterns {

namespace detail {

/// A mean over the last `axes` axes of x.
struct mean {
    value_id x = no_value;
    std::int64_t axes = 0;
    std::uint32_t node = 0;
    friend bool operator==(mean const&, mean const&) = default;
};

/// How many of the last axes `n` (a reduction that keeps them) is over; 0 where it is over others.
inline std::int64_t trailing_axes(rewriting const& net, node const& n) {
    auto const rank = static_cast<std::int64_t>(net.extents(n.inputs[0]).size());
    std::vector<std::int64_t> axes;
    if (has_attribute(n, "axes")) axes = attribute_of(n, "axes", axes);
    else if (auto const* const given = integers_of(net.net(), input_of(n, 1))) axes = *given;
    else return 0;
    if (attribute_of(n, "keepdims", std::int64_t{1}) == 0) return 0;
    for (auto& a : axes) a = a < 0 ? a + rank : a;
    std::sort(axes.begin(), axes.end());
    auto const count = static_cast<std::int64_t>(axes.size());
    for (std::int64_t i = 0; i < count; ++i)
        if (axes[static_cast<std::size_t>(i)] != rank - count + i) return 0;
    return count < rank ? count : 0;
}

inline std::optional<mean> mean_of(claim& c, value_id v) {
    auto const* const n = c.take(c.before_casts(v), "ReduceMean");
    if (!n) return std::nullopt;
    auto const axes = trailing_axes(c.in(), *n);
    if (axes == 0) return std::nullopt;
    return mean{.x = n->inputs[0], .axes = axes, .node = *c.in().maker(n->outputs[0], "ReduceMean")};
}

/// x of x^power.
inline std::optional<value_id> base_of_power(claim& c, value_id v, double power) {
    auto const* const n = c.take(v, "Pow");
    auto const p = n ? c.in().number_at(input_of(*n, 1)) : std::nullopt;
    if (p && p->may_be(power)) return n->inputs[0];
    return std::nullopt;
}
/// The first of `options` that answers something; what the others claimed is given up.
template <class... Options> std::optional<value_id> first_of(claim& c, Options const&... options) {
    std::optional<value_id> found;
    (void)(c.attempt([&] { return (found = options()).has_value(); }) || ...);
    return found;
}
inline std::optional<value_id> square(claim& c, value_id v) {
    return first_of(
        c, [&] { return base_of_power(c, v, 2); },
        [&]() -> std::optional<value_id> {
            auto const* const n = c.take(v, "Mul");
            if (!n || n->inputs.size() != 2 || n->inputs[0] != n->inputs[1]) return std::nullopt;
            return n->inputs[0];
        });
}
inline std::optional<value_id> under_root(claim& c, value_id v) {
    return first_of(
        c, [&] { return c.operand_of(v, "Sqrt"); }, [&] { return base_of_power(c, v, 0.5); });
}
/// u of 1 / sqrt(u).
inline std::optional<value_id> under_inverse_root(claim& c, value_id v) {
    auto const root_of = [&](std::optional<value_id> x) { return x ? under_root(c, *x) : std::nullopt; };
    return first_of(
        c, [&] { return root_of(c.operand_of(v, "Reciprocal")); }, [&] { return base_of_power(c, v, -0.5); },
        [&]() -> std::optional<value_id> {
            auto const* const n = c.take(v, "Div");
            auto const one = n ? c.in().number_at(input_of(*n, 0)) : std::nullopt;
            return one && one->may_be(1) ? root_of(n->inputs[1]) : std::nullopt;
        },
        [&] {
            auto const x = c.operand_of(v, "Sqrt");
            return x ? c.operand_of(*x, "Reciprocal") : std::nullopt;
        });
}

/// The mean of squares m of m + epsilon.
inline std::optional<mean> mean_square(claim& c, value_id v) {
    std::optional<mean> found;
    c.either_order(v, "Add", [&](value_id a, value_id b) {
        auto const epsilon = c.in().number_at(b);
        if (!epsilon || (epsilon->known && !(*epsilon->known >= 0 && *epsilon->known <= 0.1))) return false;
        found = mean_of(c, a);
        return found.has_value();
    });
    if (!found) return std::nullopt;
    auto const x = square(c, found->x);
    if (!x) return std::nullopt;
    found->x = *x;
    return found;
}

/// The mean that is taken off in `v`, x - mean(x).
inline std::optional<mean> centred(claim& c, value_id v) {
    auto const* const n = c.take(v, "Sub");
    if (!n || n->inputs.size() != 2) return std::nullopt;
    auto const x = n->inputs[0], m = n->inputs[1];
    auto const found = mean_of(c, m);
    return found && found->x == x ? found : std::nullopt;
}

/// True where `v` is a parameter with the last `axes` extents of `like`.
inline bool is_weight(rewriting const& net, value_id v, value_id like, std::int64_t axes) {
    if (v == no_value || net.at(v).from != origin::parameter) return false;
    auto const &w = net.extents(v), &x = net.extents(like);
    auto const count = static_cast<std::size_t>(axes);
    if (w.size() < count || count > x.size()) return false;
    for (std::size_t i = 0; i < w.size(); ++i)
        if (w[i] != (i + count < w.size() ? 1 : x[x.size() + i - w.size()])) return false;
    return w.size() <= x.size();
}

inline bool put_norm(rewriting& net, claim const& c, std::string_view type, std::uint32_t named, std::int64_t axes, std::vector<value_id> inputs,
                     value_id result) {
    if (!c.closed(result) || net.at(inputs[0]).shape != net.at(result).shape) return false;
    auto made = recognised(type, net[named].name, std::move(inputs), result);
    made.attributes.emplace("axes", axes);
    net.replace(c.nodes(), std::move(made));
    return true;
}

/// The weights of a norm that may take one more at place `place` (1: weight, 2: bias), and is read by node `n` alone.
inline std::optional<std::uint32_t> open_norm(rewriting const& net, value_id v, std::size_t place) {
    for (auto const* const type : {"LayerNormalization", "RMSNormalization"})
        if (auto const n = net.maker(v, type, recognised_domain); n && net[*n].inputs.size() == place && net.reads(v) == 1)
            if (place == 1 || net[*n].type == "LayerNormalization") return n;
    return std::nullopt;
}
} // namespace detail

/// At a Mul or Div: (x - mean) / deviation, or x / root mean square.
inline bool recognise_norm(rewriting& net, std::uint32_t n) {
    auto const result = net[n].outputs[0];
    auto const inputs = net[n].inputs;
    if (inputs.size() != 2) return false;
    bool const divides = net[n].type == "Div";
    for (std::size_t i = 0; i < (divides ? 1U : 2U); ++i) {
        claim c(net);
        c.add(n);
        auto const scaled = inputs[i], by = c.before_casts(inputs[1 - i]);
        auto const u = divides ? detail::under_root(c, by) : detail::under_inverse_root(c, by);
        auto const squares = u ? detail::mean_square(c, c.before_casts(*u)) : std::nullopt;
        if (!squares) continue;
        bool const same = c.before_casts(squares->x) == c.before_casts(scaled);
        // A mean of other axes, or one that is read elsewhere too, makes it nothing known.
        if (net.maker(scaled, "Sub")) {
            auto const taken = detail::centred(c, scaled);
            bool known = taken && taken->axes == squares->axes;
            if (!same) {
                auto const again = known ? detail::centred(c, squares->x) : std::nullopt; // some exports write the difference twice
                known = again && again->x == taken->x && again->axes == taken->axes;
            }
            if (known) return detail::put_norm(net, c, "LayerNormalization", squares->node, squares->axes, {taken->x}, result);
            if (taken) return false;
        }
        if (!same) continue;
        claim whole(net); // conversions of x alone stay
        for (auto const member : c.nodes())
            if (net[member].outputs[0] != scaled) whole.add(member);
        return detail::put_norm(net, whole, "RMSNormalization", squares->node, squares->axes, {scaled}, result);
    }
    return false;
}

/// At an Add, as TensorFlow writes a layer norm: x w + (bias - mean w), with w = weight / deviation.
inline bool recognise_folded_norm(rewriting& net, std::uint32_t n) {
    auto const result = net[n].outputs[0];
    bool replaced = false;
    claim c(net);
    c.either_order(result, "Add", [&](value_id product_value, value_id rest) {
        auto const* const difference = c.take(rest, "Sub");
        if (!difference || difference->inputs.size() != 2) return false;
        auto const bias = difference->inputs[0], shift = difference->inputs[1];
        return c.either_order(product_value, "Mul", [&](value_id x, value_id w) {
            return c.either_order(shift, "Mul", [&](value_id m, value_id again) {
                auto const average = again == w ? detail::mean_of(c, m) : std::nullopt;
                if (!average || average->x != x) return false;
                return c.either_order(w, "Mul", [&](value_id inverse, value_id weight) {
                    if (!detail::is_weight(net, weight, x, average->axes) || !detail::is_weight(net, bias, x, average->axes)) return false;
                    auto const u = detail::under_inverse_root(c, inverse);
                    auto const squares = u ? detail::mean_square(c, *u) : std::nullopt;
                    auto const taken = squares ? detail::centred(c, squares->x) : std::nullopt;
                    if (!taken || taken->x != x || taken->axes != average->axes || squares->axes != average->axes) return false;
                    replaced = detail::put_norm(net, c, "LayerNormalization", average->node, average->axes, {x, weight, bias}, result);
                    return replaced;
                });
            });
        });
    });
    return replaced;
}

/// At a Mul (place 1) or Add (place 2) behind a recognised norm: its weight or bias.
inline bool extend_norm(rewriting& net, std::uint32_t n, std::size_t place) {
    auto const result = net[n].outputs[0];
    auto const inputs = net[n].inputs;
    for (std::size_t i = 0; i < 2 && inputs.size() == 2; ++i) {
        auto const norm = detail::open_norm(net, inputs[i], place);
        if (!norm) continue;
        auto const axes = attribute_of(net[*norm], "axes", std::int64_t{1});
        auto operands = net[*norm].inputs;
        if (!detail::is_weight(net, inputs[1 - i], operands[0], axes)) continue;
        operands.push_back(inputs[1 - i]);
        claim c(net);
        c.add(n);
        c.add(*norm);
        return detail::put_norm(net, c, std::string(net[*norm].type), *norm, axes, std::move(operands), result);
    }
    return false;
}

/// At a Cast behind a recognised norm of what a Cast has converted from the same type: the norm takes and gives that type.
inline bool absorb_casts(rewriting& net, std::uint32_t n) {
    auto const result = net[n].outputs[0];
    auto const inner = input_of(net[n], 0);
    for (auto const* const type : {"LayerNormalization", "RMSNormalization"}) {
        auto const norm = net.maker(inner, type, recognised_domain);
        auto const before = norm ? net.maker(net[*norm].inputs[0], "Cast") : std::nullopt;
        if (!before || net.reads(inner) != 1 || net.reads(net[*norm].inputs[0]) != 1) continue;
        claim c(net);
        for (auto const member : {n, *norm, *before}) c.add(member);
        auto operands = net[*norm].inputs;
        operands[0] = input_of(net[*before], 0);
        return detail::put_norm(net, c, type, *norm, attribute_of(net[*norm], "axes", std::int64_t{1}), std::move(operands), result);
    }
    return false;
}

} // namespace parsearch::io::onnx::patterns
