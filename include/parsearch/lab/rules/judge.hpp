#pragma once
/// Whether rules hold: tried on random small tensors, of the fixture's extents, of others, and as rules of parallel tensors.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/lab/rules/interpret.hpp>
#include <parsearch/lab/rules/translate_rules.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::rewrite {

struct judging {
    std::uint64_t seed = 1;
    std::int64_t cases = 200;   ///< legal on both sides, after which a rule counts as true
    std::int64_t draws = 20000; ///< at most, legal or not
    bool wide = false;          ///< data of all 64 bits, of which sums and products wrap around, instead of those from -9 to 9
};

/// Inputs on which the sides of a rule are both legal and differ, with the fewest elements among those drawn.
struct counterexample {
    std::vector<parallel_value> given{}; ///< of inputs -1, -2, ...; in the files' reading `value` alone counts
    bindings variables{};
    trial how = trial::data_differ;
};

struct verdict {
    std::int64_t tested = 0;  ///< cases legal on both sides
    std::int64_t refused = 0; ///< cases legal in the source, not in the target: whoever applies the rule must look at the target's legality
    std::optional<counterexample> refuted{};
};

namespace detail {
[[nodiscard]] inline std::size_t elements_of(std::vector<parallel_value> const& given) {
    std::size_t n = 0;
    for (auto const& g : given) n += g.value.size();
    return n;
}

/// As many inputs as the rule counts.
[[nodiscard]] inline std::size_t input_count(rule const& r) {
    std::int64_t most = 0;
    for (auto const* const side : {&r.source, &r.target})
        for (auto const n : input_numbers(*side)) most = std::max(most, -std::int64_t{n});
    for (auto const& m : r.outputs) most = std::max(most, -std::int64_t{m.target.op});
    constexpr std::int64_t limit = 64;
    if (most > limit) throw invalid_input("rule '", r.name, "' has input x", most, ": must be at most x", limit, " to be judged");
    return static_cast<std::size_t>(most);
}

template <class Draw, class Try> [[nodiscard]] verdict judged(rule const& r, judging const& how, Draw const& draw, Try const& attempt) {
    if (how.cases < 1 || how.draws < how.cases)
        throw invalid_input("judging in ", how.cases, " cases of ", how.draws, " draws: must be 1 <= cases <= draws");
    check(r);
    split_mix rng(how.seed);
    auto const count = input_count(r);
    auto names = variables_of(r.source);
    names.merge(variables_of(r.target));
    names.insert(r.parameters.begin(), r.parameters.end());
    verdict out;
    for (std::int64_t i = 0; i < how.draws && out.tested < how.cases; ++i) {
        counterexample drawn;
        auto const degree = static_cast<std::int32_t>(2 + uniform_index(rng, 2));
        for (auto const& name : names) drawn.variables.emplace(name, degree);
        drawn.given = draw(rng, count, degree);
        if (!std::all_of(r.constraints.begin(), r.constraints.end(), [&](constraint const& c) { return holds(c, drawn.variables); })) continue;
        drawn.how = attempt(drawn);
        if (drawn.how == trial::source_illegal) continue;
        if (drawn.how == trial::target_illegal) {
            ++out.refused;
            continue;
        }
        ++out.tested;
        if (drawn.how == trial::holds) continue;
        if (!out.refuted || elements_of(drawn.given) < elements_of(out.refuted->given)) out.refuted = std::move(drawn);
    }
    return out;
}

inline void fill(split_mix& rng, dense_tensor& t, bool wide) {
    t.data.resize(t.size());
    for (auto& v : t.data) v = wide ? wrapped(uniform_bits(rng)) : static_cast<std::int64_t>(uniform_index(rng, 19)) - 9;
}

/// Extents of inputs: those of a kind (x1 to x3 activations, from x4 on weights) equal; or but along one axis, where any of two may be, so that what
/// is joined of different parts is drawn often enough; or any.
[[nodiscard]] inline std::vector<parallel_value> draw_extents(split_mix& rng, std::size_t count, std::int32_t degree) {
    auto const extent = [&] { return std::array{1, degree, degree * degree, 2 * degree, 3 * degree}[uniform_index(rng, 5)]; };
    auto const shape = [&] { return std::array{1, extent(), extent()}; };
    auto const x = shape();
    auto w = shape();
    if (uniform_index(rng, 2)) w[2] = x[2];
    auto const how = uniform_index(rng, 4);
    auto const axis = static_cast<std::size_t>(1 + uniform_index(rng, 2));
    auto const other = extent();
    std::vector<parallel_value> out(count);
    for (std::size_t i = 0; i < count; ++i) {
        auto& extents = out[i].value.extents;
        extents = how == 0 ? shape() : i < 3 ? x : w;
        if (how >= 2 && uniform_index(rng, 2)) extents[axis] = other;
    }
    return out;
}
} // namespace detail

/// Judges `r` in the files' reading (`interpret`) on the extents of the fixture, whole inputs and every variable 2. A fifth of the cases: there is
/// nothing to draw but data.
[[nodiscard]] inline verdict judge_fixture(rule const& r, judging how = {}, reading const& as = {}) {
    how.cases = std::max<std::int64_t>(1, how.cases / 5);
    how.draws = how.cases;
    auto const draw = [&](split_mix& rng, std::size_t count, std::int32_t) {
        std::vector<parallel_value> out(count);
        for (std::size_t i = 0; i < count; ++i) {
            out[i].value.extents = fixture[std::min(i, fixture.size() - 1)];
            detail::fill(rng, out[i].value, how.wide);
        }
        return out;
    };
    return detail::judged(r, how, draw, [&](counterexample& c) {
        for (auto& [name, number] : c.variables) number = 2;
        std::vector<dense_tensor> given;
        for (auto const& g : c.given) given.push_back(g.value);
        return try_rule(r, given, c.variables, as);
    });
}

/// Judges `r` in the files' reading on other extents, whole inputs, every variable 2 or 3.
[[nodiscard]] inline verdict judge(rule const& r, judging const& how = {}) {
    auto const draw = [&](split_mix& rng, std::size_t count, std::int32_t degree) {
        auto out = detail::draw_extents(rng, count, degree);
        for (auto& g : out) detail::fill(rng, g.value, how.wide);
        return out;
    };
    return detail::judged(r, how, draw, [&](counterexample const& c) {
        std::vector<dense_tensor> given;
        for (auto const& g : c.given) given.push_back(g.value);
        return try_rule(r, given, c.variables);
    });
}

/// Judges a translated rule (`translate`) on parallel tensors of all degrees, copies and sums, every variable 2 or 3.
[[nodiscard]] inline verdict judge_parallel(rule const& r, judging const& how = {}) {
    auto const draw = [&](split_mix& rng, std::size_t count, std::int32_t degree) {
        auto out = detail::draw_extents(rng, count, degree);
        auto const some = [&](std::int32_t extent, std::uint64_t seldom) {
            return extent % degree == 0 && uniform_index(rng, seldom) == 0 ? degree : 1;
        };
        for (std::size_t i = 0; i < count; ++i) {
            auto& g = out[i];
            if (i != 0 && i != 3 && uniform_index(rng, 8) != 0 && g.value.extents == out[i < 3 ? 0 : 3].value.extents) {
                g = out[i < 3 ? 0 : 3]; // like the first of its kind
            } else {
                g.value.degrees = {1, some(g.value.extents[1], 3), some(g.value.extents[2], 3)};
                g.copies = some(degree, 3);
                g.sums = some(degree, 6);
                auto const& x = out[0];
                bool const fits = g.value.extents[1] % x.copies == 0 && g.value.extents[2] % x.value.degrees[2] == 0;
                if (i >= 3 && uniform_index(rng, 4) != 0 && fits) {
                    g.value.degrees = {1, x.copies, x.value.degrees[2]}; // as a linear of x asks
                    g.copies = x.value.degrees[1];
                    g.sums = 1;
                }
            }
            detail::fill(rng, g.value, how.wide);
        }
        return out;
    };
    return detail::judged(r, how, draw, [&](counterexample const& c) { return try_parallel(r, c.given, c.variables); });
}

/// "x1[2,4] x4[4,4] with degree=2: data differ". Extents of the files' reading without the replica dim; degrees, copies and sums where not 1.
[[nodiscard]] inline std::string to_string(rule const& r, counterexample const& c) {
    std::set<std::int32_t, std::greater<>> used;
    for (auto const* const side : {&r.source, &r.target})
        for (auto const n : input_numbers(*side)) used.insert(n);
    std::string out;
    for (auto const n : used) {
        auto const& g = c.given[static_cast<std::size_t>(-(std::int64_t{n} + 1))];
        auto const axis = [&](std::size_t a) { return text(g.value.extents[a], g.value.degrees[a] > 1 ? text('/', g.value.degrees[a]) : ""); };
        out += text('x', -n, '[', axis(1), ',', axis(2), ']', g.copies > 1 ? text(" copies ", g.copies) : "",
                    g.sums > 1 ? text(" sums ", g.sums) : "", ' ');
    }
    char const* before = "with ";
    for (auto const& [name, number] : c.variables) out += text(std::exchange(before, ", "), name, '=', number);
    if (!c.variables.empty()) out += ": ";
    return out + std::string(name_of(c.how));
}

} // namespace parsearch::rewrite
