#pragma once
// Tables that are looked up, each on one device.

#include <algorithm>

#include <parsearch/space/textbook/data_parallel.hpp>
#include <parsearch/space/textbook/table_parallel.hpp>

namespace parsearch::space {

PARSEARCH_INLINE flat_strategy table_parallel(graph::dense_graph const& g, std::size_t devices, bool uneven) {
    auto s = data_parallel(g, devices, uneven);
    std::vector<double> load(devices, 0);
    std::vector<std::optional<std::int32_t>> place(g.size());
    for (auto const i : g.order) {
        auto const& op = g.operations[i];
        if (op.weights.empty() || op.weights[0].touched_bytes < 0) continue;
        auto& device = place[g.sharing[i]];
        if (!device) {
            device = static_cast<std::int32_t>(std::min_element(load.begin(), load.end()) - load.begin());
            load[static_cast<std::size_t>(*device)] += static_cast<double>(ops::bytes_of(op.weights[0]));
        }
        s[i] = whole(op, *device);
    }
    return s;
}

} // namespace parsearch::space
