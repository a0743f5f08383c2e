#pragma once
/// The axioms of the operators that Unity's rule files have. Each is true in the reading of lab/rules/interpret.hpp: test/lab/prover/axioms.cpp tries
/// all of them on all small shapes.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/lab/prover/axiom.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::verify {

namespace detail {
/// A tensor as an expression: an input, or an operator of expressions.
struct term {
    std::int32_t input = 0; ///< negative; 0 where it is an operator
    std::string_view type{};
    std::vector<term> of{};
    std::vector<rewrite::pattern_parameter> with{};
};
[[nodiscard]] inline rewrite::pattern_tensor add_to(rewrite::pattern& p, term const& t) {
    if (t.input != 0) return {t.input, 0};
    rewrite::pattern_operator o{.type = std::string(t.type), .inputs = {}, .parameters = t.with};
    for (auto const& operand : t.of) o.inputs.push_back(add_to(p, operand));
    p.operators.push_back(std::move(o));
    return {static_cast<std::int32_t>(p.operators.size()) - 1, 0};
}

[[nodiscard]] inline term input(std::int32_t n) { return {.input = -n}; }
/// A parallel operator along an axis, its degree a variable.
[[nodiscard]] inline term moved(std::string_view type, int axis, char const* degree, term x) {
    return {.type = type,
            .of = {std::move(x)},
            .with = {{std::string(rewrite::op_key::parallel_dim), axis}, {std::string(rewrite::op_key::parallel_degree), degree}}};
}
[[nodiscard]] inline term partition(int axis, char const* degree, term x) { return moved(rewrite::op_type::partition, axis, degree, std::move(x)); }
[[nodiscard]] inline term combine(int axis, char const* degree, term x) { return moved(rewrite::op_type::combine, axis, degree, std::move(x)); }
[[nodiscard]] inline term replicate(int axis, char const* degree, term x) { return moved(rewrite::op_type::replicate, axis, degree, std::move(x)); }
[[nodiscard]] inline term reduce(int axis, char const* degree, term x) { return moved(rewrite::op_type::reduce, axis, degree, std::move(x)); }
[[nodiscard]] inline term relu(term x) { return {.type = rewrite::op_type::relu, .of = {std::move(x)}}; }
[[nodiscard]] inline term binary(std::string_view type, term x, term y) { return {.type = type, .of = {std::move(x), std::move(y)}}; }
[[nodiscard]] inline term add(term x, term y) { return binary(rewrite::op_type::ew_add, std::move(x), std::move(y)); }
[[nodiscard]] inline term multiply(term x, term y) { return binary(rewrite::op_type::ew_mul, std::move(x), std::move(y)); }
[[nodiscard]] inline term concat(int axis, term x, term y) {
    return {.type = rewrite::op_type::concat,
            .of = {std::move(x), std::move(y)},
            .with = {{std::string(rewrite::op_key::num_inputs), 2},
                     {std::string(rewrite::op_key::axis), axis},
                     {std::string(rewrite::op_key::num_dim), 3}}};
}
[[nodiscard]] inline term linear(term x, term w, int activation = 0) {
    return {.type = rewrite::op_type::linear, .of = {std::move(x), std::move(w)}, .with = {{std::string(rewrite::op_key::activation), activation}}};
}
/// d times x: d copies, summed.
[[nodiscard]] inline term scaled(char const* degree, term x, int axis = 0) { return reduce(axis, degree, replicate(axis, degree, std::move(x))); }

[[nodiscard]] inline axiom equation(std::string name, legality when, term const& source, term const& target, std::vector<property> premises = {}) {
    axiom out{.law = {.name = std::move(name)}, .when = when, .premises = std::move(premises)};
    auto const from = add_to(out.law.source, source), to = add_to(out.law.target, target);
    out.law.outputs = {{from, to}};
    for (auto const& variable : rewrite::variables_of(out.law.target)) out.law.parameters.push_back(variable);
    return out;
}
[[nodiscard]] inline axiom showing(std::string name, term const& source, fact is, int axis, std::vector<property> premises = {}) {
    axiom out{.law = {.name = std::move(name)}, .when = legality::source, .premises = std::move(premises)};
    auto const of = add_to(out.law.source, source);
    out.shows = property{is, of, axis};
    return out;
}
[[nodiscard]] inline property whole(std::int32_t number, int axis) { return {fact::whole, {-number, 0}, axis}; }
[[nodiscard]] inline property single(std::int32_t number) { return {fact::single, {-number, 0}, 0}; }
[[nodiscard]] inline axiom but_parts(axiom a) {
    a.keeps_parts = false;
    return a;
}

/// Makers of expressions: of an axis, a degree and a tensor, and of two tensors.
using move = term (*)(int, char const*, term);
using join = term (*)(term, term);
using named_move = std::pair<std::string_view, move>;
using named_join = std::pair<std::string_view, join>;

/// Parallel operators among themselves.
inline void add_moves(std::vector<axiom>& out) {
    auto const x = input(1);
    constexpr named_move moves[]{{"partition", partition}, {"combine", combine}, {"replicate", replicate}, {"reduce", reduce}};
    for (int a = 0; a < 3; ++a) {
        // Any two of different axes pass each other.
        for (std::size_t f = 0; f < 4; ++f)
            for (std::size_t g = f; g < 4; ++g)
                for (int b = f == g ? a + 1 : 0; b < 3; ++b)
                    if (b != a)
                        out.push_back(equation(text(moves[f].first, ' ', a, " passes ", moves[g].first, ' ', b), legality::alike,
                                               moves[f].second(a, "d", moves[g].second(b, "e", x)),
                                               moves[g].second(b, "e", moves[f].second(a, "d", x))));
        // Of the same axis, some do.
        for (auto const& [name, f] : {moves[0], moves[1], moves[2]})
            out.push_back(equation(text(name, ' ', a, " passes itself"), legality::alike, f(a, "d", f(a, "e", x)), f(a, "e", f(a, "d", x))));
        out.push_back(equation(text("partition ", a, " passes replicate ", a), legality::alike, partition(a, "d", replicate(a, "e", x)),
                               replicate(a, "e", partition(a, "d", x))));
        out.push_back(equation(text("replicate ", a, " passes combine ", a), legality::source, replicate(a, "d", combine(a, "e", x)),
                               combine(a, "e", replicate(a, "d", x))));
        out.push_back(equation(text("combine ", a, " undoes partition"), legality::source, combine(a, "d", partition(a, "d", x)), x));
        out.push_back(equation(text("reduce ", a, " of a whole axis"), legality::alike, reduce(a, "d", partition(a, "d", x)), reduce(a, "d", x),
                               {whole(1, a)}));
        out.push_back(equation(text("partition ", a, " passes a partition that is reduced"), legality::alike,
                               partition(a, "e", reduce(a, "d", partition(a, "d", x))), reduce(a, "d", partition(a, "d", partition(a, "e", x)))));
        out.push_back(equation(text("reduce ", a, " of combined copies"), legality::alike, reduce(a, "d", combine(a, "d", replicate(a, "d", x))),
                               reduce(a, "d", replicate(a, "d", x)), {whole(1, a)}));
        if (a > 0) out.push_back(equation(text("copies along ", a, " add up as along 0"), legality::alike, scaled("d", x, a), scaled("d", x)));
    }
}

/// Elementwise operators, and what passes through them.
inline void add_elementwise(std::vector<axiom>& out) {
    auto const x = input(1), y = input(2), z = input(3);
    out.push_back(equation("relu twice", legality::alike, relu(relu(x)), relu(x)));
    for (auto const& [name, f] : {named_move{"partition", partition}, {"combine", combine}, {"replicate", replicate}})
        for (int a = 0; a < 3; ++a) {
            out.push_back(equation(text("relu passes ", name, ' ', a), legality::alike, relu(f(a, "d", x)), f(a, "d", relu(x))));
            out.push_back(equation(text("add passes ", name, ' ', a), legality::alike, add(f(a, "d", x), f(a, "d", y)), f(a, "d", add(x, y))));
            out.push_back(
                equation(text("multiply passes ", name, ' ', a), legality::alike, multiply(f(a, "d", x), f(a, "d", y)), f(a, "d", multiply(x, y))));
        }
    for (int a = 0; a < 3; ++a)
        out.push_back(
            equation(text("reduce ", a, " of a sum"), legality::source, reduce(a, "d", add(x, y)), add(reduce(a, "d", x), reduce(a, "d", y))));
    for (auto const& [name, f] : {named_join{"add", add}, {"multiply", multiply}}) {
        out.push_back(equation(text(name, " commutes"), legality::alike, f(x, y), f(y, x)));
        out.push_back(equation(text(name, " associates"), legality::alike, f(f(x, y), z), f(x, f(y, z))));
    }
    out.push_back(equation("multiply distributes", legality::alike, multiply(x, add(y, z)), add(multiply(x, y), multiply(x, z))));
    out.push_back(equation("multiply of a multiple", legality::alike, multiply(x, scaled("d", y)), scaled("d", multiply(x, y))));
    auto twice = equation("twice is a sum", legality::alike, scaled("d", x), add(x, x));
    twice.law.constraints = {{"d", rewrite::relation::equal, 2}};
    out.push_back(std::move(twice));
}

/// Concat and Split.
inline void add_concat(std::vector<axiom>& out) {
    auto const x = input(1), y = input(2), z = input(3), w = input(4);
    for (int c = 0; c < 3; ++c) {
        for (auto const& [name, f] : {named_move{"partition", partition}, {"combine", combine}, {"replicate", replicate}})
            for (int a = 0; a < 3; ++a)
                out.push_back(equation(text("concat ", c, " passes ", name, ' ', a),
                                       a == c && name == "partition" ? legality::source : legality::alike, concat(c, f(a, "d", x), f(a, "d", y)),
                                       f(a, "d", concat(c, x, y))));
        for (int a = 0; a < 3; ++a)
            out.push_back(equation(text("reduce ", a, " of concat ", c), a == c ? legality::both : legality::source, reduce(a, "d", concat(c, x, y)),
                                   concat(c, reduce(a, "d", x), reduce(a, "d", y))));
        out.push_back(equation(text("relu of concat ", c), legality::alike, relu(concat(c, x, y)), concat(c, relu(x), relu(y))));
        for (auto const& [name, f] : {named_join{"sums", add}, {"products", multiply}})
            out.push_back(
                equation(text("concat ", c, " of ", name), legality::source, concat(c, f(x, y), f(z, w)), f(concat(c, x, z), concat(c, y, w))));
        for (int b = c + 1; b < 3; ++b)
            out.push_back(equation(text("concat ", c, " exchanges with concat ", b), legality::both, concat(c, concat(b, x, y), concat(b, z, w)),
                                   concat(b, concat(c, x, z), concat(c, y, w))));
        out.push_back(
            but_parts(equation(text("concat ", c, " associates"), legality::alike, concat(c, concat(c, x, y), z), concat(c, x, concat(c, y, z)))));

        axiom split{.law = {.name = text("split ", c, " takes apart what was joined")}, .when = legality::source, .keeps_parts = false};
        auto const joined = add_to(split.law.source, concat(c, x, y));
        split.law.source.operators.push_back({std::string(rewrite::op_type::split),
                                              {joined},
                                              {{std::string(rewrite::op_key::num_outputs), 2}, {std::string(rewrite::op_key::axis), c}}});
        split.law.outputs = {{{1, 0}, {-1, 0}}, {{1, 1}, {-2, 0}}};
        out.push_back(std::move(split));
    }
    // Of two tensors without replicas only two can be summed.
    auto sum =
        but_parts(equation("reduce 0 of two is their sum", legality::source, reduce(0, "d", concat(0, x, y)), add(x, y), {single(1), single(2)}));
    sum.law.constraints = {{"d", rewrite::relation::at_least, 2}};
    axiom two{.law = {.name = "reduce 0 of two is of degree 2", .source = sum.law.source},
              .when = legality::source,
              .premises = sum.premises,
              .shows_two = "d"};
    two.law.constraints = sum.law.constraints;
    out.push_back(std::move(sum));
    out.push_back(std::move(two));
}

/// A linear of x [replica, sample, channel] and w [replica, out, channel] is [partial sum, sample, out].
inline void add_linear(std::vector<axiom>& out) {
    auto const x = input(1), w = input(2), more = input(3), other = input(4);
    auto const alike = [&](std::string name, term const& source, term const& target, std::vector<property> premises = {}) {
        out.push_back(equation(std::move(name), legality::alike, source, target, std::move(premises)));
    };
    auto const where_legal = [&](std::string name, term const& source, term const& target) {
        out.push_back(equation(std::move(name), legality::source, source, target));
    };
    alike("a linear with relu", linear(x, w, 2), relu(linear(x, w)));
    // Of a replica dim the first entry counts.
    out.push_back(but_parts(equation("a linear ignores replicas of x", legality::source, linear(concat(0, x, more), w), linear(x, w))));
    out.push_back(but_parts(equation("a linear ignores replicas of w", legality::source, linear(x, concat(0, w, more)), linear(x, w))));
    alike("a linear ignores combined copies of x", linear(combine(0, "d", replicate(0, "d", x)), w), linear(x, w));
    alike("a linear ignores combined copies of w", linear(x, combine(0, "d", replicate(0, "d", w))), linear(x, w));
    // Samples and outs.
    alike("samples are partitioned", linear(partition(1, "d", x), replicate(0, "d", w)), partition(1, "d", linear(x, w)));
    alike("outs are partitioned", linear(replicate(0, "d", x), partition(1, "d", w)), partition(2, "d", linear(x, w)));
    alike("samples are combined", linear(combine(1, "d", x), combine(0, "d", w)), combine(1, "d", linear(x, w)));
    alike("outs are combined", linear(combine(0, "d", x), combine(1, "d", w)), combine(2, "d", linear(x, w)));
    alike("samples are replicated", linear(replicate(1, "d", x), replicate(0, "d", w)), replicate(1, "d", linear(x, w)));
    alike("outs are replicated", linear(replicate(0, "d", x), replicate(1, "d", w)), replicate(2, "d", linear(x, w)));
    alike("samples are summed", linear(reduce(1, "d", x), w), reduce(1, "d", linear(x, w)), {whole(1, 1)});
    alike("outs are summed", linear(x, reduce(1, "d", w)), reduce(2, "d", linear(x, w)), {whole(2, 1)});
    alike("partitioned samples are summed", linear(reduce(1, "d", partition(1, "d", x)), w), reduce(1, "d", partition(1, "d", linear(x, w))));
    alike("partitioned outs are summed", linear(x, reduce(1, "d", partition(1, "d", w))), reduce(2, "d", partition(2, "d", linear(x, w))));
    alike("a linear of a multiple of x", linear(scaled("d", x), w), scaled("d", linear(x, w)));
    alike("a linear of a multiple of w", linear(x, scaled("d", w)), scaled("d", linear(x, w)));
    where_legal("a linear of a sum of x", linear(add(x, more), w), add(linear(x, w), linear(more, w)));
    where_legal("a linear of a sum of w", linear(x, add(w, more)), add(linear(x, w), linear(x, more)));
    where_legal("samples are joined", linear(concat(1, x, more), w), concat(1, linear(x, w), linear(more, w)));
    where_legal("outs are joined", linear(x, concat(1, w, more)), concat(2, linear(x, w), linear(x, more)));
    out.push_back(equation("channels are joined", legality::both, linear(concat(2, x, more), concat(2, w, other)),
                           add(linear(x, w), linear(more, other)), {whole(1, 2)}));
}

/// What keeps tensors whole, and single.
inline void add_facts(std::vector<axiom>& out) {
    auto const x = input(1), y = input(2);
    for (auto const& [name, f] : {named_move{"partition", partition}, {"combine", combine}, {"replicate", replicate}, {"reduce", reduce}})
        for (int a = 0; a < 3; ++a) {
            for (int b = 0; b < 3; ++b)
                if (a != b || name == "reduce")
                    out.push_back(showing(text(name, ' ', a, " leaves axis ", b, " whole"), f(a, "d", x), fact::whole, b, {whole(1, b)}));
            if (a > 0 || name == "partition" || name == "combine")
                out.push_back(showing(text(name, ' ', a, " makes no replicas"), f(a, "d", x), fact::single, 0, {single(1)}));
        }
    for (int b = 0; b < 3; ++b) {
        out.push_back(showing(text("relu leaves axis ", b, " whole"), relu(x), fact::whole, b, {whole(1, b)}));
        out.push_back(showing(text("add leaves axis ", b, " whole"), add(x, y), fact::whole, b, {whole(1, b)}));
        out.push_back(showing(text("multiply leaves axis ", b, " whole"), multiply(x, y), fact::whole, b, {whole(1, b)}));
        for (int c = 0; c < 3; ++c)
            out.push_back(showing(text("concat ", c, " leaves axis ", b, " whole"), concat(c, x, y), fact::whole, b, {whole(1, b)}));
    }
    out.push_back(showing("relu makes no replicas", relu(x), fact::single, 0, {single(1)}));
    out.push_back(showing("add makes no replicas", add(x, y), fact::single, 0, {single(1)}));
    out.push_back(showing("multiply makes no replicas", multiply(x, y), fact::single, 0, {single(1)}));
    for (int c = 1; c < 3; ++c) out.push_back(showing(text("concat ", c, " makes no replicas"), concat(c, x, y), fact::single, 0, {single(1)}));
    out.push_back(showing("samples stay whole", linear(x, y), fact::whole, 1, {whole(1, 1)}));
    out.push_back(showing("outs stay whole", linear(x, y), fact::whole, 2, {whole(2, 1)}));
    out.push_back(showing("whole channels leave no partial sums", linear(x, y), fact::single, 0, {whole(1, 2)}));
    out.push_back(showing("whole channels leave axis 0 whole", linear(x, y), fact::whole, 0, {whole(1, 2)}));
}
} // namespace detail

/// All axioms.
[[nodiscard]] inline std::vector<axiom> axioms() {
    std::vector<axiom> out;
    detail::add_moves(out);
    detail::add_elementwise(out);
    detail::add_concat(out);
    detail::add_linear(out);
    detail::add_facts(out);
    return out;
}

} // namespace parsearch::verify
