#pragma once
/// Elementwise operators: functions of one tensor, combinations of several with broadcast, dropout.

#include <array>

#include <parsearch/core/compiled.hpp>
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
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
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
[[nodiscard]] tensor broadcast(std::span<tensor const> inputs);

/// Adds the inputs of an elementwise operator, `steps` flops for the gradient of each, and what it takes to sum it where it is broadcast.
void add_broadcast_inputs(operation& op, std::span<tensor const> inputs, double steps, double results, bool saved);
} // namespace detail

[[nodiscard]] constexpr std::string_view name_of(combine c) noexcept { return combine_table[static_cast<std::size_t>(c)].name; }

/// Two or more tensors of one type, combined from left to right, element by element. Shapes broadcast as in NumPy: axes are matched from the
/// last, and an axis of extent 1, or one that is missing, is repeated. The operation's kind is the name of the combination.
struct nary {
    static constexpr std::string_view kind = "nary";
    ops::combine combine = ops::combine::add;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// condition, a, b -> y: a where the condition holds, else b, broadcast as in `nary`.
struct select {
    static constexpr std::string_view kind = "select";
    /// Inputs: the condition (i8), a and b (of one type).
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// The same elements in another type. A gradient flows between floating-point types and is converted back.
struct cast {
    static constexpr std::string_view kind = "cast";
    dtype type = dtype::f32;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
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
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/elementwise.ipp>
#endif
