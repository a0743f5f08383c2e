#pragma once
// Repeats: which operators, edges and sharing classes have the same blocks under the same configurations, as the layers of a deep network

#include <algorithm>
#include <map>
#include <unordered_map>

#include <parsearch/sim/delta/repeats.hpp>

namespace parsearch::sim::detail {

/// `a` and `b` differ in the names of their parameters at most.
[[nodiscard]] inline bool described_alike(ops::operation const& a, ops::operation b) {
    if (a.kind != b.kind || a.dims != b.dims || a.weights.size() != b.weights.size()) return false;
    for (std::size_t w = 0; w < b.weights.size(); ++w) b.weights[w].parameter = a.weights[w].parameter;
    return a == b;
}

} // namespace parsearch::sim::detail

namespace parsearch::sim {

PARSEARCH_INLINE repeats find_repeats(graph::dense_graph const& g, std::vector<sharing_class> const& classes) {
    repeats out;
    std::unordered_map<std::size_t, std::vector<std::uint32_t>> by_hash; // the first of each kind of operator
    auto const reads = [&](std::uint32_t op) {
        std::vector<bool> read(g.operations[op].outputs.size(), false);
        for (auto const e : g.out(op)) read[g.edges[e].slot] = true;
        return read;
    };
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        auto h = std::hash<std::string>{}(operation.kind);
        for (auto const& d : operation.dims) h = h * 31 + static_cast<std::size_t>(d.extent);
        auto& known = by_hash[h];
        auto const alike = [&](std::uint32_t first) {
            return g.trains[first] == g.trains[op] && g.input_gradients(first) == g.input_gradients(op) &&
                   detail::described_alike(g.operations[first], operation) && reads(first) == reads(op);
        };
        auto const at = std::find_if(known.begin(), known.end(), alike);
        out.operators.push_back(at == known.end() ? op : *at);
        if (at == known.end()) known.push_back(op);
    }

    // Ends and slots.
    std::map<std::vector<std::uint32_t>, std::uint32_t> edges;
    for (std::uint32_t number = 0; number < g.edges.size(); ++number) {
        auto const& e = g.edges[number];
        std::vector<std::uint32_t> key{out.operators[e.producer], e.slot, out.operators[e.consumer], e.input};
        if (g.operations[e.consumer].inputs[e.input].passed_on) // beside the same tensor, or others
            for (auto const& other : g.in(e.consumer))
                if (other.producer == e.producer && other.slot == e.slot) key.push_back(other.input);
        out.edges.push_back(edges.try_emplace(std::move(key), number).first->second);
    }

    // How many members, the members, and of each weight the place of the first that is the same tensor.
    std::map<std::vector<std::uint32_t>, std::uint32_t> known;
    for (std::uint32_t c = 0; c < classes.size(); ++c) {
        std::vector<std::uint32_t> key{static_cast<std::uint32_t>(classes[c].size())};
        for (auto const op : classes[c]) key.push_back(out.operators[op]);
        std::unordered_map<std::string_view, std::uint32_t> first;
        for (auto const op : classes[c])
            for (auto const& w : g.operations[op].weights) {
                auto const place = static_cast<std::uint32_t>(key.size());
                key.push_back(w.parameter.empty() ? place : first.try_emplace(w.parameter, place).first->second);
            }
        out.classes.push_back(known.try_emplace(std::move(key), c).first->second);
    }
    return out;
}

} // namespace parsearch::sim
