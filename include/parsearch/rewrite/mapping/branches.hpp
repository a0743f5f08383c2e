#pragma once
/// Parallel branches on a box: the least time and communication, given the views of what they communicate with.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/mapping/mapping_model.hpp>
#include <parsearch/rewrite/mapping/mapping_tables.hpp>
#include <parsearch/rewrite/mapping/resource_box.hpp>
#include <parsearch/rewrite/mapping/structure.hpp>

namespace parsearch::rewrite::mapping {

/// A way to run branches: time, and communication with what is outside, which is charged beside it.
struct way {
    time inside, outside;
};
/// Ways of which none is better than another in both: ascending in `inside`, descending in `outside`.
using frontier = std::vector<way>;

/// Leaves of `ways` those that no other is as good as, and that are below `limit` with `rest` more.
void prune(frontier& ways, time rest, time limit);

/// visit(inside, outside) for the ways to run `a` beside `b` that are not worse than another.
template <class F> void side_by_side(frontier const& a, frontier const& b, F const& visit) {
    if (a.empty() || b.empty()) return;
    for (std::size_t i = 0, j = 0; i < a.size(); ++i) { // the longer one is of `a`
        while (j + 1 < b.size() && b[j + 1].inside <= a[i].inside) ++j;
        if (b[j].inside <= a[i].inside) visit(a[i].inside, plus(a[i].outside, b[j].outside));
    }
    for (std::size_t i = 0, j = 0; j < b.size(); ++j) {
        while (i + 1 < a.size() && a[i + 1].inside <= b[j].inside) ++i;
        if (a[i].inside <= b[j].inside) visit(b[j].inside, plus(a[i].outside, b[j].outside));
    }
}

/// The branches of one group on one box. `Solve`: solve(series, box) answers the table of a branch over the views of its ports that fit the box.
template <class Solve> class branches {
  public:
    branches(tables& t, structure const& all, structure::group const& g, resource_box const& box, meter& m, Solve& solve)
        : tables_(t), group_(g), meter_(m), solve_(solve), groups_(g.branches.size(), m.options().free_branches) {
        find(box);
        auto const scope_place = [&](std::uint32_t task) {
            return static_cast<std::size_t>(std::find(g.scope.begin(), g.scope.end(), task) - g.scope.begin());
        };
        for (auto const s : g.branches) {
            branch b{.series = s, .ports = all.all_series[s].ports};
            for (auto const p : b.ports) {
                bool const open = std::find(g.open.begin(), g.open.end(), p) != g.open.end();
                b.opens.push_back(open);
                b.where.push_back(open ? scope_place(p) : closed_.size());
                if (open) continue;
                ++b.closed;
                closed_.emplace_back();
                auto& c = closed_.back();
                c.cost.resize(t.views(p));
                for (auto const& o : g.closed)
                    if (o.port == p) c.edges.push_back({scope_place(o.other), t.edge_costs(o.edge, o.out)}); // rows by view of the other
            }
            branches_.push_back(std::move(b));
        }
        least_outside_.resize(groups_.members.size());
    }

    /// The least of time and communication, where the tasks of the scope have these views.
    [[nodiscard]] time value(std::span<std::uint32_t const> views) {
        if (!prepare(views)) return never;
        limit_ = 0; // all in sequence, to begin with
        for (std::uint32_t n = 0; n < branches_.size(); ++n) limit_ = plus(limit_, alone(n, 0));
        auto const all = static_cast<std::uint32_t>(groups_.ways.size() - 1);
        for (auto const& [a, b] : groups_.ways[all]) limit_ = std::min(limit_, plus(alone(a, 0), alone(b, 0)));
        auto const better = [&](time inside, time outside) { limit_ = std::min(limit_, plus(inside, outside)); };
        for (auto const& [a, b] : groups_.ways[all]) beside(a, b, 0, better);
        return limit_;
    }

    /// chosen(branch, box, views of its ports) for each branch, in a way that takes `least`, the value for these views, which is not never.
    template <class F> void trace(std::span<std::uint32_t const> views, time least, F const& chosen) {
        prepare(views);
        limit_ = least + 1;
        trace_way(static_cast<std::uint32_t>(groups_.ways.size() - 1), 0, {{least, 0}, false}, chosen);
    }

  private:
    static constexpr std::uint64_t sorting = 4; ///< steps per way that is sorted, about

    /// The solutions of a branch on a box, by the views of its open ports, then by time; with the views of its closed ports.
    struct entry_table {
        std::vector<std::size_t> begin;
        std::vector<time> inside;
        std::vector<std::uint32_t> views;
    };
    struct branch {
        std::uint32_t series = 0;
        std::vector<std::uint32_t> ports;
        std::vector<bool> opens{};
        std::vector<std::size_t> where{}; ///< of an open port: its place in the scope; of a closed one: among the closed
        std::size_t closed = 0;
        std::vector<entry_table> entries{}; ///< by box
    };
    struct closed_port {
        struct to {
            std::size_t place;
            time const* costs;
        };
        std::vector<to> edges{};
        std::vector<time> cost{}; ///< of the current case, by view
        time least = 0;
    };
    struct state {
        std::uint64_t of = 0; ///< the case that the ways are of
        frontier ways{};
        std::uint64_t least_of = 0; ///< the case that the bound is of
        time least = 0;
    };

    std::uint32_t find(resource_box const& box) {
        auto const [at, missing] = numbers_.emplace(box, static_cast<std::uint32_t>(boxes_.size()));
        if (missing) {
            boxes_.push_back(box);
            parts_.emplace_back();
            states_.emplace_back(groups_.members.size());
        }
        return at->second;
    }
    /// The two sides of each cut of a box.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> const& parts(std::uint32_t box) {
        if (parts_[box].empty()) {
            auto const whole = boxes_[box];
            std::vector<std::pair<std::uint32_t, std::uint32_t>> made;
            for (std::size_t n = 0; n < whole.cuts(); ++n) {
                auto const lower = find(whole.lower(n)), upper = find(whole.upper(n));
                made.emplace_back(lower, upper);
                made.emplace_back(upper, lower);
            }
            parts_[box] = std::move(made);
        }
        return parts_[box];
    }

    entry_table const& entries(branch& b, std::uint32_t box) {
        if (b.entries.size() <= box) b.entries.resize(boxes_.size());
        auto& e = b.entries[box];
        if (!e.begin.empty()) return e;
        auto const& table = solve_(b.series, boxes_[box]);
        std::vector<tables::fitting const*> fits;
        std::size_t cases = 1; // of the open ports
        for (std::size_t p = 0; p < b.ports.size(); ++p) {
            fits.push_back(&tables_.fits(b.ports[p], boxes_[box]));
            if (b.opens[p]) cases *= fits.back()->views.size();
        }
        struct line {
            std::size_t of, number;
        };
        std::vector<line> order;
        std::vector<std::size_t> at(b.ports.size(), 0);
        for (std::size_t n = 0; n < table.size(); ++n) {
            if (table[n] < never) {
                std::size_t of = 0;
                for (std::size_t p = 0; p < at.size(); ++p)
                    if (b.opens[p]) of = of * fits[p]->views.size() + at[p];
                order.push_back({of, n});
            }
            for (std::size_t p = at.size(); p-- > 0;) {
                if (++at[p] < fits[p]->views.size()) break;
                at[p] = 0;
            }
        }
        std::sort(order.begin(), order.end(), [&](line const& x, line const& y) {
            return std::tuple(x.of, table[x.number], x.number) < std::tuple(y.of, table[y.number], y.number);
        });
        e.begin.assign(cases + 1, 0);
        for (auto const& l : order) {
            ++e.begin[l.of + 1];
            e.inside.push_back(table[l.number]);
            auto const first = e.views.size();
            e.views.resize(first + b.closed);
            auto rest = l.number;
            for (std::size_t p = at.size(), k = b.closed; p-- > 0;) {
                auto const size = fits[p]->views.size();
                if (!b.opens[p]) e.views[first + --k] = fits[p]->views[rest % size];
                rest /= size;
            }
        }
        for (std::size_t n = 0; n < cases; ++n) e.begin[n + 1] += e.begin[n];
        return e;
    }
    /// The entries of branch number `n` on a box in the current case.
    struct span {
        entry_table const* of;
        std::size_t begin, end;
    };
    span entries_now(std::uint32_t n, std::uint32_t box) {
        auto& b = branches_[n];
        auto const& e = entries(b, box);
        if (b.closed == b.ports.size()) return {&e, 0, e.inside.size()};
        std::size_t at = 0;
        for (std::size_t p = 0; p < b.ports.size(); ++p) {
            if (!b.opens[p]) continue;
            auto const& fits = tables_.fits(b.ports[p], boxes_[box]);
            auto const place = fits.place[now_[b.where[p]]];
            if (place >= fits.views.size()) return {&e, 0, 0};
            at = at * fits.views.size() + place;
        }
        return {&e, e.begin[at], e.begin[at + 1]};
    }
    /// The communication of entry number `i`.
    [[nodiscard]] time outside(std::uint32_t n, entry_table const& e, std::size_t i) const {
        time sum = 0;
        auto const& b = branches_[n];
        auto const* view = e.views.data() + i * b.closed;
        for (std::size_t k = 0; k < b.closed; ++k) sum = plus(sum, closed_[first_closed_[n] + k].cost[view[k]]);
        return sum;
    }

    /// Reads the views of a case; false where no view of some closed port may communicate with them.
    bool prepare(std::span<std::uint32_t const> views) {
        ++case_;
        now_ = views;
        for (auto& c : closed_) {
            std::fill(c.cost.begin(), c.cost.end(), time{0});
            for (auto const& to : c.edges) {
                auto const* row = to.costs + views[to.place] * c.cost.size();
                for (std::size_t v = 0; v < c.cost.size(); ++v) c.cost[v] = plus(c.cost[v], row[v]);
            }
            c.least = never;
            for (auto const cost : c.cost) c.least = std::min(c.least, cost);
        }
        if (first_closed_.empty()) {
            std::size_t first = 0;
            for (auto const& b : branches_) first_closed_.push_back(std::exchange(first, first + b.closed));
        }
        for (std::size_t g = 0; g < groups_.members.size(); ++g) {
            time sum = 0;
            for (auto const n : groups_.members[g])
                for (std::size_t k = 0; k < branches_[n].closed; ++k) sum = plus(sum, closed_[first_closed_[n] + k].least);
            least_outside_[g] = sum;
        }
        return least_outside_.back() < never;
    }
    /// At least the communication of all branches that are not in `group`.
    [[nodiscard]] time rest(std::uint32_t group) const { return least_outside_.back() - least_outside_[group]; }
    [[nodiscard]] bool single(std::uint32_t group) const { return group < branches_.size(); }

    /// At least the time of `group` on a box.
    time least_inside(std::uint32_t group, std::uint32_t box) {
        if (auto const& known = states_[box][group]; known.least_of == case_) return known.least;
        time out = 0;
        if (single(group)) {
            auto const e = entries_now(group, box);
            out = e.begin == e.end ? never : e.of->inside[e.begin];
        } else { // any two groups that it is cut into have all of its branches
            auto const [a, b] = groups_.ways[group].front();
            out = std::max(least_inside(a, box), least_inside(b, box));
        }
        meter_.spend(1);
        auto& s = states_[box][group];
        s.least_of = case_;
        s.least = out;
        return out;
    }

    /// The least sum of time and communication of `group` on a box; may be too large where it is of no use.
    time alone(std::uint32_t group, std::uint32_t box) {
        time best = never;
        if (single(group)) {
            auto const e = entries_now(group, box);
            for (auto i = e.begin; i < e.end && plus(e.of->inside[i], least_outside_[group]) < best; ++i)
                best = std::min(best, plus(e.of->inside[i], outside(group, *e.of, i)));
            return best;
        }
        for (auto const& w : ways(group, box)) best = std::min(best, plus(w.inside, w.outside));
        return best;
    }
    /// visit(inside, outside) for the ways to run two groups on the parts of a box.
    template <class F> void beside(std::uint32_t a, std::uint32_t b, std::uint32_t box, F const& visit) {
        auto const count = parts(box).size();
        for (std::size_t n = 0; n < count; ++n) {
            auto const [x, y] = parts_[box][n];
            meter_.spend(1);
            if (useless(a, x) || useless(b, y)) continue;
            side_by_side(ways(a, x), ways(b, y), visit);
        }
    }
    /// Whether nothing below the limit has `group` on a box.
    bool useless(std::uint32_t group, std::uint32_t box) { return plus(least_inside(group, box), least_outside_.back()) >= limit_; }

    /// The frontier of `group` on a box, without what is of no use.
    frontier const& ways(std::uint32_t group, std::uint32_t box) {
        if (auto const& known = states_[box][group]; known.of == case_) return known.ways;
        frontier out = std::exchange(states_[box][group].ways, {});
        out.clear();
        meter_.spend(1);
        auto const others = rest(group);
        if (single(group)) {
            auto const e = entries_now(group, box);
            time least = never;
            for (auto i = e.begin; i < e.end && plus(e.of->inside[i], least_outside_.back()) < limit_; ++i) {
                auto const cost = outside(group, *e.of, i);
                meter_.spend(1);
                if (cost >= least) continue;
                least = cost;
                if (plus(plus(e.of->inside[i], cost), others) < limit_) out.push_back({e.of->inside[i], cost});
                if (least == least_outside_[group]) break; // no other is cheaper
            }
        } else if (!useless(group, box)) {
            for (auto const& [a, b] : groups_.ways[group]) {
                for (auto const& x : ways(a, box))
                    for (auto const& y : ways(b, box)) out.push_back({plus(x.inside, y.inside), plus(x.outside, y.outside)});
                meter_.spend(sorting * out.size());
                prune(out, others, limit_);
                beside(a, b, box, [&](time inside, time outside) { out.push_back({inside, outside}); });
                meter_.spend(sorting * out.size());
                prune(out, others, limit_);
            }
        }
        auto& s = states_[box][group]; // states may have moved
        s.ways = std::move(out);
        s.of = case_;
        return s.ways;
    }

    template <class F> void choose(std::uint32_t n, std::uint32_t box, entry_table const& e, std::size_t i, F const& chosen) {
        auto const& b = branches_[n];
        std::vector<std::uint32_t> views;
        for (std::size_t p = 0, k = 0; p < b.ports.size(); ++p) views.push_back(b.opens[p] ? now_[b.where[p]] : e.views[i * b.closed + k++]);
        chosen(b.series, boxes_[box], std::span<std::uint32_t const>(views));
    }
    /// What is looked for: a way, or any whose sum is that of a way.
    struct target {
        way wanted;
        bool exactly;
        [[nodiscard]] bool operator()(time inside, time outside) const noexcept {
            return exactly ? inside == wanted.inside && outside == wanted.outside : plus(inside, outside) == plus(wanted.inside, wanted.outside);
        }
    };
    /// Tells the first way of `group` that is looked for; false where there is none.
    template <class F> bool trace_way(std::uint32_t group, std::uint32_t box, target const& is, F const& chosen) {
        if (single(group)) {
            auto const e = entries_now(group, box);
            for (auto i = e.begin; i < e.end; ++i)
                if (is(e.of->inside[i], outside(group, *e.of, i))) {
                    choose(group, box, *e.of, i, chosen);
                    return true;
                }
            return false;
        }
        auto const both = [&](std::uint32_t a, std::uint32_t x, std::uint32_t b, std::uint32_t y, bool in_turn) {
            frontier const left = ways(a, x), right = ways(b, y);
            for (auto const& l : left)
                for (auto const& r : right)
                    if (is(in_turn ? plus(l.inside, r.inside) : std::max(l.inside, r.inside), plus(l.outside, r.outside)))
                        return trace_way(a, x, {l, true}, chosen) && trace_way(b, y, {r, true}, chosen);
            return false;
        };
        for (auto const& [a, b] : groups_.ways[group]) {
            if (both(a, box, b, box, true)) return true;
            for (std::size_t n = 0, count = parts(box).size(); n < count; ++n)
                if (both(a, parts_[box][n].first, b, parts_[box][n].second, false)) return true;
        }
        return false;
    }

    tables& tables_;
    structure::group const& group_;
    meter& meter_;
    Solve& solve_;
    branch_groups groups_;
    std::vector<branch> branches_;
    std::vector<closed_port> closed_;       // of all branches in turn
    std::vector<std::size_t> first_closed_; // by branch
    std::vector<resource_box> boxes_;
    std::map<resource_box, std::uint32_t> numbers_;
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> parts_; // by box
    std::vector<std::vector<state>> states_;                                  // by box, by group

    // The current case.
    std::uint64_t case_ = 0;
    std::span<std::uint32_t const> now_{};
    time limit_ = never;              // what is not below it is of no use
    std::vector<time> least_outside_; // by group of branches
};

} // namespace parsearch::rewrite::mapping

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/mapping/branches.ipp>
#endif
