#pragma once
/// Activations spelled out: GELU, SiLU, Mish, hard swish.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <parsearch/io/onnx/network/match.hpp>

namespace parsearch::io::onnx::patterns {

namespace detail {

/// True where `v` is `coefficient` times the values `x`, as often as `power` says.
inline bool is_power(claim& c, value_id v, value_id x, std::size_t power, double coefficient) {
    return c.attempt([&] {
        auto const p = factors_of(c, v);
        return p.factors == std::vector<value_id>(power, x) && p.coefficient.may_be(coefficient);
    });
}

/// 1 + erf(x / sqrt 2).
inline bool is_erf_gate(claim& c, value_id v, value_id x) {
    auto const sum = c.with_number(v, "Add", 1);
    auto const z = sum ? c.operand_of(*sum, "Erf") : std::nullopt;
    return z && is_power(c, *z, x, 1, 0.70710678118654752);
}

/// 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)), or with x taken out of the brackets. Hendrycks and Gimpel, 2016.
inline bool is_tanh_gate(claim& c, value_id v, value_id x) {
    auto const sum = c.with_number(v, "Add", 1);
    auto const w = sum ? c.operand_of(*sum, "Tanh") : std::nullopt;
    if (!w) return false;
    constexpr double cubic = 0.044715, scale = 0.79788456080286536;
    auto const p = factors_of(c, *w);
    if (!p.coefficient.may_be(scale)) return false;
    if (p.factors.size() == 1)
        return c.either_order(p.factors[0], "Add", [&](value_id a, value_id b) { return a == x && is_power(c, b, x, 3, cubic); });
    if (p.factors.size() != 2) return false;
    auto const brackets = p.factors[0] == x ? p.factors[1] : p.factors[0];
    if (p.factors[0] != x && p.factors[1] != x) return false;
    auto const inner = c.with_number(brackets, "Add", 1);
    return inner && is_power(c, *inner, x, 2, cubic);
}

/// The name of what x times `gate` times `coefficient` is; empty where it is nothing known.
inline std::string_view gated(claim& c, value_id x, value_id gate, number const& coefficient) {
    std::string_view found;
    auto const is = [&](std::string_view name, double expected, auto const& test) {
        if (found.empty() && coefficient.may_be(expected) && c.attempt(test)) found = name;
    };
    auto const sigmoid_of = [&](double slope) {
        auto const z = c.operand_of(gate, "Sigmoid");
        return z && is_power(c, *z, x, 1, slope);
    };
    is("Silu", 1, [&] { return c.operand_of(gate, "Sigmoid") == x; });
    is("Gelu", 1, [&] { return sigmoid_of(1.702); });
    is("Gelu", 0.5, [&] { return is_erf_gate(c, gate, x); });
    is("Gelu", 0.5, [&] { return is_tanh_gate(c, gate, x); });
    is("Mish", 1, [&] {
        auto const z = c.operand_of(gate, "Tanh");
        return z && c.operand_of(*z, "Softplus") == x;
    });
    is("HardSwish", 1, [&] {
        auto const* const n = c.take(gate, "HardSigmoid");
        return n && input_of(*n, 0) == x && number{attribute_of(*n, "alpha", 0.2)}.may_be(1.0 / 6) &&
               number{attribute_of(*n, "beta", 0.5)}.may_be(0.5);
    });
    is("HardSwish", 1.0 / 6, [&] {
        auto const* const n = c.take(gate, "Clip");
        if (!n) return false;
        auto const bound = [&](std::size_t i, std::string_view name) -> std::optional<number> {
            if (n->inputs.size() > 1) return c.in().number_at(input_of(*n, i));
            return has_attribute(*n, name) ? std::optional{number{attribute_of(*n, name, 0.0)}} : std::nullopt;
        };
        auto const least = bound(1, "min"), most = bound(2, "max");
        return least && most && least->may_be(0) && most->may_be(6) && c.with_number(n->inputs[0], "Add", 3) == x;
    });
    return found;
}
} // namespace detail

/// Replaces the product that node `n` (Mul or Div) makes where it is an activation of one value.
inline bool recognise_activation(rewriting& net, std::uint32_t n) {
    auto const result = net[n].outputs[0];
    claim c(net);
    auto const p = factors_of(c, result, true);
    if (p.factors.size() != 2) return false;
    for (std::size_t i = 0; i < 2; ++i) {
        auto const x = p.factors[i], gate = p.factors[1 - i];
        auto const whole = c;
        auto const type = detail::gated(c, x, gate, p.coefficient);
        if (type.empty() || !c.closed(result) || net.at(x).shape != net.at(result).shape) {
            c = whole;
            continue;
        }
        // Named after what makes it non-linear.
        auto name = net[n].name;
        for (auto const member : c.nodes())
            for (auto const* const t : {"Erf", "Tanh", "Sigmoid", "Softplus", "Clip", "HardSigmoid"})
                if (net[member].type == t) name = net[member].name;
        net.replace(c.nodes(), recognised(type, std::move(name), {x}, result));
        return true;
    }
    return false;
}

} // namespace parsearch::io::onnx::patterns
