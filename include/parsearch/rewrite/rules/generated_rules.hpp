#pragma once
/// The rules that `generator` makes of graphs of up to three operators of Unity's file, ready to be used: nothing is enumerated.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/rules/file_operators.hpp>
#include <parsearch/rewrite/rules/proof.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::rewrite {

namespace detail {

/// A rule over `file_operators` in a few characters: source, target and outputs with '-' between. An operator is a letter, from 'a' on in the order
/// of the set, and its operands; a tensor is '1' to '9' for an input, 'A' to 'D' and 'P' to 'S' for outputs 0 and 1 of operators 0 to 3. Outputs are
/// pairs: what is mapped, and to what. Where it ships, a mark follows that says how far it is proved: '*' for all inputs, '+' for whole ones, '?' not
/// at all.
class rule_notation {
  public:
    /// Throws `invalid_input` where the rule is not one over the set, its degrees the variable "degree", as `generator` makes them.
    [[nodiscard]] std::string written(rule const& r) const;
    /// The rule without a name. Throws `invalid_input` where `s` is none.
    [[nodiscard]] rule read(std::string_view s) const;

    [[nodiscard]] std::string written(rule const& r, proof how) const { return written(r) + marks[static_cast<std::size_t>(how)]; }
    /// A rule with its mark, taken apart. Throws `invalid_input` where the last character is no mark.
    [[nodiscard]] static std::pair<std::string_view, proof> unmarked(std::string_view s);

  private:
    static constexpr std::string_view marks = "?+*"; // in the order of `proof`

    [[noreturn]] static void refuse(std::string_view s) { throw invalid_input("'", s, "' is no notation of a rule"); }

    /// The set with a variable in the place of all degrees.
    [[nodiscard]] static operator_set set_of_degrees();
    [[nodiscard]] static std::size_t operands_of(pattern_operator const& o) noexcept {
        return o.type == op_type::concat || o.type == op_type::ew_add || o.type == op_type::ew_mul || o.type == op_type::linear ? 2 : 1;
    }
    [[nodiscard]] static char letter_of(pattern_tensor t) noexcept {
        return static_cast<char>(t.is_input() ? '0' - t.op : (t.slot == 0 ? 'A' : 'P') + t.op);
    }
    [[nodiscard]] static pattern_tensor tensor_of(char c, std::string_view whole);
    [[nodiscard]] std::string written(pattern const& p) const;
    [[nodiscard]] pattern pattern_of(std::string_view s, std::string_view whole) const;

    operator_set set_ = set_of_degrees();
};

// Pointers, not views: compilers bound the steps of a constant, and to measure a line takes one for each character.
inline constexpr char const* generated_rule_lines[] = {
#include <parsearch/rewrite/rules/generated_rules.inc>
};

/// Each of the first `most` shipped rules in its notation, with its mark, to `take`.
template <class Take> void for_each_generated(std::size_t most, Take const& take) {
    std::size_t taken = 0;
    for (std::string_view line : generated_rule_lines)
        while (!line.empty() && taken < most) {
            auto const end = std::min(line.find(' '), line.size());
            take(line.substr(0, end));
            ++taken;
            line.remove_prefix(std::min(end + 1, line.size()));
        }
}
} // namespace detail

/// The rules of `generator({.graphs = {.operators = 3}})`, in their order and with their names, "generated_0" and so on, the smallest first; at most
/// the first `most`. Each held wherever it was tried: by the generator on the fixture with five draws of data and in forty cases of other extents and
/// degrees, and in two hundred more when it was marked. `generated_proofs` says which are proved besides. Complexity: linear.
[[nodiscard]] std::vector<rule> generated_rules(std::size_t most = static_cast<std::size_t>(-1));

/// How far each of `generated_rules(most)` is proved from the axioms of lab/prover/axioms.hpp, in their order. `proof::none` is tested only. What is
/// proved was proved by `verify::prove` when the rules were made (docs/rules.md); nothing is proved here. Complexity: linear.
[[nodiscard]] inline std::vector<proof> generated_proofs(std::size_t most = static_cast<std::size_t>(-1)) {
    std::vector<proof> out;
    detail::for_each_generated(most, [&](std::string_view marked) { out.push_back(detail::rule_notation::unmarked(marked).second); });
    return out;
}

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/generated_rules.ipp>
#endif
