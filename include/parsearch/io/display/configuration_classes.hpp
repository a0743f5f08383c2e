#pragma once
/// Operators by configuration, numbered for colouring: operators of one class are split and placed alike.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::io {

/// Classes of operators with equal written configurations. Graph inputs, which have no tasks, are in none.
struct configuration_classes {
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    std::vector<std::string> texts;         ///< "s4 o2 @0+2,1" of each class; classes of more operators first, then by first operator
    std::vector<std::size_t> operators;     ///< in each class
    std::vector<std::uint32_t> of_operator; ///< class of each operator, or `none`
};

/// Complexity: O(n log n).
template <Strategy<space::configuration> S> [[nodiscard]] configuration_classes classes_of(graph::dense_graph const& g, S const& s) {
    std::map<std::string, std::vector<std::size_t>> members;
    for (std::size_t op = 0; op < g.size(); ++op)
        if (g.operations[op].work != ops::work_class::source) members[space::to_string(configuration_of(s, op), g.operations[op])].push_back(op);
    std::vector<std::map<std::string, std::vector<std::size_t>>::const_iterator> order;
    for (auto at = members.begin(); at != members.end(); ++at) order.push_back(at);
    std::sort(order.begin(), order.end(), [](auto a, auto b) {
        auto const x = a->second.size(), y = b->second.size();
        return x != y ? x > y : a->second.front() < b->second.front();
    });
    configuration_classes out;
    out.of_operator.assign(g.size(), configuration_classes::none);
    for (auto const at : order) {
        for (auto const op : at->second) out.of_operator[op] = static_cast<std::uint32_t>(out.texts.size());
        out.texts.push_back(at->first);
        out.operators.push_back(at->second.size());
    }
    return out;
}

} // namespace parsearch::io
