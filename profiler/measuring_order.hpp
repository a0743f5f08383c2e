#pragma once
/// In which order kernels are measured, so that a table that is cut short is of most use.

#include <algorithm>
#include <cstddef>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace parsearch::profiler {

/// A kernel to be put in order.
struct order_item {
    std::string family;      ///< of kernels that differ in extents alone (`cost::family_of`): from some, interpolation tells the others
    double contribution = 0; ///< to the time of what is planned: predicted time * how often it occurs; not negative
};

/// The numbers of `items` in the order in which they are best measured: families take turns in proportion to their contributions, by the rule of
/// D'Hondt (the next turn is that of the family with the greatest contribution / (turns taken + 1)), and each begins with the members that contribute
/// most. Every prefix then has about the part of each family that the family has of the time. Ties are decided by the order of `items`.
/// Complexity: O(n log n).
[[nodiscard]] inline std::vector<std::size_t> measuring_order(std::vector<order_item> const& items) {
    struct family {
        double contribution = 0;
        std::vector<std::size_t> members{};
        std::size_t taken = 0;
    };
    std::vector<family> families;
    std::map<std::string, std::size_t> numbers;
    for (std::size_t i = 0; i < items.size(); ++i) {
        auto const at = numbers.try_emplace(items[i].family, families.size()).first->second;
        if (at == families.size()) families.emplace_back();
        families[at].contribution += items[i].contribution;
        families[at].members.push_back(i);
    }
    // By claim, then by the smaller number.
    using claim = std::pair<double, std::size_t>;
    auto const later = [](claim const& a, claim const& b) { return a.first < b.first || (a.first == b.first && a.second > b.second); };
    std::priority_queue<claim, std::vector<claim>, decltype(later)> turns(later);
    for (std::size_t f = 0; f < families.size(); ++f) {
        std::ranges::stable_sort(families[f].members, [&](auto a, auto b) { return items[a].contribution > items[b].contribution; });
        turns.emplace(families[f].contribution, f);
    }
    std::vector<std::size_t> order;
    order.reserve(items.size());
    while (!turns.empty()) {
        auto const number = turns.top().second;
        turns.pop();
        auto& f = families[number];
        order.push_back(f.members[f.taken++]);
        if (f.taken < f.members.size()) turns.emplace(f.contribution / static_cast<double>(f.taken + 1), number);
    }
    return order;
}

} // namespace parsearch::profiler
