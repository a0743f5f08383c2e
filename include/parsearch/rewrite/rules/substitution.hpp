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

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/algebra/outcome.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/rules/rule.hpp>
#include <parsearch/rewrite/rules/typed_node.hpp>

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
/// A match takes different nodes for different operators, of their types, with their parameters, reading each other as the pattern says; an input of
/// the pattern is one tensor wherever it is read. Axes may be counted from the end. Nodes of a match may be read from outside the match, as long as
/// the rule maps what is read.
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

    /// Why no match of `r` is in the graph, empty where there is one: the operator of the source at which the search that came furthest ended, and
    /// what no node has that it asks for (its type, number of operands, parameters, what it is to read); or, where all operators are found, what
    /// forbids a match. What stands behind a colon are details. `r` must have been checked. Complexity: as `find`.
    [[nodiscard]] std::string why_not(rule const& r) const {
        auto const s = searched(r);
        if (!s.found.empty()) return {};
        return s.hindered ? forbidden(s) : missing(s);
    }

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    /// What forbids a match of all operators: a constraint that does not hold, or an operator whose output is read outside of the match and not
    /// mapped.
    struct obstacle {
        constraint const* broken = nullptr;
        std::size_t op = 0;
        std::uint32_t reader = none; ///< none: it is a result of the graph
    };
    struct search {
        rule const& source;
        std::vector<std::size_t> order;
        std::vector<match> found{};
        match now{};
        std::size_t furthest = 0;                             ///< operators matched at once
        std::optional<std::pair<match, obstacle>> hindered{}; ///< the first match of all operators that is none
    };

    [[nodiscard]] search searched(rule const& r) const;

    void extend(search& s, std::size_t depth) const;

    /// The tensor that `t` stands for, none where that is open.
    [[nodiscard]] static std::optional<tensor_ref> tensor_of(match const& m, pattern_tensor t) {
        if (t.is_input()) return m.input[static_cast<std::size_t>(-t.op - 1)];
        auto const n = m.node[static_cast<std::size_t>(t.op)];
        return n == none ? std::nullopt : std::optional(tensor_ref{n, static_cast<std::uint32_t>(t.slot)});
    }

    /// Binds what `o` says where it is node `n`; false where it can not be.
    [[nodiscard]] bool fits(search& s, pattern_operator const& o, std::uint32_t n) const;

    /// Whether parameter `p` may be `has` at node `n`: an axis may be counted from the end.
    [[nodiscard]] bool is_number(pattern_parameter const& p, std::int64_t has, std::uint32_t n) const {
        if (p.value.is_variable() || has == p.value.literal) return true;
        auto const rank = static_cast<std::int64_t>(graph_.tensor(graph_[n].inputs[0]).degree.size());
        return is_axis(p.key) && p.value.literal < 0 && p.value.literal + rank == has;
    }

    /// None where the constraints hold, and all that is read outside is mapped.
    [[nodiscard]] std::optional<obstacle> obstacle_to(search const& s) const;

    /// "operator 0 (OP_RELU)".
    [[nodiscard]] static std::string place_of(rule const& r, std::size_t op) { return text("operator ", op, " (", r.source.operators[op].type, ')'); }

    /// The first of the operators that were found before the search ended for which `is_it` is true.
    template <class F> [[nodiscard]] static std::optional<std::size_t> found_before(search const& s, F const& is_it) {
        for (std::size_t k = 0; k < s.furthest; ++k)
            if (is_it(s.source.source.operators[s.order[k]])) return s.order[k];
        return {};
    }

    [[nodiscard]] std::string forbidden(search const& s) const;

    /// What no node has that the operator asks for at which the search ended.
    [[nodiscard]] std::string missing(search const& s) const;

    parallel_graph const& graph_;
    std::vector<std::vector<std::pair<std::uint32_t, tensor_use>>> uses_;
    std::vector<std::optional<typed_node>> types_;
};

/// `g` with the target of `r` in the place of match `m`; `chosen`: numbers of the rule's parameters (those that the source binds stay as they are).
/// What nothing reads any more is removed. No graph where the target does not fit here: operands of wrong shapes, another shape or holding of a
/// result, a cycle, a constraint. `r` must have been checked, and `m` found in `g`. Complexity: O(V + E).
[[nodiscard]] outcome<parallel_graph> substitute(parallel_graph const& g, rule const& r, match const& m, bindings const& chosen = {});

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/substitution.ipp>
#endif
