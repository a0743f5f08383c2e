#pragma once
// Partitions a network into the stages of a pipeline: where to cut, how many micro-batches, in which order, what to compute again.

#include <map>
#include <numeric>

#include <parsearch/core/interruption.hpp>
#include <parsearch/pipeline/partition.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE pipeline_result partition_fn::search_state::run(pipeline_plan start) {
    try {
        search_all(std::move(start));
    } catch (interrupted const&) { // the problem's own token
        end_early(stop_reason::stop_requested);
    } catch (std::bad_alloc const&) {
        end_early(stop_reason::out_of_memory);
    }
    return kernel_.finish(ended_.value_or(stop_reason::exhausted), feasible_);
}

PARSEARCH_INLINE void partition_fn::search_state::search_all(pipeline_plan start) {
    if (!start.strategy.empty() && allowed(start.strategy)) consider(std::move(start), false);
    for (auto const& strategy : options_.starts)
        if (!kernel_.has_best() || !over()) unpipelined_strategy(strategy);
    auto all = divisions();
    kernel_.tell(estimated_pipelines{all.size()});
    simulate_textbook(all);
    auto rest = enumerate(std::move(all), likely);
    for (auto& strategy : problem_.starts())
        if (!kernel_.has_best() || !over()) unpipelined_strategy(std::move(strategy));
    improve_beam();
    if (!rest.empty()) {
        (void)enumerate(std::move(rest), forever);
        improve_beam();
    }
}

PARSEARCH_INLINE void partition_fn::search_state::end_early(stop_reason why) {
    if (!kernel_.has_best()) throw;
    bool const late = options_.time && kernel_.elapsed() >= *options_.time;
    if (late && why == stop_reason::stop_requested && !options_.stop.stop_requested()) why = stop_reason::time_budget;
    ended_ = why;
}

PARSEARCH_INLINE picoseconds partition_fn::search_state::consider(pipeline_plan&& plan, bool improves, picoseconds bound,
                                                                  bool known_where_exceeding) {
    if ((ties_ || problem_.space().options().admits) && !allowed(plan.strategy)) return unbounded;
    if (!feasible_) bound = unbounded; // one that fits is better than the best
    auto priced = builder_.simulator().within(plan.how, plan.strategy, bound);
    if (!priced && known_where_exceeding && exceeds()) priced = builder_.simulator()(plan.how, plan.strategy);
    auto const too_much = [&] { return priced && *priced > bound && !(known_where_exceeding && exceeds()); };
    if (too_much()) priced.reset();
    refused_ = priced && *priced < unbounded;
    if (priced) priced = with_surcharge(options_, plan, *priced);
    refused_ = refused_ && *priced == unbounded;
    if (too_much()) priced.reset();
    kernel_.count_evaluation();
    kernel_.count_proposal();
    kernel_.tell(simulated_pipeline{kernel_.stats().evaluations, plan, builder_.simulator(), improves, priced, kernel_.best_cost()});
    bool const fits = priced && *priced < unbounded && !exceeds();
    auto const cost = feasible_ && !fits ? unbounded : priced.value_or(unbounded);
    if (fits && !feasible_ && kernel_.has_best()) {
        kernel_.improve(std::move(plan), cost);
        beam_.clear();
        feasible_ = true;
    } else if (kernel_.offer(std::move(plan), cost)) {
        feasible_ = fits;
    }
    kernel_.report(options_.progress_interval, cost);
    return cost;
}

PARSEARCH_INLINE void partition_fn::search_state::unpipelined_strategy(space::flat_strategy strategy) {
    if (!allowed(strategy)) return;
    pipeline_plan plan{.how = unpipelined(problem_.graph()), .strategy = std::move(strategy)};
    auto sharded = plan;
    consider(std::move(plan), false);
    sharded.how.sharded = sharded_states::optimizer;
    if (rules_.may_shard() && exceeds() && !over()) consider(std::move(sharded), false);
}

PARSEARCH_INLINE void partition_fn::search_state::simulate_textbook(std::vector<division>& all) {
    struct choice {
        stage_estimate estimate;
        division* of;
        std::size_t way;
    };
    auto const family = [](division const& d, std::size_t way) {
        return family_of(d.stages, d.split.tensor, d.split.experts, d.split.context, d.ways[way].sharded);
    };
    std::map<plan_family, choice> best;
    for (auto& d : all)
        for (std::size_t i = 0; i < d.estimates.size(); ++i) {
            choice const c{d.estimates[i], &d, i};
            auto const [at, first] = best.emplace(family(d, i), c);
            if (!first && sooner(c.estimate, at->second.estimate)) at->second = c;
        }
    /// The best of those that were not simulated.
    auto const next_of = [&](plan_family const& wanted) {
        std::optional<choice> out;
        for (auto& d : all)
            for (std::size_t i = 0; i < d.estimates.size(); ++i)
                if ((!out || sooner(d.estimates[i], out->estimate)) && family(d, i) == wanted && !d.known_cost_of(i)) out = {d.estimates[i], &d, i};
        return out;
    };
    std::vector<choice> choices;
    for (auto const& [_, c] : best) choices.push_back(c);
    std::ranges::stable_sort(choices, sooner, &choice::estimate);
    for (std::optional<choice> c : choices) {
        auto const wanted_family = family(*c->of, c->way);
        for (int tries = 0; c && tries < most_refused; ++tries) {
            bool const wanted = !feasible_ && c->estimate.missing <= 0; // even where there is no time left
            if (kernel_.has_best() && over() && !(wanted && *ended_ == stop_reason::time_budget)) return;
            auto& d = *c->of;
            auto const cost =
                consider(run_as(d.ways[c->way], builder_.balanced(d.stages, d.interleaved, d.micro_batches, d.split)), false, unbounded);
            d.known.push_back({c->way, cost, exceeds(), refused_});
            c = refused_ ? next_of(wanted_family) : std::nullopt;
        }
    }
}

PARSEARCH_INLINE detail::candidate partition_fn::search_state::run_as(equal_stages const& how, detail::candidate c) {
    c.order = how.order;
    c.sharded = how.sharded;
    c.recompute.assign(c.first.size(), how.recomputes());
    c.segments = std::max<std::uint32_t>(1, how.segments);
    c.kept = how.kept;
    c.offloaded = how.offloaded;
    c.joined = how.joined;
    if (how.fitted)
        if (auto stages = estimate_.fitted(how)) {
            c.first = std::move(stages->first);
            c.recompute = std::move(stages->recompute);
        }
    return c;
}

PARSEARCH_INLINE std::vector<partition_fn::search_state::division> partition_fn::search_state::enumerate(std::vector<division> which, double slack) {
    std::vector<division> rest;
    for (auto& d : which) {
        if (over()) break;
        auto const best = std::min(kernel_.best_cost(), options_.bound.value_or(kernel_.best_cost()));
        auto const unlikely = [&](stage_estimate const& e) {
            return e.missing > 0 || static_cast<double>(e.time) > slack * static_cast<double>(best.count());
        };
        if (feasible_ && slack < forever && !d.estimates.empty() && unlikely(d.estimates.front())) {
            rest.push_back(std::move(d));
            continue;
        }
        auto c = builder_.balanced(d.stages, d.interleaved, d.micro_batches, d.split);
        auto bounded = c; // whatever way it is run: the bound is weaker where backward is cut
        if (std::ranges::any_of(d.ways, [](auto const& way) { return cuts_backward(way.order); })) bounded.order = launch_order::zb_h1;
        if (feasible_ && builder_.least_time(bounded) >= best.count()) continue;
        auto const cost = run_as_it_fits(d, c);
        remember(cost, std::move(c));
    }
    return rest;
}

PARSEARCH_INLINE void partition_fn::search_state::improve_beam() {
    for (auto const beam = beam_; auto const& [cost, c] : beam) {
        if (over()) return;
        improve(cost, c);
    }
}

PARSEARCH_INLINE std::vector<partition_fn::search_state::division> partition_fn::search_state::divisions() {
    std::vector<division> out;
    bool some_fit = feasible_; // by their estimates
    auto const wait = [&] {
        if (out.size() >= options_.estimates.value_or(std::numeric_limits<std::uint64_t>::max())) return false;
        return !over() || (!some_fit && *ended_ == stop_reason::time_budget && kernel_.elapsed() <= patience);
    };
    auto const fits = [](stage_estimate const& e) { return e.missing <= 0; };
    auto const devices = builder_.devices();
    auto const most = std::min<std::uint64_t>({options_.max_stages, devices, builder_.order().size()});
    for (std::uint32_t groups = 1; groups <= most; ++groups) {
        if (devices % groups != 0) continue;
        for (std::uint64_t m = 1; m <= rules_.most_micro_batches(); ++m) {
            if (!rules_.divide_samples(m)) continue;
            for (auto const& by : splits(devices / groups, m)) {
                if (!wait() || !builder_.allows(static_cast<std::uint32_t>(m), devices / groups, by)) continue;
                for (std::uint32_t rounds = 1; rounds <= most_rounds(groups, m); rounds *= 2) {
                    if (!wait()) break;
                    out.push_back({groups * rounds, rounds, static_cast<std::uint32_t>(m), by});
                    estimate_ways(out.back());
                    some_fit = some_fit || std::ranges::any_of(out.back().estimates, fits);
                }
            }
        }
    }
    std::ranges::stable_sort(out, [](division const& a, division const& b) {
        if (a.estimates.empty() || b.estimates.empty()) return !a.estimates.empty() && b.estimates.empty();
        return sooner(a.estimates.front(), b.estimates.front());
    });
    return out;
}

PARSEARCH_INLINE std::vector<space::neighbour_split> partition_fn::search_state::splits(std::size_t group, std::uint64_t micro_batches) {
    std::vector<space::neighbour_split> out;
    for (auto const t : builder_.degrees(group)) {
        for (auto const e : builder_.expert_degrees(group, t, true)) out.push_back({.tensor = t, .experts = e});
        if (!options_.context_parallel) continue;
        for (auto const& by : builder_.context_splits(group, t, true))
            if (rules_.samples() == micro_batches * (group / by.replica()) &&
                builder_.splits_positions(static_cast<std::uint32_t>(micro_batches), group, by))
                out.push_back(by);
    }
    return out;
}

PARSEARCH_INLINE void partition_fn::search_state::estimate_ways(division& d) {
    bool const in_turn = d.stages > 1 && d.micro_batches > 1 && problem_.options().training; // else both orders are one
    auto const group = builder_.devices() / (d.stages / d.interleaved);
    std::vector<std::pair<stage_estimate, equal_stages>> estimated;
    auto const add = [&](equal_stages const& way) {
        auto const e = estimate_(way);
        if (e) estimated.push_back({*e, way});
        if (e || !way.fitted) d.ways.push_back(way);
        return e;
    };
    for (auto const order : orders_to_try)
        for (auto const states : all_sharded_states) {
            bool const seldom = states == sharded_states::gradients || states == sharded_states::parameters_within_nodes;
            if (!rules_.may_run(order, states) || (order != launch_order::one_f_one_b && (!in_turn || seldom)) ||
                (order == launch_order::eager_one_f_one_b && d.interleaved > 1) || (states >= sharded_states::gradients && d.interleaved > 1) ||
                !may_shard(states, group))
                continue;
            bool const joins = states == sharded_states::gradients || states == sharded_states::parameters;
            for (std::uint32_t joined = 0; joined <= (joins ? 1 : 0); ++joined) {
                equal_stages way{d.stages, d.interleaved, d.micro_batches, d.split, order, states};
                way.joined = joined;
                auto const keeps = add(way);
                bool const may_fit = keeps && keeps->missing > 0 && d.stages > 1 && d.interleaved == 1 && !seldom;
                if (may_fit && !rules_.may_recompute()) {
                    way.fitted = true;
                    add(way);
                }
                for (way.segments = 1; rules_.may_recompute() && way.segments <= most_segments; way.segments *= 4)
                    for (bool const fitted : {false, true})
                        if (way.fitted = fitted; !fitted || may_fit) add(way);
                way.fitted = false;
                for (way.segments = most_segments; rules_.may_recompute() && keeps && keeps->missing > 0 && way.segments > 4; way.segments /= 4) {
                    way.kept = estimate_.most_kept(way);
                    if (way.kept > 0) add(way);
                }
                if (!may_offload() || !keeps || keeps->missing <= 0 || order > launch_order::one_f_one_b) continue;
                for (way.segments = 16; way.segments <= most_segments; way.segments *= 4) {
                    for (way.kept = rules_.may_recompute() ? 0 : way.segments; way.kept <= way.segments; way.kept += way.segments / 2) {
                        way.offloaded = way.segments;
                        add(way);
                    }
                    way.kept = way.segments;
                    way.offloaded = estimate_.least_offloaded(way);
                    if (way.offloaded > 0 && way.offloaded < way.segments) add(way);
                }
            }
        }
    if (estimated.empty()) return;
    std::ranges::stable_sort(estimated, sooner, [](auto const& e) { return e.first; });
    d.ways.clear();
    for (auto const& [e, way] : estimated) {
        d.estimates.push_back(e);
        d.ways.push_back(way);
    }
}

PARSEARCH_INLINE picoseconds partition_fn::search_state::run_as_it_fits(division const& d, detail::candidate& c) {
    auto const bound = beam_.size() < options_.beam ? unbounded : std::max(beam_.back().first, kernel_.best_cost());
    auto least = unbounded;
    bool least_fits = false;
    auto const bare = c;
    std::optional<std::size_t> first; // that fits
    for (std::size_t i = 0; i < d.ways.size() && (i == 0 || !over()); ++i) {
        // Estimates of what moves block by block are rougher: the first of the others is simulated, too, where it may be as good.
        if (first && (by_blocks(d.ways[i]) == by_blocks(d.ways[*first]) || d.estimates[i].missing > 0 ||
                      static_cast<double>(d.estimates[i].time) > close * static_cast<double>(d.estimates[*first].time)))
            continue;
        auto const other = run_as(d.ways[i], bare);
        auto const* const known = d.known_cost_of(i);
        auto const cost = known ? known->cost : consider(other, false, bound, true);
        bool const fits = known ? !known->exceeds : !exceeds();
        bool const refused = known ? known->refused : refused_;
        if (i == 0 || (!refused && std::pair(!fits, cost) < std::pair(!least_fits, least))) {
            least = cost;
            least_fits = fits;
            c = other;
        }
        if (refused) continue; // of another way it may be otherwise
        if (first || (fits && d.estimates.empty()) || (!d.estimates.empty() && d.estimates[i].missing > 0)) break;
        if (fits) first = i;
    }
    return feasible_ && !least_fits ? unbounded : least;
}

PARSEARCH_INLINE void partition_fn::search_state::remember(picoseconds cost, detail::candidate c) {
    if (cost == unbounded && beam_.size() == options_.beam) return;
    auto const at = std::ranges::upper_bound(beam_, cost, {}, [](auto const& b) { return b.first; });
    beam_.insert(at, {cost, std::move(c)});
    if (beam_.size() > options_.beam) beam_.pop_back();
}

PARSEARCH_INLINE void partition_fn::search_state::improve(picoseconds cost, detail::candidate c) {
    for (bool better = true; better;) {
        better = false;
        for (auto const& other : neighbours(c)) {
            if (over()) return;
            if (!builder_.allows(other)) continue;
            if (builder_.least_time(other) >= std::min(cost, options_.bound.value_or(cost)).count() || !tried_.insert(other).second) continue;
            if (auto const priced = consider(other, true, cost); priced < cost) {
                cost = priced;
                c = other;
                better = true;
                break;
            }
        }
    }
}

PARSEARCH_INLINE std::vector<detail::candidate> partition_fn::search_state::neighbours(detail::candidate const& c) {
    std::vector<detail::candidate> out;
    auto const stages = c.first.size();
    auto const with = [&](auto const& change) {
        auto other = c;
        change(other);
        out.push_back(std::move(other));
    };
    auto const& places = builder_.places().of(stages);
    for (std::size_t s = 1; s < stages; ++s) {
        auto const at = static_cast<std::size_t>(std::ranges::lower_bound(places, c.first[s]) - places.begin());
        for (std::size_t step = 8; step > 0; step /= 2) {
            if (at + step < places.size() && places[at + step] < c.end(s, builder_.order().size()))
                with([&](auto& o) { o.first[s] = places[at + step]; });
            if (at >= step && places[at - step] > c.first[s - 1]) with([&](auto& o) { o.first[s] = places[at - step]; });
        }
    }
    auto const group = builder_.devices() / c.groups();
    for (std::size_t s = 0; s < stages; ++s)
        for (auto const t : builder_.degrees(group))
            if (t != c.tensor[s] && (c.experts == 1 || c.experts % t == 0) && c.heads == 1 && (c.context == 1 || has_context(group, t, c.context)))
                with([&](auto& o) { o.tensor[s] = t; });
    auto const tensor = std::accumulate(c.tensor.begin(), c.tensor.end(), std::uint32_t{1}, [](auto x, auto y) { return std::lcm(x, y); });
    for (auto const e : builder_.expert_degrees(group, tensor))
        if (e != c.experts && c.context == 1) with([&](auto& o) { o.experts = e; });
    if (c.context > 1)
        for (auto const& by : builder_.context_splits(group, tensor)) // as many positions, exchanged the other way
            if (by.context == c.context && by.heads != c.heads) with([&](auto& o) { o.heads = by.heads; });
    if (rules_.may_recompute() && c.kept < c.segments)
        for (std::size_t s = 0; s < stages; ++s) with([&](auto& o) { o.recompute[s] = !o.recompute[s]; });
    bool const again = std::ranges::find(c.recompute, true) != c.recompute.end();
    if (again || c.offloaded > 0) {
        if (c.segments < most_segments)
            with([](auto& o) {
                o.segments *= 2;
                o.kept *= 2;
                o.offloaded *= 2;
            });
        if (c.segments > 1 && c.offloaded != 1)
            with([](auto& o) {
                o.segments /= 2;
                o.kept /= 2;
                o.offloaded /= 2;
            });
        for (auto const step : {1U, 4U}) {
            if (again && c.kept + step < c.segments) with([&](auto& o) { o.kept += step; });
            if (again && c.kept >= step) with([&](auto& o) { o.kept -= step; });
            if (c.offloaded > 0 && c.offloaded + step <= c.segments) with([&](auto& o) { o.offloaded += step; });
            if (c.offloaded > step) with([&](auto& o) { o.offloaded -= step; });
        }
    }
    if (may_offload() && again && c.offloaded == 0 && c.segments > 1 && !cuts_backward(c.order))
        with([](auto& o) { // what that leaves free, other segments may keep
            o.offloaded = o.segments;
            o.kept = std::min(o.segments - 1, o.kept + std::max(1U, o.segments / 4));
        });
    if (again && c.offloaded > 0) with([](auto& o) { o.offloaded = 0; });
    auto const twice = std::uint64_t{2} * c.micro_batches;
    if (rules_.divide_samples(twice)) with([](auto& o) { o.micro_batches *= 2; });
    bool const in_rounds = c.interleaved > 1; // whose micro-batches are a multiple of the groups
    if (c.micro_batches % (in_rounds ? 2 * c.groups() : 2) == 0) with([](auto& o) { o.micro_batches /= 2; });
    if (c.micro_batches > 1)
        for (auto const order : launch_orders)
            if (order != c.order && rules_.may_run(order, c.sharded, c.offloaded > 0) && (c.groups() > 1 || !cuts_backward(order)))
                with([&](auto& o) { o.order = order; });
    for (auto const states : all_sharded_states)
        if (states != c.sharded && may_shard(states, builder_.devices() / c.groups())) with([&](auto& o) { o.share(states); });
    if (c.sharded >= sharded_states::gradients) {
        if (c.joined < builder_.order().size()) with([](auto& o) { o.joined = std::max<std::uint32_t>(1, 2 * o.joined); });
        if (c.joined > 0) with([](auto& o) { o.joined /= 2; });
    }
    return out;
}

} // namespace parsearch::pipeline
