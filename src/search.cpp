#include <cstdint>

#include <parsearch/search/additive/budget.ipp>
#include <parsearch/search/additive/elimination_plan.ipp>
#include <parsearch/search/additive/factor.ipp>
#include <parsearch/search/additive/minimise.ipp>
#include <parsearch/search/additive/network_segments.ipp>
#include <parsearch/search/chain/temperature.ipp>
#include <parsearch/search/dominator_dp.ipp>
#include <parsearch/search/exhaustive.ipp>
#include <parsearch/search/greedy.ipp>
#include <parsearch/search/kernel/search_options.ipp>
#include <parsearch/search/kernel/stopping.ipp>
#include <parsearch/search/mcmc.ipp>
#include <parsearch/search/portfolio.ipp>
#include <parsearch/search/random_search.ipp>
#include <parsearch/search/tempering.ipp>
#include <parsearch/search/threads/thread_team.ipp>

namespace parsearch::search::additive {

template bool minimise(cost_tables<picoseconds> const&, double, std::function<void(std::span<std::uint32_t const>)> const&,
                       std::function<void(picoseconds const&)> const&, std::function<bool(phase)> const&);
template bool minimise(cost_tables<std::int64_t> const&, double, std::function<void(std::span<std::uint32_t const>)> const&,
                       std::function<void(std::int64_t const&)> const&, std::function<bool(phase)> const&);
template bool minimise_within(cost_tables<std::int64_t> const&, memory_limit const&, double, budget_calls const&);

} // namespace parsearch::search::additive
