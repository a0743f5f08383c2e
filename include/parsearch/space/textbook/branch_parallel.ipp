#pragma once
// Branches of a network on different devices.

#include <algorithm>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/parallel_branches.hpp>
#include <parsearch/space/textbook/branch_parallel.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>

namespace parsearch::space {

PARSEARCH_INLINE flat_strategy branch_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t group, std::size_t rest, bool uneven) {
    if (group < 1 || devices % group != 0) throw invalid_input("branch_parallel: group is ", group, ": must divide the number of devices, ", devices);
    if (rest < 1 || rest > devices) throw invalid_input("branch_parallel: rest is ", rest, ": must be from 1 to the number of devices, ", devices);
    auto out = data_parallel(g, rest, uneven);
    std::vector<std::pair<flop_count, byte_count>> load; // of each group in this segment
    auto segment = g.size();
    for (auto const& b : graph::parallel_branches(g)) {
        if (std::exchange(segment, b.segment) != b.segment) load.assign(devices / group, {0, 0});
        auto const least = std::ranges::min_element(load);
        least->first += b.flops;
        least->second += b.bytes;
        auto const first = static_cast<std::int32_t>(static_cast<std::size_t>(least - load.begin()) * group);
        for (auto const op : b.operators) out[op] = split_samples(g.operations[op], static_cast<std::int64_t>(group), 1, first, uneven);
    }
    return out;
}

PARSEARCH_INLINE bool has_large_branches(graph::dense_graph const& g) {
    // Of all, of a segment, and of its largest branch.
    struct amount {
        double all = 0, segment = 0, most = 0;
        void add(double x) {
            segment += x;
            most = std::max(most, x);
        }
        [[nodiscard]] bool is_large() const { return segment - most > 0 && 5 * (segment - most) >= all; }
    } flops, bytes;
    for (auto const& op : g.operations) {
        flops.all += op.flops;
        for (auto const& w : op.weights) bytes.all += static_cast<double>(ops::bytes_of(w));
    }
    auto segment = g.size();
    for (auto const& b : graph::parallel_branches(g)) {
        if (std::exchange(segment, b.segment) != b.segment)
            for (auto* const x : {&flops, &bytes}) x->segment = x->most = 0;
        flops.add(b.flops);
        bytes.add(static_cast<double>(b.bytes));
        if (flops.is_large() || bytes.is_large()) return true;
    }
    return false;
}

} // namespace parsearch::space
