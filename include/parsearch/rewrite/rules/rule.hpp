#pragma once
/// Substitution rules as values: a source pattern, a target pattern, and which outputs stand for which.
/// Source: C. Unger et al., Unity: Accelerating DNN Training Through Joint Optimization of Algebraic Transformations and Parallelization,
/// OSDI 2022; Z. Jia et al., TASO: Optimizing Deep Learning Computation with Automatic Generation of Graph Substitutions, SOSP 2019.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>

namespace parsearch::rewrite {

/// Types of pattern operators, by the names of the reference's files (which have no pipeline and no batch: these are the names of its code). The set
/// is open: any other name is a type too.
namespace op_type {
inline constexpr std::string_view linear = "OP_LINEAR", relu = "OP_RELU", ew_add = "OP_EW_ADD", ew_mul = "OP_EW_MUL", concat = "OP_CONCAT",
                                  split = "OP_SPLIT", partition = "OP_PARTITION", combine = "OP_COMBINE", replicate = "OP_REPLICATE",
                                  reduce = "OP_REDUCE", pipeline = "OP_PIPELINE", batch = "OP_BATCH", conv2d = "OP_CONV2D", matmul = "OP_MATMUL",
                                  transpose = "OP_TRANSPOSE";
} // namespace op_type

/// Keys of parameters, by the names of the reference's files. Open as well.
namespace op_key {
inline constexpr std::string_view parallel_dim = "PM_PARALLEL_DIM", parallel_degree = "PM_PARALLEL_DEGREE", activation = "PM_ACTI", axis = "PM_AXIS",
                                  num_dim = "PM_NUMDIM", num_inputs = "PM_NUM_INPUTS", num_outputs = "PM_NUM_OUTPUTS";
} // namespace op_key

/// The value of a parameter: a number, or a named variable of the rule.
struct value {
    std::int64_t literal = 0; ///< 0 where it is a variable
    std::string variable{};   ///< empty where it is a number

    value() = default;
    template <std::integral T> value(T number) : literal(number) {} // implicit: {"PM_AXIS", 1}
    /// Throws `invalid_input` where the name is empty.
    value(std::string_view name) : variable(name) {
        if (name.empty()) throw invalid_input("a variable of a rule has no name");
    }
    value(char const* name) : value(std::string_view(name)) {}
    [[nodiscard]] bool is_variable() const noexcept { return !variable.empty(); }
    friend bool operator==(value const&, value const&) = default;
};
[[nodiscard]] inline std::string to_string(value const& v) { return v.is_variable() ? v.variable : text(v.literal); }

/// A tensor of a pattern: output `slot` of operator number `op` >= 0, or the input `op` < 0 of the pattern, whose slot is 0. The same negative
/// number in source and target is the same tensor.
struct pattern_tensor {
    std::int32_t op = -1, slot = 0;
    [[nodiscard]] bool is_input() const noexcept { return op < 0; }
    friend bool operator==(pattern_tensor const&, pattern_tensor const&) = default;
    friend auto operator<=>(pattern_tensor const&, pattern_tensor const&) = default;
};
/// "2.0" for an output of an operator, "x1" for input -1.
[[nodiscard]] inline std::string to_string(pattern_tensor t) { return t.is_input() ? text('x', -std::int64_t{t.op}) : text(t.op, '.', t.slot); }

/// A parameter that a pattern operator must have (source) or gets (target).
struct pattern_parameter {
    std::string key;
    rewrite::value value{};
    friend bool operator==(pattern_parameter const&, pattern_parameter const&) = default;
};

struct pattern_operator {
    std::string type; ///< see `op_type`
    std::vector<pattern_tensor> inputs{};
    std::vector<pattern_parameter> parameters{};
    friend bool operator==(pattern_operator const&, pattern_operator const&) = default;
};
/// The value of parameter `key`, null where the operator has none of this name.
[[nodiscard]] inline value const* find_parameter(pattern_operator const& o, std::string_view key) {
    for (auto const& p : o.parameters)
        if (p.key == key) return &p.value;
    return nullptr;
}

/// Operators in any order that has no cycle.
struct pattern {
    std::vector<pattern_operator> operators{};
    friend bool operator==(pattern const&, pattern const&) = default;
};

/// Whoever reads output `source` of a match reads `target` of the replacement instead. `target` may be an input: then what stood between
/// vanishes.
struct mapped_output {
    pattern_tensor source{}, target{};
    friend bool operator==(mapped_output const&, mapped_output const&) = default;
};

/// What a constraint says of its variable v and value w.
enum class relation : std::uint8_t { equal, at_least, at_most, divides, multiple_of }; ///< v divides w, v is a multiple of w
[[nodiscard]] constexpr std::string_view name_of(relation r) noexcept {
    constexpr std::string_view names[]{"equals", "is at least", "is at most", "divides", "is a multiple of"};
    return names[static_cast<std::size_t>(r)];
}
struct constraint {
    std::string variable;
    relation is = relation::equal;
    rewrite::value value{};
    friend bool operator==(constraint const&, constraint const&) = default;
};

/// A substitution: where `source` matches a subgraph, `target` may stand in its place.
struct rule {
    std::string name;
    pattern source{}, target{};
    std::vector<mapped_output> outputs{};
    /// Variables that whoever applies the rule chooses where the source binds them not: a rule stands for all their values that are legal.
    std::vector<std::string> parameters{};
    std::vector<constraint> constraints{}; ///< all must hold
    friend bool operator==(rule const&, rule const&) = default;
};

/// Numbers that variables stand for.
using bindings = std::map<std::string, std::int64_t, std::less<>>;

/// The number that `v` is under `b`; none where it is a variable without one.
[[nodiscard]] inline std::optional<std::int64_t> number_of(value const& v, bindings const& b) {
    if (!v.is_variable()) return v.literal;
    auto const found = b.find(v.variable);
    return found == b.end() ? std::nullopt : std::optional(found->second);
}

/// Whether `c` holds under `b`. Throws `invalid_input` where a variable of it has no number. All numbers divide 0, 0 only itself.
[[nodiscard]] bool holds(constraint const& c, bindings const& b);

/// The inputs of a pattern, ascending by their distance from 0: -1, -2, -4.
[[nodiscard]] std::vector<std::int32_t> input_numbers(pattern const& p);

/// The variables of a pattern, by name.
[[nodiscard]] std::set<std::string, std::less<>> variables_of(pattern const& p);

/// How many outputs `o` has: of a split its PM_NUM_OUTPUTS, of the other types in `op_type` one; none where it is not known.
[[nodiscard]] std::optional<std::int64_t> output_count(pattern_operator const& o);

/// A topological order of a pattern whose tensors exist: the smallest number first among what is ready. Throws `invalid_input` naming an operator
/// on a cycle. O(operators^2).
[[nodiscard]] std::vector<std::size_t> order_of(pattern const& p);

/// Throws `invalid_input` naming operator and rule where `p` is not well formed: a type or key is empty, a key is there twice, an operator takes
/// nothing or a tensor that is none, operators go round in a cycle.
void check(pattern const& p);

/// Inputs of the target that the source does not have. A rule with any holds whatever these tensors are, and nothing says which to take: it can be
/// tested, and cannot be applied.
[[nodiscard]] std::vector<std::int32_t> unbound_inputs(rule const& r);

/// Throws `invalid_input` naming rule, pattern, operator and what is wrong where `r` is not well formed: see `check(pattern)`; the name or the source
/// is empty; nothing is mapped, or an output twice, or one that is none; an operator makes nothing that is read or mapped; a variable of target or
/// constraints is neither in the source nor a parameter. That the source has all inputs of the target is not asked: see `unbound_inputs`.
void check(rule const& r);

/// "0=OP_PARTITION[PM_PARALLEL_DIM=1,PM_PARALLEL_DEGREE=degree](x1); 1=OP_RELU(0.0)".
[[nodiscard]] std::string to_string(pattern const& p);

/// "name: source => target where 1.0 is 2.0".
[[nodiscard]] std::string to_string(rule const& r);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/rule.ipp>
#endif
