// `plan` runs on one machine.

#include <memory>
#include <random>
#include <utility>

#include <parsearch/io/described/searches.hpp>

#include "planner.hpp"
#include "ranks.hpp"

namespace plan {

struct ranks::state {};
ranks::ranks() = default;
ranks::~ranks() = default;
void ranks::take_options(int&, char**) {}
void ranks::require(request&, inputs const&) const {}
bool ranks::helps() const { return false; }
void ranks::help(request const&, planned const&) const {}
int ranks::ended(int code) const { return code; }

ps::search_result<ps::space::flat_strategy, ps::picoseconds> search_once(ps::io::search_options const& options, ps::parallelization const& problem,
                                                                         ps::space::flat_strategy start, std::mt19937_64& rng,
                                                                         progress_display& progress, ps::search::move_counts& counts) {
    return ps::io::run_search(options, problem, std::move(start), rng, progress, counts);
}

} // namespace plan
