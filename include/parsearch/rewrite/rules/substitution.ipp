#pragma once
// Substitution: where a rule's source pattern is found in a graph, and the graph with the target pattern in its place.

#include <set>

#include <parsearch/rewrite/rules/substitution.hpp>

namespace parsearch::rewrite::detail {

/// The number of tensor `t` of the target: an input's, or an output of a node that was made.
[[nodiscard]] inline tensor_ref target_tensor(match const& m, std::vector<std::uint32_t> const& made, pattern_tensor t) {
    return t.is_input() ? m.input[static_cast<std::size_t>(-t.op - 1)].value()
                        : tensor_ref{made[static_cast<std::size_t>(t.op)], static_cast<std::uint32_t>(t.slot)};
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE matcher::search matcher::searched(rule const& r) const {
    search s{.source = r, .order = order_of(r.source)};
    s.now.node.assign(r.source.operators.size(), none);
    for (auto const n : input_numbers(r.source)) s.now.input.resize(std::max(s.now.input.size(), static_cast<std::size_t>(-n)));
    extend(s, 0);
    return s;
}

PARSEARCH_INLINE void matcher::extend(search& s, std::size_t depth) const {
    s.furthest = std::max(s.furthest, depth);
    if (depth == s.order.size()) {
        if (auto const o = obstacle_to(s); !o) s.found.push_back(s.now);
        else if (!s.hindered) s.hindered.emplace(s.now, *o);
        return;
    }
    auto const i = s.order[depth];
    auto const& o = s.source.source.operators[i];
    auto const choose = [&](std::uint32_t n) {
        if (std::ranges::find(s.now.node, n) != s.now.node.end()) return;
        auto const before = s.now;
        if (fits(s, o, n)) {
            s.now.node[i] = n;
            extend(s, depth + 1);
        }
        s.now = before;
    };
    for (std::size_t k = 0; k < o.inputs.size(); ++k)
        if (auto const t = tensor_of(s.now, o.inputs[k])) { // only who reads it there
            for (auto const& [slot, use] : uses_[t->producer])
                if (slot == t->slot && use.operand == k) choose(use.reader);
            return;
        }
    for (std::uint32_t n = 0; n < types_.size(); ++n)
        if (types_[n]) choose(n);
}

PARSEARCH_INLINE bool matcher::fits(search& s, pattern_operator const& o, std::uint32_t n) const {
    auto const& type = types_[n];
    auto const& read = graph_[n].inputs;
    if (!type || type->type != o.type || read.size() != o.inputs.size()) return false;
    for (std::size_t k = 0; k < read.size(); ++k) {
        auto const t = tensor_of(s.now, o.inputs[k]);
        if (t && !(*t == read[k])) return false;
        if (!t && !o.inputs[k].is_input()) return false;
        if (!t) s.now.input[static_cast<std::size_t>(-o.inputs[k].op - 1)] = read[k];
    }
    for (auto const& p : o.parameters) {
        auto const has = type->get(p.key);
        if (!has) return false;
        if (p.value.is_variable()) {
            if (s.now.variables.try_emplace(p.value.variable, *has).first->second != *has) return false;
        } else if (!is_number(p, *has, n)) return false;
    }
    return true;
}

PARSEARCH_INLINE std::optional<matcher::obstacle> matcher::obstacle_to(search const& s) const {
    auto const& r = s.source;
    for (auto const& c : r.constraints) // of what the source binds; the others are for who chooses the parameters
        if (s.now.variables.contains(c.variable) && (!c.value.is_variable() || s.now.variables.contains(c.value.variable)) &&
            !holds(c, s.now.variables))
            return obstacle{.broken = &c};
    auto const mapped = [&](std::size_t op, std::uint32_t slot) {
        return std::ranges::any_of(r.outputs, [&](auto const& m) {
            return m.source == pattern_tensor{static_cast<std::int32_t>(op), static_cast<std::int32_t>(slot)};
        });
    };
    for (std::size_t i = 0; i < s.now.node.size(); ++i) {
        for (auto const& [slot, use] : uses_[s.now.node[i]])
            if (std::ranges::find(s.now.node, use.reader) == s.now.node.end() && !mapped(i, slot)) return obstacle{.op = i, .reader = use.reader};
        for (auto const& t : graph_.results())
            if (t.producer == s.now.node[i] && !mapped(i, t.slot)) return obstacle{.op = i};
    }
    return {};
}

PARSEARCH_INLINE std::string matcher::forbidden(search const& s) const {
    auto const& [at, found] = *s.hindered;
    if (found.broken) {
        auto const& c = *found.broken;
        return text("a constraint does not hold: ", c.variable, ' ', name_of(c.is), ' ', to_string(c.value), ", and is ",
                    at.variables.find(c.variable)->second);
    }
    auto const called = [&](std::uint32_t n) { return graph_[n]->name.empty() ? text("node ", n) : text('\'', graph_[n]->name, '\''); };
    return text("what is to be replaced is needed elsewhere, and the rule does not map it: what ", place_of(s.source, found.op), " makes, at ",
                called(at.node[found.op]), found.reader == none ? ", is a result of the graph" : text(", is read by ", called(found.reader)));
}

PARSEARCH_INLINE std::string matcher::missing(search const& s) const {
    auto const i = s.order[s.furthest];
    auto const& o = s.source.source.operators[i];
    std::vector<std::uint32_t> left;
    for (std::uint32_t n = 0; n < types_.size(); ++n)
        if (types_[n] && types_[n]->type == o.type) left.push_back(n);
    if (left.empty()) return text("the graph has no ", o.type);

    std::string having; // what not all of the type have, and those that are left do
    auto const keep = [&](std::string const& wanted, auto const& has, auto const& fits) {
        std::set<std::string> values;
        std::vector<std::uint32_t> kept;
        for (auto const n : left)
            if (fits(n)) kept.push_back(n);
            else values.insert(has(n));
        if (!kept.empty()) {
            if (kept.size() < left.size()) having += text(having.empty() ? " with " : " and ", wanted);
            left = std::move(kept);
            return std::string();
        }
        auto out = text("no ", o.type, having, " has ", wanted);
        char const* before = ": these have ";
        for (auto const& v : values) out += text(std::exchange(before, ", "), v);
        return out;
    };
    auto const operands = [&](std::uint32_t n) { return graph_[n].inputs.size(); };
    if (auto why = keep(
            text(o.inputs.size(), " operands"), [&](auto n) { return text(operands(n)); }, [&](auto n) { return operands(n) == o.inputs.size(); });
        !why.empty())
        return why;
    for (auto const& p : o.parameters) {
        auto const value = [&](std::uint32_t n) { return types_[n]->get(p.key); };
        auto const shown = [&](std::uint32_t n) { return value(n) ? text(*value(n)) : std::string("none"); };
        if (auto why = keep(text(p.key, ' ', to_string(p.value)), shown, [&](auto n) { return value(n) && is_number(p, *value(n), n); });
            !why.empty())
            return why;
    }

    // Each that is left fits by itself: the rest is how it stands to the operators found before, and its operands to each other.
    std::string wanted;
    auto const must = [&](auto const&... what) { wanted += text(wanted.empty() ? "" : " and ", what...); };
    for (std::size_t k = 0; k < o.inputs.size(); ++k) {
        auto const t = o.inputs[k];
        auto const read = o.inputs.size() > 1 ? text("read as operand ", k, ' ') : std::string("read ");
        auto const reads_it = [&](auto const& q) { return std::ranges::find(q.inputs, t) != q.inputs.end(); };
        if (!t.is_input())
            must(read, t.slot > 0 ? text("output ", t.slot, " of ") : "what ", place_of(s.source, static_cast<std::size_t>(t.op)),
                 t.slot > 0 ? "" : " makes");
        else if (auto const other = found_before(s, reads_it)) must(read, "the ", to_string(t), " of ", place_of(s.source, *other));
        else if (std::ranges::find(o.inputs, t) - o.inputs.begin() < static_cast<std::ptrdiff_t>(k)) must(read, to_string(t), " again");
    }
    for (auto const& p : o.parameters) {
        auto const has_it = [&](auto const& q) { return std::ranges::any_of(q.parameters, [&](auto const& of) { return of.value == p.value; }); };
        if (auto const other = p.value.is_variable() ? found_before(s, has_it) : std::nullopt)
            must("have the ", p.value.variable, " of ", place_of(s.source, *other));
    }
    return wanted.empty() ? text("the graph has too few ", o.type, having)
                          : text("no ", o.type, having, " stands where the rule has one: must ", wanted);
}

} // namespace parsearch::rewrite

namespace parsearch::rewrite::detail {

/// The extents into which split number `op` of the target cuts: those of the source's outputs that its outputs stand for; what is left, in equal
/// parts, for the others.
PARSEARCH_INLINE std::vector<std::int64_t> split_sizes(parallel_graph const& g, rule const& r, match const& m, std::size_t op, std::size_t count,
                                                       std::int64_t whole, std::size_t axis) {
    std::vector<std::int64_t> sizes(count);
    auto open = static_cast<std::int64_t>(count), left = whole;
    for (auto const& o : r.outputs)
        if (o.target.op == static_cast<std::int32_t>(op) && static_cast<std::size_t>(o.target.slot) >= count)
            throw invalid_input(op_type::split, ": output ", o.target.slot, " of ", count, " is mapped");
        else if (o.target.op == static_cast<std::int32_t>(op) && sizes[static_cast<std::size_t>(o.target.slot)] == 0) {
            auto const& from = g.tensor({m.node[static_cast<std::size_t>(o.source.op)], static_cast<std::uint32_t>(o.source.slot)}).whole.extents;
            if (axis >= from.size()) throw invalid_input(op_type::split, ": axis ", axis, " of a result with ", from.size(), " axes");
            left -= sizes[static_cast<std::size_t>(o.target.slot)] = from[axis];
            --open;
        }
    if (open == 0 && left != 0)
        throw invalid_input(op_type::split, ": its results hold ", whole - left, " entries along axis ", axis, ", what is split holds ", whole,
                            ": must be as many");
    if (open > 0 && (left < open || left % open != 0))
        throw invalid_input(op_type::split, ": ", left, " entries are left for ", open, " parts: must be equal parts");
    for (auto& n : sizes)
        if (n == 0) n = left / open;
    return sizes;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE outcome<parallel_graph> substitute(parallel_graph const& g, rule const& r, match const& m, bindings const& chosen) {
    if (auto const open = unbound_inputs(r); !open.empty()) return refused("nothing says what input ", open.front(), " of the target is");
    auto variables = m.variables;
    for (auto const& [name, number] : chosen) variables.try_emplace(name, number);
    try {
        for (auto const& c : r.constraints)
            if (!holds(c, variables)) return refused("constraint on ", c.variable, " does not hold");
        auto out = g;
        std::vector<std::uint32_t> made(r.target.operators.size());
        for (auto const i : order_of(r.target)) {
            auto const& o = r.target.operators[i];
            std::vector<tensor_ref> operands;
            for (auto const t : o.inputs) operands.push_back(detail::target_tensor(m, made, t));
            auto const& first = out.tensor(operands[0]).whole.extents;
            typed_node type{o.type};
            for (auto const& p : o.parameters) {
                auto v = number_of(p.value, variables);
                if (!v) return refused("no number is given for ", p.value.variable);
                if (is_axis(p.key) && *v < 0) *v += static_cast<std::int64_t>(first.size());
                if (is_axis(p.key) && (*v < 0 || *v >= static_cast<std::int64_t>(first.size())))
                    return refused(o.type, ": ", p.key, " is not an axis of ", to_string(out.tensor(operands[0])));
                type.parameters.emplace_back(p.key, *v);
            }
            std::vector<std::int64_t> parts;
            if (o.type == op_type::split) {
                auto const axis = type.get(op_key::axis), count = type.get(op_key::num_outputs);
                if (!axis || !count) return refused(o.type, ": must have ", op_key::axis, " and ", op_key::num_outputs);
                auto const extent = first[static_cast<std::size_t>(*axis)]; // an axis that there is, by the check above
                if (*count < 1 || *count > extent) return refused(o.type, ": ", *count, " parts of an axis of extent ", extent);
                parts = detail::split_sizes(g, r, m, i, static_cast<std::size_t>(*count), extent, static_cast<std::size_t>(*axis));
            }
            made[i] = add_typed(out, type, std::move(operands), parts);
        }
        for (auto const& o : r.outputs)
            out.redirect({m.node[static_cast<std::size_t>(o.source.op)], static_cast<std::uint32_t>(o.source.slot)},
                         detail::target_tensor(m, made, o.target));
        out.prune();
        if (out.order().empty()) return refused("makes a cycle");
        return out;
    } catch (invalid_input const& e) {
        return refused(e.what());
    }
}

} // namespace parsearch::rewrite
