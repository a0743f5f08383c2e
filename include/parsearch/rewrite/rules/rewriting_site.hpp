#pragma once
/// What the algebraic rules see of a graph and how they change it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/rules/graph_rule.hpp>

namespace parsearch::rewrite {

namespace detail {

/// A graph, who reads what in it, and changes of it.
class rewriting_site {
  public:
    explicit rewriting_site(parallel_graph const& g) : graph_(g), uses_(g.uses()) {}

    [[nodiscard]] parallel_graph const& graph() const noexcept { return graph_; }
    /// The operators that run in one task: their operands and outputs are in one part.
    [[nodiscard]] std::vector<std::uint32_t> operators() const;
    [[nodiscard]] bool is_operator(std::uint32_t n) const {
        return graph_.contains(n) && graph_[n]->kind == node_kind::compute && is_unsplit(graph_[n]->split);
    }
    [[nodiscard]] ops::operation const& operation(std::uint32_t n) const { return graph_[n]->operation; }
    [[nodiscard]] std::string const& name(std::uint32_t n) const { return graph_[n]->name; }
    [[nodiscard]] tensor_ref operand(std::uint32_t n, std::size_t i) const { return graph_[n].inputs[i]; }
    /// The inputs among the operands of `n`, and its weights.
    [[nodiscard]] std::span<tensor_ref const> inputs(std::uint32_t n) const { return std::span(graph_[n].inputs).first(operation(n).inputs.size()); }
    [[nodiscard]] std::span<tensor_ref const> weights(std::uint32_t n) const {
        return std::span(graph_[n].inputs).subspan(operation(n).inputs.size());
    }

    /// Who reads `t`; a result is read by nobody once more.
    [[nodiscard]] std::vector<tensor_use> readers(tensor_ref t) const;
    [[nodiscard]] bool is_result(tensor_ref t) const { return std::ranges::find(graph_.results(), t) != graph_.results().end(); }
    /// The only operator that reads `t`, once; none where there are others, or it is a result.
    [[nodiscard]] std::optional<tensor_use> only_reader(tensor_ref t) const {
        auto const all = readers(t);
        if (all.size() != 1 || is_result(t) || !is_operator(all[0].reader)) return {};
        return all[0];
    }
    /// The operator behind each output of `n`, where each output is read by one operator only, as its input 0, and no result.
    [[nodiscard]] std::optional<std::vector<std::uint32_t>> only_readers(std::uint32_t n) const;
    /// True where `t` is a weight that nobody else reads, or one that is computed of weights alone for one reader: with a border of zeros, scaled.
    /// What is joined already counts not: where several may be joined, that is done at once.
    [[nodiscard]] bool own_weight(tensor_ref t) const {
        return readers(t).size() == 1 && (graph_[t.producer]->kind == node_kind::weight || is_of_weights(t));
    }
    [[nodiscard]] bool own_weights(std::uint32_t n) const {
        return std::ranges::all_of(weights(n), [&](auto const& t) { return own_weight(t); });
    }

  private:
    [[nodiscard]] bool is_of_weights(tensor_ref t) const {
        if (graph_[t.producer]->kind == node_kind::weight) return true;
        return is_operator(t.producer) && operation(t.producer).kind != "concat" && !graph_[t.producer].inputs.empty() &&
               std::ranges::all_of(graph_[t.producer].inputs, [&](auto const& from) { return is_of_weights(from); });
    }

    parallel_graph const& graph_;
    std::vector<std::vector<std::pair<std::uint32_t, tensor_use>>> uses_;
};

/// Adds a concat of `parts` along `axis`; of one part none.
tensor_ref joined_tensors(parallel_graph& g, std::string const& name, std::vector<tensor_ref> parts, std::size_t axis);

/// Makes a graph of `site`'s by `change(copy)`; none where shapes do not fit after all or it goes round in a cycle.
template <class F> void attempt(std::vector<rewritten>& out, rewriting_site const& site, std::string what, F const& change) {
    try {
        auto g = site.graph();
        change(g);
        g.prune();
        if (!g.order().empty()) out.push_back({std::move(g), std::move(what)});
    } catch (invalid_input const&) { // of what the algebra allows: names of inputs that are not alike, shapes beyond the library's limits
    }
}

} // namespace detail

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/rewriting_site.ipp>
#endif
