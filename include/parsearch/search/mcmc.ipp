#pragma once
// Markov chain Monte Carlo search over strategies, after FlexFlow.

#include <parsearch/search/mcmc.hpp>

namespace parsearch::search {

PARSEARCH_INLINE void validate(mcmc_options const& o) {
    require_budget(budget_of(o), "mcmc");
    if (o.temperature) require_amount(*o.temperature, "mcmc", "temperature");
    require_amount(o.relative_temperature, "mcmc", "relative_temperature");
    if (o.target_acceptance) require_fraction(*o.target_acceptance, "mcmc", "target_acceptance");
    if (!o.temperature && o.target_acceptance && o.relative_temperature == 0)
        throw invalid_input("mcmc: option 'relative_temperature' is 0 where 'target_acceptance' is ", *o.target_acceptance,
                            ": must be positive, since it is adapted by factors; 'temperature' 0 accepts nothing worse");
    if (o.race_length && *o.race_length == 0) throw invalid_input("mcmc: option 'race_length' is 0: must be at least 1");
    require_threads(o.threads, "mcmc");
    if (o.patience) require_fraction(*o.patience, "mcmc", "patience");
    require_fraction(o.time_patience, "mcmc", "time_patience");
    if (o.patience == 0.0 && o.time_patience <= 0 && !o.time && !o.evaluations && !o.stop.stop_possible())
        throw invalid_input("mcmc: option 'patience' is 0, and neither 'time', 'evaluations', 'stop' nor 'time_patience' is set: "
                            "one of them must end the search");
}

PARSEARCH_INLINE std::uint64_t reset_interval_of(mcmc_options const& o) noexcept {
    if (o.reset_interval) return *o.reset_interval;
    if (!o.evaluations) return 100;
    if (*o.evaluations >= 100'000) return 1000;
    return *o.evaluations < 100 ? 1 : *o.evaluations / 100;
}

PARSEARCH_INLINE chain_rules mcmc_fn::rules_of(mcmc_options const& o) {
    return {.temperature = {.fixed = o.temperature,
                            .relative = o.relative_temperature,
                            .target_acceptance = o.target_acceptance,
                            .reheat_interval = o.reheat_interval},
            .reset_interval = reset_interval_of(o),
            .race_length = race_length_of(o),
            .racing_starts = o.racing_starts};
}

} // namespace parsearch::search
