#pragma once
/// Which devices use given links of a topology, by its routes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::io {

/// Routes of a topology the other way round. Complexity: O(n^2) in devices, to make; to ask for devices the first time.
class link_ends {
  public:
    explicit link_ends(topology::dense_topology const& t) {
        for (std::size_t a = 0; a < t.size(); ++a)
            for (std::size_t b = 0; b < t.size(); ++b)
                if (auto const route = t.route(a, b); a != b && !route.empty())
                    ends_.emplace(std::vector<std::uint32_t>(route.begin(), route.end()),
                                  std::pair{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)});
    }

    /// From which device to which a message goes that passes these links in order; nothing where that is no route.
    [[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> message(std::vector<std::uint32_t> const& links) const {
        auto const at = ends_.find(links);
        return at == ends_.end() ? std::nullopt : std::optional(at->second);
    }

    /// The devices that reach others over these links alone, in ascending order.
    [[nodiscard]] std::vector<std::uint32_t> const& devices(std::vector<std::uint32_t> links) {
        std::ranges::sort(links);
        auto const [at, fresh] = devices_.try_emplace(links);
        if (!fresh) return at->second;
        std::set<std::uint32_t> found;
        for (auto const& [route, ends] : ends_)
            if (std::ranges::all_of(route, [&](auto l) { return std::ranges::binary_search(links, l); })) found.insert({ends.first, ends.second});
        at->second.assign(found.begin(), found.end());
        return at->second;
    }

  private:
    std::map<std::vector<std::uint32_t>, std::pair<std::uint32_t, std::uint32_t>> ends_{}; ///< by route
    std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> devices_{};           ///< by links in ascending order
};

} // namespace parsearch::io
