#pragma once
/// Substitution: where a rule's source pattern is found in a graph, and the graph with the target pattern in its place.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/outcome.hpp>
#include <parsearch/rewrite/parallel_graph.hpp>
#include <parsearch/rewrite/rule.hpp>
#include <parsearch/rewrite/typed_node.hpp>

namespace parsearch::rewrite {

/// Where a source pattern is: the node of each of its operators, the tensor of each of its inputs (input -1 first), and what its variables are.
struct match {
    std::vector<std::uint32_t> node;
    std::vector<std::optional<tensor_ref>> input; ///< none: the pattern has no input of this number
    bindings variables;
    friend bool operator==(match const&, match const&) = default;
};

/// Finds the matches of patterns in one graph.
///
/// A match takes different nodes for different operators, of their types, with their parameters, reading each other as the pattern says; an input of the
/// pattern is one tensor wherever it is read. Axes may be counted from the end. Nodes of a match may be read from outside the match, as long as the rule
/// maps what is read.
class matcher {
  public:
    explicit matcher(parallel_graph const& g) : graph_(g), uses_(g.uses()), types_(g.bound()) {
        for (std::uint32_t n = 0; n < g.bound(); ++n)
            if (g.contains(n)) types_[n] = typed(g, n);
    }

    /// All matches of `r`, by the numbers of their nodes. Backtracking over the operators of the pattern; each but the first of a connected pattern
    /// has only the readers of a tensor to choose from. `r` must have been checked.
    [[nodiscard]] std::vector<match> find(rule const& r) const {
        auto out = searched(r).found;
        std::ranges::sort(out, {}, &match::node);
        return out;
    }

    /// Why no match of `r` is in the graph: the operator at which the search ended that came furthest, and what it needs.
    [[nodiscard]] std::string why_not(rule const& r) const {
        auto const s = searched(r);
        if (!s.found.empty()) return {};
        if (s.furthest == s.order.size()) return "what it replaces is read elsewhere, or its constraints do not hold";
        auto const& o = r.source.operators[s.order[s.furthest]];
        bool const any = std::ranges::any_of(types_, [&](auto const& t) { return t && t->type == o.type; });
        return text(any ? "no fitting " : "the graph has no ", o.type, any ? text(" for operator ", s.order[s.furthest]) : std::string());
    }

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    struct search {
        rule const& source;
        std::vector<std::size_t> order;
        std::vector<match> found{};
        match now{};
        std::size_t furthest = 0; ///< operators matched at once
    };

    [[nodiscard]] search searched(rule const& r) const {
        search s{.source = r, .order = order_of(r.source)};
        s.now.node.assign(r.source.operators.size(), none);
        for (auto const n : input_numbers(r.source)) s.now.input.resize(std::max(s.now.input.size(), static_cast<std::size_t>(-n)));
        extend(s, 0);
        return s;
    }

    void extend(search& s, std::size_t depth) const {
        s.furthest = std::max(s.furthest, depth);
        if (depth == s.order.size()) {
            if (complete(s)) s.found.push_back(s.now);
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

    /// The tensor that `t` stands for, none where that is open.
    [[nodiscard]] static std::optional<tensor_ref> tensor_of(match const& m, pattern_tensor t) {
        if (t.is_input()) return m.input[static_cast<std::size_t>(-t.op - 1)];
        auto const n = m.node[static_cast<std::size_t>(t.op)];
        return n == none ? std::nullopt : std::optional(tensor_ref{n, static_cast<std::uint32_t>(t.slot)});
    }

    /// Binds what `o` says where it is node `n`; false where it can not be.
    [[nodiscard]] bool fits(search& s, pattern_operator const& o, std::uint32_t n) const {
        auto const& type = types_[n];
        auto const& read = graph_[n].inputs;
        if (!type || type->type != o.type || read.size() != o.inputs.size()) return false;
        for (std::size_t k = 0; k < read.size(); ++k) {
            auto const t = tensor_of(s.now, o.inputs[k]);
            if (t && !(*t == read[k])) return false;
            if (!t && !o.inputs[k].is_input()) return false;
            if (!t) s.now.input[static_cast<std::size_t>(-o.inputs[k].op - 1)] = read[k];
        }
        auto const rank = static_cast<std::int64_t>(graph_.tensor(read[0]).degree.size());
        for (auto const& p : o.parameters) {
            auto const has = type->get(p.key);
            if (!has) return false;
            if (p.value.is_variable()) {
                if (s.now.variables.try_emplace(p.value.variable, *has).first->second != *has) return false;
            } else if (*has != p.value.literal && !(is_axis(p.key) && p.value.literal < 0 && p.value.literal + rank == *has)) return false;
        }
        return true;
    }

    /// Whether the constraints hold, and all that is read outside is mapped.
    [[nodiscard]] bool complete(search const& s) const {
        auto const& r = s.source;
        for (auto const& c : r.constraints) // of what the source binds; the others are for who chooses the parameters
            if (s.now.variables.contains(c.variable) && (!c.value.is_variable() || s.now.variables.contains(c.value.variable)) && !holds(c, s.now.variables))
                return false;
        auto const mapped = [&](std::size_t op, std::uint32_t slot) {
            return std::ranges::any_of(r.outputs, [&](auto const& m) { return m.source == pattern_tensor{static_cast<std::int32_t>(op), static_cast<std::int32_t>(slot)}; });
        };
        for (std::size_t i = 0; i < s.now.node.size(); ++i) {
            for (auto const& [slot, use] : uses_[s.now.node[i]])
                if (std::ranges::find(s.now.node, use.reader) == s.now.node.end() && !mapped(i, slot)) return false;
            for (auto const& t : graph_.results())
                if (t.producer == s.now.node[i] && !mapped(i, t.slot)) return false;
        }
        return true;
    }

    parallel_graph const& graph_;
    std::vector<std::vector<std::pair<std::uint32_t, tensor_use>>> uses_;
    std::vector<std::optional<typed_node>> types_;
};

namespace detail {
/// The number of tensor `t` of the target: an input's, or an output of a node that was made.
[[nodiscard]] inline tensor_ref target_tensor(match const& m, std::vector<std::uint32_t> const& made, pattern_tensor t) {
    return t.is_input() ? m.input[static_cast<std::size_t>(-t.op - 1)].value() : tensor_ref{made[static_cast<std::size_t>(t.op)], static_cast<std::uint32_t>(t.slot)};
}

/// The extents into which split number `op` of the target cuts: those of the source's outputs that its outputs stand for; what is left, in equal
/// parts, for the others.
[[nodiscard]] inline std::vector<std::int64_t> split_sizes(parallel_graph const& g, rule const& r, match const& m, std::size_t op, std::size_t count, std::int64_t whole,
                                                           std::size_t axis) {
    std::vector<std::int64_t> sizes(count);
    auto open = static_cast<std::int64_t>(count);
    for (auto const& o : r.outputs)
        if (o.target.op == static_cast<std::int32_t>(op) && static_cast<std::size_t>(o.target.slot) >= count)
            throw invalid_input(op_type::split, ": output ", o.target.slot, " of ", count, " is mapped");
        else if (o.target.op == static_cast<std::int32_t>(op) && sizes[static_cast<std::size_t>(o.target.slot)] == 0) {
            auto const& from = g.tensor({m.node[static_cast<std::size_t>(o.source.op)], static_cast<std::uint32_t>(o.source.slot)}).whole.extents;
            if (axis >= from.size()) throw invalid_input(op_type::split, ": axis ", axis, " of a result with ", from.size(), " axes");
            whole -= sizes[static_cast<std::size_t>(o.target.slot)] = from[axis];
            --open;
        }
    if (open > 0 && (whole < open || whole % open != 0)) throw invalid_input(op_type::split, ": ", whole, " entries are left for ", open, " parts: must be equal parts");
    for (auto& n : sizes)
        if (n == 0) n = whole / open;
    return sizes;
}
} // namespace detail

/// `g` with the target of `r` in the place of match `m`; `chosen`: numbers of the rule's parameters (those that the source binds stay as they are). What nothing reads any
/// more is removed. No graph where the target does not fit here: operands of wrong shapes, another shape or holding of a result, a cycle, a constraint.
/// `r` must have been checked, and `m` found in `g`. Complexity: O(V + E).
[[nodiscard]] inline outcome<parallel_graph> substitute(parallel_graph const& g, rule const& r, match const& m, bindings const& chosen = {}) {
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
            out.redirect({m.node[static_cast<std::size_t>(o.source.op)], static_cast<std::uint32_t>(o.source.slot)}, detail::target_tensor(m, made, o.target));
        out.prune();
        if (out.order().empty()) return refused("makes a cycle");
        return out;
    } catch (invalid_input const& e) {
        return refused(e.what());
    }
}

} // namespace parsearch::rewrite
