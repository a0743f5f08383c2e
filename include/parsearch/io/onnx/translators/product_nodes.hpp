#pragma once
/// Translators of matrix products.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// `a` with the factor that an attribute gives.
inline argument scaled(translation& t, argument const& a, double factor) {
    return factor == 1 ? a : argument(t.as("scale").emit(ops::unary{ops::function::scale}, a));
}

/// `a` with its last two axes exchanged.
inline argument transposed(translation& t, argument const& a) {
    auto const rank = static_cast<std::int64_t>(a.shape.extents.size());
    ops::transpose swap;
    for (std::int64_t i = 0; i < rank - 2; ++i) swap.permutation.push_back(i);
    swap.permutation.push_back(rank - 1);
    swap.permutation.push_back(rank - 2);
    return t.as("transpose").emit(swap, a);
}

/// The parameter that node `n` adds to output 0 of the node translated, if it is a bias: an element for each of the `out` last ones.
inline value_id bias_added_by(translation const& t, node const* n, std::int64_t out, network const& net) {
    if (!n || n->domain != "" || n->type != "Add" || n->inputs.size() != 2 || n->outputs.size() != 1) return no_value;
    auto const other = n->inputs[n->inputs[0] == t.node().outputs[0] ? 1 : 0];
    if (other == no_value || other == t.node().outputs[0]) return no_value;
    return net[other].from == origin::parameter && net[other].shape.extents == std::vector<std::int64_t>{out} ? other : no_value;
}

/// y = x w, of parameter `w`: [k, n], or [n, k]. A bias that is all that follows becomes part of it.
inline emitted emit_linear(translation& t, argument const& x, argument const& w, std::int64_t out, bool with_following_bias = true) {
    auto const* const next = with_following_bias ? t.only_reader() : nullptr;
    std::vector<argument> weights{w};
    if (auto const bias = bias_added_by(t, next, out, t.net()); bias != no_value) {
        weights.push_back(t.argument_of(bias));
        t.absorb(*next);
    }
    return t.emit(ops::linear{.out = out, .bias = weights.size() > 1}, {x}, weights);
}

/// The product of `a`[..., m, k] and `b`[..., k, n], whose outer axes broadcast as in NumPy.
inline emitted emit_product(translation& t, argument a, argument b) {
    auto const rank_a = a.shape.extents.size(), rank_b = b.shape.extents.size();
    if (rank_a == rank_b && std::equal(a.shape.extents.begin(), a.shape.extents.end() - 2, b.shape.extents.begin()))
        return t.emit(ops::batched_matmul{}, a, b);
    // A letter for each axis, outer ones from the last; an outer axis of extent 1 that is broadcast is left out.
    auto const rank = std::max(rank_a, rank_b);
    if (rank > 2 + 20) throw invalid_input("has operands of ", rank, " axes: at most 22 are supported");
    auto const outer_of = [&](argument const& x, std::size_t i) { // axis i of `rank`
        auto const missing = rank - x.shape.extents.size();
        return i < missing ? 1 : x.shape.extents[i - missing];
    };
    std::string left, right, result;
    std::vector<std::int64_t> kept_a, kept_b;
    for (std::size_t i = 0; i + 2 < rank; ++i) {
        auto const letter = static_cast<char>('a' + i);
        auto const ea = outer_of(a, i), eb = outer_of(b, i);
        result += letter;
        // Where both are 1, the axis is kept by the one that has it.
        if (ea != 1 || (eb == 1 && i + rank_a >= rank)) {
            left += letter;
            kept_a.push_back(ea);
        }
        if (eb != 1 || (ea == 1 && left.find(letter) == std::string::npos)) {
            right += letter;
            kept_b.push_back(eb);
        }
    }
    auto const keep_matrix = [](std::vector<std::int64_t>& kept, argument const& x) {
        kept.insert(kept.end(), x.shape.extents.end() - 2, x.shape.extents.end());
    };
    keep_matrix(kept_a, a);
    keep_matrix(kept_b, b);
    a = t.reshaped(a, kept_a);
    b = t.reshaped(b, kept_b);
    return t.emit(ops::einsum{.equation = left + "yz," + right + "zx->" + result + "yx"}, a, b);
}

inline void translate_matmul(translation& t, double factor = 1, bool transpose_a = false, bool transpose_b = false) {
    auto a = t.input(0), b = t.input(1);
    if (a.shape.extents.empty() || b.shape.extents.empty())
        throw invalid_input("inputs must have axes: ", ops::to_string(a.shape), " and ", ops::to_string(b.shape));
    bool const row = a.shape.extents.size() == 1, column = b.shape.extents.size() == 1;
    if (row) a = t.reshaped(a, {1, a.shape.extents[0]});
    if (column) b = t.reshaped(b, {b.shape.extents[0], 1});
    if (transpose_a && !row) a = transposed(t, a);
    bool const linear = t.is_parameter(1) && !t.is_parameter(0) && b.shape.extents.size() == 2;
    auto const summed = b.shape.extents[b.shape.extents.size() - (transpose_b && !column ? 1 : 2)];
    if (a.shape.extents.back() != summed)
        throw invalid_input("inputs of shapes ", ops::to_string(t.shape(0)), " and ", ops::to_string(t.shape(1)),
                            ": must agree in the axis that is summed over");
    if (transpose_b && !column && !linear) b = transposed(t, b);
    auto const out = linear ? b.shape.extents[transpose_b && !column ? 0 : 1] : 0;
    argument y = linear ? emit_linear(t, a, b, out, factor == 1 && !row && !column) : emit_product(t, a, b);
    y = scaled(t, y, factor);
    if (row || column) {
        auto extents = y.shape.extents;
        if (column) extents.pop_back();
        if (row) extents.erase(extents.end() - (column ? 1 : 2));
        y = t.reshaped(y, extents);
    }
    t.output(0, y);
}

/// y = alpha a b + beta c.
inline void translate_gemm(translation& t) {
    double const alpha = t.number("alpha", 1), beta = t.number("beta", 1);
    bool const transpose_a = t.integer("transA", 0) != 0, transpose_b = t.integer("transB", 0) != 0;
    auto a = t.input(0), b = t.input(1);
    if (a.shape.extents.size() != 2 || b.shape.extents.size() != 2)
        throw invalid_input("inputs 0 and 1 of shapes ", ops::to_string(a.shape), " and ", ops::to_string(b.shape), ": must have two axes");
    auto const out = b.shape.extents[transpose_b ? 0 : 1];
    if (a.shape.extents[transpose_a ? 0 : 1] != b.shape.extents[transpose_b ? 1 : 0])
        throw invalid_input("inputs of shapes ", ops::to_string(a.shape), " and ", ops::to_string(b.shape),
                            ": must agree in the axis that is summed over");
    bool const add = t.has_input(2) && beta != 0, linear = t.is_parameter(1) && !t.is_parameter(0);
    if (!add && t.has_input(2)) t.ignore(2);
    // A row of one element per output is a bias.
    bool const bias = add && linear && alpha == 1 && beta == 1 && t.is_parameter(2) && ops::kit::elements(t.shape(2)) == static_cast<double>(out) &&
                      t.rank(2) > 0 && t.extents(2).back() == out;
    argument y{};
    if (linear) {
        if (transpose_a) a = transposed(t, a);
        std::vector<argument> weights{b};
        if (bias) weights.push_back(t.input(2));
        y = t.emit(ops::linear{.out = out, .bias = bias}, {a}, weights);
    } else y = t.emit(ops::batched_matmul{.transpose_a = transpose_a, .transpose_b = transpose_b}, a, b);
    y = scaled(t, y, alpha);
    if (add && !bias) y = t.as("add").emit(ops::add{}, y, scaled(t, t.input(2), beta));
    t.output(0, y);
}

/// The equation of an Einsum in explicit form, with letters for "...".
inline std::string explicit_equation(translation const& t) {
    auto equation = t.word("equation", "");
    std::erase(equation, ' ');
    auto const arrow = equation.find("->");
    std::vector<std::string> operands(1);
    for (char const c : equation.substr(0, arrow))
        if (c == ',') operands.emplace_back();
        else operands.back() += c;
    if (operands.size() != t.inputs())
        throw invalid_input("equation '", equation, "' has ", operands.size(), " operands and the node ", t.inputs(), " inputs");
    std::string unused; // letters for the axes that "..." stands for
    for (char const c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
        if (equation.find(c) == std::string::npos) unused += c;
    std::size_t most = 0;
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (auto const at = operands[i].find("..."); at != std::string::npos) {
            auto const named = operands[i].size() - 3;
            if (named > t.rank(i)) throw invalid_input("equation '", equation, "': input ", i, " has ", t.rank(i), " axes: too few");
            auto const count = t.rank(i) - named;
            if (count > unused.size()) throw invalid_input("equation '", equation, "' has more axes than letters");
            most = std::max(most, count);
            operands[i].replace(at, 3, std::string(unused.rend() - static_cast<std::ptrdiff_t>(count), unused.rend()));
        }
    std::string const dots(unused.rend() - static_cast<std::ptrdiff_t>(most), unused.rend());
    std::string result, all;
    for (auto const& o : operands) all += text(all.empty() ? "" : ",", o);
    if (arrow != std::string::npos) {
        result = equation.substr(arrow + 2);
        if (auto const at = result.find("..."); at != std::string::npos) result.replace(at, 3, dots);
    } else { // implicit: the letters that occur once, in alphabetical order, behind "..."
        result = dots;
        std::string once;
        for (char const c : all)
            if (c != ',' && dots.find(c) == std::string::npos && std::count(all.begin(), all.end(), c) == 1) once += c;
        std::sort(once.begin(), once.end());
        result += once;
    }
    return all + "->" + result;
}
} // namespace detail

/// MatMul, Gemm, Einsum, FusedMatMul.
inline void add_products(operators& known) {
    known.add("", "MatMul", [](translation& t) { detail::translate_matmul(t); });
    known.add("", "Gemm", detail::translate_gemm);
    known.add("", "Einsum", [](translation& t) { t.emit(ops::einsum{.equation = detail::explicit_equation(t)}, t.all_inputs()); });
    known.add("com.microsoft", "FusedMatMul", [](translation& t) {
        if (t.integer("transBatchA", 0) || t.integer("transBatchB", 0))
            throw invalid_input("attributes transBatchA and transBatchB are not supported");
        detail::translate_matmul(t, t.number("alpha", 1), t.integer("transA", 0) != 0, t.integer("transB", 0) != 0);
    });
}

} // namespace parsearch::io::onnx
