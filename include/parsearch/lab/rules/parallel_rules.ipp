#pragma once
// Rules of parallel operators: degrees of parallelism as substitutions, for any operator that has an iteration space.

#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/lab/rules/parallel_rules.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/parallel/parallel_tensor.hpp>
#include <parsearch/rewrite/parallel/seen_graphs.hpp>

namespace parsearch::rewrite::detail {

/// A graph whose operators are split otherwise.
class splitting_site {
  public:
    explicit splitting_site(parallel_graph const& g) : graph_(g), uses_(g.uses()), is_result_(g.bound()) {
        for (auto const& t : g.results()) is_result_[t.producer] = true;
    }

    [[nodiscard]] parallel_graph const& graph() const noexcept { return graph_; }
    [[nodiscard]] std::vector<std::uint32_t> operators() const;
    /// The tensors that are `t`, resharded or not, as operators read them or results are held; in the order of their nodes.
    [[nodiscard]] std::vector<tensor_ref> ends(tensor_ref t) const;

    /// Operator `n` split by `s`. What is between the operators stays as it is, and there is more of it: operands and outputs are resharded right
    /// beside `n`.
    [[nodiscard]] parallel_graph split_alone(std::uint32_t n, operator_split const& s) const {
        return resplit(
            n, s, [](tensor_ref t) { return t; },
            [&](parallel_graph& g, tensor_ref from, tensor_ref to) { g.redirect(from, g.reshard_to(to, graph_.tensor(from))); });
    }
    /// Likewise, but what is between `n` and the operators around it becomes the least that holds all tensors as they are needed.
    [[nodiscard]] parallel_graph split_among(std::uint32_t n, operator_split const& s) const;

  private:
    /// `graph_` with operator `n` split by `s`. `read(operand)` answers the tensor of which the operand is made; `pass_on(graph, output, made)` has
    /// whoever reads an output read what is made instead.
    template <class Read, class PassOn>
    [[nodiscard]] parallel_graph resplit(std::uint32_t n, operator_split const& s, Read const& read, PassOn const& pass_on) const {
        auto g = graph_;
        std::vector<tensor_ref> operands;
        for (std::size_t i = 0; i < graph_[n].inputs.size(); ++i)
            operands.push_back(g.reshard_to(read(graph_[n].inputs[i]), operand_tensor(graph_[n]->operation, s, i)));
        auto const made = g.add_operator(graph_[n]->name, graph_[n]->operation, std::move(operands), s);
        for (std::uint32_t slot = 0; slot < graph_[n]->outputs.size(); ++slot) pass_on(g, tensor_ref{n, slot}, tensor_ref{made, slot});
        g.prune();
        g.rename(made, graph_[n]->name); // now that the other is gone
        return g;
    }

    parallel_graph const& graph_;
    std::vector<std::vector<std::pair<std::uint32_t, tensor_use>>> uses_;
    std::vector<bool> is_result_;
};

/// Collects graphs, each once.
class different_graphs {
  public:
    /// Takes what `make()` answers, if it answers and it is new.
    template <class F> void attempt(std::string what, F const& make) {
        try {
            auto g = make();
            if (seen_.add(g)) made_.push_back({std::move(g), std::move(what)});
        } catch (invalid_input const&) { // no parallel tensor holds what would be made, or resharding makes it not: copies and partial sums stay
        }
    }
    [[nodiscard]] std::vector<rewritten> take() && { return std::move(made_); }

  private:
    std::vector<rewritten> made_;
    seen_graphs seen_;
};

/// Collects the splits that are proposed for one operator, each once.
class proposed_splits {
  public:
    void add(operator_split s, std::string what) {
        if (std::ranges::none_of(all_, [&](auto const& p) { return p.first == s; })) all_.emplace_back(std::move(s), std::move(what));
    }
    [[nodiscard]] std::vector<std::pair<operator_split, std::string>> const& all() const noexcept { return all_; }

  private:
    std::vector<std::pair<operator_split, std::string>> all_;
};

/// All graphs in which one operator has one of the splits that `propose(site, node, proposals)` proposes for it.
template <class Propose>
[[nodiscard]] std::vector<rewritten> resplit_everywhere(parallel_graph const& g, Propose const& propose, bool alone = false) {
    splitting_site const site(g);
    different_graphs out;
    for (auto const n : site.operators()) {
        proposed_splits splits;
        propose(site, n, splits);
        for (auto const& [s, what] : splits.all())
            out.attempt(text(g[n]->name, ' ', what), [&] { return alone ? site.split_alone(n, s) : site.split_among(n, s); });
    }
    return std::move(out).take();
}

/// Splits by `times` more along dims that index `axis`, so that `degree_of(split)`, the degree of the axis, becomes `times` as large.
template <class F> void propose_along(proposed_splits& out, rewrite::node const& n, ops::axis const& axis, std::int32_t times, F const& degree_of) {
    auto const before = degree_of(n->split);
    for (auto const& t : axis.terms) {
        auto s = n->split;
        auto const degree = std::int64_t{s.degree[t.dim]} * times;
        auto const& dim = n->operation.dims[t.dim];
        if (dim.kind == ops::dim_kind::fixed || dim.extent % degree != 0) continue;
        s.degree[t.dim] = static_cast<std::int32_t>(degree);
        if (degree_of(s) == std::int64_t{before} * times) out.add(std::move(s), text("along ", dim.name, " by ", times));
    }
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE void validate(parallel_rule_options const& o) {
    if (o.largest_degree < 2) throw invalid_input("parallel_rules: option 'largest_degree' is ", o.largest_degree, ": must be at least 2");
    for (std::size_t i = 0; i < o.degrees.size(); ++i)
        if (o.degrees[i] < (i ? o.degrees[i - 1] + std::int64_t{1} : 2))
            throw invalid_input("parallel_rules: option 'degrees' has ", o.degrees[i], " as number ", i,
                                ": each must be at least 2 and larger than the one before");
}

} // namespace parsearch::rewrite

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::vector<std::uint32_t> splitting_site::operators() const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t n = 0; n < graph_.bound(); ++n)
        if (graph_.contains(n) && graph_[n]->kind == node_kind::compute) out.push_back(n);
    return out;
}

PARSEARCH_INLINE std::vector<tensor_ref> splitting_site::ends(tensor_ref t) const {
    std::vector<tensor_ref> out, open{t};
    while (!open.empty()) {
        auto const at = open.back();
        open.pop_back();
        bool end = is_result_[at.producer] && std::ranges::find(graph_.results(), at) != graph_.results().end();
        for (auto const& [slot, use] : uses_[at.producer]) {
            if (slot != at.slot) continue;
            if (graph_[use.reader]->kind == node_kind::reshard) open.push_back({use.reader, 0});
            else end = true;
        }
        if (end) out.push_back(at);
    }
    std::ranges::sort(out, {}, &tensor_ref::producer);
    return out;
}

PARSEARCH_INLINE parallel_graph splitting_site::split_among(std::uint32_t n, operator_split const& s) const {
    return resplit(
        n, s, [&](tensor_ref t) { return graph_.source(t); },
        [&](parallel_graph& g, tensor_ref from, tensor_ref to) {
            for (auto const& end : ends(from)) g.redirect(end, g.reshard_to(to, graph_.tensor(end)));
        });
}

/// An operator in one part along a dim, in several.
PARSEARCH_INLINE std::vector<rewritten> split_everywhere(parallel_graph const& g, parallel_rule_options const& options) {
    auto const propose = [&](splitting_site const&, std::uint32_t n, proposed_splits& out) {
        auto const& op = g[n]->operation;
        for (std::size_t d = 0; d < op.dims.size(); ++d) {
            if (g[n]->split.degree[d] != 1 || op.dims[d].kind == ops::dim_kind::fixed) continue;
            auto const by = [&](std::int32_t degree) {
                if (op.dims[d].extent % degree != 0) return;
                auto s = g[n]->split;
                s.degree[d] = degree;
                out.add(std::move(s), text("along ", op.dims[d].name, " by ", degree));
            };
            for (auto const degree : options.degrees) by(degree);
            if (options.degrees.empty())
                for (std::int32_t degree = 2; degree <= options.largest_degree && degree <= op.dims[d].extent; ++degree) by(degree);
        }
    };
    return resplit_everywhere(g, propose, true);
}

/// An operator in several parts along a dim, in one.
PARSEARCH_INLINE std::vector<rewritten> unsplit_everywhere(parallel_graph const& g) {
    return resplit_everywhere(g, [&](splitting_site const&, std::uint32_t n, proposed_splits& out) {
        for (std::size_t d = 0; d < g[n]->split.degree.size(); ++d) {
            auto s = g[n]->split;
            if (std::exchange(s.degree[d], 1) != 1) out.add(std::move(s), text("whole along ", g[n]->operation.dims[d].name));
        }
    });
}

/// A combine in front of an operator, behind it instead.
PARSEARCH_INLINE std::vector<rewritten> combine_behind_everywhere(parallel_graph const& g) {
    return resplit_everywhere(g, [&](splitting_site const&, std::uint32_t n, proposed_splits& out) {
        for (std::size_t i = 0; i < g[n].inputs.size(); ++i) {
            auto const &made = g.tensor(g.source(g[n].inputs[i])), &read = g.tensor(g[n].inputs[i]);
            for (std::size_t a = 0; a < read.degree.size(); ++a)
                if (made.degree[a] > read.degree[a] && made.degree[a] % read.degree[a] == 0)
                    propose_along(out, g[n], operand_of(g[n]->operation, i).axes[a], made.degree[a] / read.degree[a],
                                  [&](operator_split const& s) { return operand_tensor(g[n]->operation, s, i).degree[a]; });
        }
    });
}

/// A partition behind an operator, in front of it instead.
PARSEARCH_INLINE std::vector<rewritten> partition_before_everywhere(parallel_graph const& g) {
    return resplit_everywhere(g, [&](splitting_site const& site, std::uint32_t n, proposed_splits& out) {
        for (std::uint32_t slot = 0; slot < g[n]->outputs.size(); ++slot) {
            auto const& made = g.tensor({n, slot});
            auto const& o = g[n]->operation.outputs[slot];
            for (auto const& end : site.ends({n, slot}))
                for (std::size_t a = 0; a < made.degree.size(); ++a)
                    if (auto const wanted = g.tensor(end).degree[a]; wanted > made.degree[a] && wanted % made.degree[a] == 0)
                        propose_along(out, g[n], o.axes[a], wanted / made.degree[a], [&](operator_split const& s) {
                            return holding_of(g[n]->operation, s,
                                              [slot](ops::operation const& op) -> ops::operand const& { return op.outputs[slot]; })
                                .tensor.degree[a];
                        });
        }
    });
}

/// A reduce in front of a linear operator, behind it instead: partial sums pass through.
PARSEARCH_INLINE std::vector<rewritten> reduce_behind_everywhere(parallel_graph const& g) {
    return resplit_everywhere(g, [&](splitting_site const&, std::uint32_t n, proposed_splits& out) {
        auto const& now = g[n]->split;
        auto const count = std::min<std::size_t>(g[n].inputs.size(), 63);
        // By how much each operand is reduced in front of the operator.
        std::vector<std::int32_t> reduced(count);
        for (std::size_t i = 0; i < count; ++i) {
            auto const from = g.source(g[n].inputs[i]);
            reduced[i] = ops::adds_up(g[from.producer]->operation) ? g.tensor(from).sums / g.tensor(g[n].inputs[i]).sums : 1;
        }
        auto const pass = [&](std::uint64_t summed, std::int32_t times) {
            auto s = now;
            s.sums *= times;
            s.summed = summed;
            if (linear_in(g[n]->operation, summed)) out.add(std::move(s), text("on ", times, " times the partial sums"));
        };
        for (std::size_t i = 0; i < count; ++i) {
            if (reduced[i] < 2) continue;
            std::uint64_t alike = 0;
            for (std::size_t k = 0; k < count; ++k) alike |= std::uint64_t{reduced[k] % reduced[i] == 0} << k;
            if (now.sums > 1) {
                if ((now.summed & ~alike) == 0) pass(now.summed, reduced[i]);
                continue;
            }
            pass(std::uint64_t{1} << i, reduced[i]);
            pass(alike, reduced[i]);
        }
    });
}

/// A reduce behind an operator on partial sums, in front of it instead.
PARSEARCH_INLINE std::vector<rewritten> reduce_before_everywhere(parallel_graph const& g) {
    return resplit_everywhere(g, [&](splitting_site const&, std::uint32_t n, proposed_splits& out) {
        auto s = g[n]->split;
        s.summed = 0;
        if (std::exchange(s.sums, 1) != 1) out.add(std::move(s), "on whole sums");
    });
}

/// A replicate behind an operator, in front of it instead: it runs in copies.
PARSEARCH_INLINE std::vector<rewritten> replicate_before_everywhere(parallel_graph const& g) {
    return resplit_everywhere(g, [&](splitting_site const& site, std::uint32_t n, proposed_splits& out) {
        std::int32_t times = 0; // that all outputs are copied wherever they are read
        for (std::uint32_t slot = 0; slot < g[n]->outputs.size(); ++slot)
            for (auto const& end : site.ends({n, slot})) times = std::gcd(times, g.tensor(end).copies / g.tensor({n, slot}).copies);
        if (times < 2) return;
        auto s = g[n]->split;
        s.copies *= times;
        out.add(std::move(s), text("in ", times, " times the copies"));
    });
}

/// An operator in copies, in one whose outputs are copied.
PARSEARCH_INLINE std::vector<rewritten> replicate_behind_everywhere(parallel_graph const& g) {
    return resplit_everywhere(g, [&](splitting_site const&, std::uint32_t n, proposed_splits& out) {
        auto s = g[n]->split;
        if (std::exchange(s.copies, 1) != 1) out.add(std::move(s), "once");
    });
}

/// What reshards a tensor on its way from one operator to another, in fewer nodes: a combine and a partition that undo each other vanish, two of a
/// kind become one.
PARSEARCH_INLINE std::vector<rewritten> simplify_everywhere(parallel_graph const& g) {
    splitting_site const site(g);
    different_graphs out;
    for (std::uint32_t n = 0; n < g.bound(); ++n) {
        if (!g.contains(n) || g[n]->kind == node_kind::reshard) continue;
        for (std::uint32_t slot = 0; slot < g[n]->outputs.size(); ++slot)
            for (auto const& end : site.ends({n, slot})) {
                std::size_t steps = 0;
                for (auto t = end; g[t.producer]->kind == node_kind::reshard; t = g[t.producer].inputs[0]) ++steps;
                if (reshardings_between(g.tensor({n, slot}), g.tensor(end)).size() >= steps) continue;
                out.attempt(text("from ", g[n]->name, " as ", to_string(g.tensor(end))), [&] {
                    auto h = g;
                    h.redirect(end, h.reshard_to({n, slot}, g.tensor(end)));
                    h.prune();
                    return h;
                });
            }
    }
    return std::move(out).take();
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE std::vector<graph_rule> parallel_rules(parallel_rule_options options) {
    validate(options);
    return {{"split", [options = std::move(options)](parallel_graph const& g) { return detail::split_everywhere(g, options); }},
            {"unsplit", detail::unsplit_everywhere},
            {"combine_behind", detail::combine_behind_everywhere},
            {"partition_before", detail::partition_before_everywhere},
            {"reduce_behind", detail::reduce_behind_everywhere},
            {"reduce_before", detail::reduce_before_everywhere},
            {"replicate_before", detail::replicate_before_everywhere},
            {"replicate_behind", detail::replicate_behind_everywhere},
            {"simplify", detail::simplify_everywhere}};
}

} // namespace parsearch::rewrite
