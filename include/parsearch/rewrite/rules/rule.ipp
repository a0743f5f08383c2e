#pragma once
// Substitution rules as values: a source pattern, a target pattern, and which outputs stand for which.

#include <algorithm>

#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE bool holds(constraint const& c, bindings const& b) {
    auto const number = [&](value const& v) {
        if (auto const n = number_of(v, b)) return *n;
        throw invalid_input("constraint '", c.variable, ' ', name_of(c.is), ' ', to_string(c.value), "': variable ", v.variable, " has no number");
    };
    auto const v = number(std::string_view(c.variable)), w = number(c.value);
    auto const divides = [](std::int64_t small, std::int64_t large) {
        if (small == 0) return large == 0;
        return small == -1 || large % small == 0; // the quotient of the least number by -1 is none
    };
    switch (c.is) {
    case relation::equal: return v == w;
    case relation::at_least: return v >= w;
    case relation::at_most: return v <= w;
    case relation::divides: return divides(v, w);
    case relation::multiple_of: return divides(w, v);
    }
    return false;
}

PARSEARCH_INLINE std::vector<std::int32_t> input_numbers(pattern const& p) {
    std::set<std::int32_t> found;
    for (auto const& o : p.operators)
        for (auto const t : o.inputs)
            if (t.is_input()) found.insert(t.op);
    return {found.rbegin(), found.rend()};
}

PARSEARCH_INLINE std::set<std::string, std::less<>> variables_of(pattern const& p) {
    std::set<std::string, std::less<>> found;
    for (auto const& o : p.operators)
        for (auto const& q : o.parameters)
            if (q.value.is_variable()) found.insert(q.value.variable);
    return found;
}

PARSEARCH_INLINE std::optional<std::int64_t> output_count(pattern_operator const& o) {
    if (o.type == op_type::split) {
        auto const* const n = find_parameter(o, op_key::num_outputs);
        return n && !n->is_variable() ? std::optional(n->literal) : std::nullopt;
    }
    for (auto const known :
         {op_type::linear, op_type::relu, op_type::ew_add, op_type::ew_mul, op_type::concat, op_type::partition, op_type::combine, op_type::replicate,
          op_type::reduce, op_type::pipeline, op_type::batch, op_type::conv2d, op_type::matmul, op_type::transpose})
        if (o.type == known) return 1;
    return std::nullopt;
}

} // namespace parsearch::rewrite

namespace parsearch::rewrite::detail {

/// Throws where `t`, named by `place`, is no tensor of `p`.
PARSEARCH_INLINE void check_tensor(pattern const& p, pattern_tensor t, std::string const& place) {
    if (t.is_input()) {
        if (t.slot != 0) throw invalid_input(place, " is slot ", t.slot, " of input ", t.op, ": an input of a pattern is one tensor, slot 0");
        return;
    }
    auto const number = static_cast<std::size_t>(t.op);
    if (number >= p.operators.size()) throw invalid_input(place, " is operator ", t.op, ": the pattern has ", p.operators.size(), " operators");
    auto const& from = p.operators[number];
    auto const slots = output_count(from);
    if (t.slot < 0 || (slots && t.slot >= *slots))
        throw invalid_input(place, " is slot ", t.slot, " of operator ", t.op, " (", from.type,
                            "): ", slots ? text("it has ", *slots, " outputs") : "slots begin at 0");
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE std::vector<std::size_t> order_of(pattern const& p) {
    std::vector<std::size_t> out;
    std::vector<char> done(p.operators.size(), 0);
    while (out.size() < p.operators.size()) {
        std::size_t next = 0;
        auto const ready = [&](std::size_t i) {
            return !done[i] && std::all_of(p.operators[i].inputs.begin(), p.operators[i].inputs.end(),
                                           [&](pattern_tensor t) { return t.is_input() || done[static_cast<std::size_t>(t.op)]; });
        };
        while (next < p.operators.size() && !ready(next)) ++next;
        if (next == p.operators.size()) {
            // Walking back from any operator that is left, one gets round a cycle within as many steps as there are operators.
            auto at = static_cast<std::size_t>(std::find(done.begin(), done.end(), 0) - done.begin());
            for (std::size_t step = 0; step < p.operators.size(); ++step)
                for (auto const t : p.operators[at].inputs)
                    if (!t.is_input() && !done[static_cast<std::size_t>(t.op)]) {
                        at = static_cast<std::size_t>(t.op);
                        break;
                    }
            throw invalid_input("operator ", at, " (", p.operators[at].type, ") takes what it makes: a pattern has no cycle");
        }
        done[next] = 1;
        out.push_back(next);
    }
    return out;
}

PARSEARCH_INLINE void check(pattern const& p) {
    for (std::size_t i = 0; i < p.operators.size(); ++i) {
        auto const& o = p.operators[i];
        if (o.type.empty()) throw invalid_input("operator ", i, " has no type");
        auto const name = text("operator ", i, " (", o.type, ')');
        if (o.inputs.empty()) throw invalid_input(name, " takes no input: must take at least one");
        for (std::size_t k = 0; k < o.inputs.size(); ++k) detail::check_tensor(p, o.inputs[k], text(name, ": input ", k));
        for (std::size_t k = 0; k < o.parameters.size(); ++k) {
            auto const& key = o.parameters[k].key;
            if (key.empty()) throw invalid_input(name, ": parameter ", k, " has no key");
            if (find_parameter(o, key) != &o.parameters[k].value) throw invalid_input(name, ": parameter ", key, " is there twice: must be once");
        }
    }
    (void)order_of(p);
}

PARSEARCH_INLINE std::vector<std::int32_t> unbound_inputs(rule const& r) {
    auto const bound = input_numbers(r.source);
    auto out = input_numbers(r.target);
    for (auto const& m : r.outputs)
        if (m.target.is_input() && std::find(out.begin(), out.end(), m.target.op) == out.end()) out.push_back(m.target.op);
    std::erase_if(out, [&](std::int32_t n) { return std::find(bound.begin(), bound.end(), n) != bound.end(); });
    std::sort(out.rbegin(), out.rend());
    return out;
}

PARSEARCH_INLINE void check(rule const& r) {
    if (r.name.empty()) throw invalid_input("a rule has no name");
    auto const refuse = [&](auto const&... parts) { throw invalid_input("rule '", r.name, "': ", parts...); };
    auto const placed = [&](char const* place, auto const& f) {
        try {
            f();
        } catch (invalid_input const& e) {
            refuse(place, e.what());
        }
    };
    placed("source: ", [&] { check(r.source); });
    placed("target: ", [&] { check(r.target); });
    if (r.source.operators.empty()) refuse("source: has no operators");
    if (r.outputs.empty()) refuse("no output is mapped: at least one must be");
    for (std::size_t i = 0; i < r.outputs.size(); ++i) {
        auto const& m = r.outputs[i];
        auto const place = text("mapped output ", i, ": ");
        if (m.source.is_input()) refuse(place, "its source is input ", m.source.op, ": must be made by an operator");
        placed(place.c_str(), [&] { detail::check_tensor(r.source, m.source, "its source"); });
        placed(place.c_str(), [&] { detail::check_tensor(r.target, m.target, "its target"); });
        for (std::size_t k = 0; k < i; ++k)
            if (r.outputs[k].source == m.source) refuse(place, "output ", to_string(m.source), " of the source is mapped twice: must be once");
    }
    auto const used = [&](pattern const& p, pattern_tensor mapped_output::*side, char const* place) {
        for (std::size_t i = 0; i < p.operators.size(); ++i) {
            auto const is_it = [&](pattern_tensor t) { return t.op == static_cast<std::int32_t>(i); };
            bool found = std::any_of(r.outputs.begin(), r.outputs.end(), [&](mapped_output const& m) { return is_it(m.*side); });
            for (auto const& o : p.operators) found = found || std::any_of(o.inputs.begin(), o.inputs.end(), is_it);
            if (!found) refuse(place, "operator ", i, " (", p.operators[i].type, "): no operator reads what it makes, and it is not mapped");
        }
    };
    used(r.source, &mapped_output::source, "source: ");
    used(r.target, &mapped_output::target, "target: ");

    auto known = variables_of(r.source);
    for (std::size_t i = 0; i < r.parameters.size(); ++i) {
        auto const& name = r.parameters[i];
        if (name.empty()) refuse("parameter ", i, " has no name");
        if (std::find(r.parameters.begin(), r.parameters.end(), name) != r.parameters.begin() + static_cast<std::ptrdiff_t>(i))
            refuse("parameter ", name, " is there twice: must be once");
        known.insert(name);
    }
    auto const bound = [&](std::string const& name, auto const&... place) {
        if (!known.contains(name)) refuse(place..., ": variable ", name, " is neither bound by the source nor a parameter of the rule");
    };
    for (std::size_t i = 0; i < r.target.operators.size(); ++i)
        for (auto const& p : r.target.operators[i].parameters)
            if (p.value.is_variable()) bound(p.value.variable, "target: operator ", i, " (", r.target.operators[i].type, "): ", p.key);
    for (std::size_t i = 0; i < r.constraints.size(); ++i) {
        auto const& c = r.constraints[i];
        bound(c.variable, "constraint ", i);
        if (c.value.is_variable()) bound(c.value.variable, "constraint ", i);
    }
}

PARSEARCH_INLINE std::string to_string(pattern const& p) {
    std::string out;
    for (std::size_t i = 0; i < p.operators.size(); ++i) {
        auto const& o = p.operators[i];
        out += text(i ? "; " : "", i, '=', o.type);
        char open = '[';
        for (auto const& q : o.parameters) out += text(std::exchange(open, ','), q.key, '=', to_string(q.value));
        if (open != '[') out += ']';
        open = '(';
        for (auto const t : o.inputs) out += text(std::exchange(open, ','), to_string(t));
        out += ')';
    }
    return out;
}

PARSEARCH_INLINE std::string to_string(rule const& r) {
    std::string out = text(r.name, ": ", to_string(r.source), " => ", to_string(r.target));
    char const* before = " where ";
    for (auto const& m : r.outputs) out += text(std::exchange(before, ", "), to_string(m.source), " is ", to_string(m.target));
    return out;
}

} // namespace parsearch::rewrite
