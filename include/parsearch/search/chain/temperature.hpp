#pragma once
/// How warm a Metropolis chain is: a given temperature, one in proportion to the least cost, or one that aims at an acceptance.

#include <cstdint>
#include <optional>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>

namespace parsearch::search {

/// What decides the temperature; see `mcmc_options`.
struct temperature_options {
    std::optional<double> fixed;             ///< in units of `cost_traits::value`
    double relative = 0;                     ///< where `fixed` is not set, times the absolute value of the least cost
    std::optional<double> target_acceptance; ///< where `fixed` is not set, the share of worsening proposals to accept
    std::uint64_t reheat_interval = 0;       ///< where neither is set, proposals without an improvement until it doubles; 0: never
};

/// The temperature of a running chain. It depends on counts alone, so it is the same on every platform.
class temperature_rule {
  public:
    explicit temperature_rule(temperature_options const& o)
        : fixed_(o.fixed.value_or(0)), relative_(o.fixed ? 0 : o.relative), adapts_(!o.fixed && o.target_acceptance),
          goal_(goal_of(o.target_acceptance.value_or(0))), reheat_interval_(adapts_ ? 0 : o.reheat_interval) {}

    /// The temperature of the next proposal, where `best` is the least cost so far.
    template <class C> [[nodiscard]] double at(C const& best) const {
        // Where nothing feasible is known, everything is accepted at any temperature.
        double const value = best < cost_traits<C>::infinity() ? cost_traits<C>::value(best) : 0;
        auto const doublings = reheat_interval_ > 0 ? unimproved_ / reheat_interval_ % 8 : 0;
        return fixed_ + relative_ * (value < 0 ? -value : value) * static_cast<double>(std::uint64_t{1} << doublings);
    }

    /// Counts a proposal that changed nothing, or one of equal or lower cost that did not improve.
    void passed() { ++unimproved_; }
    /// Counts a proposal above the current cost.
    void worsened(bool accepted);
    /// Counts a proposal that improved on all before.
    void improved() { unimproved_ = 0; }

  private:
    // A fifth per fifty proposals: a temperature that is ten times off is right after 500 of them.
    static constexpr std::uint32_t interval = 50;
    static constexpr double colder = 0.8, warmer = 1.25, least = 0x1p-60, most = 0x1p20;

    static double goal_of(double target) {
        double const volatile rounded = target * interval; // volatile: not fused with the difference, which rounds differently
        return rounded;
    }
    // Multiplies alone: a compiler that fuses operations would round sums and products otherwise than another.
    void adapt(double excess) {
        if (excess > 0 && relative_ > least) relative_ *= colder;
        if (excess < 0 && relative_ < most) relative_ *= warmer;
    }

    double fixed_, relative_;
    bool adapts_;
    double goal_; // accepted of each `interval`
    std::uint64_t reheat_interval_;
    std::uint64_t unimproved_ = 0;
    std::uint32_t worse_ = 0, accepted_ = 0; // since the last adaptation
};

} // namespace parsearch::search

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/chain/temperature.ipp>
#endif
