#pragma once
/// Elementwise operators: functions of one tensor, combinations of several with broadcast, dropout.

#include <algorithm>
#include <array>

#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

enum class function : std::uint8_t {
    identity,
    negate,
    absolute,
    relu,
    leaky_relu,
    gelu,
    silu,
    tanh,
    sigmoid,
    softplus,
    exp,
    log,
    sqrt,
    rsqrt,
    square,
    reciprocal,
    scale,
    shift,
    mask,
    power,
    elu,
    selu,
    celu,
    hard_sigmoid,
    hard_swish,
    softsign,
    mish,
    erf,
    clip,
    sin,
    cos,
    trigonometric,
    sign,
    round,
    complement
};

/// What backward keeps (as PyTorch does), and flops per element by the textbook formula: a transcendental function counts as one.
struct function_traits {
    std::string_view name;
    bool keeps_input, keeps_output;
    double forward, backward;
    bool any_type = false; ///< makes sense of integers
};

inline constexpr std::array<function_traits, 35> function_table{{
    {"identity", false, false, 0, 0, true},
    {"negate", false, false, 1, 1, true},
    {"absolute", true, false, 1, 2, true},
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
    {"square", true, false, 1, 2, true},
    {"reciprocal", false, true, 1, 3},
    {"scale", false, false, 1, 1, true}, // by a number
    {"shift", false, false, 1, 0, true}, // by a number
    {"mask", false, false, 1, 1, true},  // by position: a triangle
    {"power", true, false, 1, 3, true},  // of a number
    {"elu", false, true, 3, 3},
    {"selu", false, true, 4, 4},
    {"celu", false, true, 4, 4},
    {"hard_sigmoid", true, false, 4, 2},
    {"hard_swish", true, false, 5, 5},
    {"softsign", true, false, 3, 5},
    {"mish", true, false, 5, 10},
    {"erf", true, false, 1, 4},
    {"clip", true, false, 2, 2, true},
    {"sin", true, false, 1, 2},
    {"cos", true, false, 1, 2},
    {"trigonometric", true, false, 1, 4}, // tan, arcus and area functions, hyperbolic ones
    {"sign", false, false, 1, 0, true},
    {"round", false, false, 1, 0, true},      // to an integer, in any way
    {"complement", false, false, 1, 0, true}, // of a truth value
}};

[[nodiscard]] constexpr std::string_view name_of(function f) noexcept { return function_table[static_cast<std::size_t>(f)].name; }

/// y = f(x), element by element. The operation's kind is the name of the function. Integers are taken where they make sense, without gradient.
struct unary {
    static constexpr std::string_view kind = "unary";
    ops::function function = ops::function::identity;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 1);
        auto const& traits = function_table[static_cast<std::size_t>(function)];
        if (!traits.any_type) kit::expect_floating(inputs, 0, 0);
        auto const& x = inputs[0];
        auto const rank = x.extents.size();
        operation op{.kind = std::string(traits.name), .work = work_class::elementwise};
        kit::add_axis_dims(op, x, rank, rank);
        op.flops = traits.forward * kit::elements(x);
        auto& in = kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank));
        in.saved = traits.keeps_input && in.differentiable;
        in.gradient_flops = in.differentiable ? traits.backward * kit::elements(x) : 0;
        kit::add_output(op, "y", x.type, kit::along_dims(op, 0, rank)).saved = traits.keeps_output;
        return kit::finished(std::move(op));
    }
};

enum class combine : std::uint8_t { add, subtract, multiply, divide, maximum, minimum, mean, power, modulo, prelu, compare, logical };

/// How a combination of tensors is counted: flops per element of the output and further tensor; in backward the same for each gradient,
/// less where a sum's is only passed on.
struct combine_traits {
    std::string_view name;
    bool sums;           ///< keeps nothing for backward, and gradients cost nothing
    bool differentiable; ///< false: no gradient flows
};

inline constexpr std::array<combine_traits, 12> combine_table{{
    {"add", true, true},
    {"subtract", true, true},
    {"multiply", false, true},
    {"divide", false, true},
    {"maximum", false, true},
    {"minimum", false, true},
    {"mean", true, true},
    {"power", false, true},
    {"modulo", true, true},
    {"prelu", false, true},    // x where it is positive, else the product
    {"compare", false, false}, // to truth values, of type i8
    {"logical", false, false}, // of truth values
}};

namespace detail {

/// The shape that `inputs` broadcast to. Throws where they do not fit.
[[nodiscard]] inline tensor broadcast(std::span<tensor const> inputs) {
    tensor y{.type = inputs[0].type};
    for (auto const& x : inputs) y.extents.resize(std::max(y.extents.size(), x.extents.size()), 1);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        for (std::size_t a = inputs[i].extents.size(), b = y.extents.size(); a-- > 0;) {
            auto const extent = inputs[i].extents[a];
            auto& joined = y.extents[--b];
            if (extent != 1 && joined != 1 && extent != joined)
                throw invalid_input(shown(inputs, i), ": axis ", a, " must have extent ", joined, " or 1 to be combined with the inputs before it");
            joined = std::max(joined, extent);
        }
    return y;
}

/// The axes of a tensor of `extents` that is broadcast to the dims of `op`, which are those of the result.
[[nodiscard]] inline std::vector<axis> broadcast_axes(operation const& op, std::vector<std::int64_t> const& extents) {
    std::vector<axis> axes;
    for (std::size_t a = 0; a < extents.size(); ++a) {
        auto const d = static_cast<std::uint32_t>(op.dims.size() - extents.size() + a);
        axes.push_back(extents[a] == op.dims[d].extent ? along(op, d) : whole(1));
    }
    return axes;
}

/// Adds the inputs of an elementwise operator, `steps` flops for the gradient of each, and what it takes to sum it where it is broadcast.
inline void add_broadcast_inputs(operation& op, std::span<tensor const> inputs, double steps, double results, bool saved) {
    for (auto const& x : inputs) {
        auto& in = add_input(op, text("x", op.inputs.size()), x.type, broadcast_axes(op, x.extents));
        in.saved = saved;
        if (in.differentiable) in.gradient_flops = steps + (elements(x) < results ? results : 0);
    }
}
} // namespace detail

[[nodiscard]] constexpr std::string_view name_of(combine c) noexcept { return combine_table[static_cast<std::size_t>(c)].name; }

/// Two or more tensors of one type, combined from left to right, element by element. Shapes broadcast as in NumPy: axes are matched from the
/// last, and an axis of extent 1, or one that is missing, is repeated. The operation's kind is the name of the combination.
struct nary {
    static constexpr std::string_view kind = "nary";
    ops::combine combine = ops::combine::add;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 2, ~std::size_t{0});
        kit::expect_one_type(inputs);
        auto const& traits = combine_table[static_cast<std::size_t>(combine)];
        auto const y = detail::broadcast(inputs);
        operation op{.kind = std::string(traits.name), .work = work_class::elementwise};
        kit::add_axis_dims(op, y, y.extents.size(), y.extents.size());
        op.flops = kit::elements(y) * static_cast<double>(inputs.size() - 1);
        bool const backward = traits.differentiable && kit::is_floating(y.type);
        detail::add_broadcast_inputs(op, inputs, traits.sums ? 0 : op.flops, kit::elements(y), backward && !traits.sums);
        kit::add_output(op, "y", combine == ops::combine::compare ? dtype::i8 : y.type, kit::along_dims(op, 0, y.extents.size()));
        for (auto& in : op.inputs)
            if (!backward) {
                in.differentiable = false;
                in.gradient_flops = 0;
            }
        return kit::finished(std::move(op));
    }
};

/// condition, a, b -> y: a where the condition holds, else b, broadcast as in `nary`.
struct select {
    static constexpr std::string_view kind = "select";
    /// Inputs: the condition (i8), a and b (of one type).
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 3);
        if (inputs[0].type != dtype::i8) throw invalid_input(kit::shown(inputs, 0), ": truth values must have type i8");
        if (inputs[1].type != inputs[2].type) throw invalid_input(kit::shown(inputs, 2), ": must have the type of ", kit::shown(inputs, 1));
        auto const y = detail::broadcast(inputs);
        operation op{.kind = std::string(kind), .work = work_class::elementwise};
        kit::add_axis_dims(op, y, y.extents.size(), y.extents.size());
        op.flops = kit::elements(y);
        detail::add_broadcast_inputs(op, inputs, op.flops, op.flops, false);
        op.inputs[0].saved = true;
        kit::add_output(op, "y", inputs[1].type, kit::along_dims(op, 0, y.extents.size()));
        return kit::finished(std::move(op));
    }
};

/// The same elements in another type. A gradient flows between floating-point types and is converted back.
struct cast {
    static constexpr std::string_view kind = "cast";
    dtype type = dtype::f32;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 1);
        auto const& x = inputs[0];
        auto const rank = x.extents.size();
        operation op{.kind = std::string(kind), .work = work_class::elementwise};
        kit::add_axis_dims(op, x, rank, rank);
        op.flops = kit::elements(x);
        auto& in = kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank));
        in.differentiable = kit::is_floating(x.type) && kit::is_floating(type);
        in.gradient_flops = in.differentiable ? op.flops : 0;
        kit::add_output(op, "y", type, kit::along_dims(op, 0, rank));
        return kit::finished(std::move(op));
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
        kit::expect_inputs(inputs, 1);
        kit::expect_floating(inputs, 0, 0);
        if (!(rate >= 0 && rate < 1)) throw invalid_input("option rate is ", rate, ": must be at least 0 and below 1");
        auto const& x = inputs[0];
        auto const rank = x.extents.size();
        operation op{.kind = std::string(kind), .work = work_class::elementwise};
        kit::add_axis_dims(op, x, rank, rank);
        op.flops = 2 * kit::elements(x);
        op.saved_bytes = kit::elements(x);
        kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank)).gradient_flops = 2 * kit::elements(x);
        kit::add_output(op, "y", x.type, kit::along_dims(op, 0, rank));
        return kit::finished(std::move(op));
    }
};

} // namespace parsearch::ops
