#pragma once
// Blocks of operators that follow each other several times, as the layers of a transformer do.

#include <algorithm>
#include <map>

#include <parsearch/core/error.hpp>
#include <parsearch/io/report/report_blocks.hpp>

namespace parsearch::io::detail {

/// Blocks that leave out more operators first, then shorter ones.
[[nodiscard]] inline bool leaves_out_more(repeated_block const& a, repeated_block const& b) noexcept {
    auto const x = a.length * (a.count - 1), y = b.length * (b.count - 1);
    return x != y ? x > y : a.length < b.length;
}

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

/// Numbers that are equal where operators are: kind, shapes and configuration.
PARSEARCH_IO_INLINE std::vector<std::uint32_t> operator_keys(graph::dense_graph const& g, configuration_classes const& classes) {
    std::map<std::string, std::uint32_t> known;
    std::vector<std::uint32_t> out;
    for (auto const op : g.order) {
        auto const& operation = g.operations[op];
        auto key = text(classes.of_operator[op], ' ', operation.kind);
        for (auto const& d : operation.dims) key += text(' ', d.extent);
        for (auto const& o : operation.outputs) key += text('>', ops::to_string(ops::tensor_of(o)));
        out.push_back(known.try_emplace(std::move(key), static_cast<std::uint32_t>(known.size())).first->second);
    }
    return out;
}

/// How many of the `count` copies are wired alike, the first included: inputs come from the same place of the copy itself or of the one
/// before, or from the same operator before all of them, and each copy reads the one before.
PARSEARCH_IO_INLINE std::size_t copies_in_series(graph::dense_graph const& g, std::vector<std::size_t> const& position, repeated_block const& b) {
    for (std::size_t copy = 1; copy < b.count; ++copy) {
        bool reads_last = false;
        for (std::size_t q = 0; q < b.length; ++q) {
            auto const inputs = g.in(g.order[b.first + copy * b.length + q]), before = g.in(g.order[b.first + (copy - 1) * b.length + q]);
            if (inputs.size() != before.size()) return copy;
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                auto const from = position[inputs[i].producer], from_before = position[before[i].producer];
                auto const begin = b.first + copy * b.length;
                bool const inside = from >= begin, last = !inside && from >= begin - b.length;
                reads_last = reads_last || last;
                bool const same_place = from == from_before + b.length;
                bool const enters = copy == 1 && last && from_before < b.first; // the first copy reads what comes before all
                if (!same_place && !enters && from != from_before) return copy;
                if (from == from_before && from >= b.first) return copy;
            }
        }
        if (!reads_last) return copy;
    }
    return b.count;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE std::vector<repeated_block> find_blocks(graph::dense_graph const& g, configuration_classes const& classes) {
    constexpr std::size_t longest = 512, least_saved = 3, most_tried = 8;
    auto const keys = detail::operator_keys(g, classes);
    auto const n = keys.size();
    std::vector<std::size_t> position(n);
    for (std::size_t i = 0; i < n; ++i) position[g.order[i]] = i;
    std::vector<std::vector<repeated_block>> candidates(n);
    std::vector<std::size_t> same(n + 1);
    for (std::size_t length = 1; length <= std::min(longest, n / 2); ++length) {
        std::fill(same.begin(), same.end(), 0);
        for (auto i = n - length; i-- > 0;) {
            same[i] = keys[i] == keys[i + length] ? same[i + 1] + 1 : 0;
            auto const count = 1 + same[i] / length;
            if ((count - 1) * length < least_saved) continue;
            candidates[i].push_back({i, length, count});
            std::sort(candidates[i].begin(), candidates[i].end(), detail::leaves_out_more);
            if (candidates[i].size() > most_tried) candidates[i].pop_back();
        }
    }
    std::vector<repeated_block> out;
    for (std::size_t i = 0; i < n; ++i) {
        for (auto b : candidates[i]) {
            b.count = detail::copies_in_series(g, position, b);
            if ((b.count - 1) * b.length < least_saved) continue;
            out.push_back(b);
            i = b.end() - 1;
            break;
        }
    }
    return out;
}

PARSEARCH_IO_INLINE std::vector<std::vector<std::uint32_t>> boxes_of(graph::dense_graph const& g, configuration_classes const& classes,
                                                                     std::vector<repeated_block> const& blocks) {
    std::vector<std::size_t> frame(g.size(), 0); // of each operator: number of its block, counted from 1; 0: none
    std::vector<bool> drawn(g.size(), true);
    for (std::size_t b = 0; b < blocks.size(); ++b)
        for (auto i = blocks[b].first; i < blocks[b].end(); ++i) {
            frame[g.order[i]] = b + 1;
            drawn[g.order[i]] = i < blocks[b].first + blocks[b].length;
        }
    auto const passes_on = [&](std::uint32_t op) {
        auto const& operation = g.operations[op];
        using ops::work_class;
        return operation.work == work_class::normalization || operation.work == work_class::elementwise || operation.work == work_class::view ||
               (operation.work == work_class::memory && operation.weights.empty());
    };
    std::vector<std::vector<std::uint32_t>> out;
    std::vector<std::size_t> box(g.size());
    for (auto const op : g.order) {
        if (!drawn[op]) continue;
        auto const inputs = g.in(op);
        bool joins = passes_on(op) && inputs.size() == 1;
        if (joins) {
            auto const before = inputs.front().producer;
            joins =
                g.out(before).size() == 1 && drawn[before] && frame[before] == frame[op] && classes.of_operator[before] == classes.of_operator[op];
        }
        box[op] = joins ? box[inputs.front().producer] : out.size();
        if (!joins) out.emplace_back();
        out[box[op]].push_back(op);
    }
    return out;
}

} // namespace parsearch::io
