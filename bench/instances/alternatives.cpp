#include "alternatives.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>

#include <parsearch/rewrite/joint/joint.hpp>
#include <parsearch/rewrite/parallel/graph_segments.hpp>
#include <parsearch/rewrite/parallel/rewritten_names.hpp>
#include <parsearch/rewrite/parallel/seen_graphs.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>
#include <parsearch/rewrite/rules/fold_weights.hpp>

namespace bench {
namespace {

namespace rewrite = ps::rewrite;
using ps::io::named_output, rewrite::parallel_graph, rewrite::segment;
using ps::graph::dense_graph;

/// All that one application of one rule makes of `part`, and for each rule what is left when it was applied as often as it could.
std::vector<parallel_graph> steps(std::vector<rewrite::graph_rule> const& rules, parallel_graph const& part) {
    std::vector<parallel_graph> out;
    for (auto const& rule : rules) {
        auto made = rule(part);
        if (made.size() > 1) {
            auto all = made[0].graph;
            for (std::size_t times = 1; times < part.size(); ++times) {
                auto next = rule(all);
                if (next.empty()) break;
                all = std::move(next[0].graph);
            }
            out.push_back(std::move(all));
        }
        for (auto& m : made) out.push_back(std::move(m.graph));
    }
    return out;
}

/// What rules make of a segment, best first; those that take the least time on one device, and not what it is when its weights are folded.
std::vector<parallel_graph> parts_of(segment const& from, std::vector<rewrite::graph_rule> const& rules, rewrite::joint_cache& cache,
                                     alternatives_wanted const& wanted) {
    struct candidate {
        ps::picoseconds cost;
        std::size_t number;
        parallel_graph part;
        bool fused = false; ///< as far as it can be
    };
    auto const fuse = std::ranges::find(rules, "fuse", &rewrite::graph_rule::name);
    auto const worse = [](candidate const& a, candidate const& b) { return a.cost != b.cost ? a.cost > b.cost : a.number > b.number; };
    std::priority_queue<candidate, std::vector<candidate>, decltype(worse)> open(worse);
    rewrite::detail::seen_graphs seen, different;
    seen.add(from.graph);
    different.add(rewrite::fold_weights(from.graph));
    open.push({{}, 0, from.graph});
    std::vector<candidate> found;
    std::size_t count = 0;
    while (!open.empty() && count < wanted.graphs) {
        auto const top = open.top();
        open.pop();
        for (auto& part : steps(rules, top.part)) {
            if (count >= wanted.graphs) break;
            if (!seen.add(part)) continue;
            ++count;
            auto folded = rewrite::fold_weights(part);
            candidate next{cache.one().price(rewrite::read_operators(folded).graph).cost, count, std::move(part)};
            if (different.add(folded)) {
                found.push_back(next);
                found.back().fused = fuse != rules.end() && (*fuse)(next.part).empty();
            }
            open.push(std::move(next));
        }
    }
    std::ranges::stable_sort(found, [](candidate const& a, candidate const& b) { return a.fused != b.fused ? a.fused : a.cost < b.cost; });
    std::vector<parallel_graph> out;
    for (auto& f : found)
        if (out.size() < wanted.kept) out.push_back(std::move(f.part));
    return out;
}

/// A graph with `part` in the place of a segment of another: its operators, and the tensors that stand for the other's results.
struct changed_graph {
    dense_graph graph;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> results; ///< operator and slot
    std::vector<bool> same;                                       ///< by operator: it is in the other, and all that leads to it
};

/// Differences of graphs with parts in a place from the graph that they are made of.
class place_maker {
  public:
    explicit place_maker(dense_graph const& g) : graph_(g), lifted_(rewrite::lift(g)), original_(lifted_.graph) {
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            number_[g.names[op]] = op;
            taken_.insert(g.names[op]);
        }
        std::map<std::uint32_t, std::uint32_t> at; // node: operator
        for (std::uint32_t op = 0; op < g.size(); ++op) at[lifted_.node[op]] = op;
        for (auto const& t : original_.results()) results_.emplace_back(at.at(t.producer), t.slot);
    }
    [[nodiscard]] parallel_graph const& original() const { return original_; }

    /// The place of `where`, and of `parts` what stands there for it; nothing where that is nothing.
    [[nodiscard]] ps::io::rewriting make(segment const& where, std::vector<parallel_graph> const& parts) {
        std::set<std::string> const inside(where.names.begin(), where.names.end());
        std::vector<changed_graph> graphs;
        std::set<std::string> replaced; // in any of them
        for (auto const& part : parts) {
            graphs.push_back(changed(where, part, inside));
            auto const& g = graphs.back();
            std::set<std::string> stays;
            for (std::size_t op = 0; op < g.graph.size(); ++op)
                if (g.same[op]) stays.insert(g.graph.names[op]);
            std::ranges::set_difference(inside, stays, std::inserter(replaced, replaced.end()));
        }
        ps::io::rewriting out;
        for (auto const& name : graph_.names)
            if (replaced.contains(name)) out.replaces.push_back(name);
        std::set<std::string> own;
        for (auto& g : graphs) {
            // Names that another place has, too.
            for (auto& name : g.graph.names)
                if (!number_.contains(name) && taken_.contains(name)) name = unused(name, g.graph);
            auto a = difference(g, inside, replaced);
            for (auto const& o : a.operators) own.insert(o.name);
            if (std::ranges::find(out.by, a) == out.by.end()) out.by.push_back(std::move(a));
        }
        taken_.merge(own);
        return out;
    }

  private:
    [[nodiscard]] changed_graph changed(segment const& where, parallel_graph const& part, std::set<std::string> const& inside) const {
        auto const whole = rewrite::fold_weights(rewrite::put_in_place(original_, std::span(&where, 1), part));
        auto reading = rewrite::read_operators(whole);
        changed_graph out{.graph = std::move(reading.graph), .results = {}, .same = {}};
        rewrite::keep_names(out.graph, graph_);
        std::map<std::uint32_t, std::uint32_t> at;
        for (std::uint32_t op = 0; op < out.graph.size(); ++op) at[reading.handles[op]] = op;
        for (auto const& t : whole.results()) out.results.emplace_back(at.at(t.producer), t.slot);
        out.same.resize(out.graph.size());
        for (auto const op : out.graph.order) {
            auto const there = number_.find(out.graph.names[op]);
            if (there == number_.end()) continue;
            if (!(out.graph.operations[op] == graph_.operations[there->second])) {
                if (!inside.contains(out.graph.names[op]))
                    throw ps::invalid_input("operator '", out.graph.names[op], "' is another one where others than it are replaced");
                continue;
            }
            auto const now = out.graph.in(op), before = graph_.in(there->second);
            bool same = true;
            for (std::size_t i = 0; same && i < now.size(); ++i)
                same = out.graph.names[now[i].producer] == graph_.names[before[i].producer] && now[i].slot == before[i].slot &&
                       out.same[now[i].producer];
            out.same[op] = same;
        }
        return out;
    }

    [[nodiscard]] std::string unused(std::string const& name, dense_graph const& g) const {
        for (std::size_t n = 2;; ++n)
            if (auto made = ps::text(name, '~', n); !taken_.contains(made) && std::ranges::find(g.names, made) == g.names.end()) return made;
    }

    [[nodiscard]] ps::io::alternative difference(changed_graph const& g, std::set<std::string> const& inside,
                                                 std::set<std::string> const& replaced) const {
        auto const named = [&](std::uint32_t op, std::uint32_t slot) { return named_output{g.graph.names[op], slot}; };
        ps::io::alternative out;
        std::map<std::pair<std::uint32_t, std::uint32_t>, named_output> stands_for;
        for (auto const op : g.graph.order) {
            auto const& name = g.graph.names[op];
            auto const there = number_.find(name);
            if (there == number_.end() || replaced.contains(name)) {
                auto& made = out.operators.emplace_back(ps::io::named_operator{.name = name, .operation = g.graph.operations[op]});
                for (auto const& e : g.graph.in(op)) made.inputs.push_back(named(e.producer, e.slot));
            } else if (!inside.contains(name)) {
                auto const now = g.graph.in(op), before = graph_.in(there->second);
                for (std::size_t i = 0; i < now.size(); ++i)
                    if (replaced.contains(graph_.names[before[i].producer]))
                        stands_for.emplace(std::pair{before[i].producer, before[i].slot}, named(now[i].producer, now[i].slot));
            }
        }
        for (std::size_t r = 0; r < results_.size(); ++r)
            if (replaced.contains(graph_.names[results_[r].first])) stands_for.emplace(results_[r], named(g.results[r].first, g.results[r].second));
        for (auto const& [of, is] : stands_for) out.results.push_back({{graph_.names[of.first], of.second}, is});
        return out;
    }

    dense_graph const& graph_;
    rewrite::lifted_graph lifted_;
    parallel_graph const& original_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> results_;
    std::map<std::string, std::uint32_t> number_;
    std::set<std::string> taken_; ///< names, also of the places made
};

} // namespace

std::vector<ps::io::rewriting> rewritings_of(ps::parallelization const& problem, alternatives_wanted const& wanted) {
    auto const rules = rewrite::algebraic_rules(rewrite::detail::purpose_of(problem));
    rewrite::joint_cache cache(problem);
    place_maker places(problem.graph());
    std::vector<std::pair<segment, std::vector<parallel_graph>>> shapes;
    std::vector<ps::io::rewriting> out;
    for (auto const& operators : rewrite::segments_of(places.original(), wanted.segment)) {
        auto const here = rewrite::extract(places.original(), operators);
        auto known = std::ranges::find_if(shapes, [&](auto const& s) { return s.first.graph == here.graph; });
        if (known == shapes.end()) {
            shapes.emplace_back(here, parts_of(here, rules, cache, wanted));
            known = shapes.end() - 1;
        }
        if (known->second.empty()) continue;
        auto parts = known->second;
        for (auto& part : parts) // named after these operators
            for (auto const n : part.order())
                if (part[n]->kind == rewrite::node_kind::compute)
                    part.rename(n, rewrite::detail::renamed(part[n]->name, known->first.names, here.names));
        out.push_back(places.make(here, parts));
    }
    return out;
}

} // namespace bench
