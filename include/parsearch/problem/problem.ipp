#pragma once
// `make_problem`: an operator graph, a device topology and a cost oracle become a search problem.

#include <bit>

#include <parsearch/problem/problem.hpp>

namespace parsearch {

PARSEARCH_INLINE space::flat_strategy data_parallel(parallelization const& p, std::size_t count, std::size_t first) {
    auto const all = p.topology().size();
    if (count == 0 || first >= all || count > all - first)
        throw invalid_input("data_parallel: ", count, " devices from number ", first, ": must be at least one, and all of the ", all,
                            " that there are");
    return space::data_parallel(p.graph(), count, p.space().options().uneven, first);
}

PARSEARCH_INLINE space::flat_strategy operation_parallel(parallelization const& p) {
    auto const per_node = topology::devices_per_node(p.topology());
    if (per_node == 0) {
        auto const& node = p.topology().node; // numbered from 0 by first use
        auto const first = static_cast<std::size_t>(std::count(node.begin(), node.end(), node.front()));
        std::size_t d = 0;
        while (d + 1 < node.size() && node[d] == d / first) ++d;
        throw invalid_input("operation_parallel: device ", d, " of ", node.size(), " is on node ", node[d], ", and node 0 has ", first,
                            " devices: nodes must be of one size, each of consecutive devices");
    }
    return space::operation_parallel(p.graph(), p.topology().size(), per_node, p.space().options().uneven);
}

namespace detail {
struct device_block {
    std::size_t first = 0, count = 0;
};
/// Of each kind, by number, the most neighbours that begin at a multiple of their number, as those of spaces do: a whole run of the kind, or a power
/// of two within one. Linear in the devices.
inline std::vector<device_block> neighbours_of_each_kind(std::vector<std::uint32_t> const& kind) {
    std::vector<device_block> out;
    for (std::size_t first = 0, last; first < kind.size(); first = last) {
        for (last = first + 1; last < kind.size() && kind[last] == kind[first];) ++last;
        auto const from = [&](std::size_t count) { return (first + count - 1) / count * count; };
        auto count = last - first;
        if (first % count != 0)
            for (count = std::bit_floor(count); from(count) + count > last;) count /= 2;
        out.resize(std::max<std::size_t>(out.size(), kind[first] + 1));
        if (count > out[kind[first]].count) out[kind[first]] = {from(count), count};
    }
    return out;
}
} // namespace detail

PARSEARCH_INLINE std::vector<space::named_strategy> expert_starts(parallelization const& p) {
    std::vector<space::named_strategy> out;
    auto const add = [&](std::string name, space::flat_strategy s) {
        bool const known = std::any_of(out.begin(), out.end(), [&](auto const& other) { return other.strategy == s; });
        if (!known) out.push_back({std::move(name), std::move(s)});
    };
    add("data_parallel", data_parallel(p));
    add("one_weird_trick", one_weird_trick(p));
    auto const& node = p.topology().node;
    auto const on_one_node = [&](std::size_t degree) { // each group of neighbours
        for (std::size_t d = 0; d < node.size(); ++d)
            if (node[d] != node[d - d % degree]) return false;
        return true;
    };
    auto const per_node = topology::devices_per_node(p.topology());
    if (per_node > 0) add("operation_parallel", operation_parallel(p));
    for (std::size_t degree = 2; degree <= node.size(); ++degree)
        if (node.size() % degree == 0 && on_one_node(degree)) add(text("tensor_parallel_", degree), tensor_parallel(p, degree));
    add("expert_parallel", expert_parallel(p));
    if (per_node > 1) add(text("expert_parallel_", per_node), expert_parallel(p, per_node));
    add("table_parallel", table_parallel(p));
    if (space::parameters_of_tables(p.graph()).mostly()) {
        auto const of_node = std::max<std::size_t>(per_node, 1);
        for (std::size_t degree = 1; degree <= of_node && node.size() % degree == 0; degree *= 2)
            add(text("column_wise_tables_", degree), column_wise_tables(p, degree));
        for (auto const degree : {of_node, 2 * of_node})
            if (degree > 1 && node.size() % degree == 0) add(text("column_wise_tables_", degree, "_everywhere"), column_wise_tables(p, degree, true));
        for (std::size_t degree = 1; degree <= per_node && per_node % degree == 0; degree *= 2) // where the network between nodes is slow
            add(text("column_wise_tables_", degree, "_on_", per_node),
                space::column_wise_tables(p.graph(), per_node, degree, false, p.space().options().uneven));
    }
    if (space::has_large_branches(p.graph()))
        for (std::size_t group = 1; group < node.size() && node.size() % group == 0; group *= 2) {
            add(text("branch_parallel_", group), branch_parallel(p, group));
            if (group <= per_node) add(text("branch_parallel_", group, "_on_", group), branch_parallel(p, group, group));
        }
    for (std::size_t count = 1; count < node.size(); count *= 2) add(text("data_parallel_on_", count), data_parallel(p, count));
    for (auto const& [first, count] : detail::neighbours_of_each_kind(p.topology().kind))
        add(text("data_parallel_on_", count, "_from_", first), data_parallel(p, count, first));
    return out;
}

} // namespace parsearch
