#pragma once
/// Axioms of the operators of Unity's rule files: equations that the meaning of the operators (lab/rules/interpret.hpp) makes true, as values, so
/// that they can be both tested and given to a prover.
///
/// An axiom speaks of tensors and of one more value, "illegal", which every operator makes that does not take its operands or takes an illegal one.
/// So all operators are functions everywhere, and equations may be chained.
/// Source of the approach: Z. Jia et al., TASO: Optimizing Deep Learning Computation with Automatic Generation of Graph Substitutions, SOSP 2019,
/// section 4; the axioms are ours.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::verify {

/// What can be said of a tensor beside what it equals.
enum class fact : std::uint8_t {
    whole, ///< the degree of an axis is 1
    single ///< the extent of axis 0, the replica dim, is 1
};
[[nodiscard]] constexpr std::string_view name_of(fact f) noexcept {
    constexpr std::string_view names[]{"whole", "single"};
    return names[static_cast<std::size_t>(f)];
}

struct property {
    fact is = fact::whole;
    rewrite::pattern_tensor of{};
    std::int32_t axis = 0; ///< of `whole`; of `single` 0
    friend bool operator==(property const&, property const&) = default;
};

/// When the sides of an axiom are equal.
enum class legality : std::uint8_t {
    alike,  ///< always: where one side is illegal, so is the other. Both have the same inputs.
    source, ///< where the source is legal: the target then is, too. It has no input that the source does not have.
    both    ///< where both sides are legal
};

/// Where `premises` and `law.constraints` hold: the mapped outputs are equal; or, without a target, `shows` holds of a legal source, or the degree
/// `shows_two` is 2. Inputs stand for all tensors, variables for all degrees from 1 on. Constraints are "at least 2" and "equals 2".
struct axiom {
    rewrite::rule law{};
    legality when = legality::alike;
    std::vector<property> premises{}; ///< of inputs
    std::optional<property> shows{};
    std::string_view shows_two{};
    /// Whether the sides agree in what a later Split takes apart as well (`rewrite::dense_tensor::parts`), not only in extents, degrees and data.
    bool keeps_parts = true;

    [[nodiscard]] bool equates() const noexcept { return !shows && shows_two.empty(); }
};

/// Throws `invalid_input` naming the axiom where it is not well formed, or says more than its `legality` can promise.
inline void check(axiom const& a) {
    auto const refuse = [&](auto const&... why) { throw invalid_input("axiom '", a.law.name, "': ", why...); };
    auto const inputs_of_source = rewrite::input_numbers(a.law.source);
    auto const among = [&](std::vector<std::int32_t> const& all, std::int32_t n) {
        for (auto const i : all)
            if (i == n) return true;
        return false;
    };
    if (a.equates()) {
        rewrite::check(a.law);
        if (a.when != legality::both && !rewrite::unbound_inputs(a.law).empty())
            refuse("the target takes input ", rewrite::unbound_inputs(a.law)[0], ", which the source does not");
        if (a.when == legality::alike) {
            auto used = rewrite::input_numbers(a.law.target);
            for (auto const& m : a.law.outputs)
                if (m.target.is_input()) used.push_back(m.target.op);
            for (auto const n : inputs_of_source)
                if (!among(used, n))
                    refuse("the source takes input ", n, ", which the target does not: must hold where the source is legal, not always");
        }
    } else {
        rewrite::check(a.law.source);
        if (a.law.source.operators.empty() || !a.law.target.operators.empty() || !a.law.outputs.empty())
            refuse("what shows something has a source alone");
        if (a.shows && !a.shows_two.empty()) refuse("shows two things: must show one");
        if (a.shows && a.shows->of.is_input()) refuse("shows something of input ", a.shows->of.op, ": must be of an output");
    }
    for (auto const& p : a.premises)
        if (!p.of.is_input() || !among(inputs_of_source, p.of.op)) refuse("a premise is of ", to_string(p.of), ": must be of an input of the source");
    for (auto const& c : a.law.constraints)
        if (c.value.is_variable() || c.value.literal != 2 || (c.is != rewrite::relation::at_least && c.is != rewrite::relation::equal))
            refuse("constraint '", c.variable, ' ', name_of(c.is), ' ', to_string(c.value), "': must be 'is at least 2' or 'equals 2'");
}

} // namespace parsearch::verify
