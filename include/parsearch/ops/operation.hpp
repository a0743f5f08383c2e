#pragma once
/// What an operator is: an iteration space and the operands that it indexes.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch::ops {

/// Element types.
enum class dtype : std::uint8_t { f64, f32, tf32, f16, bf16, i64, i32, i8 };
inline constexpr std::size_t dtypes = 8;

/// Bytes of one element. tf32 is stored in 4.
[[nodiscard]] constexpr byte_count size_of(dtype t) noexcept {
    constexpr std::array<byte_count, 8> sizes{8, 4, 4, 2, 2, 8, 4, 1};
    return sizes[static_cast<std::size_t>(t)];
}
[[nodiscard]] constexpr std::string_view name_of(dtype t) noexcept {
    constexpr std::array<std::string_view, 8> names{"f64", "f32", "tf32", "f16", "bf16", "i64", "i32", "i8"};
    return names[static_cast<std::size_t>(t)];
}

/// What splitting an iteration dim means (the letters of SOAP, the reduction that FlexFlow left out, and what repeats work; see `repeats_work`).
enum class dim_kind : std::uint8_t {
    sample,    ///< the batch: splits activations, replicates weights
    attribute, ///< height, width, length: splits activations, replicates weights
    parameter, ///< channels, hidden units, heads: splits weights
    reduction, ///< summed over: outputs are partial sums
    fixed,     ///< not divisible
    copies,    ///< every shard does the same on the same data: outputs are held in as many copies
    sums       ///< every shard takes its share of the partial sums of the inputs that are `operand::summed`: outputs are partial sums
};
inline constexpr std::size_t dim_kinds = 7;
[[nodiscard]] constexpr std::string_view name_of(dim_kind k) noexcept {
    constexpr std::array<std::string_view, dim_kinds> names{"sample", "attribute", "parameter", "reduction", "fixed", "copies", "sums"};
    return names[static_cast<std::size_t>(k)];
}
/// True of dims that index no operand and divide no work: all shards along them do all of it (the replica dims of Unity's parallel tensors).
[[nodiscard]] constexpr bool repeats_work(dim_kind k) noexcept { return k == dim_kind::copies || k == dim_kind::sums; }

/// What bounds an operator, so that a cost model can tell classes apart.
enum class work_class : std::uint8_t {
    matmul,
    convolution,
    attention,
    recurrent,
    normalization,
    softmax,
    pooling,
    elementwise,
    memory, ///< memory: data are only moved
    view,   ///< no work at all: reshape of data in place
    source  ///< graph input: data are loaded where they are needed, no tasks and no gradient
};
inline constexpr std::size_t work_classes = 11;
[[nodiscard]] constexpr std::string_view name_of(work_class c) noexcept {
    constexpr std::array<std::string_view, work_classes> names{"matmul",  "convolution", "attention", "recurrent", "normalization", "softmax",
                                                               "pooling", "elementwise", "memory",    "view",      "source"};
    return names[static_cast<std::size_t>(c)];
}

/// The most iteration dims an operator may have.
inline constexpr std::size_t max_dims = 10;

class device_shares;

/// One dim of the iteration space.
struct dim {
    std::string name;
    std::int64_t extent = 1;
    dim_kind kind = dim_kind::fixed;
    std::shared_ptr<device_shares const>
        shares{}; ///< where parts are as large as devices are fast; set by simulations, see `simulation_options::balanced`
    friend bool operator==(dim const&, dim const&) = default;
};

/// `stride` times the value of iteration dim number `dim`.
struct term {
    std::uint32_t dim = 0;
    std::int64_t stride = 1;
    friend bool operator==(term const&, term const&) = default;
};

/// How one axis of a tensor is indexed. A point of the iteration space reads or writes the positions
/// [offset + sum of terms, offset + sum of terms + span), clipped to [0, extent).
/// - plain: one term, span 1. Window: stride = the step, offset = -padding, span = dilation * (kernel - 1) + 1.
/// - concat, slice, split: one term and an offset. Flattened dims: one term each with the inner extents as stride.
/// - no term: the point touches the whole axis (`span` is ignored).
struct axis {
    std::int64_t extent = 1;
    std::vector<term> terms{};
    std::int64_t offset = 0;
    std::int64_t span = 1;
    friend bool operator==(axis const&, axis const&) = default;
};

/// A tensor that an operator reads or writes.
struct operand {
    std::string name;
    dtype type = dtype::f32;
    std::vector<axis> axes{};
    /// Kept from forward until backward.
    bool saved = false;
    /// False for indices and masks: no gradient flows through it.
    bool differentiable = true;
    /// Inputs of operations that have a dim of kind `sums`, and are linear in them: shard k along it reads partial sum p of P where floor(p * degree
    /// / P) is k.
    bool summed = false;
    /// Flops, of the whole operator, that its gradient costs in backward (inputs and weights).
    flop_count gradient_flops = 0;
    /// Bytes of it that one pass of the whole operator touches; negative: all of it. Set for tables that are looked up.
    double touched_bytes = -1;
    /// Weights: those with the same non-empty name in one graph are one parameter tensor.
    std::string parameter{};
    /// Inputs: shards that all need what each of them holds a part of pass these parts on in a ring, and compute on the part that they have while
    /// the next is on its way, see `ring_parts`.
    bool passed_on = false;
    /// Weights: kept from one iteration of inference to the next and never trained, as keys and values of earlier tokens are. Samples may index it.
    bool cache = false;
    friend bool operator==(operand const&, operand const&) = default;
};

/// An operator: its iteration space, operands, and amount of work. Everything that parallelization needs follows from it.
struct operation {
    std::string kind;
    work_class work = work_class::elementwise;
    std::vector<dim> dims{};
    std::vector<operand> inputs{};
    std::vector<operand> weights{};
    std::vector<operand> outputs{};
    /// Forward flops of the whole operator (a multiply-add is two).
    flop_count flops = 0;
    /// Multiply-adds of its contractions, the figure by which networks are compared (forward).
    flop_count multiply_adds = 0;
    /// Backward flops beside those of its inputs' and weights' gradients.
    flop_count backward_flops = 0;
    /// Of `flops` and `backward_flops`, those of matrix products where `work` is another class: an attention's projections. If `product_flops` is not
    /// 0, gradients of operands count as matrix products.
    flop_count product_flops = 0, backward_product_flops = 0;
    /// Bytes kept until backward beside saved operands (masks, statistics), split evenly over the shards.
    double saved_bytes = 0;
    /// Bytes of intermediate results that a pass writes to memory and reads again, each time they are, split evenly over the shards. Forward's
    /// writes of `saved_bytes` and backward's first reads of them are counted without.
    double intermediate_bytes = 0, backward_intermediate_bytes = 0;
    /// What leaves no trace in kind, dims and operands and yet makes it run otherwise: "causal", of attention. Measured times are told apart by it.
    std::string variant{};
    friend bool operator==(operation const&, operation const&) = default;
};

/// Shape and type of a tensor on an edge of the graph. Axis 0 is the sample axis.
struct tensor {
    std::vector<std::int64_t> extents{};
    dtype type = dtype::f32;
    friend bool operator==(tensor const&, tensor const&) = default;
};

/// "f32[64,3,224,224]".
[[nodiscard]] inline std::string to_string(tensor const& t) {
    std::string out = text(name_of(t.type), '[');
    for (std::size_t i = 0; i < t.extents.size(); ++i) out += text(i ? "," : "", t.extents[i]);
    return out + ']';
}

/// The shape and type of an operand.
[[nodiscard]] inline tensor tensor_of(operand const& o) {
    tensor t{.type = o.type};
    for (auto const& a : o.axes) t.extents.push_back(a.extent);
    return t;
}

/// Elements and bytes of a whole operand.
[[nodiscard]] inline std::int64_t elements_of(operand const& o) noexcept {
    std::int64_t n = 1;
    for (auto const& a : o.axes) n *= a.extent;
    return n;
}
[[nodiscard]] inline byte_count bytes_of(operand const& o) noexcept { return elements_of(o) * size_of(o.type); }

/// Parameters of an operator (elements of its weights, caches left out).
[[nodiscard]] inline std::int64_t parameters_of(operation const& op) noexcept {
    std::int64_t n = 0;
    for (auto const& w : op.weights) n += w.cache ? 0 : elements_of(w);
    return n;
}
/// Whether some of its weights are parameters, and some caches.
[[nodiscard]] inline bool has_parameters(operation const& op) noexcept { return !std::ranges::all_of(op.weights, &operand::cache); }
[[nodiscard]] inline bool keeps_cache(operation const& op) noexcept { return std::ranges::any_of(op.weights, &operand::cache); }

/// Whether it looks entries of a table up: of its first weights it touches a part alone.
[[nodiscard]] inline bool looks_up(operation const& op) noexcept { return !op.weights.empty() && op.weights[0].touched_bytes >= 0; }

/// The amounts of work of an operation that grow with its iteration space, beside those of its operands.
template <class Operation> [[nodiscard]] constexpr auto amounts_of(Operation& op) noexcept {
    return std::array{&op.flops,
                      &op.multiply_adds,
                      &op.backward_flops,
                      &op.product_flops,
                      &op.backward_product_flops,
                      &op.saved_bytes,
                      &op.intermediate_bytes,
                      &op.backward_intermediate_bytes};
}

/// Checks an operation that a user wrote. Throws `invalid_input` naming `where`, the value and the rule.
void validate(operation const& op, std::string_view where);

namespace detail {
void describe() = delete;
template <class T>
concept describable =
    std::is_convertible_v<T const&, operation const&> || requires(T const& x) { x.describe(); } || requires(T const& x) { describe(x); };
struct describe_fn {
    template <describable T> constexpr decltype(auto) operator()(T const& x) const {
        if constexpr (std::is_convertible_v<T const&, operation const&>) return static_cast<operation const&>(x);
        else if constexpr (requires { x.describe(); }) return x.describe();
        else return describe(x);
    }
};
} // namespace detail

/// `describe(x)`: the operation that `x` stands for. An `operation` itself, a member, or a function found by ADL.
inline constexpr detail::describe_fn describe{};

/// A type that `ops::describe` turns into an `operation`: the description that the simulator understands.
template <class T>
concept Describable = detail::describable<T> && requires(T const& x) {
    { ops::describe(x) } -> std::convertible_to<operation>;
};

/// An operator that infers its operation from the tensors it is applied to: `op.infer(inputs)`; errors are `invalid_input`.
/// `T::kind` is its name.
template <class T>
concept ShapedOperator = requires(T const& op, std::span<tensor const> inputs) {
    { T::kind } -> std::convertible_to<std::string_view>;
    { op.infer(inputs) } -> std::same_as<operation>;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/operation.ipp>
#endif
