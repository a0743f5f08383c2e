#pragma once
/// Translators of elementwise operators.

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/network/element_types.hpp>
#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/elementwise.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// True where input `i` is a known number that broadcasting to input `with` leaves as it is.
inline bool is_number(translation const& t, std::size_t i, std::size_t with) { return t.scalar(i) && t.rank(i) <= t.rank(with) && !t.is_fixed(with); }

/// A combination of all inputs. A product keeps a factor for backward only where the other one is trained.
inline void translate_nary(translation& t, ops::combine combine) {
    auto const in = t.all_inputs();
    if (in.size() == 1) return t.output(0, in[0]);
    auto op = t.infer(ops::nary{combine}, in);
    auto const all = std::count_if(in.begin(), in.end(), [&](argument const& a) { return t.wants_gradient(a); });
    for (std::size_t i = 0; i < in.size(); ++i) {
        bool const wants = t.wants_gradient(in[i]), others = all > (wants ? 1 : 0);
        bool const own = (combine == ops::combine::divide && i == 1) || (combine != ops::combine::multiply && combine != ops::combine::divide);
        op.inputs[i].saved = op.inputs[i].saved && (others || (own && wants));
    }
    t.insert(std::move(op), in);
}

/// A combination with a number is a function of the other input.
inline void translate_arithmetic(translation& t, ops::combine combine, ops::function with_number) {
    if (is_number(t, 1, 0)) t.emit(ops::unary{with_number}, t.input(0));
    else if (is_number(t, 0, 1) && combine != ops::combine::divide) t.emit(ops::unary{with_number}, t.input(1));
    else if (is_number(t, 0, 1)) t.emit(ops::unary{ops::function::reciprocal}, t.input(1));
    else translate_nary(t, combine);
}

inline void translate_power(translation& t) {
    if (!is_number(t, 1, 0)) {
        if (t.shape(0).type == t.shape(1).type) return translate_nary(t, ops::combine::power);
        t.emit(ops::nary{ops::combine::power}, t.input(0), t.as("cast").emit(ops::cast{t.shape(0).type}, t.input(1)));
        return;
    }
    double const exponent = *t.scalar(1);
    bool const floating = ops::kit::is_floating(t.shape(0).type);
    auto const f = exponent == 1                  ? ops::function::identity
                   : exponent == 2                ? ops::function::square
                   : exponent == 0.5 && floating  ? ops::function::sqrt
                   : exponent == -0.5 && floating ? ops::function::rsqrt
                   : exponent == -1 && floating   ? ops::function::reciprocal
                                                  : ops::function::power;
    t.emit(ops::unary{f}, t.input(0));
}

/// Mask and scaling are done where training follows; a rate of 0 leaves nothing to do.
inline void translate_dropout(translation& t) {
    double rate = t.version() < 12 ? t.number("ratio", 0.5) : 0.5;
    if (t.version() >= 12 && t.has_input(1)) {
        auto const given = t.scalar(1);
        if (!given) throw invalid_input("input 1 (the ratio) is computed in the network: must be known when it is read");
        rate = *given;
    }
    if (rate == 0) return t.output(0, t.input(0));
    t.output(0, t.emit(ops::dropout{.rate = rate}, t.input(0)));
}

/// The type that attribute "to" names.
inline ops::dtype named_type(translation const& t) {
    auto const number = t.integer("to", 0);
    if (auto const type = dtype_numbered(number)) return *type;
    throw invalid_input("element type number ", number, " is not supported: must be one of 1 to 7, 9 to 13, 16");
}

inline void translate_cast(translation& t, ops::dtype to) {
    if (t.shape(0).type == to) t.output(0, t.input(0));
    else t.emit(ops::cast{to}, t.input(0));
}

/// A bias and an activation behind it: BiasGelu, and FastGelu with a bias.
inline void translate_biased(translation& t, ops::function f) {
    argument x = t.input(0);
    if (t.has_input(1)) x = t.as("bias").emit(ops::add{}, x, t.input(1));
    t.emit(ops::unary{f}, x);
}
} // namespace detail

/// Functions of one tensor, combinations with broadcast, comparisons, Where, Cast, Dropout, Identity.
inline void add_elementwise(operators& known) {
    using enum ops::function;
    constexpr std::pair<std::string_view, ops::function> functions[] = {{"Relu", relu},
                                                                        {"LeakyRelu", leaky_relu},
                                                                        {"ThresholdedRelu", leaky_relu},
                                                                        {"Shrink", leaky_relu},
                                                                        {"Elu", elu},
                                                                        {"Selu", selu},
                                                                        {"Celu", celu},
                                                                        {"Softplus", softplus},
                                                                        {"Softsign", softsign},
                                                                        {"HardSigmoid", hard_sigmoid},
                                                                        {"HardSwish", hard_swish},
                                                                        {"Sigmoid", sigmoid},
                                                                        {"Tanh", tanh},
                                                                        {"Erf", erf},
                                                                        {"Gelu", gelu},
                                                                        {"Mish", mish},
                                                                        {"Swish", silu},
                                                                        {"Clip", clip},
                                                                        {"Exp", exp},
                                                                        {"Log", log},
                                                                        {"Sqrt", sqrt},
                                                                        {"Reciprocal", reciprocal},
                                                                        {"Neg", negate},
                                                                        {"Abs", absolute},
                                                                        {"Sign", sign},
                                                                        {"Floor", round},
                                                                        {"Ceil", round},
                                                                        {"Round", round},
                                                                        {"Sin", sin},
                                                                        {"Cos", cos},
                                                                        {"Tan", trigonometric},
                                                                        {"Asin", trigonometric},
                                                                        {"Acos", trigonometric},
                                                                        {"Atan", trigonometric},
                                                                        {"Sinh", trigonometric},
                                                                        {"Cosh", trigonometric},
                                                                        {"Asinh", trigonometric},
                                                                        {"Acosh", trigonometric},
                                                                        {"Atanh", trigonometric},
                                                                        {"Not", complement},
                                                                        {"BitwiseNot", complement},
                                                                        {"Trilu", mask}};
    for (auto const& [type, f] : functions) known.add("", type, [f = f](translation& t) { t.emit(ops::unary{f}, t.input(0)); });
    known.add("", "Identity", [](translation& t) { t.output(0, t.input(0)); });
    known.add("", {"IsNaN", "IsInf"}, [](translation& t) { t.emit(ops::cast{ops::dtype::i8}, t.input(0)); });

    constexpr std::pair<std::string_view, ops::combine> combinations[] = {{"Max", ops::combine::maximum},
                                                                          {"Min", ops::combine::minimum},
                                                                          {"Sum", ops::combine::add},
                                                                          {"Mean", ops::combine::mean},
                                                                          {"Mod", ops::combine::modulo},
                                                                          {"And", ops::combine::logical},
                                                                          {"Or", ops::combine::logical},
                                                                          {"Xor", ops::combine::logical},
                                                                          {"BitwiseAnd", ops::combine::logical},
                                                                          {"BitwiseOr", ops::combine::logical},
                                                                          {"BitwiseXor", ops::combine::logical},
                                                                          {"Equal", ops::combine::compare},
                                                                          {"Less", ops::combine::compare},
                                                                          {"Greater", ops::combine::compare},
                                                                          {"LessOrEqual", ops::combine::compare},
                                                                          {"GreaterOrEqual", ops::combine::compare},
                                                                          {"PRelu", ops::combine::prelu}};
    for (auto const& [type, c] : combinations) known.add("", type, [c = c](translation& t) { detail::translate_nary(t, c); });
    known.add("", "Add", [](translation& t) { detail::translate_arithmetic(t, ops::combine::add, shift); });
    known.add("", "Sub", [](translation& t) { detail::translate_arithmetic(t, ops::combine::subtract, shift); });
    known.add("", "Mul", [](translation& t) { detail::translate_arithmetic(t, ops::combine::multiply, scale); });
    known.add("", "Div", [](translation& t) { detail::translate_arithmetic(t, ops::combine::divide, scale); });
    known.add("", "Pow", detail::translate_power);
    known.add("", "Where", [](translation& t) { t.emit(ops::select{}, t.input(0), t.input(1), t.input(2)); });
    known.add("", "Dropout", detail::translate_dropout);
    known.add("", "Cast", [](translation& t) { detail::translate_cast(t, detail::named_type(t)); });
    known.add("", "CastLike", [](translation& t) { detail::translate_cast(t, t.shape(1).type); });
    known.add("com.microsoft", {"Gelu", "FastGelu", "BiasGelu"}, [](translation& t) { detail::translate_biased(t, gelu); });
    known.add("com.microsoft", "QuickGelu", [](translation& t) { t.emit(ops::unary{silu}, t.input(0)); });
}

} // namespace parsearch::io::onnx
