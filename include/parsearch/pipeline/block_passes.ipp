#pragma once
// What a stage takes whose weights move block by block.

#include <algorithm>

#include <parsearch/pipeline/block_passes.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE block_passes passes_of(std::span<block_times const> blocks) {
    if (blocks.size() == 1) { // gathered once; gradients of a micro-batch are reduced while the next is computed
        auto const& all = blocks.front();
        return {.forward = all.forward,
                .backward = all.backward + std::max(all.reduce - all.forward - all.backward, 0.0),
                .head = all.gather,
                .tail = all.reduce + std::max(all.once, all.across)};
    }
    struct visit {
        std::size_t block;
        double time, gather, reduce;
    };
    std::vector<visit> visits;
    std::vector<std::pair<std::size_t, double>> passes; // visit in which each ends, and how long before its end
    auto const come_to = [&](std::size_t b, double time, double reduce) {
        if (!visits.empty() && visits.back().block == b) {
            if (!passes.empty() && passes.back().first + 1 == visits.size()) passes.back().second += time;
            visits.back().time += time;
            visits.back().reduce += reduce;
        } else visits.push_back({b, time, blocks[b].gather, reduce});
    };
    for (int round = 0; round < 2; ++round) {
        for (std::size_t b = 0; b < blocks.size(); ++b) come_to(b, blocks[b].forward, 0);
        passes.emplace_back(visits.size() - 1, 0);
        for (auto b = blocks.size(); b-- > 0;) come_to(b, blocks[b].backward, blocks[b].reduce);
        passes.emplace_back(visits.size() - 1, 0);
    }
    std::vector<double> ended;
    auto const run = [&](bool last) { // until when links are busy; whether this is the last micro-batch
        double link = 0, device = 0, between = 0;
        ended.clear();
        auto const reduce = [&](std::size_t v) {
            auto const done = link = std::max(link, ended[v]) + visits[v].reduce;
            if (!last || v + blocks.size() < visits.size()) return done;
            between = std::max(between, done) + blocks[visits[v].block].across;
            link += blocks[visits[v].block].once;
            return done;
        };
        for (std::size_t v = 0; v < visits.size(); ++v) {
            auto ready = v >= 2 ? reduce(v - 2) : 0;
            if (visits[v].gather > 0) ready = link += visits[v].gather;
            ended.push_back(device = std::max(device, ready) + visits[v].time);
        }
        for (auto v = visits.size() - 2; v < visits.size(); ++v) reduce(v);
        return std::max(link, between);
    };
    auto const all = run(true);
    if (std::ranges::any_of(blocks, [](block_times const& b) { return b.once > 0 || b.across > 0; })) run(false);
    auto const end_of_pass = [&](std::size_t p) { return ended[passes[p].first] - passes[p].second; };
    auto const first = end_of_pass(1), forward = end_of_pass(2), backward = end_of_pass(3);
    return {.forward = forward - first, .backward = backward - forward, .head = first - (backward - first), .tail = all - backward};
}

} // namespace parsearch::pipeline
