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
#include <parsearch/search/additive/cost_network.hpp>
#include <parsearch/search/additive/memory_limit.hpp>

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
        auto made = eliminated(calls.stop);
        if (!made || !made->run(nullptr, calls.stop)) return false;
        if (number<N>::is_infinite(made->constant())) return true;
        // Two lists of labels, before they are thinned out, and of each step where its labels came from.
        auto const of_one = static_cast<double>(8 * sizeof(label) + sizeof(origin) * steps_.size());
        auto const most = static_cast<std::size_t>(std::clamp(bytes_ / 2 / of_one, 8.0, 0x1p31));
        for (std::size_t width = 1024;; width *= 8) {
            auto const left_out = pass(*made, std::min(width, most), upper, calls);
            if (!left_out) return false;
            if (*left_out == none) return true;
            calls.bound(*left_out - *price_.of(limit_.budget));
            if (width >= most) return false;
        }
    }

  private:
    static constexpr auto none = std::numeric_limits<std::int64_t>::max();

    struct label {
        std::uint64_t end;        ///< the choices of the operators that later terms depend on, as one number
        std::int64_t bound, cost; ///< priced, and without the price; both with the messages of all later buckets
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
        double choices = 1;             ///< of all of `end`
        [[nodiscard]] bool counts() const noexcept { return choices < 0x1p62; } ///< they fit one number
    };

    /// Eliminates by number, the other way round, or in `elimination_order`: in the order with the fewest choices of open ends, which no exact
    /// message exceeds. Nothing where it was stopped.
    [[nodiscard]] std::optional<elimination<N>> eliminated(std::function<bool()> const& stop) {
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
        std::vector<std::uint32_t> best;
        double fewest = 0;
        for (auto const& order : {elimination_order(sizes_, scopes, forward, order_by::entries), forward, backward}) {
            if (stop()) return {};
            auto steps = steps_of(order);
            double choices = 0;
            for (auto const& s : steps) choices += s.choices;
            if (!best.empty() && choices >= fewest) continue;
            fewest = choices;
            best = order;
            steps_ = std::move(steps);
        }
        // Messages that are too large are split from the start: an exact plan of them takes long to make.
        double entries = std::max(1.0, bytes_ / 2 / static_cast<double>(sizeof(N)));
        for (;;) {
            if (stop()) return {};
            auto plan = plan_elimination(sizes_, scopes, best, entries);
            if ((plan.entries + plan.largest) * static_cast<double>(sizeof(N)) <= bytes_ / 2 || entries <= 1)
                return elimination<N>(sizes_, std::move(factors), std::move(plan));
            entries /= 4;
        }
    }

    /// Complexity: O((operators + pairs) * open ends).
    [[nodiscard]] std::vector<step> steps_of(std::vector<std::uint32_t> const& order) const {
        std::vector<std::size_t> position(order.size());
        for (std::size_t p = 0; p < order.size(); ++p) position[order[p]] = p;
        std::vector<std::vector<std::uint32_t>> neighbours(order.size());
        for (auto const& p : net_.pairs) {
            neighbours[p.from].push_back(p.to);
            neighbours[p.to].push_back(p.from);
        }
        std::vector<step> steps(order.size());
        std::vector<std::uint32_t> open; // later operators that share a term with an earlier one
        std::vector<bool> is_open(order.size(), false);
        byte_count least = 0;
        for (std::size_t p = 0; p < order.size(); ++p) {
            auto const v = order[p];
            steps[p].least_after = least;
            least = saturating_sum(least, *std::ranges::min_element(limit_.memory[v]));
            steps[p].end = open;
            for (auto const x : open) steps[p].choices *= sizes_[x];
            std::erase(open, v);
            for (auto const x : neighbours[v])
                if (position[x] > p && !is_open[x]) {
                    is_open[x] = true;
                    open.push_back(x);
                }
        }
        return steps;
    }

    /// What each choice of the operator at a position adds to the bound, the least first, where `chosen` has those of all behind it.
    [[nodiscard]] static std::vector<std::pair<std::int64_t, std::uint32_t>> rises(elimination<N> const& made, std::size_t p,
                                                                                   std::span<std::uint32_t const> chosen) {
        std::vector<N> row;
        made.row_of(p, chosen, row);
        N const sent = made.sent_by(p, chosen);
        std::vector<std::pair<std::int64_t, std::uint32_t>> out;
        for (std::uint32_t k = 0; k < row.size(); ++k)
            if (!number<N>::is_infinite(row[k])) out.emplace_back(static_cast<std::int64_t>(row[k] - sent), k);
        std::ranges::sort(out);
        return out;
    }

    /// Answers the least bound that was left out, `none` where none was; nothing where it was stopped.
    [[nodiscard]] std::optional<std::int64_t> pass(elimination<N> const& made, std::size_t width, std::int64_t& upper, label_calls const& calls) {
        auto const& order = made.plan().order;
        std::size_t const depth = order.size();
        auto const of_budget = *price_.of(limit_.budget), constant = static_cast<std::int64_t>(made.constant());
        auto const hopeless = [&](std::int64_t bound) { return bound - of_budget >= upper; };
        auto left_out = none;
        std::vector<label> labels{{0, constant, constant, 0, 0, 0}}, next;
        auto const most = 4 * width + *std::ranges::max_element(sizes_) + 1;
        labels.reserve(most);
        next.reserve(most);
        std::vector<std::vector<origin>> origins(depth); // of the labels that were kept at each step
        std::vector<std::uint32_t> chosen(sizes_.size(), 0);
        std::vector<std::pair<std::int64_t, std::uint32_t>> choices;
        for (std::size_t p = depth; p-- > 0;) {
            auto const v = order[p];
            auto const& memory = limit_.memory[v];
            next.clear();
            std::uint64_t unlike = 0;
            for (std::size_t n = 0; n < labels.size(); ++n) {
                auto const& l = labels[n];
                if (n % 1024 == 0 && calls.stop()) return {};
                if (n == 0 || l.end != labels[n - 1].end || (p + 1 < depth && !steps_[p + 1].counts())) {
                    recall(n, p + 1, origins, order, chosen);
                    choices = rises(made, p, chosen);
                }
                for (auto const& [rise, k] : choices) {
                    auto const bound = l.bound + rise;
                    if (hopeless(bound)) break;
                    auto const bytes = saturating_sum(l.memory, memory[k]);
                    if (saturating_sum(bytes, steps_[p].least_after) > limit_.budget) continue;
                    chosen[v] = k;
                    auto const cost = l.cost + rise - *price_.of(memory[k]);
                    next.push_back({end_of(p, chosen, unlike++), bound, cost, bytes, static_cast<std::uint32_t>(n), k});
                }
                if (next.size() > 4 * width) thin(next, width, left_out);
            }
            thin(next, width, left_out);
            for (auto const& l : next) origins[p].push_back({l.parent, l.choice});
            std::swap(labels, next);
        }
        // All that are left are feasible, and the first costs the least.
        if (!labels.empty()) {
            recall(0, 0, origins, order, chosen);
            upper = calls.found(chosen);
        }
        return left_out == none || hopeless(left_out) ? none : left_out;
    }

    [[nodiscard]] std::uint64_t end_of(std::size_t p, std::span<std::uint32_t const> chosen, std::uint64_t unlike) const {
        if (!steps_[p].counts()) return unlike;
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
    static void thin(std::vector<label>& labels, std::size_t width, std::int64_t& left_out) {
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
