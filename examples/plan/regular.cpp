#include "regular.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <parsearch/problem/tied.hpp>
#include <parsearch/search/greedy.hpp>

#include "tools/limits.hpp"
#include "tools/units.hpp"

namespace plan {
namespace {

std::optional<std::uint64_t> evaluations_of(request const& asked) {
    if (asked.rerun && asked.rerun->regular) return asked.rerun->regular->evaluations;
    auto const all = ps::io::visit_search(*asked.search, [](auto const&, auto const& options) { return options.evaluations; });
    return all ? std::optional(std::max<std::uint64_t>(1, *all / 4)) : std::nullopt; // beside those of the search
}

// What all blocks have where they have what the n-th of each kind has in `s`.
std::vector<ps::space::flat_strategy> patterns(ps::operator_ties const& ties, ps::space::flat_strategy const& s) {
    std::size_t most = 0;
    for (std::size_t g = 0; g < ties.size(); ++g) most = std::max(most, ties.of(g).size());
    std::vector<ps::space::flat_strategy> out;
    for (std::size_t n = 0; n < most; ++n) {
        ps::space::flat_strategy pattern;
        for (std::size_t g = 0; g < ties.size(); ++g) pattern.push_back(s[ties.of(g)[std::min(n, ties.of(g).size() - 1)]]);
        if (std::ranges::find(out, pattern) == out.end()) out.push_back(std::move(pattern));
    }
    return out;
}

std::string percent(double share) { return ps::text(static_cast<double>(static_cast<std::int64_t>(1000 * share + 0.5)) / 10, '%'); }

} // namespace

std::optional<std::chrono::nanoseconds> time_for_ties(request const& asked, planned const& made) {
    auto const time = ps::io::visit_search(*asked.search, [](auto const&, auto const& options) { return options.time; });
    if (!asked.regular || !time || !ps::operator_ties(ps::graph::first_repeats(made.problem.graph()), made.problem.space()).any()) return {};
    return *time / 8;
}

bool make_regular(request const& asked, planned& made, std::stop_token const& stop) {
    auto& found = made.strategies.back();
    if (!asked.regular || (asked.rerun && asked.rerun->regular && asked.rerun->regular->evaluations == 0)) return false;
    auto const time = time_for_ties(asked, made);
    tools::deadline const limit(stop, time);
    ps::tied_parallelization const tied(made.problem.until(limit.token()));
    auto const& ties = tied.ties();
    if (!ties.any() || ties.keeps(found.strategy)) return false;
    auto starts = patterns(ties, found.strategy);
    if (ties.keeps(made.start_strategy)) starts.push_back(ties.gather(made.start_strategy));
    std::optional<std::pair<ps::picoseconds, ps::space::flat_strategy>> best;
    try {
        auto price = tied.evaluator();
        for (auto& s : starts) {
            auto const cost = price(s);
            if (!best || cost < best->first) best.emplace(cost, std::move(s));
        }
        std::mt19937_64 rng{asked.seed};
        auto const searched = ps::search::greedy(tied, best->second, rng, {.time = time, .evaluations = evaluations_of(asked), .stop = stop});
        made.tied_evaluations = searched.stats.evaluations;
        best.emplace(searched.cost, ties.spread(searched.best));
    } catch (ps::interrupted const&) {
        return false;
    }
    // An expert's strategy is one that runs, too.
    auto const known = std::ranges::find(made.strategies, made.start_strategy, &named_strategy::strategy);
    if (known != made.strategies.end() && known->figures.cost < best->first) best.emplace(known->figures.cost, made.start_strategy);
    auto const& strategy = best->second;
    auto rival = best->first;
    bool fits = made.problem.feasible(strategy);
    if (made.pipeline && (made.pipeline->figures.fits > fits || made.pipeline->figures.cost < rival)) {
        rival = made.pipeline->figures.cost;
        fits = made.pipeline->figures.fits;
    }
    auto const gain = ps::to_seconds(rival) / ps::to_seconds(found.figures.cost) - 1;
    if (found.figures.fits > fits || gain > *asked.regular) {
        made.notes.push_back(ps::text("blocks that repeat differ: alike they take ", percent(gain), " longer (--regular 1)"));
        return false;
    }
    if (auto const lost = ps::to_seconds(best->first) / ps::to_seconds(found.figures.cost) - 1; lost >= 0.001)
        made.notes.push_back(
            ps::text("blocks that repeat are planned alike, which takes ", percent(lost), " longer than the best found (--regular none)"));
    found.strategy = strategy;
    return true;
}

} // namespace plan
