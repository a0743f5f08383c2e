#pragma once
// A lower bound on the strategies of a problem that weighs resources against paths: Lagrangian relaxation.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/problem/lagrangian_bound.hpp>
#include <parsearch/search/additive/minimise.hpp>
#include <parsearch/sim/bounds/choice_tables.hpp>
#include <parsearch/sim/bounds/class_tables.hpp>
#include <parsearch/sim/bounds/work_bound.hpp>

namespace parsearch::detail {

/// Weights are integers, parts of this; they add up to it at most.
inline constexpr std::int64_t whole_weight = std::int64_t{1} << 20;

/// `amount` times `weight`, rounded down.
[[nodiscard]] constexpr std::int64_t weighted(std::int64_t amount, std::int64_t weight) noexcept {
    return amount / whole_weight * weight + amount % whole_weight * weight / whole_weight;
}

PARSEARCH_INLINE void lagrangian::find_kinds() {
    auto const& t = work_->topology;
    std::map<std::tuple<bool, std::uint32_t, double, std::int64_t>, std::uint32_t> numbers;
    auto const add = [&](bool link, std::uint32_t kind, double rate, std::int64_t latency) {
        auto const [at, first] = numbers.try_emplace({link, kind, rate, latency}, static_cast<std::uint32_t>(count_.size()));
        if (first) count_.push_back(0);
        ++count_[at->second];
        kind_.push_back(at->second);
    };
    for (auto const kind : t.kind) add(false, kind, 0, 0);
    for (auto const& l : t.links) add(true, 0, l.rate.bytes_per_second, l.latency.count());
}

PARSEARCH_INLINE void lagrangian::add_operators() {
    auto const& g = graph();
    auto const devices = work_->topology.size();
    sim::class_tables classes(tables_, limits());
    operators_.resize(g.size());
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        auto& terms = operators_[op];
        for (auto* const list : {&terms.forward, &terms.backward, &terms.tail}) list->assign(choices(op), 0);
        terms.work.assign(choices(op) * count_.size(), 0);
        if (is_source(op)) continue;
        auto const of = work_->options.training ? work_->class_of[op] : none;
        auto const* const members = of == none ? nullptr : &work_->classes[of];
        for (std::uint32_t c = 0; c < choices(op); ++c) {
            require_running(stop_);
            auto const& mine = tables_.choices(op)[c];
            auto const add = [&](std::size_t resource, std::int64_t amount) {
                auto& sum = terms.work[c * count_.size() + kind_[resource]];
                sum = std::min(most_amount, saturating_sum(sum, amount));
            };
            terms.forward[c] = std::min(most_amount, *std::ranges::min_element(mine.forward));
            if (returns(op)) terms.backward[c] = std::min(most_amount, *std::ranges::min_element(mine.backward));
            for (std::size_t s = 0; s < mine.forward.size(); ++s) {
                add(mine.plan.devices[s], mine.forward[s]);
                if (returns(op)) add(mine.plan.devices[s], mine.backward[s]);
            }
            for (auto const& partial : mine.plan.partial_outputs)
                for (auto const& h : partial.forward) add(devices + h.link, h.duration);
            if (!members) continue;
            auto const place = static_cast<std::size_t>(std::ranges::lower_bound(*members, op) - members->begin());
            auto const* const least = classes.least(of, place, c);
            if (!least) continue;
            terms.tail[c] = std::min(most_amount, least->tail);
            for (std::size_t d = 0; d < devices; ++d) add(d, least->updates[d] / static_cast<std::int64_t>(members->size()));
            if (members->size() == 1)
                for (auto const& group : classes.of(of, {c}).links)
                    for (auto const& l : group) add(devices + l.link, l.forward);
        }
    }
}

PARSEARCH_INLINE edge_terms lagrangian::terms_of(std::uint32_t e) {
    auto const& edge = graph().edges[e];
    bool const gradients = work_->options.training && graph().carries_gradient(edge) && returns(edge.consumer);
    auto const devices = work_->topology.size(), kinds = count_.size();
    edge_terms out;
    bool waits = true, waits_back = gradients && returns(edge.producer);
    // From the first end of a shard to the first end of one that waits for some, each for the slowest of its messages; nothing where one waits for
    // none.
    auto const step = [](std::vector<std::int64_t> const& durations, std::size_t others, auto const& delay) -> std::optional<std::int64_t> {
        auto first = most_amount;
        for (std::size_t t = 0; t < durations.size(); ++t) {
            auto latest = sim::edge_delays::never;
            for (std::size_t s = 0; s < others; ++s) latest = std::max(latest, delay(s, t));
            if (latest == sim::edge_delays::never) return {};
            first = std::min(first, saturating_sum(latest, durations[t]));
        }
        return first;
    };
    for (auto const& from : tables_.choices(edge.producer))
        for (auto const& to : tables_.choices(edge.consumer)) {
            require_running(stop_);
            auto const n = from.forward.size(), m = to.forward.size();
            auto const delays =
                sim::delays_of(tables_.planner().plan_edge(e, from.configuration, from.plan, to.configuration, to.plan), n, m, gradients);
            if (waits) {
                auto const by = step(to.forward, n, [&](std::size_t s, std::size_t t) { return delays.there(s, t); });
                waits = by.has_value();
                if (by) out.there.push_back(*by);
            }
            if (waits_back) {
                auto const by = step(from.backward, m, [&](std::size_t t, std::size_t s) { return delays.back(t, s); });
                waits_back = by.has_value();
                if (by) out.back.push_back(*by);
            }
            auto const first = out.links.size();
            out.links.resize(first + kinds, 0);
            for (auto const& l : delays.links) {
                auto& sum = out.links[first + kind_[devices + l.link]];
                sum = std::min(most_amount, saturating_sum(sum, saturating_sum(l.forward, l.backward)));
            }
        }
    if (!waits) out.there.clear();
    if (!waits_back) out.back.clear();
    return out;
}

PARSEARCH_INLINE void lagrangian::add_edges(space::strategy_space const& space) {
    auto const& g = graph();
    auto const like = sim::first_of_equal_work(g, space);
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, bool>, std::shared_ptr<edge_terms const>> known;
    auto left = options_.pairs, in_all = options_.pairs > std::numeric_limits<std::uint64_t>::max() / 8 ? options_.pairs : 8 * options_.pairs;
    edges_.resize(g.edges.size());
    moves_.resize(g.edges.size());
    for (std::uint32_t e = 0; e < g.edges.size(); ++e) {
        auto const& edge = g.edges[e];
        if (is_source(edge.producer)) continue;
        auto const pairs = std::uint64_t{choices(edge.producer)} * choices(edge.consumer);
        if (pairs > in_all) continue;
        auto& terms = known[{like[edge.producer], like[edge.consumer], edge.slot, edge.input, g.carries_gradient(edge)}];
        if (!terms) {
            if (pairs > left) continue;
            left -= pairs;
            terms = std::make_shared<edge_terms const>(terms_of(e));
        }
        in_all -= pairs;
        edges_[e] = terms;
        auto const group = work_->readers.group_of(e);
        moves_[e] = group == sim::shared_reads::none || work_->readers[group].front() == e;
    }
}

PARSEARCH_INLINE search::additive::cost_tables<picoseconds> lagrangian::mean() const {
    auto const& g = graph();
    auto const kinds = count_.size();
    std::vector<std::int64_t> weights;
    for (auto const share : mix_) weights.push_back(static_cast<std::int64_t>(share * static_cast<double>(whole_weight)));
    auto const of_paths = weights.back();
    // Of one resource the work of all its kind is the mean.
    auto const mean_work = [&](std::int64_t const* work) {
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < kinds; ++k) sum += weighted(work[k] / count_[k], weights[k]);
        return sum;
    };
    search::additive::cost_tables<picoseconds> out;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& terms = operators_[op];
        std::vector<picoseconds> costs;
        for (std::size_t c = 0; c < choices(op); ++c)
            costs.emplace_back(mean_work(&terms.work[c * kinds]) + weighted(terms.forward[c], weighted(stops_[op].begins, of_paths)) +
                               weighted(terms.backward[c], weighted(stops_[op].turns, of_paths)) +
                               weighted(terms.tail[c], weighted(stops_[op].ends, of_paths)));
        out.operators.emplace_back(std::move(costs));
    }
    for (std::size_t e = 0; e < g.edges.size(); ++e) {
        if (!edges_[e]) continue;
        auto const& terms = *edges_[e];
        auto const there = weighted(steps_[e].there, of_paths), back = weighted(steps_[e].back, of_paths);
        std::vector<picoseconds> costs;
        auto const& [producer, slot, consumer, input] = g.edges[e];
        for (std::size_t n = 0, end = choices(producer) * choices(consumer); n < end; ++n) {
            auto sum = moves_[e] ? mean_work(&terms.links[n * kinds]) : 0;
            if (there > 0) sum += weighted(terms.there[n], there);
            if (back > 0) sum += weighted(terms.back[n], back);
            costs.emplace_back(sum);
        }
        out.edges.push_back({{producer, consumer}, search::additive::numbers<picoseconds>(std::move(costs))});
    }
    return out;
}

PARSEARCH_INLINE lagrangian::strategy lagrangian::minimise() {
    constexpr double memory = 1 << 28;
    constexpr int most_asked = 1024; // some million operations each
    auto const tables = mean();
    strategy found;
    int asked = 0;
    auto const cost = [&] {
        std::int64_t sum = 0;
        for (std::size_t op = 0; op < found.size(); ++op) sum = saturating_sum(sum, tables.operators[op][found[op]].count());
        for (auto const& e : tables.edges)
            sum = saturating_sum(sum, e.costs[found[e.ends.from] * tables.operators[e.ends.to].size + found[e.ends.to]].count());
        return sum;
    };
    bool const complete = search::additive::minimise<picoseconds>(
        tables, memory, [&](std::span<std::uint32_t const> choices) { found.assign(choices.begin(), choices.end()); },
        [&](picoseconds least) { bound_ = std::max(bound_, least.count()); },
        [&](search::additive::phase) { return stop_.stop_requested() || ++asked > most_asked; });
    if (complete && !found.empty()) bound_ = std::max(bound_, cost());
    return found;
}

PARSEARCH_INLINE dependence_path lagrangian::longest_path(strategy const& s) const {
    auto const& g = graph();
    std::vector<std::int64_t> there(g.size(), 0), back(g.size(), 0); // first ends of shards
    std::vector<std::uint32_t> by(g.size(), none), back_by(g.size(), none);
    std::int64_t longest = -1;
    std::uint32_t last = none;
    bool returned = false;
    for (auto const op : g.order) {
        if (is_source(op)) continue;
        there[op] = operators_[op].forward[s[op]];
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
            if (edges_[e] && !edges_[e]->there.empty())
                if (auto const end = saturating_sum(there[g.edges[e].producer], edges_[e]->there[pair(g.edges[e], s)]); end > there[op]) {
                    there[op] = end;
                    by[op] = e;
                }
        if (there[op] > longest) {
            longest = there[op];
            last = op;
        }
    }
    for (auto i = g.order.size(); i-- > 0;) {
        auto const op = g.order[i];
        if (!returns(op)) continue;
        back[op] = saturating_sum(there[op], operators_[op].backward[s[op]]);
        for (auto const e : g.out(op))
            if (edges_[e] && !edges_[e]->back.empty())
                if (auto const end = saturating_sum(back[g.edges[e].consumer], edges_[e]->back[pair(g.edges[e], s)]); end > back[op]) {
                    back[op] = end;
                    back_by[op] = e;
                }
        if (auto const end = saturating_sum(back[op], operators_[op].tail[s[op]]); end > longest) {
            longest = end;
            last = op;
            returned = true;
        }
    }
    dependence_path out{.length = std::max<std::int64_t>(0, longest), .end = last, .returns = returned};
    if (last == none) return out;
    if (returned)
        for (; back_by[last] != none; last = g.edges[back_by[last]].consumer) out.back.push_back(back_by[last]);
    out.turn = last;
    for (; by[last] != none; last = g.edges[by[last]].producer) out.there.push_back(by[last]);
    out.begin = last;
    return out;
}

PARSEARCH_INLINE void lagrangian::add(dependence_path const& p) {
    if (p.end == none) return;
    // The mean of all paths, of which later ones count more. Rounded down, so that it is a part of a mean.
    auto const before = static_cast<std::int64_t>(paths_), all = before + 2;
    auto const fade = [&](std::int64_t& share) { share = paths_ == 0 ? 0 : share * before / all; };
    auto const mine = paths_ == 0 ? whole_weight : 2 * whole_weight / all;
    for (auto& o : stops_)
        for (auto* const share : {&o.begins, &o.turns, &o.ends}) fade(*share);
    for (auto& e : steps_)
        for (auto* const share : {&e.there, &e.back}) fade(*share);
    ++paths_;
    stops_[p.begin].begins += mine;
    for (auto const e : p.there) steps_[e].there += mine;
    if (!p.returns) return;
    stops_[p.turn].turns += mine;
    for (auto const e : p.back) steps_[e].back += mine;
    stops_[p.end].ends += mine;
}

PARSEARCH_INLINE std::vector<double> lagrangian::takes(strategy const& s, dependence_path const& longest) const {
    auto const& g = graph();
    auto const kinds = count_.size();
    std::vector<double> out(kinds + 1, 0);
    for (std::size_t op = 0; op < g.size(); ++op)
        for (std::size_t k = 0; k < kinds; ++k) out[k] += static_cast<double>(operators_[op].work[s[op] * kinds + k]);
    for (std::size_t e = 0; e < g.edges.size(); ++e)
        if (edges_[e] && moves_[e])
            for (std::size_t k = 0; k < kinds; ++k) out[k] += static_cast<double>(edges_[e]->links[pair(g.edges[e], s) * kinds + k]);
    for (std::size_t k = 0; k < kinds; ++k) out[k] /= static_cast<double>(count_[k]);
    out[kinds] = static_cast<double>(longest.length);
    return out;
}

PARSEARCH_INLINE bool lagrangian::reweigh(strategy const& s, std::uint64_t round) {
    auto const path = longest_path(s);
    auto const longest = takes(s, path);
    add(path);
    auto const most = *std::ranges::max_element(longest);
    if (most <= 0) return false;
    // Multiplicative weights (Arora, Hazan, Kale, Theory of Computing 8, 2012), with a step that falls as they prescribe.
    auto const step = 2 / std::sqrt(static_cast<double>(round + 4));
    constexpr double least_share = 1e-4;
    double sum = 0;
    for (std::size_t k = 0; k < mix_.size(); ++k) {
        double const volatile fall = step * (1 - longest[k] / most); // no fused multiply-add
        mix_[k] = std::max(least_share, mix_[k] / (1 + fall));
        sum += mix_[k];
    }
    for (auto& share : mix_) share /= sum;
    return true;
}

PARSEARCH_INLINE picoseconds lagrangian::best() {
    if (!tables_.known()) return {};
    constexpr std::uint64_t patience = 16;
    auto const kinds = count_.size();
    mix_.assign(kinds + 1, 0.5 / static_cast<double>(kinds));
    mix_.back() = 0.5;
    stops_.resize(graph().size());
    steps_.resize(graph().edges.size());
    std::uint64_t improved = 0;
    for (std::uint64_t round = 0; round < options_.rounds && round - improved < patience && !stop_.stop_requested(); ++round) {
        auto const before = bound_;
        auto const s = minimise();
        if (bound_ - before > before / 1000) improved = round;
        if (s.empty() || !reweigh(s, round)) break;
    }
    return picoseconds{bound_};
}

} // namespace parsearch::detail

namespace parsearch {

PARSEARCH_INLINE void validate(lagrangian_options const& o) {
    if (o.rounds < 1) throw invalid_input("lagrangian_bound: option 'rounds' is ", o.rounds, ": must be at least 1");
}

PARSEARCH_INLINE picoseconds lagrangian_bound(parallelization const& problem, lagrangian_options const& options) {
    validate(options);
    try {
        return detail::lagrangian(problem, options).best();
    } catch (interrupted const&) {
        return {};
    }
}

} // namespace parsearch
