#pragma once
/// What the failure of any one wire of a network does to a plan.

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>

namespace parsearch::fabric {

/// `n` after one wire of link number `link` has failed. A link is as many wires as its rate is times `wire`, the rate of one interface, to the
/// nearest number: it loses one, and is gone where it has no other. Rings whose neighbours it joined, as the only link between these, are given up
/// where another ring of the same servers is left; else their messages take the way round. Switches that servers no longer reach are gone, too.
/// Nothing where servers are cut off from others. Throws `invalid_input` where there is no such link, or `wire` is not positive. Complexity: that of
/// `validate`.
[[nodiscard]] std::optional<network> without_wire(network const& n, std::uint32_t link, bandwidth wire);

/// A link that has lost a wire.
struct wire_failure {
    std::uint32_t link;
    std::optional<picoseconds> time; ///< of an iteration; nothing: servers are cut off, no plan on all of them runs
    friend bool operator==(wire_failure const&, wire_failure const&) = default;
};

/// The failure of one wire of each link, by link. `time_on(network)`: how long the plan takes on what is left. Where `stop` is requested, or
/// `time_on` throws `interrupted`, those are missing that were not tried yet: links far apart are tried first. Throws as `without_wire` and
/// `time_on`.
template <class F>
    requires std::convertible_to<std::invoke_result_t<F&, network const&>, picoseconds>
[[nodiscard]] std::vector<wire_failure> single_wire_failures(network const& n, bandwidth wire, F&& time_on, std::stop_token const& stop = {}) {
    std::vector<wire_failure> out;
    auto const links = static_cast<std::uint32_t>(n.links.size());
    try { // the first, the middle, the quarters, and so on
        auto const all = std::bit_ceil(links);
        for (auto step = all; step > 0; step /= 2)
            for (auto link = step == all ? 0 : step; link < links && !stop.stop_requested(); link += 2 * step) {
                auto const left = without_wire(n, link, wire);
                out.push_back({link, left ? std::optional<picoseconds>(time_on(*left)) : std::nullopt});
            }
    } catch (interrupted const&) { // those that were tried are told
    }
    std::ranges::sort(out, {}, &wire_failure::link);
    return out;
}

/// The same, in short.
struct failure_summary {
    std::uint32_t links = 0;                   ///< of the network
    std::uint32_t tried = 0;                   ///< of these
    std::uint32_t cut_off = 0;                 ///< whose failure cuts servers off
    std::optional<double> mean{}, worst{};     ///< how many times as long an iteration takes, of the others; nothing where there are none
    std::optional<std::uint32_t> worst_link{}; ///< that takes longest
    friend bool operator==(failure_summary const&, failure_summary const&) = default;
};

/// Of failures of a network of `links` links. `time`: of an iteration without them, above 0.
[[nodiscard]] failure_summary summary_of(std::vector<wire_failure> const& failures, std::size_t links, picoseconds time);

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/servers/wire_failures.ipp>
#endif
