#pragma once
// Where in an iteration to rewire the links between servers, and how.

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <optional>

#include <parsearch/core/cost.hpp>
#include <parsearch/fabric/cooptimize/phased_wiring.hpp>
#include <parsearch/fabric/network/reconfigurable.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE void validate(phase_options const& o) {
    if (o.reconfiguration_time < picoseconds{0})
        throw invalid_input("rewire_within_iteration: option 'reconfiguration_time' is ", o.reconfiguration_time.count(),
                            " ps: must not be negative");
    if (o.phases < 1) throw invalid_input("rewire_within_iteration: option 'phases' is 0: must be at least 1");
    if (o.cuts < 1) throw invalid_input("rewire_within_iteration: option 'cuts' is 0: must be at least 1");
}

namespace detail {

/// The search behind `rewire_within_iteration`.
class phase_search {
  public:
    phase_search(fabric_problem const& problem, space::flat_strategy s, several_wirings const& finder, phase_options const& o)
        : problem_(&problem), strategy_(std::move(s)), finder_(&finder), options_(&o), simulator_(problem, strategy_) {}

    [[nodiscard]] phased_wiring operator()() {
        try {
            add_all(options_->wirings);
            if (wirings() == 0 || !stopped()) add_wirings(problem_->traffic(strategy_));
            if (!stopped() && can_gain()) search();
        } catch (std::bad_alloc const&) {
            if (wirings() == 0) throw;
        }
        return answer();
    }

  private:
    static constexpr auto none = ~std::uint32_t{0};
    static constexpr auto never = std::numeric_limits<std::int64_t>::max() / 4;
    using plan = std::vector<std::uint32_t>; ///< the wiring of each piece

    /// A plan and what it costs.
    struct priced {
        plan wirings;
        picoseconds cost{};
    };

    void add_wirings(demand const& d) {
        auto const made = (*finder_)(d);
        if (made.empty()) throw invalid_input("rewire_within_iteration: the finder made no network: must be at least one");
        add_all(made);
    }
    /// One at least, until asked to stop.
    void add_all(std::vector<network> const& some) {
        for (auto const& n : some)
            if (wirings() == 0 || !stopped()) (void)simulator_.add(n);
    }
    [[nodiscard]] std::uint32_t wirings() const noexcept { return static_cast<std::uint32_t>(simulator_.wirings().size()); }
    /// The wiring on which all of the iteration is fastest, the first of these; `alike`: of those that can be combined.
    [[nodiscard]] std::uint32_t best_single(bool alike = false) const {
        std::uint32_t out = 0;
        for (std::uint32_t w = 1; w < wirings(); ++w)
            if (simulator_.cost_on(w) < simulator_.cost_on(out) && (!alike || simulator_.alike(w))) out = w;
        return out;
    }
    [[nodiscard]] bool can_gain() const {
        auto const cost = simulator_.cost_on(best_single());
        return options_->phases > 1 && simulator_.movements() > 1 && cost < cost_traits<picoseconds>::infinity() &&
               options_->reconfiguration_time < cost - options_->reconfiguration_time;
    }
    [[nodiscard]] bool stopped() const noexcept { return options_->stop.stop_requested(); }

    void search();
    void cut();
    [[nodiscard]] std::vector<std::uint32_t> movements_of(std::uint32_t from, std::uint32_t to) const;
    void time_pieces();
    [[nodiscard]] static std::pair<std::uint32_t, std::uint32_t> two_least(std::vector<std::int64_t> const& times);
    [[nodiscard]] std::vector<plan> shortest() const;
    [[nodiscard]] static std::vector<std::uint32_t> begins(plan const& p);
    picoseconds price(plan const& p);
    void improve(priced from);
    [[nodiscard]] phased_wiring answer() const;

    fabric_problem const* problem_;
    space::flat_strategy strategy_;
    several_wirings const* finder_;
    phase_options const* options_;
    phased_simulator simulator_;
    std::vector<std::uint32_t> piece_of_; ///< each movement
    std::uint32_t pieces_ = 0;
    std::vector<std::vector<std::int64_t>> time_; ///< of each wiring, of each piece on it; never: it cannot be combined
    std::map<plan, picoseconds> known_;
    std::optional<priced> best_{}; ///< of several phases
    phased_time best_time_{};      ///< of `best_`
    std::size_t simulations_ = 0;
};

PARSEARCH_INLINE void phase_search::search() {
    cut();
    for (std::uint32_t together = 1; together < pieces_; together *= 2)
        for (std::uint32_t p = 0; p < pieces_ && !stopped(); p += together)
            add_wirings(simulator_.traffic(movements_of(p, std::min(p + together, pieces_))));
    for (auto before = picoseconds::max(); !stopped();) {
        time_pieces();
        for (auto const& p : shortest())
            if (!stopped()) (void)price(p);
        if (!best_) return;
        improve(*best_);
        if (!(best_->cost < before)) return;
        before = best_->cost;
        auto const known = wirings();
        auto const found = best_->wirings;
        auto const first = begins(found);
        for (std::size_t i = 0; i + 1 < first.size() && !stopped(); ++i) add_wirings(simulator_.traffic(movements_of(first[i], first[i + 1])));
        if (wirings() == known) return;
    }
}

/// Cuts the movements, in the order of their beginnings on the best single wiring, into pieces of about as many bytes.
PARSEARCH_INLINE void phase_search::cut() {
    auto const count = simulator_.movements();
    auto const alone = best_single(true);
    auto const when = simulator_.run(std::vector<std::uint32_t>(count, 0), std::vector{alone}, picoseconds{0});
    ++simulations_;
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t m) { return when.movements[m].begin; });
    std::vector<double> bytes; // of those before, and this
    double all = 0;
    for (auto const m : order) {
        auto const d = simulator_.traffic(std::vector{m});
        bytes.push_back(all += static_cast<double>(d.point_to_point_bytes() + d.all_reduce_bytes()));
    }
    // Before each movement: by how long what went before outlasts its beginning.
    auto const window = [&](std::size_t i) {
        return count - 1 <= options_->cuts || all <= 0 ? i : static_cast<std::size_t>(bytes[i - 1] / all * options_->cuts);
    };
    std::map<std::size_t, std::pair<picoseconds, std::size_t>> cuts; // of each window the least, and where
    auto last = when.movements[order.front()].end;
    for (std::size_t i = 1; i < count; ++i) {
        auto const overlap = last - when.movements[order[i]].begin;
        auto const [at, is_new] = cuts.try_emplace(window(i), overlap, i);
        if (!is_new && overlap < at->second.first) at->second = {overlap, i};
        last = std::max(last, when.movements[order[i]].end);
    }
    std::vector<std::size_t> places;
    for (auto const& [number, place] : cuts) places.push_back(place.second);
    if (places.size() > options_->cuts) places.resize(options_->cuts);
    piece_of_.assign(count, 0);
    for (std::size_t i = 0; i < count; ++i) piece_of_[order[i]] = static_cast<std::uint32_t>(std::ranges::upper_bound(places, i) - places.begin());
    pieces_ = static_cast<std::uint32_t>(places.size() + 1);
}

PARSEARCH_INLINE std::vector<std::uint32_t> phase_search::movements_of(std::uint32_t from, std::uint32_t to) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t m = 0; m < piece_of_.size(); ++m)
        if (piece_of_[m] >= from && piece_of_[m] < to) out.push_back(m);
    return out;
}

/// How long each piece takes on each new wiring, one piece after the other.
PARSEARCH_INLINE void phase_search::time_pieces() {
    while (time_.size() < wirings() && !stopped()) {
        auto const w = static_cast<std::uint32_t>(time_.size());
        if (!simulator_.alike(w)) {
            time_.emplace_back(pieces_, never);
            continue;
        }
        auto const when = simulator_.run(piece_of_, std::vector(pieces_, w), picoseconds{0});
        ++simulations_;
        std::vector<std::int64_t> took;
        std::int64_t before = 0;
        for (auto const& p : when.phases) {
            took.push_back(p.end.count() - before);
            before = p.end.count();
        }
        time_.push_back(std::move(took));
    }
}

/// The places of the least and of the least of the others, the first of equals; none: there is no such.
PARSEARCH_INLINE std::pair<std::uint32_t, std::uint32_t> phase_search::two_least(std::vector<std::int64_t> const& times) {
    auto least = none, next = none;
    for (std::uint32_t w = 0; w < times.size(); ++w)
        if (least == none || times[w] < times[least]) next = std::exchange(least, w);
        else if (next == none || times[w] < times[next]) next = w;
    return {least, next};
}

/// For each number of changes that the options allow, the plan of least time by the times of pieces.
PARSEARCH_INLINE std::vector<phase_search::plan> phase_search::shortest() const {
    auto const w = static_cast<std::uint32_t>(time_.size());
    auto const changes = std::min(options_->phases, pieces_) - 1;
    auto const delay = options_->reconfiguration_time.count();
    std::vector<std::int64_t> least(changes + std::size_t{1}, never);
    std::vector<plan> out(changes + std::size_t{1});
    // After each piece, with so many changes, on each wiring: the time, and the wiring before.
    std::vector<std::vector<std::vector<std::int64_t>>> time(pieces_);
    std::vector<std::vector<plan>> before(pieces_);
    for (std::uint32_t first = 0; first < w; ++first) {
        for (auto& t : time) t.assign(changes + std::size_t{1}, std::vector<std::int64_t>(w, never));
        for (auto& b : before) b.assign(changes + std::size_t{1}, plan(w, 0));
        time[0][0][first] = time_[first][0];
        for (std::uint32_t p = 1; p < pieces_; ++p)
            for (std::uint32_t c = 0; c <= changes; ++c) {
                auto const& same = time[p - 1][c];
                auto const [least_of_all, least_of_others] = c == 0 ? std::pair{none, none} : two_least(time[p - 1][c - 1]);
                for (std::uint32_t to = 0; to < w; ++to) {
                    auto best = same[to];
                    auto by = to;
                    auto const from = to == least_of_all ? least_of_others : least_of_all;
                    if (from != none && time[p - 1][c - 1][from] + delay < best) best = time[p - 1][c - 1][from] + delay, by = from;
                    time[p][c][to] = std::min(never, best + time_[to][p]);
                    before[p][c][to] = by;
                }
            }
        for (std::uint32_t c = 1; c <= changes; ++c)
            for (std::uint32_t last = 0; last < w; ++last) {
                auto const all = time[pieces_ - 1][c][last] + (last == first ? 0 : delay);
                if (all >= least[c]) continue;
                least[c] = all;
                plan found(pieces_);
                auto at = last;
                auto left = c;
                for (auto p = pieces_; p-- > 0;) {
                    found[p] = at;
                    auto const by = before[p][left][at];
                    if (p > 0 && by != at) --left;
                    if (p > 0) at = by;
                }
                out[c] = std::move(found);
            }
    }
    std::erase_if(out, [](plan const& p) { return p.empty(); });
    return out;
}

/// The first piece of each phase, and the end.
PARSEARCH_INLINE std::vector<std::uint32_t> phase_search::begins(plan const& p) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < p.size(); ++i)
        if (i == 0 || p[i] != p[i - 1]) out.push_back(i);
    out.push_back(static_cast<std::uint32_t>(p.size()));
    return out;
}

PARSEARCH_INLINE picoseconds phase_search::price(plan const& p) {
    auto const [at, is_new] = known_.try_emplace(p);
    if (!is_new) return at->second;
    auto const first = begins(p);
    if (first.size() == 2) return at->second = simulator_.cost_on(p.front());
    std::vector<std::uint32_t> wiring_of, phase_of;
    for (std::size_t i = 0; i + 1 < first.size(); ++i) wiring_of.push_back(p[first[i]]);
    for (auto const piece : piece_of_) phase_of.push_back(static_cast<std::uint32_t>(std::ranges::upper_bound(first, piece) - first.begin()) - 1);
    auto when = simulator_.run(phase_of, wiring_of, options_->reconfiguration_time);
    at->second = when.cost;
    ++simulations_;
    if (!best_ || at->second < best_->cost) {
        best_ = priced{p, at->second};
        best_time_ = std::move(when);
    }
    return at->second;
}

/// Moves cuts by a piece and exchanges wirings, while that makes the iteration faster.
PARSEARCH_INLINE void phase_search::improve(priced from) {
    for (bool better = true; better && !stopped();) {
        better = false;
        auto const take = [&](plan const& p) {
            if (stopped()) return;
            auto const cost = price(p);
            if (!(cost < from.cost)) return;
            from = {p, cost};
            better = true;
        };
        for (std::size_t i = 1; i + 1 < begins(from.wirings).size(); ++i) {
            auto const first = begins(from.wirings)[i];
            auto earlier = from.wirings, later = from.wirings;
            earlier[first - 1] = from.wirings[first];
            later[first] = from.wirings[first - 1];
            take(earlier);
            take(later);
        }
        for (std::size_t i = 0; i + 1 < begins(from.wirings).size(); ++i)
            for (std::uint32_t w = 0; w < time_.size(); ++w) {
                auto const first = begins(from.wirings);
                if (i + 1 >= first.size()) break;
                if (!simulator_.alike(w)) continue;
                auto other = from.wirings;
                std::fill(other.begin() + first[i], other.begin() + first[i + 1], w);
                take(other);
            }
    }
}

PARSEARCH_INLINE phased_wiring phase_search::answer() const {
    auto const alone = best_single();
    phased_wiring out;
    out.one_wiring = simulator_.wirings()[alone];
    out.one_wiring_cost = simulator_.cost_on(alone);
    out.wirings = wirings();
    out.simulations = simulations_ + wirings();
    out.cost = out.one_wiring_cost;
    if (!best_ || !(best_->cost < out.one_wiring_cost)) {
        out.phases.push_back({out.one_wiring, {picoseconds{0}, simulator_.arrival_on(alone)}, simulator_.bytes_on(alone)});
        return out;
    }
    out.cost = best_->cost;
    auto const first = begins(best_->wirings);
    for (std::uint32_t i = 0; i + 1 < first.size(); ++i) {
        std::vector<std::uint32_t> movements;
        for (std::uint32_t m = 0; m < best_time_.phase_of.size(); ++m)
            if (best_time_.phase_of[m] == i) movements.push_back(m);
        auto const d = simulator_.traffic(movements);
        auto const& wired = simulator_.wirings()[best_->wirings[first[i]]];
        auto const& next = simulator_.wirings()[best_->wirings[i + 2 < first.size() ? first[i + 1] : 0]];
        out.phases.push_back({wired, best_time_.phases[i], d.point_to_point_bytes() + d.all_reduce_bytes()});
        out.rewirings += !same_wiring(wired, next);
    }
    return out;
}

PARSEARCH_INLINE phased_wiring rewire(fabric_problem const& problem, space::flat_strategy s, several_wirings const& finder, phase_options const& o) {
    validate(o);
    return phase_search(problem, std::move(s), finder, o)();
}

} // namespace detail

} // namespace parsearch::fabric
