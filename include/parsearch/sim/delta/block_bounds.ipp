#pragma once
// Lower bounds on makespans that need no schedule: what follows a task at least, and what a device has to do after it.

#include <algorithm>
#include <limits>

#include <parsearch/sim/delta/block_bounds.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE path_bounds::path_bounds(graph::dense_graph const& g, block_graph const& b, std::vector<std::uint32_t> const& class_of,
                                          std::size_t classes)
    : graph_(&g), blocks_(&b), class_of_(&class_of), operators_(g.size()), edges_(g.edges.size()), classes_(classes), after_(b.blocks),
      row_words_((g.size() + 63) / 64), below_(g.size() * row_words_), above_(g.size() * row_words_), aligned_(g.size() * row_words_),
      round_trip_(g.size()), way_back_(g.size()), follows_(g.size()) {
    find_descendants();
}

PARSEARCH_INLINE void path_bounds::find_tails() {
    auto const& g = *graph_;
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    std::int64_t all_backward = 0;
    if (blocks_->all_backward != none)
        for (auto const& c : classes_)
            if (c.synchronises) all_backward = std::max(all_backward, c.after_backward);
    after_device_ = most;
    connected_ = true;
    for (auto const op : g.order) {
        auto const& at = blocks_->operators[op];
        if (at.backward == none) continue;
        auto after = all_backward;
        if (auto const c = (*class_of_)[op]; c != none) after = std::max(after, classes_[c].after_backward);
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
            if (blocks_->backward[e].block == none) continue;
            if (edges_[e].every_consumer)
                after = std::max(after, after_[blocks_->operators[g.edges[e].producer].backward] + operators_[g.edges[e].producer].backward);
            connected_ = connected_ && edges_[e].every_producer;
        }
        after_[at.backward] = after;
        after_device_ = std::min(after_device_, after);
    }
    for (auto i = g.order.size(); i-- > 0;) {
        auto const op = g.order[i];
        auto const& at = blocks_->operators[op];
        if (at.forward == none) continue;
        auto after = at.backward == none ? 0 : after_[at.backward] + operators_[op].backward;
        for (auto const e : g.out(op)) {
            auto const consumer = g.edges[e].consumer;
            if (edges_[e].every_producer) after = std::max(after, tail(consumer));
            connected_ = connected_ && edges_[e].every_consumer;
        }
        after_[at.forward] = after;
        after_device_ = std::min(after_device_, after);
    }
    if (after_device_ == most) after_device_ = 0; // there are no tasks
    for (std::size_t c = 0; c < classes_.size(); ++c)
        if (blocks_->classes[c].sync != none) after_[blocks_->classes[c].sync] = classes_[c].update;
    // Sums end whenever they do.
    for (std::uint32_t op = 0; op < operators_.size(); ++op)
        if (operators_[op].sums) after_[blocks_->operators[op].forward] = 0;
}

PARSEARCH_INLINE std::int64_t path_bounds::after_work(std::uint32_t op) const noexcept {
    if (!connected_) return 0;
    std::int64_t sum = 0;
    auto const* const below = below_.data() + op * row_words_;
    auto const* const above = above_.data() + op * row_words_;
    for (std::uint32_t other = 0; other < operators_.size(); ++other) {
        if (other == op) continue;
        if (below[other / 64] >> (other % 64) & 1) sum += operators_[other].forward_here;
        if (above[other / 64] >> (other % 64) & 1) sum += operators_[other].backward_here;
    }
    return sum + after_device_;
}

PARSEARCH_INLINE void path_bounds::find_by_program() noexcept {
    auto const& order = graph_->order;
    std::int64_t later = 0; // work of every device on later operators, in both passes
    for (auto i = order.size(); i-- > 0;) {
        auto const& mine = operators_[order[i]];
        round_trip_[order[i]] = later + mine.forward + mine.backward;
        if (mine.everywhere) later += mine.forward + mine.backward;
    }
    std::int64_t earlier = 0, follows = 0; // backward: of earlier ones
    for (auto const op : order) {
        auto const& mine = operators_[op];
        if (earlier == 0) follows = update_after(op);
        way_back_[op] = earlier + mine.backward + follows;
        if (mine.everywhere) earlier += mine.backward;
    }
}

PARSEARCH_INLINE void path_bounds::find_by_aligned() noexcept {
    auto const& g = *graph_;
    std::fill(aligned_.begin(), aligned_.end(), 0);
    auto const leads = [&](std::uint32_t e) { return edges_[e].aligned && blocks_->backward[e].block != none; };
    for (auto i = g.order.size(); i-- > 0;) {
        auto const op = g.order[i];
        set(row(aligned_, op), op);
        for (auto const e : g.out(op))
            if (leads(e)) join(row(aligned_, op), row(aligned_, g.edges[e].consumer));
        round_trip_[op] = sum_over(op, [&](std::uint32_t other) { return operators_[other].forward + operators_[other].backward; });
    }
    std::fill(aligned_.begin(), aligned_.end(), 0);
    for (auto const op : g.order) {
        set(row(aligned_, op), op);
        auto& follows = follows_[op];
        follows = std::numeric_limits<std::int64_t>::max();
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
            if (leads(e)) {
                join(row(aligned_, op), row(aligned_, g.edges[e].producer));
                follows = std::min(follows, follows_[g.edges[e].producer]);
            }
        if (follows == std::numeric_limits<std::int64_t>::max()) follows = update_after(op);
        way_back_[op] = follows + sum_over(op, [&](std::uint32_t other) { return operators_[other].backward; });
    }
}

PARSEARCH_INLINE void path_bounds::find_descendants() {
    auto const& g = *graph_;
    // Backward of an operator leads to backward of what its inputs come from.
    std::vector<std::uint64_t> behind(g.size() * row_words_);
    for (auto const op : g.order) {
        if (blocks_->operators[op].backward == none) continue;
        set(row(behind, op), op);
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
            if (blocks_->backward[e].block != none) join(row(behind, op), row(behind, g.edges[e].producer));
    }
    for (auto i = g.order.size(); i-- > 0;) {
        auto const op = g.order[i];
        if (blocks_->operators[op].forward == none) continue;
        join(row(above_, op), row(behind, op));
        for (auto const e : g.out(op)) {
            auto const consumer = g.edges[e].consumer;
            set(row(below_, op), consumer);
            join(row(below_, op), row(below_, consumer));
            join(row(above_, op), row(above_, consumer));
        }
    }
}

} // namespace parsearch::sim
