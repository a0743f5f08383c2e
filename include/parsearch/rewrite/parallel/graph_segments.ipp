#pragma once
// Cuts a graph into segments one after another, tells which of them are the same, and puts others in their place.

#include <algorithm>
#include <unordered_map>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/dominators.hpp>
#include <parsearch/rewrite/parallel/graph_segments.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE std::vector<std::vector<std::uint32_t>> segments_of(parallel_graph const& g, std::size_t least, std::size_t offset) {
    auto const entry = g.bound(), exit = entry + 1;
    std::vector<graph::flow_edge> edges;
    std::vector<std::uint32_t> operators; // in topological order
    auto const is_operator = [&](std::uint32_t n) { return g[n]->kind != node_kind::input && g[n]->kind != node_kind::weight; };
    for (auto const n : g.order()) {
        if (!is_operator(n)) continue;
        operators.push_back(n);
        bool first = true; // graph inputs that are read later, labels say, are no way around
        for (auto const& t : g[n].inputs)
            if (is_operator(t.producer)) {
                edges.emplace_back(t.producer, n);
                first = false;
            }
        if (first) edges.emplace_back(entry, n);
    }
    for (auto const& t : g.results())
        if (is_operator(t.producer)) edges.emplace_back(t.producer, exit);
    auto const passed = graph::dominators_between(entry + 2, edges, entry, exit);
    // What stands before a cut: all that leads to it.
    std::vector<std::size_t> stage(g.bound(), passed.size()); // the first cut that it leads to, itself included
    std::unordered_map<std::uint32_t, std::size_t> number;
    for (std::size_t i = 0; i < passed.size(); ++i) number[passed[i]] = i;
    for (auto n = operators.rbegin(); n != operators.rend(); ++n) {
        if (auto const cut = number.find(*n); cut != number.end()) stage[*n] = cut->second;
        for (auto const& t : g[*n].inputs) stage[t.producer] = std::min(stage[t.producer], stage[*n]);
    }
    std::ranges::stable_sort(operators, {}, [&](auto n) { return stage[n]; });
    std::vector<std::vector<std::uint32_t>> out(1);
    for (std::size_t i = 0; i < operators.size(); ++i) {
        out.back().push_back(operators[i]);
        bool const last_of_stage = i + 1 < operators.size() && stage[operators[i + 1]] != stage[operators[i]];
        if (last_of_stage && out.back().size() >= (out.size() == 1 && offset ? offset : least)) out.emplace_back();
    }
    if (out.back().empty()) out.pop_back();
    return out;
}

PARSEARCH_INLINE segment extract(parallel_graph const& g, std::vector<std::uint32_t> const& operators) {
    segment out;
    std::unordered_map<std::uint32_t, std::uint32_t> inside; // node: its number in the segment
    std::vector<bool> mine(g.bound());
    for (auto const n : operators) mine[n] = true;
    auto const uses = g.uses();
    std::vector<tensor_ref> known, here; // tensors from outside, and what they are in the segment
    auto const from_outside = [&](tensor_ref t) {
        if (auto const at = std::ranges::find(known, t); at != known.end()) return here[static_cast<std::size_t>(at - known.begin())];
        auto const& n = g[t.producer];
        bool const own =
            n->kind == node_kind::weight && std::ranges::all_of(uses[t.producer], [&](auto const& use) { return mine[use.second.reader]; });
        auto& list = own ? out.weights : out.inputs;
        auto const name = text(own ? 'w' : 'x', list.size());
        list.push_back(t);
        known.push_back(t);
        auto const& held = g.tensor(t);
        if (!(held == in_one_part(held.whole)))
            throw invalid_input("a segment reads '", n->name, "' held as ", to_string(held), ": what it reads must be in one part");
        here.push_back(own ? out.graph.add_weight(name, held.whole) : out.graph.add_input(name, held.whole));
        return here.back();
    };
    for (auto const n : g.order()) {
        if (!mine[n]) continue;
        std::vector<tensor_ref> operands;
        for (auto const& t : g[n].inputs) {
            auto const at = inside.find(t.producer);
            operands.push_back(at != inside.end() ? tensor_ref{at->second, t.slot} : from_outside(t));
        }
        inside[n] = out.graph.add_copy(g[n], std::move(operands));
        if (g[n]->kind == node_kind::compute) out.names.push_back(g[n]->name);
        for (std::uint32_t slot = 0; slot < g[n]->outputs.size(); ++slot) {
            bool outside = std::ranges::find(g.results(), tensor_ref{n, slot}) != g.results().end();
            for (auto const& [s, use] : uses[n]) outside = outside || (s == slot && !mine[use.reader]);
            if (outside) out.results.push_back({n, slot});
        }
    }
    std::vector<tensor_ref> results;
    for (auto const& t : out.results) results.push_back({inside.at(t.producer), t.slot});
    out.graph.set_results(std::move(results));
    return out;
}

} // namespace parsearch::rewrite

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::string renamed(std::string_view name, std::vector<std::string> const& from, std::vector<std::string> const& to) {
    std::string out;
    for (std::size_t at = 0; at < name.size();) {
        std::size_t best = from.size();
        for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i)
            if (name.substr(at).starts_with(from[i]) && (best == from.size() || from[i].size() > from[best].size())) best = i;
        if (best == from.size() || from[best].empty()) out += name[at++];
        else {
            out += to[best];
            at += from[best].size();
        }
    }
    return out;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE parallel_graph put_in_place(parallel_graph g, std::span<segment const> places, parallel_graph const& other) {
    auto const order = other.order();
    if (order.empty()) throw invalid_input("a graph that is put in the place of a segment is empty or goes round in a cycle");
    std::vector<std::pair<tensor_ref, tensor_ref>> moved; // results of segments that were replaced, which later ones read
    for (auto const& s : places) {
        if (other.results().size() != s.results.size())
            throw invalid_input("a graph of ", other.results().size(), " results is put in the place of a segment with ", s.results.size(),
                                ": must be as many");
        std::unordered_map<std::string, tensor_ref> outside;
        for (auto const* list : {&s.inputs, &s.weights})
            for (std::size_t i = 0; i < list->size(); ++i) {
                auto const at = std::ranges::find(moved, (*list)[i], &std::pair<tensor_ref, tensor_ref>::first);
                outside[text(list == &s.inputs ? 'x' : 'w', i)] = at == moved.end() ? (*list)[i] : at->second;
            }
        std::vector<tensor_ref> at(other.bound()); // the first output of each node
        auto const tensor = [&](tensor_ref t) { return tensor_ref{at[t.producer].producer, at[t.producer].slot + t.slot}; };
        for (auto const n : order) {
            auto const& node = other[n];
            if (node->kind == node_kind::input || node->kind == node_kind::weight) {
                auto const from = outside.find(node->name);
                if (from == outside.end()) throw invalid_input(name_of(node->kind), " '", node->name, "' is none of the segment");
                at[n] = from->second;
                continue;
            }
            std::vector<tensor_ref> operands;
            for (auto const& t : node.inputs) operands.push_back(tensor(t));
            at[n] = {g.add_copy(node, std::move(operands), detail::renamed(node->name, places[0].names, s.names)), 0};
        }
        for (std::size_t i = 0; i < s.results.size(); ++i) {
            auto const made = tensor(other.results()[i]);
            g.redirect(s.results[i], made);
            moved.emplace_back(s.results[i], made);
        }
    }
    g.prune();
    return g;
}

} // namespace parsearch::rewrite
