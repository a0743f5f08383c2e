#pragma once
/// Elementwise operators: functions of one tensor, combinations of several with broadcast, dropout.

#include <algorithm>
#include <array>

#include <parsearch/ops/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

enum class function : std::uint8_t {
    identity, negate, absolute, relu, leaky_relu, gelu, silu, tanh, sigmoid, softplus, exp, log, sqrt, rsqrt, square, reciprocal
};

namespace detail {
/// What backward keeps (as PyTorch does), and flops per element by the textbook formula: a transcendental function counts as one.
struct function_traits {
    std::string_view name;
    bool keeps_input, keeps_output;
    double forward, backward;
};
inline constexpr std::array<function_traits, 16> function_table{{
    {"identity", false, false, 0, 0},
    {"negate", false, false, 1, 1},
    {"absolute", true, false, 1, 2},
    {"relu", false, true, 1, 1},
    {"leaky_relu", true, false, 2, 2},
    {"gelu", true, false, 4, 8}, // x (1 + erf(x / sqrt 2)) / 2
    {"silu", true, false, 4, 8},
    {"tanh", false, true, 1, 3},
    {"sigmoid", false, true, 3, 3},
    {"softplus", true, false, 3, 4},
    {"exp", false, true, 1, 1},
    {"log", true, false, 1, 1},
    {"sqrt", false, true, 1, 2},
    {"rsqrt", false, true, 2, 4},
    {"square", true, false, 1, 2},
    {"reciprocal", false, true, 1, 3},
}};
} // namespace detail

[[nodiscard]] constexpr std::string_view name_of(function f) noexcept { return detail::function_table[static_cast<std::size_t>(f)].name; }

/// y = f(x), element by element. The operation's kind is the name of the function.
struct unary {
    static constexpr std::string_view kind = "unary";
    ops::function function = ops::function::identity;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        detail::expect_inputs(inputs, 1);
        detail::expect_floating(inputs, 0, 0);
        auto const& x = inputs[0];
        auto const rank = x.extents.size();
        auto const& traits = detail::function_table[static_cast<std::size_t>(function)];
        operation op{.kind = std::string(traits.name), .work = work_class::elementwise};
        detail::add_axis_dims(op, x, rank, rank);
        op.flops = traits.forward * detail::elements(x);
        auto& in = detail::add_input(op, "x", x.type, detail::along_dims(op, 0, rank));
        in.saved = traits.keeps_input;
        in.gradient_flops = traits.backward * detail::elements(x);
        detail::add_output(op, "y", x.type, detail::along_dims(op, 0, rank)).saved = traits.keeps_output;
        return detail::finished(std::move(op));
    }
};

enum class combine : std::uint8_t { add, subtract, multiply, divide, maximum, minimum };
[[nodiscard]] constexpr std::string_view name_of(combine c) noexcept {
    constexpr std::array<std::string_view, 6> names{"add", "subtract", "multiply", "divide", "maximum", "minimum"};
    return names[static_cast<std::size_t>(c)];
}

/// Two or more tensors of one type, combined from left to right, element by element. Shapes broadcast as in NumPy: axes are matched from the
/// last, and an axis of extent 1, or one that is missing, is repeated. The operation's kind is the name of the combination.
struct nary {
    static constexpr std::string_view kind = "nary";
    ops::combine combine = ops::combine::add;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        detail::expect_inputs(inputs, 2, ~std::size_t{0});
        detail::expect_one_type(inputs);
        tensor y{.type = inputs[0].type};
        for (auto const& x : inputs) y.extents.resize(std::max(y.extents.size(), x.extents.size()), 1);
        auto const rank = y.extents.size();
        for (std::size_t i = 0; i < inputs.size(); ++i)
            for (std::size_t a = inputs[i].extents.size(), b = rank; a-- > 0;) {
                auto const extent = inputs[i].extents[a];
                auto& joined = y.extents[--b];
                if (extent != 1 && joined != 1 && extent != joined)
                    throw invalid_input(detail::shown(inputs, i), ": axis ", a, " must have extent ", joined, " or 1 to be combined with the inputs before it");
                joined = std::max(joined, extent);
            }
        operation op{.kind = std::string(name_of(combine)), .work = work_class::elementwise};
        detail::add_axis_dims(op, y, rank, rank);
        double const steps = detail::elements(y) * static_cast<double>(inputs.size() - 1);
        bool const linear = combine == ops::combine::add || combine == ops::combine::subtract;
        op.flops = steps;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            auto const& extents = inputs[i].extents;
            std::vector<axis> axes;
            for (std::size_t a = 0; a < extents.size(); ++a) {
                auto const d = static_cast<std::uint32_t>(rank - extents.size() + a);
                axes.push_back(extents[a] == y.extents[d] ? detail::along(op, d) : detail::whole(1));
            }
            auto& in = detail::add_input(op, text("x", i), y.type, std::move(axes));
            in.saved = !linear;
            // A gradient that is broadcast forward is summed backward.
            in.gradient_flops = (linear ? 0 : steps) + (detail::elements(inputs[i]) < detail::elements(y) ? detail::elements(y) : 0);
        }
        detail::add_output(op, "y", y.type, detail::along_dims(op, 0, rank));
        return detail::finished(std::move(op));
    }
};

/// `unary` and `nary` of one function, with its name.
template <function F> struct fixed_unary {
    static constexpr std::string_view kind = name_of(F);
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const { return unary{F}.infer(inputs); }
};
template <combine C> struct fixed_nary {
    static constexpr std::string_view kind = name_of(C);
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const { return nary{C}.infer(inputs); }
};
using relu = fixed_unary<function::relu>;
using gelu = fixed_unary<function::gelu>;
using add = fixed_nary<combine::add>;
using multiply = fixed_nary<combine::multiply>;

/// Zeroes a share `rate` of the elements and scales the others. A mask of one byte per element is kept for backward.
struct dropout {
    static constexpr std::string_view kind = "dropout";
    double rate = 0.5;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        detail::expect_inputs(inputs, 1);
        detail::expect_floating(inputs, 0, 0);
        if (!(rate >= 0 && rate < 1)) throw invalid_input("option rate is ", rate, ": must be at least 0 and below 1");
        auto const& x = inputs[0];
        auto const rank = x.extents.size();
        operation op{.kind = std::string(kind), .work = work_class::elementwise};
        detail::add_axis_dims(op, x, rank, rank);
        op.flops = 2 * detail::elements(x);
        op.saved_bytes = detail::elements(x);
        detail::add_input(op, "x", x.type, detail::along_dims(op, 0, rank)).gradient_flops = 2 * detail::elements(x);
        detail::add_output(op, "y", x.type, detail::along_dims(op, 0, rank));
        return detail::finished(std::move(op));
    }
};

} // namespace parsearch::ops
