#pragma once
// Whether rules hold: tried on random small tensors, of the fixture's extents, of others, and as rules of parallel tensors.

#include <set>

#include <parsearch/lab/rules/judge.hpp>

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::size_t input_count(rule const& r) {
    std::int64_t most = 0;
    for (auto const* const side : {&r.source, &r.target})
        for (auto const n : input_numbers(*side)) most = std::max(most, -std::int64_t{n});
    for (auto const& m : r.outputs) most = std::max(most, -std::int64_t{m.target.op});
    constexpr std::int64_t limit = 64;
    if (most > limit) throw invalid_input("rule '", r.name, "' has input x", most, ": must be at most x", limit, " to be judged");
    return static_cast<std::size_t>(most);
}

/// Extents of inputs: those of a kind (x1 to x3 activations, from x4 on weights) equal; or but along one axis, where any of two may be, so that what
/// is joined of different parts is drawn often enough; or any.
PARSEARCH_INLINE std::vector<parallel_value> draw_extents(split_mix& rng, std::size_t count, std::int32_t degree) {
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

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE verdict judge_fixture(rule const& r, judging how, reading const& as) {
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

PARSEARCH_INLINE verdict judge(rule const& r, judging const& how) {
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

PARSEARCH_INLINE verdict judge_parallel(rule const& r, judging const& how) {
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

PARSEARCH_INLINE std::string to_string(rule const& r, counterexample const& c) {
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
