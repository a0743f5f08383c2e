#pragma once
// Tables that are looked up: each on one device, or cut by columns.

#include <algorithm>
#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/space/propagate.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>
#include <parsearch/space/textbook/table_parallel.hpp>
#include <parsearch/space/textbook/tensor_parallel.hpp>

namespace parsearch::space {

PARSEARCH_INLINE flat_strategy table_parallel(graph::dense_graph const& g, std::size_t devices, bool uneven) {
    auto s = data_parallel(g, devices, uneven);
    std::vector<double> load(devices, 0);
    std::vector<std::optional<std::int32_t>> place(g.size());
    for (auto const i : g.order) {
        auto const& op = g.operations[i];
        if (!ops::looks_up(op)) continue;
        auto& device = place[g.sharing[i]];
        if (!device) {
            device = static_cast<std::int32_t>(std::min_element(load.begin(), load.end()) - load.begin());
            load[static_cast<std::size_t>(*device)] += static_cast<double>(ops::bytes_of(op.weights[0]));
        }
        s[i] = whole(op, *device);
    }
    return s;
}

PARSEARCH_INLINE flat_strategy column_wise_tables(graph::dense_graph const& g, std::size_t devices, std::size_t degree, bool everywhere,
                                                  bool uneven) {
    if (degree < 1 || devices % degree != 0)
        throw invalid_input("column_wise_tables: degree is ", degree, ": must divide the number of devices, ", devices);
    auto const by_features = tensor_parallel(g, devices, degree, uneven);
    auto s = everywhere ? by_features : data_parallel(g, devices, uneven);
    std::vector<bool> of_tables(g.size(), false); // made of tables without weights between
    std::vector<bool> added_up(g.size(), false);  // lies where a first layer behind tables left what it made
    for (auto const i : g.order) {
        auto const& op = g.operations[i];
        if (ops::looks_up(op)) {
            of_tables[i] = true;
            auto const column = detail::first_dim(op, ops::dim_kind::parameter);
            if (!column) continue;
            auto const parts = std::gcd(static_cast<std::int64_t>(devices), op.dims[*column].extent);
            s[i] = detail::split_in_groups(op, *column, static_cast<std::int32_t>(parts), static_cast<std::int64_t>(devices) / parts, uneven);
            continue;
        }
        if (everywhere) continue;
        auto const behind = [&](std::vector<bool> const& which) {
            return std::ranges::find_if(g.in(i), [&](auto const& e) { return which[e.producer]; });
        };
        bool const reads_tables = behind(of_tables) != g.in(i).end();
        if (reads_tables) {
            s[i] = by_features[i];
            (op.weights.empty() ? of_tables : added_up)[i] = true;
        } else if (auto const e = behind(added_up); op.weights.empty() && e != g.in(i).end()) {
            if (auto const there = carried_over(g, *e, s[e->producer], true)) {
                s[i] = *there;
                added_up[i] = true;
            }
        }
    }
    return s;
}

PARSEARCH_INLINE table_parameters parameters_of_tables(graph::dense_graph const& g) {
    table_parameters out;
    for (auto const& op : g.operations) {
        auto const parameters = ops::parameters_of(op);
        out.all += parameters;
        if (ops::looks_up(op)) out.looked_up += parameters;
    }
    return out;
}

} // namespace parsearch::space
