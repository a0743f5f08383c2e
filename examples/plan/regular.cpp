#include "regular.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/problem/tied.hpp>
#include <parsearch/search/greedy.hpp>

#include "tools/limits.hpp"
#include "tools/units.hpp"

namespace plan {
namespace {

std::optional<std::uint64_t> evaluations_of(request const& asked) {
    if (asked.rerun && asked.rerun->regular) return asked.rerun->regular->evaluations;
    auto const all = std::visit([](auto const& options) { return options.evaluations; }, *asked.search);
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
    auto const time = std::visit([](auto const& options) { return options.time; }, *asked.search);
    if (!asked.regular || !time || !ps::operator_ties(ps::graph::first_repeats(made.problem.graph()), made.problem.space()).any()) return {};
    return *time / 8;
}

std::optional<named_strategy> regular_strategy(request const& asked, planned& made, std::stop_token const& stop) {
    auto const& found = made.strategies.back();
    if (!asked.regular || (asked.rerun && asked.rerun->regular && asked.rerun->regular->evaluations == 0)) return {};
    tools::deadline const limit(stop, time_for_ties(asked, made));
    ps::tied_parallelization const tied(made.problem.until(limit.token()));
    auto const& ties = tied.ties();
    if (!ties.any() || ties.keeps(found.strategy)) return {};
    auto starts = patterns(ties, found.strategy);
    if (ties.keeps(made.start_strategy)) starts.push_back(ties.gather(made.start_strategy));
    named_strategy alike{.name = found.name + ", blocks alike"};
    try {
        auto price = tied.evaluator();
        std::optional<std::pair<ps::picoseconds, ps::space::flat_strategy>> best;
        for (auto& s : starts) {
            auto const cost = price(s);
            if (!best || cost < best->first) best.emplace(cost, std::move(s));
        }
        std::mt19937_64 rng{asked.seed};
        auto const searched = ps::search::greedy(tied, std::move(best->second), rng, {.evaluations = evaluations_of(asked), .stop = limit.token()});
        made.tied_evaluations = searched.stats.evaluations;
        alike.strategy = ties.spread(searched.best);
        alike.figures.cost = searched.cost;
        alike.figures.fits = made.problem.feasible(alike.strategy);
    } catch (ps::interrupted const&) {
        made.left_out.emplace_back("blocks that repeat were not planned alike: there was no time left");
        return {};
    }
    // A start is an expert's strategy, or the user's own: it runs as well.
    auto const start = made.other_operators() ? made.strategies.end() // those compared are of the model's
                                              : std::ranges::find(made.strategies, made.start_strategy, &named_strategy::strategy);
    bool const takes_start = start != made.strategies.end() && is_better(asked, start->figures, alike.figures);
    auto const& chosen = takes_start ? *start : alike;
    bool const pipeline = made.pipeline && is_better(asked, made.pipeline->figures, chosen.figures);
    auto const& rival = pipeline ? made.pipeline->figures : chosen.figures;
    auto const longer = [&](ps::io::compared const& f) { return ps::to_seconds(f.cost) / ps::to_seconds(found.figures.cost) - 1; };
    bool const comparable = asked.simulation.memory == ps::sim::memory_policy::ignore || found.figures.fits == rival.fits;
    if (is_better(asked, found.figures, rival) && (!comparable || longer(rival) > *asked.regular)) {
        made.notes.push_back(comparable ? ps::text("blocks that repeat differ: else a plan takes ", percent(longer(rival)), " longer (--regular ",
                                                   std::ceil(100 * longer(rival)) / 100, ')')
                                        : std::string("blocks that repeat differ: no plan was found without that and fits"));
        return {};
    }
    if (!pipeline && comparable && longer(chosen.figures) >= 0.001)
        made.notes.push_back(ps::text(takes_start ? "the start is taken, from which the best found differs between blocks that repeat"
                                                  : "blocks that repeat are planned alike",
                                      ", which takes ", percent(longer(chosen.figures)), " longer than the best found (--regular none)"));
    if (!takes_start) return alike;
    return named_strategy{.name = "chosen: " + made.start, .strategy = made.start_strategy};
}

} // namespace plan
