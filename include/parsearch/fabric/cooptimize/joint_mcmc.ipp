#pragma once
// Markov chain Monte Carlo over strategy and wiring at once.

#include <parsearch/fabric/cooptimize/joint_mcmc.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE void validate(joint_mcmc_options const& o) {
    search::require_budget(search::budget_of(o), "joint_mcmc");
    search::require_fraction(o.link_share, "joint_mcmc", "link_share");
    search::require_amount(o.relative_temperature, "joint_mcmc", "relative_temperature");
    if (o.target_acceptance) search::require_fraction(*o.target_acceptance, "joint_mcmc", "target_acceptance");
    if (o.patience) search::require_fraction(*o.patience, "joint_mcmc", "patience");
}

} // namespace parsearch::fabric

namespace parsearch::fabric::detail {

PARSEARCH_INLINE std::optional<fabric_pricer::cost> fabric_pricer::propose(changes what, cost const& bound) {
    if (auto const* const wired = std::get_if<network>(&what.front().to)) {
        there_.emplace(make(*wired));
        proposed_ = *wired;
        auto const priced = there_->evaluator.reset(current_.strategy);
        return priced <= bound ? std::optional(priced) : std::nullopt;
    }
    configurations_.clear();
    for (auto const& c : what) configurations_.push_back({*c.op, std::get<space::configuration>(c.to)});
    return here_.evaluator.propose(configurations_, bound);
}

PARSEARCH_INLINE void fabric_pricer::keep() {
    if (there_) {
        here_ = *std::exchange(there_, std::nullopt);
        current_.wired = std::move(proposed_);
        return;
    }
    here_.evaluator.commit();
    for (auto const& c : configurations_) current_.strategy[c.op] = c.configuration;
}

} // namespace parsearch::fabric::detail
