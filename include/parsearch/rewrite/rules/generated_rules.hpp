#pragma once
/// The rules that `generator` makes of graphs of up to three operators of Unity's file, ready to be used: nothing is enumerated.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
    [[nodiscard]] std::string written(rule const& r) const {
        auto out = written(r.source) + '-' + written(r.target) + '-';
        for (auto const& m : r.outputs) out += {letter_of(m.source), letter_of(m.target)};
        auto again = read(out);
        again.name = r.name;
        if (again != r) throw invalid_input("rule ", r.name, " has no notation: it must be one over file_operators, as generator makes them");
        return out;
    }
    /// The rule without a name. Throws `invalid_input` where `s` is none.
    [[nodiscard]] rule read(std::string_view s) const {
        auto const first = s.find('-'), second = s.find('-', first + 1);
        if (second == std::string_view::npos || (s.size() - second) % 2 == 0) refuse(s);
        rule out{.name = {}, .source = pattern_of(s.substr(0, first), s), .target = pattern_of(s.substr(first + 1, second - first - 1), s)};
        for (auto i = second + 1; i < s.size(); i += 2) out.outputs.push_back({tensor_of(s[i], s), tensor_of(s[i + 1], s)});
        if (!variables_of(out.source).empty() || !variables_of(out.target).empty()) {
            out.parameters = {"degree"};
            out.constraints = {{"degree", relation::at_least, 2}};
        }
        return out;
    }

    [[nodiscard]] std::string written(rule const& r, proof how) const { return written(r) + marks[static_cast<std::size_t>(how)]; }
    /// A rule with its mark, taken apart. Throws `invalid_input` where the last character is no mark.
    [[nodiscard]] static std::pair<std::string_view, proof> unmarked(std::string_view s) {
        auto const at = s.empty() ? std::string_view::npos : marks.find(s.back());
        if (at == std::string_view::npos) throw invalid_input("'", s, "' has no mark: must end in '*', '+' or '?'");
        s.remove_suffix(1);
        return {s, static_cast<proof>(at)};
    }

  private:
    static constexpr std::string_view marks = "?+*"; // in the order of `proof`

    [[noreturn]] static void refuse(std::string_view s) { throw invalid_input("'", s, "' is no notation of a rule"); }

    /// The set with a variable in the place of all degrees.
    [[nodiscard]] static operator_set set_of_degrees() {
        auto out = file_operators();
        for (auto& o : out)
            for (auto& q : o.parameters)
                if (q.key == op_key::parallel_degree) q.value = "degree";
        return out;
    }
    [[nodiscard]] static std::size_t operands_of(pattern_operator const& o) noexcept {
        return o.type == op_type::concat || o.type == op_type::ew_add || o.type == op_type::ew_mul || o.type == op_type::linear ? 2 : 1;
    }
    [[nodiscard]] static char letter_of(pattern_tensor t) noexcept {
        return static_cast<char>(t.is_input() ? '0' - t.op : (t.slot == 0 ? 'A' : 'P') + t.op);
    }
    [[nodiscard]] static pattern_tensor tensor_of(char c, std::string_view whole) {
        if (c >= '1' && c <= '9') return {'0' - c, 0};
        if (c >= 'A' && c <= 'D') return {c - 'A', 0};
        if (c >= 'P' && c <= 'S') return {c - 'P', 1};
        refuse(whole);
    }
    [[nodiscard]] std::string written(pattern const& p) const {
        std::string out;
        for (auto const& o : p.operators) {
            auto const same = [&](pattern_operator const& known) { return known.type == o.type && known.parameters == o.parameters; };
            out += static_cast<char>('a' + (std::find_if(set_.begin(), set_.end(), same) - set_.begin()));
            for (auto const t : o.inputs) out += letter_of(t);
        }
        return out;
    }
    [[nodiscard]] pattern pattern_of(std::string_view s, std::string_view whole) const {
        pattern out;
        for (std::size_t i = 0; i < s.size();) {
            auto const number = static_cast<std::size_t>(s[i++] - 'a');
            if (number >= set_.size()) refuse(whole);
            auto o = set_[number];
            if (s.size() - i < operands_of(o)) refuse(whole);
            for (auto left = operands_of(o); left > 0; --left) o.inputs.push_back(tensor_of(s[i++], whole));
            out.operators.push_back(std::move(o));
        }
        return out;
    }

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
[[nodiscard]] inline std::vector<rule> generated_rules(std::size_t most = static_cast<std::size_t>(-1)) {
    detail::rule_notation const notation;
    std::vector<rule> out;
    detail::for_each_generated(most, [&](std::string_view marked) {
        auto r = notation.read(detail::rule_notation::unmarked(marked).first);
        r.name = text("generated_", out.size());
        out.push_back(std::move(r));
    });
    return out;
}

/// How far each of `generated_rules(most)` is proved from the axioms of lab/prover/axioms.hpp, in their order. `proof::none` is tested only. What is
/// proved was proved by `verify::prove` when the rules were made (docs/rules.md); nothing is proved here. Complexity: linear.
[[nodiscard]] inline std::vector<proof> generated_proofs(std::size_t most = static_cast<std::size_t>(-1)) {
    std::vector<proof> out;
    detail::for_each_generated(most, [&](std::string_view marked) { out.push_back(detail::rule_notation::unmarked(marked).second); });
    return out;
}

} // namespace parsearch::rewrite
