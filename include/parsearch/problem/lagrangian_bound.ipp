#pragma once
// A lower bound on the strategies of a problem that weighs resources against paths: Lagrangian relaxation.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
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
    auto const devices = work_->topology.size(), kinds = kind_count();
    sim::class_tables classes(tables_, limits());
    passes_.resize(g.size() * passes_each);
    apart_.resize(g.size());
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        if (is_source(op)) continue;
        auto const of = work_->options.training ? work_->class_of[op] : none;
        auto const* const members = of == none ? nullptr : &work_->classes[of];
        auto* const pass = &passes_[op * passes_each];
        for (std::uint32_t n = 0; n < passes_each; ++n) {
            if (n > 0 && !returns(op)) break;
            pass[n].least.assign(choices(op), 0);
            pass[n].work.assign(choices(op) * kinds, 0);
        }
        apart_[op].assign(choices(op) * kinds, 0);
        for (std::uint32_t c = 0; c < choices(op); ++c) {
            require_running(stop_);
            auto const& mine = tables_.choices(op)[c];
            auto const add = [&](std::vector<std::int64_t>& work, std::size_t resource, std::int64_t amount) {
                auto& sum = work[c * kinds + kind_[resource]];
                sum = std::min(most_amount, saturating_sum(sum, amount));
            };
            auto const add_shards = [&](pass_terms& to, std::vector<std::int64_t> const& durations) {
                to.least[c] = std::min(most_amount, *std::ranges::min_element(durations));
                for (std::size_t s = 0; s < durations.size(); ++s) add(to.work, mine.plan.devices[s], durations[s]);
            };
            add_shards(pass[forward_pass], mine.forward);
            if (returns(op)) add_shards(pass[backward_pass], mine.backward);
            for (auto const& partial : mine.plan.partial_outputs)
                for (auto const& h : partial.forward) add(apart_[op], devices + h.link, h.duration);
            if (!members || !returns(op)) continue;
            auto const place = static_cast<std::size_t>(std::ranges::lower_bound(*members, op) - members->begin());
            auto const* const least = classes.least(of, place, c);
            if (!least) continue;
            pass[update_pass].least[c] = std::min(most_amount, least->tail);
            // Updates of weights that several operators have need not follow all of these.
            bool const alone = members->size() == 1;
            for (std::size_t d = 0; d < devices; ++d)
                add(alone ? pass[update_pass].work : apart_[op], d, least->updates[d] / static_cast<std::int64_t>(members->size()));
            if (alone)
                for (auto const& group : classes.of(of, {c}).links)
                    for (auto const& l : group) add(pass[update_pass].work, devices + l.link, l.forward);
        }
    }
}

PARSEARCH_INLINE edge_terms lagrangian::terms_of(std::uint32_t e) {
    auto const& edge = graph().edges[e];
    bool const gradients = graph().carries_gradient(edge) && returns(edge.consumer) && returns(edge.producer);
    auto const devices = work_->topology.size(), kinds = kind_count();
    edge_terms out;
    bool leads[4] = {true, true, gradients, gradients};
    // Of shards of these durations, each with the slowest of its messages with `others`, the least; nothing where one has no message.
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
    auto const add = [](bool& leads_on, std::vector<std::int64_t>& to, auto const& length) {
        if (!leads_on) return;
        auto const by = length();
        leads_on = by.has_value();
        if (by) to.push_back(*by);
    };
    for (auto const& from : tables_.choices(edge.producer))
        for (auto const& to : tables_.choices(edge.consumer)) {
            require_running(stop_);
            auto const n = from.forward.size(), m = to.forward.size();
            auto const delays =
                sim::delays_of(tables_.planner().plan_edge(e, from.configuration, from.plan, to.configuration, to.plan), n, m, gradients);
            auto const there = [&](std::size_t s, std::size_t t) { return delays.there(s, t); };
            auto const back = [&](std::size_t t, std::size_t s) { return delays.back(t, s); };
            auto const turned = [](auto const& delay) { return [&delay](std::size_t s, std::size_t t) { return delay(t, s); }; };
            add(leads[0], out.there.head, [&] { return step(to.forward, n, there); });
            add(leads[1], out.there.tail, [&] { return step(from.forward, m, turned(there)); });
            add(leads[2], out.back.head, [&] { return step(from.backward, m, back); });
            add(leads[3], out.back.tail, [&] { return step(to.backward, n, turned(back)); });
            auto const first = out.there.work.size();
            out.there.work.resize(first + kinds, 0);
            if (gradients) out.back.work.resize(first + kinds, 0);
            auto const add_work = [&](step_terms& step, std::uint32_t link, std::int64_t amount) {
                auto& sum = step.work[first + kind_[devices + link]];
                sum = std::min(most_amount, saturating_sum(sum, amount));
            };
            for (auto const& l : delays.links) {
                add_work(out.there, l.link, l.forward);
                if (gradients) add_work(out.back, l.link, l.backward);
            }
        }
    if (!leads[0]) out.there.head.clear();
    if (!leads[1]) out.there.tail.clear();
    if (!leads[2]) out.back.head.clear();
    if (!leads[3]) out.back.tail.clear();
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
        // What rings take depends on the consumer's other inputs.
        bool const rings = g.operations[edge.consumer].inputs[edge.input].passed_on;
        auto& terms = known[{like[edge.producer], rings ? edge.consumer : like[edge.consumer], edge.slot, edge.input, g.carries_gradient(edge)}];
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

PARSEARCH_INLINE void lagrangian::add_steps() {
    auto const& g = graph();
    for (auto const op : g.order)
        if (is_pass(op * passes_each)) order_.push_back(op * passes_each + forward_pass);
    for (auto i = g.order.size(); i-- > 0;)
        for (std::uint32_t n = backward_pass; n < passes_each; ++n)
            if (auto const pass = g.order[i] * passes_each + n; is_pass(pass)) {
                order_.push_back(pass);
                steps_.push_back({.from = pass - 1, .to = pass});
            }
    for (std::uint32_t e = 0; e < g.edges.size(); ++e) {
        if (!edges_[e]) continue;
        auto const producer = g.edges[e].producer * passes_each, consumer = g.edges[e].consumer * passes_each;
        bool const awaited = !g.operations[g.edges[e].consumer].inputs[g.edges[e].input].passed_on;
        steps_.push_back({.from = producer + forward_pass, .to = consumer + forward_pass, .edge = e, .awaited = awaited});
        if (!edges_[e]->back.work.empty())
            steps_.push_back({.from = consumer + backward_pass, .to = producer + backward_pass, .edge = e, .back = true, .awaited = awaited});
    }
    for (auto* const steps : {&into_, &out_of_, &awaited_}) steps->resize(passes_.size());
    for (std::uint32_t n = 0; n < steps_.size(); ++n) {
        into_[steps_[n].to].push_back(n);
        out_of_[steps_[n].from].push_back(n);
        if (steps_[n].awaited) awaited_[steps_[n].to].push_back(n);
    }
    auto const join = [&](std::vector<std::vector<bool>>& sets, std::uint32_t pass, std::uint32_t other) {
        require_running(stop_);
        for (std::size_t n = 0; n < passes_.size(); ++n)
            if (sets[other][n]) sets[pass][n] = true;
        sets[pass][other] = true;
    };
    after_.assign(passes_.size(), std::vector<bool>(passes_.size(), false));
    before_ = after_;
    for (auto i = order_.size(); i-- > 0;)
        for (auto const n : out_of_[order_[i]])
            if (in_heads(steps_[n])) join(after_, order_[i], steps_[n].to);
    for (auto const pass : order_)
        for (auto const n : into_[pass])
            if (in_tails(steps_[n])) join(before_, pass, steps_[n].from);
}

PARSEARCH_INLINE search::additive::cost_tables<picoseconds> lagrangian::mean(space_region const& r) const {
    auto const& g = graph();
    auto const& w = r.weights;
    auto const kinds = kind_count();
    std::vector<std::int64_t> mix;
    for (auto const share : w.mix) mix.push_back(static_cast<std::int64_t>(share * static_cast<double>(whole_weight)));
    auto const of_chains = mix.back();
    auto const weights_of = [&](std::int64_t const* in_chains) {
        auto out = mix;
        for (std::size_t k = 0; k < kinds; ++k) out[k] += weighted(in_chains[k], of_chains);
        return out;
    };
    // Of one resource the work of all its kind is the mean.
    auto const mean_work = [&](std::int64_t const* work, std::vector<std::int64_t> const& weights) {
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < kinds; ++k)
            if (work[k] > 0) sum += weighted(work[k] / count_[k], weights[k]);
        return sum;
    };
    search::additive::cost_tables<picoseconds> out;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        auto const& some = *r.choices[op];
        std::vector<picoseconds> costs(some.size());
        for (std::size_t n = 0; n < some.size() && !is_source(op); ++n) costs[n] += picoseconds{mean_work(&apart_[op][some[n] * kinds], mix)};
        for (auto pass = op * passes_each; pass < (op + 1) * passes_each && is_pass(pass); ++pass) {
            auto const weights = weights_of(&w.passes[pass * kinds]);
            auto const of_least = weighted(w.least[pass], of_chains);
            for (std::size_t n = 0; n < some.size(); ++n)
                costs[n] += picoseconds{mean_work(&passes_[pass].work[some[n] * kinds], weights) + weighted(passes_[pass].least[some[n]], of_least)};
        }
        out.operators.emplace_back(std::move(costs));
    }
    std::map<std::uint32_t, std::vector<picoseconds>> of_edges;
    for (std::size_t n = 0; n < steps_.size(); ++n) {
        auto const& step = steps_[n];
        if (step.edge == none) continue;
        auto const& t = terms(step);
        auto const& e = g.edges[step.edge];
        auto const in_heads = weighted(w.head[n], of_chains), in_tails = weighted(w.tail[n], of_chains);
        auto const weights = weights_of(&w.steps[n * kinds]);
        auto& costs = of_edges[step.edge];
        costs.resize(r.choices[e.producer]->size() * r.choices[e.consumer]->size());
        auto to = costs.begin();
        for (auto const from : *r.choices[e.producer])
            for (auto const c : *r.choices[e.consumer]) {
                auto const at = from * choices(e.consumer) + c;
                auto sum = moves_[step.edge] ? mean_work(&t.work[at * kinds], weights) : 0;
                if (in_heads > 0) sum += weighted(t.head[at], in_heads);
                if (in_tails > 0) sum += weighted(t.tail[at], in_tails);
                *to++ += picoseconds{sum};
            }
    }
    for (auto& [e, costs] : of_edges)
        out.edges.push_back({{g.edges[e].producer, g.edges[e].consumer}, search::additive::numbers<picoseconds>(std::move(costs))});
    return out;
}

PARSEARCH_INLINE lagrangian::strategy lagrangian::minimise(space_region& r) {
    constexpr double memory = 1 << 28;
    constexpr int most_asked = 1024; // some million operations each
    auto const tables = mean(r);
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
        tables, memory, [&](std::span<std::uint32_t const> numbers) { found.assign(numbers.begin(), numbers.end()); },
        [&](picoseconds least) { r.bound = std::max(r.bound, least.count()); },
        [&](search::additive::phase) { return stop_.stop_requested() || ++asked > most_asked; });
    if (complete && !found.empty()) r.bound = std::max(r.bound, cost());
    for (std::size_t op = 0; op < found.size(); ++op) found[op] = (*r.choices[op])[found[op]];
    return found;
}

template <class F> void lagrangian::for_work(strategy const& s, bool after, F const& found) const {
    auto const kinds = kind_count();
    // Of the steps that come with each pass, and of these and the pass.
    std::vector<std::int64_t> steps(passes_.size() * kinds, 0), all(passes_.size() * kinds, 0);
    auto const add = [&](std::int64_t* to, std::int64_t const* more) {
        for (std::size_t k = 0; k < kinds; ++k) to[k] = saturating_sum(to[k], more[k]);
    };
    for (auto const pass : order_) {
        for (auto const n : working_steps(after, pass))
            if (auto const* const links = work(steps_[n], s)) add(&steps[pass * kinds], links);
        add(&all[pass * kinds], work(pass, s));
        add(&all[pass * kinds], &steps[pass * kinds]);
    }
    std::vector<std::int64_t> sum(kinds);
    for (auto const pass : order_) {
        if (stop_.stop_requested()) return;
        std::copy_n(&steps[pass * kinds], kinds, sum.begin());
        auto const& others = (after ? after_ : before_)[pass];
        for (auto const other : order_)
            if (others[other]) add(sum.data(), &all[other * kinds]);
        for (std::uint32_t k = 0; k < kinds; ++k) found(pass, k, sum[k] / count_[k]);
    }
}

PARSEARCH_INLINE time_chain lagrangian::longest_chain(strategy const& s) const {
    std::vector<std::int64_t> heads(passes_.size(), 0), tails(passes_.size(), 0);
    std::vector<std::uint32_t> by(passes_.size(), none), to(passes_.size(), none); // the last step of a head, the first of a tail
    time_chain out;
    auto const consider = [&](time_chain const& c) {
        if (c.length > out.length) out = c;
    };
    for (auto const pass : order_) {
        heads[pass] = least(pass, s);
        for (auto const n : into_[pass])
            if (in_heads(steps_[n]))
                if (auto const length = saturating_sum(heads[steps_[n].from], head(steps_[n], s)); length > heads[pass]) {
                    heads[pass] = length;
                    by[pass] = n;
                }
        consider({.length = heads[pass], .after = pass});
    }
    for (auto i = order_.size(); i-- > 0;) {
        auto const pass = order_[i];
        tails[pass] = least(pass, s);
        for (auto const n : out_of_[pass])
            if (in_tails(steps_[n]))
                if (auto const length = saturating_sum(tails[steps_[n].to], tail(steps_[n], s)); length > tails[pass]) {
                    tails[pass] = length;
                    to[pass] = n;
                }
        consider({.length = tails[pass], .before = pass});
    }
    for_work(s, true, [&](std::uint32_t pass, std::uint32_t kind, std::int64_t work) {
        consider({.length = saturating_sum(heads[pass], work), .after = pass, .kind = kind});
    });
    for_work(s, false, [&](std::uint32_t pass, std::uint32_t kind, std::int64_t work) {
        consider({.length = saturating_sum(tails[pass], work), .before = pass, .kind = kind});
    });
    for (std::uint32_t n = 0; n < steps_.size(); ++n) {
        auto const& step = steps_[n];
        auto const* const links = work(step, s);
        for (std::uint32_t k = 0; step.awaited && links && k < kind_count(); ++k) {
            auto const length = saturating_sum(heads[step.from], saturating_sum(links[k] / count_[k], tails[step.to]));
            consider({.length = length, .after = step.from, .before = step.to, .kind = k, .step = n});
        }
    }
    if (out.after != none) {
        out.begin = out.after;
        for (; by[out.begin] != none; out.begin = steps_[by[out.begin]].from) out.head.push_back(by[out.begin]);
    }
    if (out.before != none) {
        out.end = out.before;
        for (; to[out.end] != none; out.end = steps_[to[out.end]].to) out.tail.push_back(to[out.end]);
    }
    return out;
}

PARSEARCH_INLINE void lagrangian::add(time_weights& w, time_chain const& c) const {
    if (c.length == 0) return;
    // The mean of all chains, of which later ones count more. Rounded down, so that it is a part of a mean.
    auto const before = static_cast<std::int64_t>(w.chains), all = before + 2;
    auto const mine = before == 0 ? whole_weight : 2 * whole_weight / all;
    for (auto* const shares : {&w.least, &w.head, &w.tail, &w.passes, &w.steps})
        for (auto& share : *shares) share = before == 0 ? 0 : share * before / all;
    ++w.chains;
    auto const kinds = kind_count();
    if (c.begin != none) w.least[c.begin] += mine;
    for (auto const n : c.head) (steps_[n].edge == none ? w.least[steps_[n].to] : w.head[n]) += mine;
    for (auto const n : c.tail) (steps_[n].edge == none ? w.least[steps_[n].from] : w.tail[n]) += mine;
    if (c.end != none) w.least[c.end] += mine;
    if (c.kind == none) return;
    auto const add_step = [&](std::uint32_t n) { w.steps[n * kinds + c.kind] += mine; };
    if (c.step != none) {
        add_step(c.step);
        return;
    }
    bool const after = c.after != none;
    auto const from = after ? c.after : c.before;
    auto const& others = (after ? after_ : before_)[from];
    for (auto const n : working_steps(after, from)) add_step(n);
    for (auto const other : order_)
        if (others[other]) {
            w.passes[other * kinds + c.kind] += mine;
            for (auto const n : working_steps(after, other)) add_step(n);
        }
}

PARSEARCH_INLINE std::vector<double> lagrangian::takes(strategy const& s, time_chain const& longest) const {
    auto const kinds = kind_count();
    std::vector<double> out(kinds + 1, 0);
    auto const add = [&](std::int64_t const* work) {
        for (std::size_t k = 0; k < kinds; ++k) out[k] += static_cast<double>(work[k]);
    };
    for (std::size_t op = 0; op < graph().size(); ++op)
        if (!is_source(op)) add(&apart_[op][s[op] * kinds]);
    for (auto const pass : order_) add(work(pass, s));
    for (auto const& step : steps_)
        if (auto const* const links = work(step, s)) add(links);
    for (std::size_t k = 0; k < kinds; ++k) out[k] /= static_cast<double>(count_[k]);
    out[kinds] = static_cast<double>(longest.length);
    return out;
}

PARSEARCH_INLINE bool lagrangian::reweigh(time_weights& w, strategy const& s, std::uint64_t round) const {
    auto const chain = longest_chain(s);
    auto const longest = takes(s, chain);
    add(w, chain);
    auto const most = *std::ranges::max_element(longest);
    if (most <= 0) return false;
    // Multiplicative weights (Arora, Hazan, Kale, Theory of Computing 8, 2012), with a step that falls as they prescribe.
    auto const step = 2 / std::sqrt(static_cast<double>(round + 4));
    constexpr double least_share = 1e-4;
    double sum = 0;
    for (std::size_t k = 0; k < w.mix.size(); ++k) {
        double const volatile fall = step * (1 - longest[k] / most); // no fused multiply-add
        w.mix[k] = std::max(least_share, w.mix[k] / (1 + fall));
        sum += w.mix[k];
    }
    for (auto& share : w.mix) share /= sum;
    return true;
}

PARSEARCH_INLINE void lagrangian::improve(space_region& r, std::uint64_t first, std::uint64_t rounds) {
    constexpr std::uint64_t patience = 16;
    std::uint64_t improved = 0;
    for (std::uint64_t round = 0; round < rounds && round - improved < patience && !stop_.stop_requested(); ++round) {
        auto const was = r.bound;
        auto s = minimise(r);
        if (r.bound - was > was / 1000) improved = round;
        if (s.empty()) break;
        bool const goes_on = reweigh(r.weights, s, first + round);
        r.met.push_back(std::move(s));
        if (!goes_on) break;
    }
}

PARSEARCH_INLINE std::size_t lagrangian::most_varied(space_region const& r) const {
    // Splits first, then placements, then what is left.
    auto most = std::make_tuple(std::size_t{0}, std::size_t{0}, std::size_t{1});
    auto out = graph().size();
    for (std::size_t op = 0; op < graph().size(); ++op) {
        if (r.choices[op]->size() == 1) continue;
        std::set<std::uint32_t> met;
        std::set<std::size_t> splits;
        for (auto const& s : r.met)
            if (met.insert(s[op]).second) splits.insert(split_of(op, s[op]));
        if (auto const varies = std::make_tuple(splits.size(), met.size(), r.choices[op]->size()); varies > most) {
            most = varies;
            out = op;
        }
    }
    return out;
}

PARSEARCH_INLINE std::vector<space_region> lagrangian::parts(space_region const& r, std::size_t op) const {
    std::map<std::size_t, std::vector<std::uint32_t>> some;
    for (auto const c : *r.choices[op]) some[split_of(op, c)].push_back(c);
    if (some.size() == 1) {
        some.clear();
        for (auto const c : *r.choices[op]) some[c] = {c};
    }
    std::vector<space_region> out;
    for (auto& [number, choices] : some) {
        out.push_back({.choices = r.choices, .weights = r.weights, .bound = r.bound});
        out.back().choices[op] = std::make_shared<std::vector<std::uint32_t> const>(std::move(choices));
    }
    return out;
}

PARSEARCH_INLINE std::int64_t lagrangian::least_of_parts(space_region all) {
    constexpr std::uint64_t rounds_each = 8, first_round = 12; // steps are as small as in that round: weights are good already
    auto const later = [](space_region const& a, space_region const& b) { return std::tie(a.bound, a.number) > std::tie(b.bound, b.number); };
    std::vector<space_region> open; // a heap
    std::uint64_t made = 0;
    auto const add = [&](space_region part) {
        part.number = made++;
        open.push_back(std::move(part));
        std::ranges::push_heap(open, later);
    };
    add(std::move(all));
    auto cost_of = problem_.evaluator();
    while (made < options_.parts && !stop_.stop_requested()) {
        auto const op = most_varied(open.front());
        std::ranges::pop_heap(open, later);
        auto least = std::move(open.back());
        open.pop_back();
        if (op < graph().size()) {
            for (auto& part : parts(least, op)) {
                improve(part, first_round, rounds_each);
                add(std::move(part));
            }
            continue;
        }
        // One strategy, which has a cost; where that is its bound, no other costs less.
        space::flat_strategy only;
        for (std::size_t n = 0; n < least.choices.size(); ++n) only.push_back(tables_.choices(n)[least.choices[n]->front()].configuration);
        bool proved = false;
        try {
            auto const cost = cost_of(only).count();
            proved = cost <= least.bound;
            least.bound = std::max(least.bound, cost);
        } catch (interrupted const&) { // the bound until now is the answer
        }
        add(std::move(least));
        if (proved) break;
    }
    return open.front().bound;
}

PARSEARCH_INLINE picoseconds lagrangian::best() {
    if (!tables_.known()) return {};
    auto const kinds = kind_count();
    space_region all;
    for (std::size_t op = 0; op < graph().size(); ++op) {
        std::vector<std::uint32_t> every(choices(op));
        std::iota(every.begin(), every.end(), 0U);
        all.choices.push_back(std::make_shared<std::vector<std::uint32_t> const>(std::move(every)));
    }
    all.weights.mix.assign(kinds + 1, 0.5 / static_cast<double>(kinds));
    all.weights.mix.back() = 0.5;
    all.weights.least.resize(passes_.size());
    all.weights.head.resize(steps_.size());
    all.weights.tail.resize(steps_.size());
    all.weights.passes.resize(passes_.size() * kinds);
    all.weights.steps.resize(steps_.size() * kinds);
    improve(all, 0, options_.rounds);
    return picoseconds{options_.parts > 1 ? least_of_parts(std::move(all)) : all.bound};
}

} // namespace parsearch::detail

namespace parsearch {

PARSEARCH_INLINE void validate(lagrangian_options const& o) {
    if (o.rounds < 1) throw invalid_input("lagrangian_bound: option 'rounds' is ", o.rounds, ": must be at least 1");
    if (o.parts < 1) throw invalid_input("lagrangian_bound: option 'parts' is ", o.parts, ": must be at least 1");
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
