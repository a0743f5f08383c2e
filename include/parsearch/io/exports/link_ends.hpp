#pragma once
/// Which devices use given links of a topology, by its routes.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::io {

/// Routes of a topology the other way round. Complexity: O(n^2) in devices, to make; to ask for devices the first time.
class link_ends {
  public:
    explicit link_ends(topology::dense_topology const& t);

    /// From which device to which a message goes that passes these links in order; nothing where that is no route.
    [[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> message(std::vector<std::uint32_t> const& links) const {
        auto const at = ends_.find(links);
        return at == ends_.end() ? std::nullopt : std::optional(at->second);
    }

    /// The devices that reach others over these links alone, in ascending order.
    [[nodiscard]] std::vector<std::uint32_t> const& devices(std::vector<std::uint32_t> links);

  private:
    std::map<std::vector<std::uint32_t>, std::pair<std::uint32_t, std::uint32_t>> ends_{}; ///< by route
    std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> devices_{};           ///< by links in ascending order
};

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/exports/link_ends.ipp>
#endif
