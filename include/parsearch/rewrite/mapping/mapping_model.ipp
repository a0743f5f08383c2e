#pragma once
// What is mapped to a machine: tasks, their views, and costs; and the time that an assignment of views takes, by definition.

#include <parsearch/rewrite/mapping/mapping_model.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE void validate(mapping_options const& o) {
    if (o.free_branches < 2 || o.free_branches > 8)
        throw invalid_input("machine mapping: option 'free_branches' is ", o.free_branches, ": must be from 2 to 8");
    if (o.table_limit < 1) throw invalid_input("machine mapping: option 'table_limit' is 0: must be at least 1");
    if (o.effort < 1) throw invalid_input("machine mapping: option 'effort' is 0: must be at least 1");
}

PARSEARCH_INLINE branch_groups::branch_groups(std::size_t branches, std::uint32_t free_branches) {
    std::map<std::vector<std::uint32_t>, std::uint32_t> number;
    auto const add = [&](std::vector<std::uint32_t> group) {
        number.emplace(group, static_cast<std::uint32_t>(members.size()));
        members.push_back(std::move(group));
    };
    if (branches > free_branches) {
        for (std::uint32_t size = 1; size <= branches; ++size)
            for (std::uint32_t first = 0; first + size <= branches; ++first) {
                std::vector<std::uint32_t> group(size);
                for (std::uint32_t n = 0; n < size; ++n) group[n] = first + n;
                add(std::move(group));
            }
    } else {
        for (std::size_t size = 1; size <= branches; ++size)
            for (std::uint32_t mask = 1; mask < 1u << branches; ++mask) {
                std::vector<std::uint32_t> group;
                for (std::uint32_t n = 0; n < branches; ++n)
                    if (mask >> n & 1u) group.push_back(n);
                if (group.size() == size) add(std::move(group));
            }
    }
    ways.resize(members.size());
    for (std::size_t g = branches; g < members.size(); ++g) {
        auto const& all = members[g];
        if (branches > free_branches) {
            for (std::size_t n = 1; n < all.size(); ++n)
                ways[g].emplace_back(number.at({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)}),
                                     number.at({all.begin() + static_cast<std::ptrdiff_t>(n), all.end()}));
            continue;
        }
        for (std::uint32_t mask = 0; mask + 1 < 1u << (all.size() - 1); ++mask) { // the first member always on the first side
            std::vector<std::uint32_t> sides[2] = {{all[0]}, {}};
            for (std::size_t n = 1; n < all.size(); ++n) sides[!(mask >> (n - 1) & 1u)].push_back(all[n]);
            ways[g].emplace_back(number.at(sides[0]), number.at(sides[1]));
        }
    }
}

} // namespace parsearch::rewrite
