#pragma once
// Replica exchange: Markov chains at several temperatures that exchange their strategies.

#include <parsearch/core/error.hpp>
#include <parsearch/search/tempering.hpp>

namespace parsearch::search {

PARSEARCH_INLINE void validate(tempering_options const& o) {
    require_budget(budget_of(o), "tempering");
    if (o.replicas == 0 || o.replicas > 1024) throw invalid_input("tempering: option 'replicas' is ", o.replicas, ": must be between 1 and 1024");
    if (o.temperature) require_amount(*o.temperature, "tempering", "temperature");
    require_amount(o.relative_temperature, "tempering", "relative_temperature");
    require_amount(o.ratio, "tempering", "ratio");
    if (o.ratio < 1) throw invalid_input("tempering: option 'ratio' is ", o.ratio, ": must be at least 1");
    if (o.exchange_interval == 0) throw invalid_input("tempering: option 'exchange_interval' is 0: must be at least 1");
    if (o.patience) require_fraction(*o.patience, "tempering", "patience");
    require_threads(o.threads, "tempering");
    if (o.patience == 0.0 && !o.time && !o.evaluations && !o.stop.stop_possible())
        throw invalid_input(
            "tempering: option 'patience' is 0, and none of 'time', 'evaluations' and 'stop' is set: one of them must end the search");
}

} // namespace parsearch::search
