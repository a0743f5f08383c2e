#pragma once
// A layered drawing of an acyclic graph: longest-path layers, few crossings by barycenters, edges that bend between layers.

#include <algorithm>

#include <parsearch/io/report/graph_drawing.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE std::vector<double> spread(std::vector<double> const& wanted, std::vector<double> const& apart) {
    struct pool {
        double sum = 0;
        std::size_t size = 0;
        [[nodiscard]] double mean() const { return sum / static_cast<double>(size); }
    };
    std::vector<pool> pools;
    double offset = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (i > 0) offset += apart[i];
        pools.push_back({wanted[i] - offset, 1});
        while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
            pools[pools.size() - 2].sum += pools.back().sum;
            pools[pools.size() - 2].size += pools.back().size;
            pools.pop_back();
        }
    }
    std::vector<double> out;
    offset = 0;
    for (auto const& p : pools)
        for (std::size_t k = 0; k < p.size; ++k) {
            if (!out.empty()) offset += apart[out.size()];
            out.push_back(p.mean() + offset);
        }
    return out;
}

PARSEARCH_IO_INLINE layered_drawing::layered_drawing(std::size_t nodes, std::vector<std::pair<std::uint32_t, std::uint32_t>> const& edges)
    : nodes_(nodes), layer_(nodes, 0) {
    std::vector<std::uint32_t> nearest(nodes, ~std::uint32_t{0});
    std::vector<bool> fed(nodes, false);
    auto by_end = edges; // the layer of a node is known once all edges into it are seen
    std::sort(by_end.begin(), by_end.end(), [](auto const& a, auto const& b) { return a.second < b.second; });
    for (auto const& [from, to] : by_end) layer_[to] = std::max(layer_[to], layer_[from] + 1), fed[to] = true;
    for (auto const& [from, to] : edges) nearest[from] = std::min(nearest[from], layer_[to]);
    for (std::size_t v = 0; v < nodes; ++v) // what nothing leads to stands right above its first reader
        if (!fed[v] && nearest[v] != ~std::uint32_t{0}) layer_[v] = nearest[v] - 1;
    up_.resize(nodes);
    down_.resize(nodes);
    first_bend_.assign(edges.size(), 0);
    std::size_t bends = 0;
    for (auto const& [from, to] : edges) bends += layer_[to] - layer_[from] - 1;
    for (std::size_t e = 0; e < edges.size(); ++e) {
        auto at = edges[e].first;
        first_bend_[e] = up_.size();
        for (auto l = layer_[at] + 1; bends <= most_bends && l < layer_[edges[e].second]; ++l) {
            auto const next = static_cast<std::uint32_t>(up_.size());
            up_.emplace_back();
            down_.emplace_back();
            layer_.push_back(l);
            join(at, next);
            at = next;
        }
        join(at, edges[e].second);
    }
    first_bend_.push_back(up_.size());
    rows_.resize(layer_.empty() ? 0 : *std::max_element(layer_.begin(), layer_.end()) + 1U);
    for (std::uint32_t v = 0; v < layer_.size(); ++v) rows_[layer_[v]].push_back(v);
    x_.resize(layer_.size());
    for (auto const& row : rows_) place(row, {});
}

PARSEARCH_IO_INLINE graph_layout layered_drawing::run() {
    for (int sweep = 0; sweep < 8; ++sweep) {
        for (auto& row : rows_) reorder(row, up_);
        for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) reorder(*row, down_);
    }
    for (auto& row : rows_) reorder(row, up_);
    for (int sweep = 0; sweep < 12; ++sweep) {
        for (auto const& row : rows_) place(row, up_);
        for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) place(*row, down_);
    }
    for (auto const& row : rows_) place(row, up_);
    graph_layout out;
    double const left = x_.empty() ? 0 : *std::min_element(x_.begin(), x_.end()) - 0.5;
    for (auto& x : x_) out.width = std::max(out.width, (x -= left) + 0.5);
    out.x.assign(x_.begin(), x_.begin() + static_cast<std::ptrdiff_t>(nodes_));
    out.layer.assign(layer_.begin(), layer_.begin() + static_cast<std::ptrdiff_t>(nodes_));
    for (std::size_t e = 0; e + 1 < first_bend_.size(); ++e)
        out.bends.emplace_back(x_.begin() + static_cast<std::ptrdiff_t>(first_bend_[e]),
                               x_.begin() + static_cast<std::ptrdiff_t>(first_bend_[e + 1]));
    out.layers = static_cast<std::uint32_t>(rows_.size());
    return out;
}

PARSEARCH_IO_INLINE double layered_drawing::mean(std::uint32_t v, std::vector<row_type> const& neighbours) const {
    if (neighbours.empty() || neighbours[v].empty()) return x_[v];
    double sum = 0;
    for (auto const n : neighbours[v]) sum += x_[n];
    return sum / static_cast<double>(neighbours[v].size());
}

PARSEARCH_IO_INLINE void layered_drawing::reorder(row_type& row, std::vector<row_type> const& neighbours) {
    std::vector<std::pair<double, std::uint32_t>> keyed;
    for (auto const v : row) keyed.emplace_back(mean(v, neighbours), v);
    std::stable_sort(keyed.begin(), keyed.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = keyed[i].second;
    place(row, neighbours);
}

PARSEARCH_IO_INLINE void layered_drawing::place(row_type const& row, std::vector<row_type> const& neighbours) {
    std::vector<double> wanted, apart;
    for (std::size_t i = 0; i < row.size(); ++i) {
        wanted.push_back(mean(row[i], neighbours));
        apart.push_back(i == 0 ? 0 : (half(row[i - 1]) + half(row[i])));
    }
    auto const at = spread(wanted, apart);
    for (std::size_t i = 0; i < row.size(); ++i) x_[row[i]] = at[i];
}

} // namespace parsearch::io::detail
