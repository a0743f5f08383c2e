#pragma once
// The rules that `generator` makes of graphs of up to three operators of Unity's file, ready to be used: nothing is enumerated.

#include <parsearch/rewrite/rules/generated_rules.hpp>

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::string rule_notation::written(rule const& r) const {
    auto out = written(r.source) + '-' + written(r.target) + '-';
    for (auto const& m : r.outputs) out += {letter_of(m.source), letter_of(m.target)};
    auto again = read(out);
    again.name = r.name;
    if (again != r) throw invalid_input("rule ", r.name, " has no notation: it must be one over file_operators, as generator makes them");
    return out;
}

PARSEARCH_INLINE rule rule_notation::read(std::string_view s) const {
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

PARSEARCH_INLINE std::pair<std::string_view, proof> rule_notation::unmarked(std::string_view s) {
    auto const at = s.empty() ? std::string_view::npos : marks.find(s.back());
    if (at == std::string_view::npos) throw invalid_input("'", s, "' has no mark: must end in '*', '+' or '?'");
    s.remove_suffix(1);
    return {s, static_cast<proof>(at)};
}

PARSEARCH_INLINE operator_set rule_notation::set_of_degrees() {
    auto out = file_operators();
    for (auto& o : out)
        for (auto& q : o.parameters)
            if (q.key == op_key::parallel_degree) q.value = "degree";
    return out;
}

PARSEARCH_INLINE pattern_tensor rule_notation::tensor_of(char c, std::string_view whole) {
    if (c >= '1' && c <= '9') return {'0' - c, 0};
    if (c >= 'A' && c <= 'D') return {c - 'A', 0};
    if (c >= 'P' && c <= 'S') return {c - 'P', 1};
    refuse(whole);
}

PARSEARCH_INLINE std::string rule_notation::written(pattern const& p) const {
    std::string out;
    for (auto const& o : p.operators) {
        auto const same = [&](pattern_operator const& known) { return known.type == o.type && known.parameters == o.parameters; };
        out += static_cast<char>('a' + (std::find_if(set_.begin(), set_.end(), same) - set_.begin()));
        for (auto const t : o.inputs) out += letter_of(t);
    }
    return out;
}

PARSEARCH_INLINE pattern rule_notation::pattern_of(std::string_view s, std::string_view whole) const {
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

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE std::vector<rule> generated_rules(std::size_t most) {
    detail::rule_notation const notation;
    std::vector<rule> out;
    detail::for_each_generated(most, [&](std::string_view marked) {
        auto r = notation.read(detail::rule_notation::unmarked(marked).first);
        r.name = text("generated_", out.size());
        out.push_back(std::move(r));
    });
    return out;
}

} // namespace parsearch::rewrite
