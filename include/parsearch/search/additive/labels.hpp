#pragma once
/// Strategies within a budget of memory, from partial ones: what each costs and takes, and whether another is as good.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/search/additive/bucket_elimination.hpp>
#include <parsearch/search/additive/budget.hpp>
#include <parsearch/search/additive/cost_network.hpp>

namespace parsearch::search::additive {

/// What a search of labels asks and tells.
struct label_calls {
    std::function<std::int64_t(std::span<std::uint32_t const> choices)> found; ///< a feasible strategy; answers the least cost known
    std::function<void(std::int64_t least)> bound;                             ///< every feasible strategy that is not known costs as much
    std::function<bool()> stop;
};

/// Chooses operators in the reverse order of an elimination of the priced terms. A label is a partial strategy: its cost, its memory, and a bound on
/// what it can become, which is its cost with the price of its memory and the messages of all later buckets. One is dropped
/// - where another with the same choices of the operators that later terms depend on costs and takes no more,
/// - where its bound, less the price of the budget, is not below the least cost known,
/// - where it leaves too little memory for the rest.
///
/// Of more labels than a step may have, those of the least bounds are kept, and the others bound what was not searched; then all is done again with
/// more. Equal layers, whose strategies are many and alike, have few labels: those that differ in order alone are one.
/// Sources: Dumitrescu, Boland, Improved preprocessing, labeling and scaling algorithms for the weight-constrained shortest path problem, Networks
/// 42, 2003 (labels that a price bounds); Dechter, Bucket elimination, AIJ 1999.
template <class N> class label_search {
  public:
    /// `priced`: the terms with the price of their memory; they and `limit` must outlive it. Tables and labels take `bytes`, half each.
    label_search(cost_tables<std::int64_t> const& priced, memory_limit const& limit, memory_price const& price, double bytes)
        : net_(make_network<N>(priced)), limit_(limit), price_(price), bytes_(bytes) {
        for (std::uint32_t op = 0; op < net_.operators.size(); ++op) sizes_.push_back(static_cast<std::uint32_t>(net_.choices(op)));
    }

    /// Answers whether all was searched: then no feasible strategy costs less than the least known, `upper` in the beginning.
    [[nodiscard]] bool run(std::int64_t upper, label_calls const& calls) {
        elimination<N> made = eliminated();
        if (!made.run(nullptr, calls.stop)) return false;
        if (number<N>::is_infinite(made.constant())) return true;
        look_at(made.plan());
        // Of a step all labels, and up to five times as many of the next; of each step before where they came from.
        auto const most =
            static_cast<std::size_t>(std::max(8.0, bytes_ / 2 / static_cast<double>(6 * sizeof(label) + sizeof(origin) * steps_.size())));
        for (std::size_t width = 1024;; width *= 8) {
            auto const left_out = pass(made, std::min(width, most), upper, calls);
            if (!left_out) return false;
            if (number<N>::is_infinite(*left_out)) return true;
            calls.bound(static_cast<std::int64_t>(*left_out) - *price_.of(limit_.budget));
            if (width >= most) return false;
        }
    }

  private:
    struct label {
        std::uint64_t end; ///< the choices of the operators that open terms depend on, as one number
        N bound, cost;     ///< priced, and without the price; both with the messages of all later buckets
        byte_count memory;
        std::uint32_t parent, choice;
        [[nodiscard]] auto key() const noexcept { return std::tie(end, cost, memory, parent, choice); }
    };
    /// Where a label came from.
    struct origin {
        std::uint32_t parent, choice;
    };
    /// One per position in the order.
    struct step {
        std::vector<std::uint32_t> end; ///< the operators that later terms depend on, once the position's is chosen
        byte_count least_after = 0;     ///< memory of all that are not chosen then, at least
        bool counts = true;             ///< the choices of `end` fit one number
    };

    /// By number, the other way round, or in `elimination_order`: where the choices of `end`, or the messages, are the fewest.
    [[nodiscard]] elimination<N> eliminated() {
        std::vector<table_scope> scopes;
        std::vector<factor<N>> factors;
        std::vector<std::uint32_t> forward;
        for (std::uint32_t v = 0; v < sizes_.size(); ++v) {
            forward.push_back(v);
            factors.push_back({{v}, numbers<N>(net_.operators[v].data(), net_.operators[v].size()), 0});
        }
        for (auto const& p : net_.pairs) factors.push_back({{p.from, p.to}, p.costs, 0});
        for (auto const& f : factors) scopes.push_back(f.scope);
        std::vector<std::uint32_t> const backward(forward.rbegin(), forward.rend());
        std::optional<elimination_plan> best;
        double least = std::numeric_limits<double>::infinity();
        for (auto const& order : {forward, backward, elimination_order(sizes_, scopes, forward, order_by::entries)}) {
            auto plan = plan_elimination(sizes_, scopes, order);
            look_at(plan);
            double ends = 0;
            for (auto const& s : steps_) {
                double n = 1;
                for (auto const v : s.end) n *= sizes_[v];
                ends += n;
            }
            ends = std::max(ends, plan.entries);
            if (best && ends >= least) continue;
            least = ends;
            best = std::move(plan);
        }
        double entries = best->largest;
        while ((best->entries + best->largest) * static_cast<double>(sizeof(N)) > bytes_ / 2 && entries > 1)
            best = plan_elimination(sizes_, scopes, best->order, entries /= 4);
        return elimination<N>(sizes_, std::move(factors), *std::move(best));
    }

    void look_at(elimination_plan const& plan) {
        std::size_t const depth = plan.order.size();
        std::vector<std::size_t> position(depth);
        for (std::size_t p = 0; p < depth; ++p) position[plan.order[p]] = p;
        steps_.assign(depth, {});
        std::vector<std::uint32_t> open; // variables of given factors in the buckets so far
        byte_count least = 0;
        for (std::size_t p = 0; p < depth; ++p) {
            steps_[p].least_after = least;
            least = saturating_sum(least, *std::ranges::min_element(limit_.memory[plan.order[p]]));
            double product = 1;
            for (auto const v : open)
                if (position[v] >= p) {
                    steps_[p].end.push_back(v);
                    product *= sizes_[v];
                }
            steps_[p].counts = product < 0x1p62;
            for (auto const n : plan.buckets[p])
                if (n < sizes_.size() + net_.pairs.size() && n >= sizes_.size())
                    for (auto const v : {net_.pairs[n - sizes_.size()].from, net_.pairs[n - sizes_.size()].to})
                        if (!detail::holds(open, v)) open.push_back(v);
        }
    }

    /// Answers the least bound that was left out, infinity where none was; nothing where it was stopped.
    [[nodiscard]] std::optional<N> pass(elimination<N> const& made, std::size_t width, std::int64_t& upper, label_calls const& calls) {
        auto const& order = made.plan().order;
        std::size_t const depth = order.size();
        N const of_budget = static_cast<N>(*price_.of(limit_.budget));
        N left_out = number<N>::infinity();
        std::vector<label> labels{{0, made.constant(), made.constant(), 0, 0, 0}}, next;
        std::vector<std::vector<origin>> origins(depth); // of the labels that were kept at each step
        std::vector<std::uint32_t> chosen(sizes_.size(), 0);
        std::vector<N> row;
        std::vector<std::uint32_t> cheapest; // choices in order of `row`
        for (std::size_t p = depth; p-- > 0;) {
            auto const v = order[p];
            auto const& memory = limit_.memory[v];
            next.clear();
            for (std::size_t n = 0; n < labels.size(); ++n) {
                auto const& l = labels[n];
                if (n % 1024 == 0 && calls.stop()) return {};
                if (n == 0 || l.end != labels[n - 1].end || (p + 1 < depth && !steps_[p + 1].counts)) {
                    if (p + 1 < depth) recall(n, p + 1, origins, order, chosen);
                    made.row_of(p, chosen, row);
                    N const sent = made.sent_by(p, chosen);
                    cheapest.clear();
                    for (std::uint32_t k = 0; k < row.size(); ++k)
                        if (!number<N>::is_infinite(row[k])) {
                            row[k] -= sent;
                            cheapest.push_back(k);
                        }
                    std::ranges::sort(cheapest, [&](auto a, auto b) { return row[a] < row[b] || (row[a] == row[b] && a < b); });
                }
                for (auto const k : cheapest) {
                    N const bound = l.bound + row[k];
                    if (bound - of_budget >= static_cast<N>(upper)) break;
                    auto const bytes = saturating_sum(l.memory, memory[k]);
                    if (saturating_sum(bytes, steps_[p].least_after) > limit_.budget) continue;
                    chosen[v] = k;
                    N const cost = l.cost + row[k] - static_cast<N>(*price_.of(memory[k]));
                    next.push_back({end_of(p, chosen, next.size()), bound, cost, bytes, static_cast<std::uint32_t>(n), k});
                }
                if (next.size() > 4 * width) thin(next, width, left_out);
            }
            thin(next, width, left_out);
            for (auto const& l : next) origins[p].push_back({l.parent, l.choice});
            std::swap(labels, next);
        }
        // All that are left are feasible, and cost less than the best known: the first is the least.
        if (!labels.empty()) {
            recall(0, 0, origins, order, chosen);
            upper = calls.found(chosen);
        }
        return left_out - of_budget >= static_cast<N>(upper) ? number<N>::infinity() : left_out;
    }

    [[nodiscard]] std::uint64_t end_of(std::size_t p, std::span<std::uint32_t const> chosen, std::size_t number) const {
        if (!steps_[p].counts) return number;
        std::uint64_t out = 0;
        for (auto const v : steps_[p].end) out = out * sizes_[v] + chosen[v];
        return out;
    }

    /// Sets the choices of a label of step `p` and of those that it came from.
    void recall(std::size_t number, std::size_t p, std::vector<std::vector<origin>> const& origins, std::span<std::uint32_t const> order,
                std::vector<std::uint32_t>& chosen) const {
        for (; p < order.size(); ++p) {
            auto const [parent, choice] = origins[p][number];
            chosen[order[p]] = choice;
            number = parent;
        }
    }

    /// Drops what another is as good as, and beyond `width` those of the greatest bounds, of which `left_out` gets the least.
    static void thin(std::vector<label>& labels, std::size_t width, N& left_out) {
        auto const by_key = [](label const& a, label const& b) { return a.key() < b.key(); };
        std::sort(labels.begin(), labels.end(), by_key);
        std::size_t kept = 0;
        for (std::size_t n = 0; n < labels.size(); ++n)
            if (kept == 0 || labels[kept - 1].end != labels[n].end || labels[n].memory < labels[kept - 1].memory) labels[kept++] = labels[n];
        labels.resize(kept);
        if (kept <= width) return;
        auto const cut = labels.begin() + static_cast<std::ptrdiff_t>(width);
        std::nth_element(labels.begin(), cut, labels.end(),
                         [&](label const& a, label const& b) { return a.bound < b.bound || (!(b.bound < a.bound) && by_key(a, b)); });
        left_out = std::min(left_out, cut->bound);
        labels.erase(cut, labels.end());
        std::sort(labels.begin(), labels.end(), by_key);
    }

    network<N> net_;
    memory_limit const& limit_;
    memory_price price_;
    double bytes_;
    std::vector<std::uint32_t> sizes_;
    std::vector<step> steps_;
};

} // namespace parsearch::search::additive
