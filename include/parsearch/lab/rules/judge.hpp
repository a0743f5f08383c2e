#pragma once
/// Whether rules hold: tried on random small tensors, of the fixture's extents, of others, and as rules of parallel tensors.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
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
[[nodiscard]] std::size_t input_count(rule const& r);

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

} // namespace detail

/// Judges `r` in the files' reading (`interpret`) on the extents of the fixture, whole inputs and every variable 2. A fifth of the cases: there is
/// nothing to draw but data.
[[nodiscard]] verdict judge_fixture(rule const& r, judging how = {}, reading const& as = {});

/// Judges `r` in the files' reading on other extents, whole inputs, every variable 2 or 3.
[[nodiscard]] verdict judge(rule const& r, judging const& how = {});

/// Judges a translated rule (`translate`) on parallel tensors of all degrees, copies and sums, every variable 2 or 3.
[[nodiscard]] verdict judge_parallel(rule const& r, judging const& how = {});

/// "x1[2,4] x4[4,4] with degree=2: data differ". Extents of the files' reading without the replica dim; degrees, copies and sums where not 1.
[[nodiscard]] std::string to_string(rule const& r, counterexample const& c);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/lab/rules/judge.ipp>
#endif
