#pragma once
// The costs of a mapping model as numbers, read when they are first needed and shared by what is alike.

#include <parsearch/rewrite/mapping/mapping_tables.hpp>

namespace parsearch::rewrite::mapping {

PARSEARCH_INLINE std::size_t meter::entries(std::span<std::size_t const> sizes) const {
    double wanted = 1;
    for (auto const s : sizes) wanted *= static_cast<double>(s);
    if (wanted > static_cast<double>(options_->table_limit))
        throw mapping_limit(steps_, "a table of ", wanted, " entries, the views of ", sizes.size(),
                            " tasks that depend on each other: option 'table_limit' allows ", options_->table_limit, "; give tasks fewer views");
    std::size_t out = 1;
    for (auto const s : sizes) out *= s;
    return out;
}

PARSEARCH_INLINE void meter::check() {
    if (steps_ > options_->effort)
        throw mapping_limit(steps_, "more steps than the ", options_->effort, " that option 'effort' allows; give tasks fewer views");
    if (options_->stopped && options_->stopped()) throw mapping_limit(steps_, "stopped before it was done");
    constexpr std::uint64_t period = std::uint64_t{1} << 16;
    next_ = options_->effort - steps_ < period ? options_->effort : steps_ + period;
}

PARSEARCH_INLINE time const* tables::edge_costs(std::uint32_t edge, bool turned) {
    auto& table = edge_costs_[edge_class[edge]];
    auto const rows = views(edges[edge].first), columns = views(edges[edge].second);
    if (table[0].empty()) read_edge(edge, table[0]);
    if (turned && table[1].empty()) {
        table[1].resize(table[0].size());
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < columns; ++c) table[1][c * rows + r] = table[0][r * columns + c];
    }
    return table[turned].data();
}

PARSEARCH_INLINE tables::fitting const& tables::fits(std::uint32_t task, resource_box const& box) {
    auto const [at, missing] = fitting_.try_emplace({task_class[task], box});
    if (missing) {
        auto& f = at->second;
        f.place.assign(views(task), static_cast<std::uint32_t>(views(task)));
        for (std::uint32_t v = 0; v < views(task); ++v)
            if (fits_view(task, v, box)) {
                f.place[v] = static_cast<std::uint32_t>(f.views.size());
                f.views.push_back(v);
            }
    }
    return at->second;
}

} // namespace parsearch::rewrite::mapping
