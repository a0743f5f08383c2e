#pragma once
/// Joint search: the operators of a network and their parallelization decided together.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/conversion.hpp>
#include <parsearch/rewrite/fold_weights.hpp>
#include <parsearch/rewrite/graph_pricer.hpp>
#include <parsearch/rewrite/graph_rule.hpp>
#include <parsearch/rewrite/joint_cache.hpp>
#include <parsearch/rewrite/joint_options.hpp>
#include <parsearch/rewrite/names.hpp>
#include <parsearch/rewrite/operator_mapping.hpp>
#include <parsearch/rewrite/parallel_graph.hpp>
#include <parsearch/rewrite/seen_graphs.hpp>
#include <parsearch/rewrite/segments.hpp>
#include <parsearch/search/events.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/session.hpp>
#include <parsearch/search/telling.hpp>
#include <parsearch/space/experts.hpp>
#include <parsearch/space/replicas.hpp>

namespace parsearch::rewrite {

/// What `joint` finds: a graph that computes what the problem's does, and how to run it.
struct joint_plan {
    parallel_graph graph;            ///< in one task per operator
    graph::dense_graph operators;    ///< it as an operator graph, its weights folded, with the copies and partial sums of `replicas_of`; with the problem's names where it can be
    space::flat_strategy strategy;   ///< of these
    std::vector<std::string> applied; ///< the rules that led to it, in order: name, then operators
    bool mapped = false;              ///< the strategy is of machine mapping, or was refined from one that is
    std::string not_mapped{};         ///< of the graphs simulated, why the first was that was not mapped in all ways, or not with all views; empty where all were
};

/// What `joint` tells its observers of each graph that it simulated: the plan of its best strategy among those tried, before any is refined.
struct simulated_graph {
    std::uint64_t evaluation;
    std::uint64_t rank; ///< 0: the original, then the beam, last the graph that is best on one device
    joint_plan const& plan;
    picoseconds cost;
};

/// The operator graph of `g`, its weights folded: what is priced and simulated.
[[nodiscard]] inline graph::dense_graph folded_operators(parallel_graph const& g, purpose use = purpose::training) { return graph::read_graph(fold_weights(g, use)).graph; }

/// The options of the space of `problem`, with the copies and partial sums that any of its operators may have for all: operators are not the same ones when rules have been applied.
template <class P> [[nodiscard]] space::space_options replicas_of(P const& problem) {
    auto out = problem.space().options();
    for (auto const& op : problem.graph().operations)
        for (auto const& d : op.dims) {
            auto& most = d.kind == ops::dim_kind::copies ? out.copies : out.sums;
            if (!ops::repeats_work(d.kind) || d.extent > ops::max_replicas) continue;
            auto const both = std::lcm(most, d.extent);
            most = both <= ops::max_replicas ? both : std::max(most, d.extent);
        }
    return out;
}

/// A graph that was priced, and how it came to be.
struct priced_graph {
    parallel_graph graph;
    graph_price price;
    std::vector<std::string> applied;
};

namespace detail {

/// What a problem simulates.
template <class P> [[nodiscard]] purpose purpose_of(P const& problem) {
    return problem.workload()->options.training ? purpose::training : purpose::inference;
}
/// What is priced and simulated of `g` on the devices of `problem`.
template <class P> [[nodiscard]] graph::dense_graph operators_of(P const& problem, parallel_graph const& g) {
    return space::with_replicas(folded_operators(g, purpose_of(problem)), replicas_of(problem));
}

/// Optimises graphs by an additive price: segment after segment, all segments of one shape at once, best first. `price(graph)` answers a `graph_price`,
/// `tell(kind of segment, rule, price or none)` is told each, and `ended()` says whether to stop.
template <class Price, class Tell, class Ended> class graph_search {
  public:
    graph_search(std::vector<graph_rule> const& rules, joint_options const& options, Price price, Tell tell, Ended ended)
        : rules_(rules), options_(options), price_(std::move(price)), tell_(std::move(tell)), ended_(std::move(ended)) {}

    /// The best graph found from `start`. Those that were priced on the way are in `best()`.
    [[nodiscard]] priced_graph run(priced_graph start) {
        note(start);
        auto current = std::move(start);
        auto const step = static_cast<std::size_t>(options_.segment_operators);
        for (std::size_t sweep = 0; sweep < most_sweeps && !ended_(); ++sweep) {
            auto const before = current.price.cost;
            // Every other sweep cuts elsewhere, so that what stood across a cut stands within a segment.
            for (std::size_t kind = 0; !ended_(); ++kind) {
                auto const classes = classes_of(current.graph, step, sweep % 2 ? step / 2 + 1 : 0);
                if (kind >= classes.size()) break;
                improve(current, classes[kind], kind);
            }
            if (sweep % 2 == 1 && current.price.cost == before) break;
        }
        return current;
    }
    /// The best of all that were priced, at most `beam`, different, the least cost first.
    [[nodiscard]] std::vector<priced_graph> const& best() const noexcept { return best_; }

  private:
    static constexpr std::size_t most_sweeps = 8;
    using segment_class = std::vector<segment>; // of one shape

    struct candidate {
        parallel_graph part; ///< of a segment
        priced_graph whole;
        std::uint64_t number;
    };

    [[nodiscard]] static std::vector<segment_class> classes_of(parallel_graph const& g, std::size_t step, std::size_t offset) {
        std::vector<segment_class> out;
        for (auto const& operators : segments_of(g, step, offset)) {
            auto s = extract(g, operators);
            auto const same = std::ranges::find_if(out, [&](auto const& c) { return c[0].graph == s.graph; });
            if (same == out.end()) out.push_back({std::move(s)});
            else same->push_back(std::move(s));
        }
        return out;
    }

    void note(priced_graph const& g) {
        auto const at = std::ranges::upper_bound(best_, g.price.cost, {}, [](auto const& b) { return b.price.cost; });
        if (static_cast<std::uint64_t>(at - best_.begin()) >= options_.beam) return;
        if (std::ranges::any_of(best_, [&](auto const& b) { return b.price.cost == g.price.cost && b.graph == g.graph; })) return;
        best_.insert(at, g);
        if (best_.size() > options_.beam) best_.pop_back();
    }

    /// All that one application of one rule makes of `part`; and for each rule what is left when it was applied as often as it could.
    [[nodiscard]] std::vector<std::tuple<std::size_t, std::string, parallel_graph>> steps(parallel_graph const& part) {
        std::vector<std::tuple<std::size_t, std::string, parallel_graph>> out;
        for (std::size_t r = 0; r < rules_.size(); ++r) {
            auto made = rules_[r](part);
            if (made.size() > 1) {
                auto all = made[0].graph;
                std::size_t times = 1;
                seen_graphs on_the_way; // of a rule that goes round in a circle
                while (on_the_way.add(all) && times < part.size() && !ended_()) { // nor may it grow without end
                    auto next = rules_[r](all);
                    if (next.empty()) break;
                    all = std::move(next[0].graph);
                    ++times;
                }
                out.emplace_back(r, text(rules_[r].name(), ' ', times, " times"), std::move(all));
            }
            for (auto& m : made) out.emplace_back(r, text(rules_[r].name(), ": ", m.what), std::move(m.graph));
        }
        return out;
    }

    void improve(priced_graph& current, segment_class const& instances, std::size_t kind) {
        if (!settled_.add(instances[0].graph)) return; // searched before, where it stands now or elsewhere
        double const share = static_cast<double>(instances[0].names.size() * instances.size()) / static_cast<double>(std::max<std::size_t>(current.graph.operators().size(), 1));
        double const slack = (options_.alpha - 1) * static_cast<double>(current.price.cost.count()) * share;
        auto const within = [&](picoseconds cost) { return static_cast<double>(cost.count()) - static_cast<double>(current.price.cost.count()) <= slack; };
        auto const base = current;
        auto const worse = [](candidate const& a, candidate const& b) {
            return a.whole.price.cost != b.whole.price.cost ? a.whole.price.cost > b.whole.price.cost : a.number > b.number;
        };
        std::priority_queue<candidate, std::vector<candidate>, decltype(worse)> open(worse);
        seen_graphs seen;
        seen.add(instances[0].graph);
        open.push({instances[0].graph, current, 0});
        std::uint64_t priced = 0;
        while (!open.empty() && priced < options_.segment_graphs && !ended_()) {
            auto const from = open.top();
            open.pop();
            if (!within(from.whole.price.cost)) break;
            for (auto& [rule, what, part] : steps(from.part)) {
                if (priced >= options_.segment_graphs || ended_()) break;
                if (!seen.add(part)) continue;
                auto whole = put_in_place(base.graph, instances, part);
                ++priced;
                auto price = price_(whole);
                tell_(kind, rule, price.cost);
                auto applied = from.whole.applied;
                applied.push_back(instances.size() > 1 ? text(what, " (in ", instances.size(), " places)") : what);
                candidate next{std::move(part), {std::move(whole), std::move(price), std::move(applied)}, priced};
                note(next.whole);
                if (next.whole.price.cost < current.price.cost) current = next.whole;
                if (within(next.whole.price.cost)) open.push(std::move(next));
            }
        }
    }

    std::vector<graph_rule> const& rules_;
    joint_options const& options_;
    Price price_;
    Tell tell_;
    Ended ended_;
    std::vector<priced_graph> best_;
    seen_graphs settled_; ///< segments that were searched
};

/// The best graph found from `original` with the price on the first device of the problem alone.
template <class Cache, class P, class Tell, class Ended>
[[nodiscard]] priced_graph optimised_alone(Cache& cache, P const& problem, parallel_graph const& original, std::vector<graph_rule> const& rules, joint_options const& options,
                                           Tell const& tell, Ended const& ended) {
    auto const price = [&](parallel_graph const& g) { return cache.one().price(folded_operators(g, purpose_of(problem))); };
    return graph_search(rules, options, price, tell, ended).run({original, price(original), {}});
}

} // namespace detail

/// The problem of the graph that is best on one device, rewritten by `rules` before anything is parallelized: what optimising in sequence starts from.
/// Options as of `joint`, of which the refinement and the memory limit do not count here. Throws `invalid_input` on options out of range.
template <class Oracle, class Device, class Operator>
[[nodiscard]] auto rewritten_first(parallelization<Oracle, Device, Operator> const& problem, std::vector<graph_rule> const& rules, joint_options const& options = {}) {
    validate(options);
    search::stopping limit(search::budget_of(options));
    std::uint64_t evaluations = 1;
    joint_cache cache(problem, options.pricing);
    auto const best = detail::optimised_alone(
        cache, problem, lift(problem.graph()).graph, rules, options, [&](std::size_t, std::size_t, picoseconds) { ++evaluations; }, [&] { return limit.due(evaluations).has_value(); });
    return with_graph(problem, folded_operators(best.graph, detail::purpose_of(problem)));
}

/// The result of `joint`.
using joint_result = search_result<joint_plan, picoseconds>;

/// `joint(problem, rules, rng, options, observers...)`: which operators compute the network and how each is parallelized, decided together (Unger et al.,
/// Unity, OSDI 2022, section 6), on a problem of `make_problem`.
///
/// 1. The graph is cut at operators that all ways pass into segments of at least `segment_operators`; segments of one shape change together.
/// 2. In each, best-first search over what `rules` make of it, in which no graph is priced twice (exact comparison); each rule is also applied as often as
///    it can be, at most once per node. What costs more than the best by `alpha` - 1 times the segment's share of the operators is not followed up.
/// 3. A graph's price is that of its best parallelization under the additive cost of `graph_pricer`, found exactly where its tables fit; tables are
///    kept from graph to graph.
/// 4. Before, the same search with the price on one device finds what optimising the graph before its parallelization would; it starts from there
///    where that is better than the original.
/// 5. The original, the `beam` best graphs and that of step 4 are simulated with the strategies that are best with each of `usual_countings` of
///    synchronisation, with data parallelism, and on one device alone, since additive costs do not know what overlaps.
/// 6. Then these graphs are mapped to parts of the machine (`map_operators`), so that branches can run side by side, again with each counting of
///    synchronisation; those that did best so far come first, and there are `mapping_effort` steps in all. What is found is simulated.
/// 7. The least simulated cost wins, and is refined by `refinement` evaluations of `search::mcmc`. So, unless a budget ends it before, it is at most what
///    parallelizing the original graph, or the graph optimised before, would give in the same way; and without refinement at most what it is without mapping.
///    Without rules it is the best of these parallelizations and mappings of the original graph.
///
/// Reason `exhausted`: sweeps over the segments found nothing more, each within its budget, or there were eight. Evaluations count graphs priced and strategies simulated,
/// but not those without which there is no answer once the search has ended: as many evaluations as a search took that time ended are a budget with which
/// it finds the same. `stats.trajectory` is the hash of the graph found;
/// `proposed` is told for each graph priced (`op`: the kind of segment, `move`: the rule, `cost`: additive), `improved` for simulated costs
/// (`op`: 0 for the original, then the beam, last the graph of step 4; `move`: 0, or 1 where the strategy is of machine mapping; 0 and 0 for what is refined), `simulated_graph` for each of these in the end. A budget may end the search in step 4. Deterministic for a seed but for the time. No lower bound: none is known over all graphs.
/// Throws `invalid_input` on options out of range.
struct joint_fn {
    template <class Oracle, class Device, class Operator, class R, class... Os>
        requires RandomBits<R>
    joint_result operator()(parallelization<Oracle, Device, Operator> const& problem, std::vector<graph_rule> const& rules, R& rng,
                            joint_options const& options = {}, Os&&... observers) const {
        validate(options);
        joint_cache cache(problem, options.pricing);
        return with(cache, problem, rules, rng, options, std::forward<Os>(observers)...);
    }

    /// The same with what earlier searches remembered in `cache`, and for later ones; graphs are priced by its options, not by `options.pricing`. Throws `invalid_input` where it is one
    /// of another topology.
    template <class Oracle, class Device, class Operator, class R, class... Os>
        requires RandomBits<R>
    joint_result with(joint_cache<Oracle, Device>& cache, parallelization<Oracle, Device, Operator> const& problem, std::vector<graph_rule> const& rules, R& rng,
                      joint_options const& options = {}, Os&&... observers) const {
        cache.require_like(problem);
        // One of simulated graphs alone handles an event, too.
        static_assert(search::observed<picoseconds, std::conditional_t<search::handles_any<Os, simulated_graph>, search::move_counts, std::remove_reference_t<Os>>...>::checked);
        validate(options);
        search::stopping limit(search::budget_of(options));
        search_stats stats;
        std::optional<stop_reason> ended;
        picoseconds best_cost = cost_traits<picoseconds>::infinity();
        auto const over = [&] {
            if (!ended) ended = limit.due(std::max<std::uint64_t>(stats.evaluations, 1));
            return ended.has_value();
        };
        auto const tell = [&](auto const& event) { search::tell(event, observers...); };
        auto const told = [&](std::size_t kind, std::size_t rule, picoseconds cost) {
            ++stats.evaluations;
            ++stats.proposals;
            tell(search::proposed<picoseconds>{stats.evaluations, kind, rule, cost, best_cost});
        };

        auto const original = lift(problem.graph()).graph;
        auto& pricer = cache.all();
        auto const price = [&](parallel_graph const& g) { return pricer.price(detail::operators_of(problem, g)); };
        auto const priced = [&](parallel_graph const& g, std::vector<std::string> applied) {
            if (!ended) ++stats.evaluations;
            return priced_graph{g, price(g), std::move(applied)};
        };
        priced_graph const plain = priced(original, {});
        std::vector<priced_graph> finalists{plain};
        if (!rules.empty()) {
            auto const first = detail::optimised_alone(cache, problem, original, rules, options, told, over);
            auto const sequential = priced(first.graph, first.applied);
            detail::graph_search together(rules, options, price, told, over);
            static_cast<void>(together.run(sequential.price.cost < plain.price.cost ? sequential : plain));
            for (auto const& g : together.best()) finalists.push_back(g);
            finalists.push_back(sequential);
        }
        return simulated(problem, pricer, finalists, rng, options, stats, ended, limit, best_cost, over, tell);
    }

  private:
    template <class P, class Pricer, class R, class Over, class Tell>
    static joint_result simulated(P const& problem, Pricer& pricer, std::vector<priced_graph> const& finalists, R& rng, joint_options const& options,
                                  search_stats& stats, std::optional<stop_reason>& ended, search::stopping& limit, picoseconds& best_cost, Over const& over,
                                  Tell const& tell) {
        std::optional<joint_plan> best;
        auto const improved = [&](std::size_t rank, std::size_t move, picoseconds cost) {
            ++stats.improved;
            tell(search::improved<picoseconds>{stats.evaluations, rank, move, cost, best_cost});
        };
        struct to_map {
            std::size_t rank;
            decltype(with_graph(problem, std::declval<graph::dense_graph const&>())) candidate; ///< the problem of its operators
            std::vector<space::flat_strategy> found;
            std::optional<joint_plan> plan; ///< of the least cost
            picoseconds least = cost_traits<picoseconds>::infinity();
            bool refused = false;
        };
        std::vector<to_map> simulated_graphs;
        auto const simulate = [&](auto& evaluate, to_map& g, space::flat_strategy const& strategy, bool mapped) {
            auto const cost = evaluate(strategy);
            if (!ended) ++stats.evaluations;
            if (!g.plan || cost < g.least) {
                g.least = cost;
                g.plan = joint_plan{finalists[g.rank].graph, g.candidate.graph(), strategy, finalists[g.rank].applied, mapped};
            }
            if (best && !(cost < best_cost)) return;
            if (best) improved(g.rank, mapped, cost);
            best_cost = cost;
            best = g.plan;
        };
        static_cast<void>(over()); // what comes first is simulated in any case, and counts where the budget is not spent
        for (std::size_t rank = 0; rank < finalists.size(); ++rank) {
            if (best && over()) break;
            auto const& f = finalists[rank];
            bool const known = std::any_of(finalists.begin(), finalists.begin() + static_cast<std::ptrdiff_t>(rank), [&](auto const& g) { return g.graph == f.graph; });
            if (known) continue;
            auto& g = simulated_graphs.emplace_back(to_map{rank, with_graph(problem, detail::operators_of(problem, f.graph)), {f.price.strategy}, {}});
            auto evaluate = g.candidate.evaluator();
            simulate(evaluate, g, f.price.strategy, false);
            if (!over()) simulate(evaluate, g, data_parallel(g.candidate), false);
            if (!over()) simulate(evaluate, g, space::one_device(g.candidate.graph()), false);
            for (auto const& counting : usual_countings)
                if (!over()) simulate(evaluate, g, g.found.emplace_back(pricer.price(g.candidate.graph(), counting).strategy), false);
        }
        std::ranges::stable_sort(simulated_graphs, {}, &to_map::least);
        std::string not_mapped;
        auto views = static_cast<std::size_t>(options.mapping_views); // those that sufficed for the last graph: the next is much like it
        auto effort = options.mapping_effort;
        auto const keep_first = [&](std::string why) {
            if (not_mapped.empty()) not_mapped = std::move(why);
        };
        for (auto const& counting : usual_countings)
            for (auto& g : simulated_graphs) {
                if (g.refused) continue;
                if (views == 0 || effort == 0 || over()) {
                    keep_first(views == 0 ? "option 'mapping_views' is 0" : effort == 0 ? text("option 'mapping_effort', ", options.mapping_effort, " steps for all graphs, is used up") : "the search ended before");
                    continue;
                }
                operator_mapping_options asked{.views = views, .synchronisation = counting};
                asked.limits.effort = std::min(asked.limits.effort, effort);
                asked.limits.stopped = over;
                auto const made = map_operators(pricer, g.candidate.graph(), asked, g.found);
                effort -= std::min(effort, made.steps);
                if (!made.refused.empty()) keep_first(made.refused);
                g.refused = made.strategy.empty();
                if (g.refused || over()) continue;
                views = made.views;
                auto evaluate = g.candidate.evaluator();
                simulate(evaluate, g, made.strategy, true);
            }
        best->not_mapped = std::move(not_mapped);
        std::ranges::sort(simulated_graphs, {}, &to_map::rank);
        for (auto const& g : simulated_graphs) tell(simulated_graph{stats.evaluations, g.rank, *g.plan, g.least});
        if (options.refinement > 0 && !over()) {
            search::mcmc_options chain{.evaluations = options.refinement, .stop = options.stop};
            search::fix_derived(chain); // before a budget cuts it short
            if (options.time) chain.time = std::max(*options.time - limit.elapsed(), std::chrono::nanoseconds{0});
            if (options.evaluations) chain.evaluations = std::min(options.refinement, *options.evaluations - stats.evaluations);
            auto refined = search::mcmc(with_graph(problem, best->operators), best->strategy, rng, chain);
            stats.evaluations += refined.stats.evaluations;
            if (refined.reason != stop_reason::evaluation_budget || *chain.evaluations < options.refinement) ended = refined.reason;
            if (refined.cost < best_cost) {
                improved(0, 0, refined.cost);
                best_cost = refined.cost;
                best->strategy = std::move(refined.best);
            }
        }
        keep_names(best->operators, problem.graph());
        stats.trajectory = best->graph.hash();
        stats.seconds = std::chrono::duration<double>(limit.elapsed()).count();
        return {.best = *std::move(best), .cost = best_cost, .lower_bound = {}, .stats = stats, .reason = ended.value_or(stop_reason::exhausted)};
    }
};
inline constexpr joint_fn joint{};

} // namespace parsearch::rewrite
