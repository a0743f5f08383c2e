#pragma once
// Configurations of an operator on parts of a machine: what machine mapping chooses among.

#include <algorithm>

#include <parsearch/rewrite/mapping/operator_views.hpp>
#include <parsearch/rewrite/mapping/resource_box.hpp>
#include <parsearch/space/likely_configurations.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

namespace parsearch::rewrite::detail {

inline constexpr std::size_t most_likely =
    256; ///< configurations asked of `space::likely_configurations`: more than it has, but for very many devices

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::optional<space::configuration> carried(space::configuration c, std::span<std::int32_t const> devices) {
    auto const moved = [&](std::int32_t device) { return devices[static_cast<std::size_t>(device)]; };
    auto out = c;
    out.start = moved(c.start);
    for (std::size_t k = 0; k < c.rank; ++k)
        if (c.degree[k] > 1) out.stride[k] = moved(c.start + c.stride[k]) - out.start;
    for (std::int64_t n = 0, shards = c.shards(); n < shards; ++n)
        if (out.place(n) != moved(c.device(n))) return std::nullopt;
    return out;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE std::vector<space::configuration> operator_views(ops::operation const& op, space::operator_space const& all,
                                                                  machine_grid const& grid, std::size_t limit, std::size_t per_box,
                                                                  std::span<space::configuration const> also) {
    if (limit < 1 || per_box < 1)
        throw invalid_input("operator views: at most ", limit, " of an operator, ", per_box, " on a box: both must be at least 1");
    std::vector<space::configuration> out{space::nearest_data_parallel(op, all, static_cast<std::size_t>(grid.devices()))};
    auto const known = [&](space::configuration const& c) { return std::find(out.begin(), out.end(), c) != out.end(); };
    for (auto const& c : also)
        if (out.size() < limit && !known(c)) out.push_back(c);
    if (op.work == ops::work_class::source) return out;

    auto const& machine = grid.machine();
    std::vector<resource_box> shapes; // at the first start
    for (std::int32_t n = 1; n <= machine.nodes; ++n)
        for (std::int32_t d = 1; d <= machine.devices; ++d)
            if (machine.nodes % n == 0 && machine.devices % d == 0) shapes.push_back({.first_node = 0, .nodes = n, .first_device = 0, .devices = d});
    bool const looked_up = ops::looks_up(op);
    std::stable_sort(shapes.begin(), shapes.end(), [&](auto const& a, auto const& b) {
        auto const x = a.nodes * a.devices, y = b.nodes * b.devices;
        return looked_up ? x < y : x > y;
    });
    std::vector<std::vector<space::configuration>> likely;
    for (auto const& shape : shapes) {
        auto const devices = grid.devices_of(shape).size();
        auto list = space::likely_configurations(
            op, all, devices, {.limit = detail::most_likely, .per_node = std::min<std::size_t>(devices, static_cast<std::size_t>(grid.per_node()))});
        std::erase_if(list, [&](auto const& c) { return std::cmp_not_equal(c.shards(), devices); }); // smaller boxes have those
        likely.push_back(std::move(list));
    }
    for (std::size_t rank = 0; rank < per_box; ++rank)
        for (std::size_t s = 0; s < shapes.size(); ++s) {
            if (rank >= likely[s].size()) continue;
            std::vector<space::configuration> made;
            auto box = shapes[s];
            for (box.first_node = 0; box.first_node < machine.nodes; box.first_node += box.nodes)
                for (box.first_device = 0; box.first_device < machine.devices; box.first_device += box.devices)
                    if (auto c = detail::carried(likely[s][rank], grid.devices_of(box)); c && all.contains(*c) && !known(*c))
                        made.push_back(*std::move(c));
            if (out.size() + made.size() <= limit) out.insert(out.end(), made.begin(), made.end());
        }
    return out;
}

} // namespace parsearch::rewrite
