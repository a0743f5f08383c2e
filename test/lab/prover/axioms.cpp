#include <parsearch/lab/prover/axioms.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/lab/rules/interpret.hpp>

#include "support/cases.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;
using namespace parsearch::verify;

namespace {
// What is tried of an axiom, as far as shapes go, is all that there is: inputs of all extents and all degrees that divide them up to these bounds,
// all degrees of operators from 1 to 3. Data are all tensors of -1, 0 and 2 where these are few, and on every shape random numbers of 64 bits:
// outputs are polynomials of the inputs of degree 3 at most, and relus of such.
struct bounds {
    std::array<std::int32_t, 3> extents;
};
/// A set of shapes is all within one of these.
std::vector<bounds> bounds_for(std::size_t inputs) {
    if (inputs == 1) return {{{4, 4, 4}}, {{6, 2, 2}}, {{2, 6, 2}}, {{2, 2, 6}}};
    if (inputs == 2) return {{{2, 2, 4}}, {{2, 4, 2}}};
    if (inputs == 3) return {{{2, 2, 2}}};
    return {{{2, 2, 1}}, {{2, 1, 2}}, {{1, 2, 2}}};
}
constexpr std::size_t few = 5; // elements of all inputs, for all data

std::vector<dense_tensor> shapes(bounds const& most, bool with_parts) {
    std::vector<dense_tensor> out;
    struct side {
        std::int32_t extent, degree;
    };
    std::array<std::vector<side>, 3> sides;
    for (std::size_t a = 0; a < 3; ++a)
        for (std::int32_t n = 1; n <= most.extents[a]; ++n)
            for (std::int32_t g = 1; g <= n; ++g)
                if (n % g == 0) sides[a].push_back({n, g});
    for (auto const& p : sides[0])
        for (auto const& q : sides[1])
            for (auto const& r : sides[2]) {
                dense_tensor t{{p.extent, q.extent, r.extent}, {p.degree, q.degree, r.degree}, {}, {}};
                out.push_back(t);
                if (!with_parts) continue;
                // What was joined along one axis: all ways in two parts.
                for (std::size_t a = 0; a < 3; ++a)
                    for (std::int32_t first = 1; first < t.extents[a]; ++first) {
                        out.push_back(t);
                        out.back().parts[a] = {first, t.extents[a] - first};
                    }
            }
    return out;
}

bool has(fact f, std::int32_t axis, dense_tensor const& t) {
    return f == fact::single ? t.extents[0] == 1 : t.degrees[static_cast<std::size_t>(axis)] == 1;
}

struct tally {
    std::int64_t legal = 0; ///< cases in which the axiom says something
    std::string wrong{};    ///< the first case in which it is false
};

/// A pattern whose operators come after what they take, ready to run. (`interpret` checks and orders a pattern each time.)
struct program {
    pattern const* p;
    std::vector<instruction> steps{};

    program(pattern const& of, bindings const& degrees) : p(&of) {
        for (auto const& o : of.operators) steps.push_back(instruction_of(o, degrees));
    }
    /// Whether it is legal; all that it makes is then in `made`.
    bool run(std::vector<dense_tensor> const& given, std::vector<std::vector<dense_tensor>>& made) const {
        made.assign(steps.size(), {});
        std::vector<dense_tensor const*> in;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            in.clear();
            for (auto const t : p->operators[i].inputs) in.push_back(&of(given, made, t));
            if (rewrite::run(steps[i], in, made[i]) != illegal::no) return false;
        }
        return true;
    }
    static dense_tensor const& of(std::vector<dense_tensor> const& given, std::vector<std::vector<dense_tensor>> const& made, pattern_tensor t) {
        return t.is_input() ? given[static_cast<std::size_t>(-t.op - 1)] : made[static_cast<std::size_t>(t.op)][static_cast<std::size_t>(t.slot)];
    }
};

/// An axiom with degrees of its operators.
struct trial {
    axiom const& a;
    bindings const& degrees;
    bool with_parts;
    program source{a.law.source, degrees}, target{a.law.target, degrees};
    std::vector<std::vector<dense_tensor>> made{}, made_by_target{};

    /// What the axiom says of these inputs. Returns whether it says anything.
    bool attempt(std::vector<dense_tensor> const& given, tally& out) {
        auto const wrong = [&](auto const&... what) {
            if (!out.wrong.empty()) return;
            out.wrong = text(a.law.name, ": ", what...);
            for (auto const& t : given) {
                out.wrong += " [";
                for (std::size_t i = 0; i < 3; ++i) out.wrong += text(i ? "," : "", t.extents[i], '/', t.degrees[i]);
                out.wrong += ']';
            }
            for (auto const& [name, number] : degrees) out.wrong += text(' ', name, '=', number);
        };
        bool const source_legal = source.run(given, made);
        if (!source_legal && (!a.equates() || a.when != legality::alike)) return false;
        if (!a.equates()) {
            if (a.shows && !has(a.shows->is, a.shows->axis, program::of(given, made, a.shows->of))) wrong("is not shown");
            if (!a.shows_two.empty() && degrees.find(a.shows_two)->second != 2) wrong("is not shown");
            ++out.legal;
            return true;
        }
        bool const target_legal = target.run(given, made_by_target);
        if (a.when == legality::alike && source_legal != target_legal) wrong("one side alone is legal");
        if (a.when == legality::source && !target_legal) wrong("the target is illegal");
        if (!source_legal || !target_legal) return false;
        ++out.legal;
        for (auto const& m : a.law.outputs) {
            auto const &x = program::of(given, made, m.source), &y = program::of(given, made_by_target, m.target);
            if (x != y) wrong("sides differ");
            if (with_parts && a.keeps_parts && x.parts != y.parts) wrong("parts differ");
        }
        return true;
    }
};

/// Goes to the next choice of numbers below `most`, the first fastest; false after the last.
template <class T> bool next(std::vector<T>& at, T most) {
    for (auto& i : at) {
        if (++i < most) return true;
        i = 0;
    }
    return false;
}

/// Tries `a` on all inputs within `most`.
tally try_all(axiom const& a, bounds const& most, bool with_parts, std::uint64_t seed) {
    auto const count = input_numbers(a.law.source).size();
    auto names = variables_of(a.law.source);
    names.merge(variables_of(a.law.target));
    auto const all = shapes(most, with_parts);
    split_mix rng(seed);
    tally out;
    std::vector<std::int64_t> chosen(names.size(), 0);
    do {
        bindings degrees;
        std::size_t k = 0;
        for (auto const& name : names) degrees.emplace(name, 1 + chosen[k++]);
        if (!std::all_of(a.law.constraints.begin(), a.law.constraints.end(), [&](constraint const& c) { return holds(c, degrees); })) continue;
        trial one{a, degrees, with_parts};
        std::vector<std::size_t> at(count, 0);
        std::vector<dense_tensor> given(count);
        do {
            if (!std::all_of(a.premises.begin(), a.premises.end(),
                             [&](property const& p) { return has(p.is, p.axis, all[at[static_cast<std::size_t>(-p.of.op - 1)]]); }))
                continue;
            std::size_t elements = 0;
            for (std::size_t i = 0; i < count; ++i) {
                given[i] = all[at[i]];
                given[i].data.resize(given[i].size());
                elements += given[i].size();
                for (auto& v : given[i].data) v = static_cast<std::int64_t>(uniform_bits(rng));
            }
            if (!one.attempt(given, out) || !a.equates() || with_parts || elements > few) continue;
            std::vector<std::size_t> numbers(elements, 0);
            do {
                std::size_t e = 0;
                for (auto& t : given)
                    for (auto& v : t.data) v = std::array<std::int64_t, 3>{-1, 0, 2}[numbers[e++]];
                (void)one.attempt(given, out);
            } while (next(numbers, std::size_t{3}));
        } while (next(at, all.size()));
    } while (next(chosen, std::int64_t{3}));
    return out;
}
} // namespace

TEST_CASE("axioms: each is well formed and has a name of its own") {
    std::set<std::string> names;
    for (auto const& a : axioms()) {
        CAPTURE(a.law.name);
        CHECK_NOTHROW(verify::check(a));
        CHECK(names.insert(a.law.name).second);
    }
    CHECK(names.size() > 200);
}

TEST_CASE("axioms: each is true of all small shapes") {
    std::uint64_t seed = 1;
    for (auto const& a : axioms()) {
        CAPTURE(a.law.name);
        auto const count = input_numbers(a.law.source).size();
        // Under sanitizers a fraction of it.
        if (support::sanitized && (count > 3 || seed % 8 != 0)) {
            ++seed;
            continue;
        }
        for (auto const& most : bounds_for(count)) {
            auto const found = try_all(a, most, false, seed);
            CHECK(found.wrong == "");
            CHECK(found.legal > 0); // it says something
        }
        ++seed;
    }
}

TEST_CASE("axioms: what a Split takes apart is the same on both sides where an axiom says so") {
    std::uint64_t seed = 1000;
    for (auto const& a : axioms()) {
        if (!a.keeps_parts || !a.equates()) continue;
        CAPTURE(a.law.name);
        auto const count = input_numbers(a.law.source).size();
        if (support::sanitized && (count > 3 || seed % 8 != 0)) {
            ++seed;
            continue;
        }
        auto const most = count == 1 ? bounds{{3, 3, 4}} : count == 2 ? bounds{{2, 2, 2}} : bounds{{1, 2, 2}};
        auto const found = try_all(a, most, true, seed);
        CHECK(found.wrong == "");
        CHECK(found.legal > 0);
        ++seed;
    }
}

TEST_CASE("axioms: the trial finds what is false") {
    using namespace verify::detail;
    auto const x = input(1), y = input(2);
    auto const wrong = [](axiom const& a, bool with_parts = false) { return try_all(a, {{2, 2, 4}}, with_parts, 5).wrong; };
    CHECK(wrong(equation("a sum is a product", legality::alike, add(x, y), multiply(x, y))) != "");
    CHECK(wrong(equation("relu of a sum", legality::alike, relu(add(x, y)), add(relu(x), relu(y)))) != "");
    CHECK(wrong(equation("samples are summed", legality::alike, linear(reduce(1, "d", x), y), reduce(1, "d", linear(x, y)))) != "");
    CHECK(wrong(equation("a linear ignores replicas", legality::source, linear(x, y), linear(concat(0, x, y), y))) != "");
    CHECK(wrong(equation("combine undoes partition", legality::alike, combine(1, "d", partition(1, "d", x)), x)).find("one side alone") !=
          std::string::npos);
    CHECK(wrong(equation("associates", legality::alike, concat(2, concat(2, x, y), y), concat(2, x, concat(2, y, y)))) == "");
    CHECK(wrong(equation("associates", legality::alike, concat(2, concat(2, x, y), y), concat(2, x, concat(2, y, y))), true).find("parts") !=
          std::string::npos);
    CHECK(wrong(showing("reduce leaves it whole", reduce(1, "d", x), fact::whole, 2)) != "");
}

TEST_CASE("axioms: what is no axiom is refused") {
    using namespace verify::detail;
    auto const x = input(1), y = input(2);
    auto const refused = [](axiom const& a) { return support::refusal([&] { return (verify::check(a), 0); }); };
    CHECK(refused(equation("a", legality::alike, linear(concat(0, x, y), x), linear(x, x))) ==
          "axiom 'a': the source takes input -2, which the target does not: must hold where the source is legal, not always");
    CHECK(refused(equation("a", legality::source, linear(x, x), linear(concat(0, x, y), x))) ==
          "axiom 'a': the target takes input -2, which the source does not");
    CHECK(refused(equation("a", legality::both, linear(x, x), linear(concat(0, x, y), x))).empty());
    CHECK(refused(equation("a", legality::alike, relu(x), relu(x), {whole(2, 0)})) ==
          "axiom 'a': a premise is of x2: must be of an input of the source");
    auto a = equation("a", legality::alike, scaled("d", x), add(x, x));
    a.law.constraints = {{"d", relation::equal, 3}};
    CHECK(refused(a) == "axiom 'a': constraint 'd equals 3': must be 'is at least 2' or 'equals 2'");
    a = showing("a", relu(x), fact::whole, 0);
    a.shows_two = "d";
    CHECK(refused(a) == "axiom 'a': shows two things: must show one");
}
