#pragma once
/// Substitution rules as values: a source pattern, a target pattern, and which outputs stand for which.
/// Source: C. Unger et al., Unity: Accelerating DNN Training Through Joint Optimization of Algebraic Transformations and Parallelization,
/// OSDI 2022; Z. Jia et al., TASO: Optimizing Deep Learning Computation with Automatic Generation of Graph Substitutions, SOSP 2019.

#include <algorithm>
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
[[nodiscard]] inline bool holds(constraint const& c, bindings const& b) {
    auto const number = [&](value const& v) {
        if (auto const n = number_of(v, b)) return *n;
        throw invalid_input("constraint '", c.variable, ' ', name_of(c.is), ' ', to_string(c.value), "': variable ", v.variable, " has no number");
    };
    auto const v = number(std::string_view(c.variable)), w = number(c.value);
    auto const divides = [](std::int64_t small, std::int64_t large) {
        if (small == 0) return large == 0;
        return small == -1 || large % small == 0; // the quotient of the least number by -1 is none
    };
    switch (c.is) {
    case relation::equal: return v == w;
    case relation::at_least: return v >= w;
    case relation::at_most: return v <= w;
    case relation::divides: return divides(v, w);
    case relation::multiple_of: return divides(w, v);
    }
    return false;
}

/// The inputs of a pattern, ascending by their distance from 0: -1, -2, -4.
[[nodiscard]] inline std::vector<std::int32_t> input_numbers(pattern const& p) {
    std::set<std::int32_t> found;
    for (auto const& o : p.operators)
        for (auto const t : o.inputs)
            if (t.is_input()) found.insert(t.op);
    return {found.rbegin(), found.rend()};
}

/// The variables of a pattern, by name.
[[nodiscard]] inline std::set<std::string, std::less<>> variables_of(pattern const& p) {
    std::set<std::string, std::less<>> found;
    for (auto const& o : p.operators)
        for (auto const& q : o.parameters)
            if (q.value.is_variable()) found.insert(q.value.variable);
    return found;
}

/// How many outputs `o` has: of a split its PM_NUM_OUTPUTS, of the other types in `op_type` one; none where it is not known.
[[nodiscard]] inline std::optional<std::int64_t> output_count(pattern_operator const& o) {
    if (o.type == op_type::split) {
        auto const* const n = find_parameter(o, op_key::num_outputs);
        return n && !n->is_variable() ? std::optional(n->literal) : std::nullopt;
    }
    for (auto const known :
         {op_type::linear, op_type::relu, op_type::ew_add, op_type::ew_mul, op_type::concat, op_type::partition, op_type::combine, op_type::replicate,
          op_type::reduce, op_type::pipeline, op_type::batch, op_type::conv2d, op_type::matmul, op_type::transpose})
        if (o.type == known) return 1;
    return std::nullopt;
}

namespace detail {
/// Throws where `t`, named by `place`, is no tensor of `p`.
inline void check_tensor(pattern const& p, pattern_tensor t, std::string const& place) {
    if (t.is_input()) {
        if (t.slot != 0) throw invalid_input(place, " is slot ", t.slot, " of input ", t.op, ": an input of a pattern is one tensor, slot 0");
        return;
    }
    auto const number = static_cast<std::size_t>(t.op);
    if (number >= p.operators.size()) throw invalid_input(place, " is operator ", t.op, ": the pattern has ", p.operators.size(), " operators");
    auto const& from = p.operators[number];
    auto const slots = output_count(from);
    if (t.slot < 0 || (slots && t.slot >= *slots))
        throw invalid_input(place, " is slot ", t.slot, " of operator ", t.op, " (", from.type,
                            "): ", slots ? text("it has ", *slots, " outputs") : "slots begin at 0");
}
} // namespace detail

/// A topological order of a pattern whose tensors exist: the smallest number first among what is ready. Throws `invalid_input` naming an operator
/// on a cycle. O(operators^2).
[[nodiscard]] inline std::vector<std::size_t> order_of(pattern const& p) {
    std::vector<std::size_t> out;
    std::vector<char> done(p.operators.size(), 0);
    while (out.size() < p.operators.size()) {
        std::size_t next = 0;
        auto const ready = [&](std::size_t i) {
            return !done[i] && std::all_of(p.operators[i].inputs.begin(), p.operators[i].inputs.end(),
                                           [&](pattern_tensor t) { return t.is_input() || done[static_cast<std::size_t>(t.op)]; });
        };
        while (next < p.operators.size() && !ready(next)) ++next;
        if (next == p.operators.size()) {
            // Walking back from any operator that is left, one gets round a cycle within as many steps as there are operators.
            auto at = static_cast<std::size_t>(std::find(done.begin(), done.end(), 0) - done.begin());
            for (std::size_t step = 0; step < p.operators.size(); ++step)
                for (auto const t : p.operators[at].inputs)
                    if (!t.is_input() && !done[static_cast<std::size_t>(t.op)]) {
                        at = static_cast<std::size_t>(t.op);
                        break;
                    }
            throw invalid_input("operator ", at, " (", p.operators[at].type, ") takes what it makes: a pattern has no cycle");
        }
        done[next] = 1;
        out.push_back(next);
    }
    return out;
}

/// Throws `invalid_input` naming operator and rule where `p` is not well formed: a type or key is empty, a key is there twice, an operator takes
/// nothing or a tensor that is none, operators go round in a cycle.
inline void check(pattern const& p) {
    for (std::size_t i = 0; i < p.operators.size(); ++i) {
        auto const& o = p.operators[i];
        if (o.type.empty()) throw invalid_input("operator ", i, " has no type");
        auto const name = text("operator ", i, " (", o.type, ')');
        if (o.inputs.empty()) throw invalid_input(name, " takes no input: must take at least one");
        for (std::size_t k = 0; k < o.inputs.size(); ++k) detail::check_tensor(p, o.inputs[k], text(name, ": input ", k));
        for (std::size_t k = 0; k < o.parameters.size(); ++k) {
            auto const& key = o.parameters[k].key;
            if (key.empty()) throw invalid_input(name, ": parameter ", k, " has no key");
            if (find_parameter(o, key) != &o.parameters[k].value) throw invalid_input(name, ": parameter ", key, " is there twice: must be once");
        }
    }
    (void)order_of(p);
}

/// Inputs of the target that the source does not have. A rule with any holds whatever these tensors are, and nothing says which to take: it can be
/// tested, and cannot be applied.
[[nodiscard]] inline std::vector<std::int32_t> unbound_inputs(rule const& r) {
    auto const bound = input_numbers(r.source);
    auto out = input_numbers(r.target);
    for (auto const& m : r.outputs)
        if (m.target.is_input() && std::find(out.begin(), out.end(), m.target.op) == out.end()) out.push_back(m.target.op);
    std::erase_if(out, [&](std::int32_t n) { return std::find(bound.begin(), bound.end(), n) != bound.end(); });
    std::sort(out.rbegin(), out.rend());
    return out;
}

/// Throws `invalid_input` naming rule, pattern, operator and what is wrong where `r` is not well formed: see `check(pattern)`; the name or the source
/// is empty; nothing is mapped, or an output twice, or one that is none; an operator makes nothing that is read or mapped; a variable of target or
/// constraints is neither in the source nor a parameter. That the source has all inputs of the target is not asked: see `unbound_inputs`.
inline void check(rule const& r) {
    if (r.name.empty()) throw invalid_input("a rule has no name");
    auto const refuse = [&](auto const&... parts) { throw invalid_input("rule '", r.name, "': ", parts...); };
    auto const placed = [&](char const* place, auto const& f) {
        try {
            f();
        } catch (invalid_input const& e) {
            refuse(place, e.what());
        }
    };
    placed("source: ", [&] { check(r.source); });
    placed("target: ", [&] { check(r.target); });
    if (r.source.operators.empty()) refuse("source: has no operators");
    if (r.outputs.empty()) refuse("no output is mapped: at least one must be");
    for (std::size_t i = 0; i < r.outputs.size(); ++i) {
        auto const& m = r.outputs[i];
        auto const place = text("mapped output ", i, ": ");
        if (m.source.is_input()) refuse(place, "its source is input ", m.source.op, ": must be made by an operator");
        placed(place.c_str(), [&] { detail::check_tensor(r.source, m.source, "its source"); });
        placed(place.c_str(), [&] { detail::check_tensor(r.target, m.target, "its target"); });
        for (std::size_t k = 0; k < i; ++k)
            if (r.outputs[k].source == m.source) refuse(place, "output ", to_string(m.source), " of the source is mapped twice: must be once");
    }
    auto const used = [&](pattern const& p, pattern_tensor mapped_output::*side, char const* place) {
        for (std::size_t i = 0; i < p.operators.size(); ++i) {
            auto const is_it = [&](pattern_tensor t) { return t.op == static_cast<std::int32_t>(i); };
            bool found = std::any_of(r.outputs.begin(), r.outputs.end(), [&](mapped_output const& m) { return is_it(m.*side); });
            for (auto const& o : p.operators) found = found || std::any_of(o.inputs.begin(), o.inputs.end(), is_it);
            if (!found) refuse(place, "operator ", i, " (", p.operators[i].type, "): no operator reads what it makes, and it is not mapped");
        }
    };
    used(r.source, &mapped_output::source, "source: ");
    used(r.target, &mapped_output::target, "target: ");

    auto known = variables_of(r.source);
    for (std::size_t i = 0; i < r.parameters.size(); ++i) {
        auto const& name = r.parameters[i];
        if (name.empty()) refuse("parameter ", i, " has no name");
        if (std::find(r.parameters.begin(), r.parameters.end(), name) != r.parameters.begin() + static_cast<std::ptrdiff_t>(i))
            refuse("parameter ", name, " is there twice: must be once");
        known.insert(name);
    }
    auto const bound = [&](std::string const& name, auto const&... place) {
        if (!known.contains(name)) refuse(place..., ": variable ", name, " is neither bound by the source nor a parameter of the rule");
    };
    for (std::size_t i = 0; i < r.target.operators.size(); ++i)
        for (auto const& p : r.target.operators[i].parameters)
            if (p.value.is_variable()) bound(p.value.variable, "target: operator ", i, " (", r.target.operators[i].type, "): ", p.key);
    for (std::size_t i = 0; i < r.constraints.size(); ++i) {
        auto const& c = r.constraints[i];
        bound(c.variable, "constraint ", i);
        if (c.value.is_variable()) bound(c.value.variable, "constraint ", i);
    }
}

/// "0=OP_PARTITION[PM_PARALLEL_DIM=1,PM_PARALLEL_DEGREE=degree](x1); 1=OP_RELU(0.0)".
[[nodiscard]] inline std::string to_string(pattern const& p) {
    std::string out;
    for (std::size_t i = 0; i < p.operators.size(); ++i) {
        auto const& o = p.operators[i];
        out += text(i ? "; " : "", i, '=', o.type);
        char open = '[';
        for (auto const& q : o.parameters) out += text(std::exchange(open, ','), q.key, '=', to_string(q.value));
        if (open != '[') out += ']';
        open = '(';
        for (auto const t : o.inputs) out += text(std::exchange(open, ','), to_string(t));
        out += ')';
    }
    return out;
}

/// "name: source => target where 1.0 is 2.0".
[[nodiscard]] inline std::string to_string(rule const& r) {
    std::string out = text(r.name, ": ", to_string(r.source), " => ", to_string(r.target));
    char const* before = " where ";
    for (auto const& m : r.outputs) out += text(std::exchange(before, ", "), to_string(m.source), " is ", to_string(m.target));
    return out;
}

} // namespace parsearch::rewrite
