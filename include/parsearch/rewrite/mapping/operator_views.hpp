#pragma once
/// Configurations of an operator on parts of a machine: what machine mapping chooses among.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/mapping/machine_grid.hpp>
#include <parsearch/space/operator_space.hpp>

namespace parsearch::rewrite {

namespace detail {

/// `c`, of shards on devices 0, 1, ..., with device d replaced by `devices[d]`; nothing where start and strides can not say that.
[[nodiscard]] std::optional<space::configuration> carried(space::configuration c, std::span<std::int32_t const> devices);

} // namespace detail

/// Of `all`, the space of `op` on the devices of `grid`, at most `limit` configurations, none twice:
/// - data parallelism over all devices, always the first, or what the space has nearest to it;
/// - those of `also`;
/// - on every box of cells whose sides divide those of the machine, from starts that are multiples of them: of `space::likely_configurations` for as
///   many devices those that leave none idle. First the first one of each size of box, the largest boxes first (of operators that look tables up the
///   smallest), then the second of each size, and so on, `per_box` of them; those of one size at all starts, or at none where the limit does not
///   allow all.
/// Throws `invalid_input` where `limit` or `per_box` is 0. Complexity: O(boxes * per_box) look-ups in `all`.
[[nodiscard]] std::vector<space::configuration> operator_views(ops::operation const& op, space::operator_space const& all, machine_grid const& grid,
                                                               std::size_t limit, std::size_t per_box,
                                                               std::span<space::configuration const> also = {});

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/mapping/operator_views.ipp>
#endif
