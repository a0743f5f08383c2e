#pragma once
/// Evaluates ONNX's elementwise operators and reductions on small constants, exactly as the operators are defined on integers:
/// division truncates, and what does not fit its type is an error.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/io/onnx/file/proto.hpp>
#include <parsearch/io/onnx/lower/fold_tensors.hpp>

namespace parsearch::io::onnx::folding {

/// Applies `on_integers(x, y) -> wide_integer` or `on_reals(x, y) -> double` to two broadcast inputs.
template <class I, class R>
[[nodiscard]] typed_tensor combined(arguments const& a, typed_tensor const& x, typed_tensor const& y, element_type element, I on_integers,
                                    R on_reals) {
    auto to = broadcast(a, x.shape.extents, y.shape.extents);
    return result(a, to, element, [&](std::size_t) -> constant {
        auto const px = broadcast_positions(x.shape.extents, to), py = broadcast_positions(y.shape.extents, to);
        bool const to_real = is_floating(dtype_of(element, shown(a.n)));
        auto const* const ix = std::get_if<integers>(&x.contents->elements);
        auto const* const iy = std::get_if<integers>(&y.contents->elements);
        integers whole;
        reals real;
        for (std::size_t i = 0; i < px.size(); ++i) {
            if (ix && iy) whole.push_back(fitting(a, on_integers((*ix)[px[i]], (*iy)[py[i]]), element));
            else {
                auto const value = on_reals(x.contents->number(px[i]), y.contents->number(py[i]));
                if (to_real) real.push_back(rounded(value, element));
                else whole.push_back(truncated(a, value, element));
            }
        }
        if (ix && iy && to_real) a.fail("the inputs are integers, the output is not");
        return to_real ? constant{std::move(real)} : constant{std::move(whole)};
    });
}

[[nodiscard]] inline wide_integer power(arguments const& a, std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) a.fail("integer ", base, " to the power of ", exponent, ": the exponent must not be negative");
    wide_integer out = 1;
    constexpr wide_integer bound = wide_integer{1} << 64;
    for (; exponent > 0 && out != 0; --exponent) {
        if ((out == 1 && base == 1) || (base == -1)) return base == 1 || exponent % 2 == 0 ? out : -out;
        out *= base;
        if (out > bound || out < -bound) break;
    }
    return out;
}

[[nodiscard]] inline wide_integer quotient(arguments const& a, std::int64_t x, std::int64_t y) {
    if (y == 0) a.fail("division of integer ", x, " by 0");
    return static_cast<wide_integer>(x) / y;
}

/// The remainder with the sign of the divisor, or of the dividend where attribute `fmod` is 1.
[[nodiscard]] inline wide_integer remainder(arguments const& a, std::int64_t x, std::int64_t y) {
    if (y == 0) a.fail("remainder of integer ", x, " by 0");
    auto const r = static_cast<wide_integer>(x) % y;
    return r != 0 && (r < 0) != (y < 0) && attribute_of(a.n, "fmod", std::int64_t{0}) == 0 ? r + y : r;
}
[[nodiscard]] inline double remainder_of(arguments const& a, double x, double y) {
    auto const r = std::fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) && attribute_of(a.n, "fmod", std::int64_t{0}) == 0 ? r + y : r;
}

template <class I, class R> [[nodiscard]] typed_tensor elementwise(arguments const& a, I on_integers, R on_reals) {
    return combined(a, a[0], a[1], a[0].element, on_integers, on_reals);
}
template <class F> [[nodiscard]] typed_tensor compared(arguments const& a, F f) {
    return combined(
        a, a[0], a[1], pb::TensorProto::BOOL, [&](std::int64_t x, std::int64_t y) { return wide_integer{f(x, y)}; },
        [&](double x, double y) { return f(x, y) ? 1.0 : 0.0; });
}
/// Folds one input after the other: Sum, Min, Max.
template <class I, class R> [[nodiscard]] typed_tensor accumulated(arguments const& a, I on_integers, R on_reals) {
    auto out = a[0];
    for (std::size_t i = 1; i < a.in.size() && out.contents; ++i) out = combined(a, out, a[i], out.element, on_integers, on_reals);
    return out;
}
template <class I, class R> [[nodiscard]] typed_tensor mapped(arguments const& a, I on_integers, R on_reals) {
    return combined(
        a, a[0], a[0], a[0].element, [&](std::int64_t x, std::int64_t) { return wide_integer{on_integers(x)}; },
        [&](double x, double) { return on_reals(x); });
}
template <class R> [[nodiscard]] typed_tensor mapped_real(arguments const& a, R on_reals) {
    return mapped(
        a, [&](std::int64_t) -> wide_integer { a.fail("the input must be floating-point numbers"); }, on_reals);
}

[[nodiscard]] inline typed_tensor where(arguments const& a) {
    auto const& x = a[1];
    auto const& y = a[2];
    if (x.contents->elements.index() != y.contents->elements.index()) a.fail("one choice is of integers, the other is not");
    auto const to = broadcast(a, a[0].shape.extents, broadcast(a, x.shape.extents, y.shape.extents));
    return result(a, to, x.element, [&](std::size_t n) {
        auto const pc = broadcast_positions(a[0].shape.extents, to), px = broadcast_positions(x.shape.extents, to),
                   py = broadcast_positions(y.shape.extents, to);
        return std::visit(
            [&](auto const& vx) {
                auto const& vy = std::get<std::remove_cvref_t<decltype(vx)>>(y.contents->elements);
                std::remove_cvref_t<decltype(vx)> out(n);
                for (std::size_t i = 0; i < n; ++i) out[i] = a[0].contents->number(pc[i]) != 0 ? vx[px[i]] : vy[py[i]];
                return constant{std::move(out)};
            },
            x.contents->elements);
    });
}

/// Reduces over the axes of the node. `step(sum, x)` starts from `first`, or from the first element where there is none.
template <class I, class R>
[[nodiscard]] typed_tensor reduced(arguments const& a, std::optional<int> first, I on_integers, R on_reals, bool mean = false) {
    auto const& from = a[0].shape.extents;
    auto axes = a.axes(1);
    if (axes.empty() && attribute_of(a.n, "noop_with_empty_axes", std::int64_t{0}) != 0) return a[0];
    std::vector<bool> over(from.size(), axes.empty());
    for (auto const x : axes) over[a.axis(x, from.size())] = true;
    bool const keep = attribute_of(a.n, "keepdims", std::int64_t{1}) != 0;
    extent_list to, kept_extents;
    std::int64_t count = 1;
    for (std::size_t i = 0; i < from.size(); ++i) {
        kept_extents.push_back(over[i] ? 1 : from[i]);
        if (keep || !over[i]) to.push_back(kept_extents.back());
        if (over[i]) count *= from[i];
    }
    if (count == 0 && !first) a.fail("reduces over no elements");
    auto const own = strides_of(kept_extents);
    integers strides(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) strides[i] = over[i] ? 0 : own[i];
    auto const position = strided(from, strides);
    return result(a, to, a[0].element, [&](std::size_t n) {
        return std::visit(
            [&](auto const& v) {
                using number = typename std::remove_cvref_t<decltype(v)>::value_type;
                std::remove_cvref_t<decltype(v)> out(n, static_cast<number>(first.value_or(0)));
                std::vector<bool> begun(n, first.has_value());
                for (std::size_t i = 0; i < v.size(); ++i) {
                    auto& o = out[position[i]];
                    if (!begun[position[i]]) o = v[i];
                    else if constexpr (std::is_integral_v<number>) o = fitting(a, on_integers(o, v[i]), a[0].element);
                    else o = on_reals(o, v[i]);
                    begun[position[i]] = true;
                }
                for (auto& o : out) {
                    if (mean) o /= static_cast<number>(count);
                    if constexpr (!std::is_integral_v<number>) o = rounded(o, a[0].element);
                }
                return constant{std::move(out)};
            },
            a[0].contents->elements);
    });
}

/// Running sums along the axis that input 1 names.
[[nodiscard]] inline typed_tensor running_sum(arguments const& a) {
    auto const& extents = a[0].shape.extents;
    auto const axis = a.axis(a.integer(1), extents.size());
    bool const exclusive = attribute_of(a.n, "exclusive", std::int64_t{0}) != 0, reverse = attribute_of(a.n, "reverse", std::int64_t{0}) != 0;
    auto const step = static_cast<std::size_t>(strides_of(extents)[axis]), length = static_cast<std::size_t>(extents[axis]);
    return result(a, extents, a[0].element, [&](std::size_t n) {
        return std::visit(
            [&](auto const& v) {
                using number = typename std::remove_cvref_t<decltype(v)>::value_type;
                std::remove_cvref_t<decltype(v)> out(n);
                for (std::size_t start = 0; start < n; ++start) {
                    if (start / step % length != 0) continue;
                    number sum{};
                    for (std::size_t k = 0; k < length; ++k) {
                        auto const at = start + (reverse ? length - 1 - k : k) * step;
                        auto const before = sum;
                        if constexpr (std::is_integral_v<number>) sum = fitting(a, static_cast<wide_integer>(sum) + v[at], a[0].element);
                        else sum = rounded(sum + v[at], a[0].element);
                        out[at] = exclusive ? before : sum;
                    }
                }
                return constant{std::move(out)};
            },
            a[0].contents->elements);
    });
}

using evaluator = std::function<typed_tensor(arguments const&)>;

/// The operators with one output that are evaluated elementwise, or reduce.
[[nodiscard]] inline std::map<std::string_view, evaluator> const& arithmetic() {
    using A = arguments const&;
    using I = std::int64_t;
    constexpr auto wide = [](I x) { return static_cast<wide_integer>(x); };
    constexpr auto plus = [](I x, I y) { return static_cast<wide_integer>(x) + y; };
    constexpr auto times = [](I x, I y) { return static_cast<wide_integer>(x) * y; };
    constexpr auto least = [](auto x, auto y) { return std::isnan(static_cast<double>(x)) || x < y ? x : y; };
    constexpr auto most = [](auto x, auto y) { return std::isnan(static_cast<double>(x)) || x > y ? x : y; };
    static std::map<std::string_view, evaluator> const table{
        {"Add", [=](A a) { return elementwise(a, plus, std::plus<double>{}); }},
        {"Sub",
         [=](A a) {
             return elementwise(
                 a, [=](I x, I y) { return wide(x) - y; }, std::minus<double>{});
         }},
        {"Mul", [=](A a) { return elementwise(a, times, std::multiplies<double>{}); }},
        {"Div",
         [](A a) {
             return elementwise(
                 a, [&](I x, I y) { return quotient(a, x, y); }, std::divides<double>{});
         }},
        {"Mod",
         [](A a) {
             return elementwise(
                 a, [&](I x, I y) { return remainder(a, x, y); }, [&](double x, double y) { return remainder_of(a, x, y); });
         }},
        {"Pow",
         [](A a) {
             return elementwise(
                 a, [&](I x, I y) { return power(a, x, y); }, [](double x, double y) { return std::pow(x, y); });
         }},
        {"Sum", [=](A a) { return accumulated(a, plus, std::plus<double>{}); }},
        {"Min", [=](A a) { return accumulated(a, least, least); }},
        {"Max", [=](A a) { return accumulated(a, most, most); }},
        {"Neg",
         [=](A a) {
             return mapped(
                 a, [=](I x) { return -wide(x); }, std::negate<double>{});
         }},
        {"Abs",
         [=](A a) {
             return mapped(
                 a, [=](I x) { return x < 0 ? -wide(x) : wide(x); }, [](double x) { return std::abs(x); });
         }},
        {"Floor", [](A a) { return mapped_real(a, [](double x) { return std::floor(x); }); }},
        {"Ceil", [](A a) { return mapped_real(a, [](double x) { return std::ceil(x); }); }},
        {"Sqrt", [](A a) { return mapped_real(a, [](double x) { return std::sqrt(x); }); }},
        {"Reciprocal", [](A a) { return mapped_real(a, [](double x) { return 1 / x; }); }},
        {"Exp", [](A a) { return mapped_real(a, [](double x) { return std::exp(x); }); }},
        {"Log", [](A a) { return mapped_real(a, [](double x) { return std::log(x); }); }},
        {"Sin", [](A a) { return mapped_real(a, [](double x) { return std::sin(x); }); }},
        {"Cos", [](A a) { return mapped_real(a, [](double x) { return std::cos(x); }); }},
        {"Equal", [](A a) { return compared(a, std::equal_to<>{}); }},
        {"Less", [](A a) { return compared(a, std::less<>{}); }},
        {"LessOrEqual", [](A a) { return compared(a, std::less_equal<>{}); }},
        {"Greater", [](A a) { return compared(a, std::greater<>{}); }},
        {"GreaterOrEqual", [](A a) { return compared(a, std::greater_equal<>{}); }},
        {"And", [](A a) { return compared(a, [](auto x, auto y) { return x != 0 && y != 0; }); }},
        {"Or", [](A a) { return compared(a, [](auto x, auto y) { return x != 0 || y != 0; }); }},
        {"Xor", [](A a) { return compared(a, [](auto x, auto y) { return (x != 0) != (y != 0); }); }},
        {"Not",
         [](A a) {
             return mapped(
                 a, [](I x) { return I{x == 0}; }, [&](double) -> double { a.fail("the input must be booleans"); });
         }},
        {"Where", where},
        {"CumSum", running_sum},
        {"ReduceSum", [=](A a) { return reduced(a, 0, plus, std::plus<double>{}); }},
        {"ReduceMean", [=](A a) { return reduced(a, {}, plus, std::plus<double>{}, true); }},
        {"ReduceProd", [=](A a) { return reduced(a, 1, times, std::multiplies<double>{}); }},
        {"ReduceMin", [=](A a) { return reduced(a, {}, least, least); }},
        {"ReduceMax", [=](A a) { return reduced(a, {}, most, most); }},
    };
    return table;
}

} // namespace parsearch::io::onnx::folding
