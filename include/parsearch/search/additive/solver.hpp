#pragma once
/// Minimises a network: exactly where the tables fit into memory, else by bounds and branch and bound.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/search/additive/branch.hpp>
#include <parsearch/search/additive/cost_network.hpp>
#include <parsearch/search/additive/exact_component.hpp>
#include <parsearch/search/additive/network_segments.hpp>

namespace parsearch::search::additive {

/// How many operations per term of `net` an exact solution takes, by a plan of all of it: whether it pays to look at the terms first.
template <class N> [[nodiscard]] double operations_per_term(network<N> const& net) {
    std::vector<std::uint32_t> sizes, variables;
    std::vector<table_scope> scopes;
    double terms = 0;
    for (std::uint32_t op = 0; op < net.operators.size(); ++op) {
        sizes.push_back(static_cast<std::uint32_t>(net.choices(op)));
        variables.push_back(op);
        terms += sizes.back();
    }
    for (auto const& p : net.pairs) {
        scopes.push_back({p.from, p.to});
        terms += static_cast<double>(p.costs.size);
    }
    return plan_elimination(sizes, scopes, elimination_order(sizes, scopes, variables, order_by::entries)).operations / std::max(1.0, terms);
}

/// What a solver is at: the tables of an exact solution, or bounds and a search of partial strategies.
enum class phase : std::uint8_t { exact, bounded };

/// Minimises `net`. A template on the numbers alone, so that searches of many problems share it.
template <class N> class solver {
  public:
    /// What it asks and tells.
    struct callbacks {
        /// The variables at which a component may be cut, in order.
        std::function<std::vector<std::uint32_t>(std::size_t variables, std::vector<link> const& links)> cuts;
        /// A strategy better than all before: the position among `net.numbers[op]` of each operator's configuration.
        std::function<void(std::span<std::uint32_t const> positions, N value)> found;
        std::function<void(N value)> bound; ///< no strategy is below
        std::function<bool(phase)> stop;    ///< whether to end
    };

    /// `exact_sums`: numbers are integers, whose sums are not rounded. `repeats`: whether to look for equal tables, which costs a pass over
    /// all of them.
    solver(network<N> const& net, double memory, bool exact_sums, bool repeats, callbacks calls)
        : net_(net), memory_(memory), exact_sums_(exact_sums), repeats_(repeats), calls_(std::move(calls)), chosen_(net.operators.size(), 0) {
        for (std::size_t op = 0; op < net.operators.size(); ++op) sizes_.push_back(static_cast<std::uint32_t>(net.choices(op)));
    }

    /// Answers false where `stop` ended it before the least cost was known.
    bool run() {
        make_components();
        // What is solved exactly and soon comes first, so that others have something to add to.
        std::stable_sort(components_.begin(), components_.end(), [](auto const& a, auto const& b) { return a.effort() < b.effort(); });
        for (auto& c : components_) {
            if (c.exact.fits() && c.exact.operations() < soon) {
                if (!solve(c)) return end_early();
            } else if (!improve(c, quick_entries, quick_nodes)) {
                return false;
            }
        }
        // The caller knows what a complete run proves.
        if (std::all_of(components_.begin(), components_.end(), [](auto const& c) { return c.proved; })) return tell_found(), true;
        tell_bound();
        tell_found();
        for (auto& c : components_) {
            if (c.proved || !c.exact.fits()) continue;
            if (!solve(c)) return false;
            tell_bound();
            tell_found();
        }
        // Larger tables and trees in turns, so that no component keeps the others waiting.
        std::uint64_t nodes = quick_nodes;
        double entries = quick_entries;
        for (;;) {
            auto const open = std::count_if(components_.begin(), components_.end(), [](auto const& c) { return !c.proved; });
            if (open == 0) return true;
            entries = std::min(entries * 16, most_entries);
            nodes = nodes > std::numeric_limits<std::uint64_t>::max() / 16 ? nodes : nodes * 16;
            for (auto& c : components_)
                if (!c.proved && !improve(c, entries, nodes)) return false;
        }
    }

  private:
    static constexpr double soon = 3e8;           ///< operations of an exact solution that is not worth a bound before
    static constexpr double quick_entries = 1024; ///< of a message, for the first bound
    static constexpr double most_entries = 1e18;
    static constexpr std::uint64_t quick_nodes = 10'000;

    struct component {
        std::vector<std::uint32_t> variables;
        std::vector<factor<N>> factors;
        exact_component<N> exact;
        N lower{}, upper = number<N>::infinity();
        N tolerance{}; ///< how far sums of the same terms may differ
        bool looked_at = false, proved = false;
        [[nodiscard]] double effort() const noexcept { return exact.fits() ? exact.operations() : std::numeric_limits<double>::infinity(); }
    };

    void make_components() {
        std::vector<link> links;
        for (auto const& p : net_.pairs) links.emplace_back(std::min(p.from, p.to), std::max(p.from, p.to));
        auto const sets = components(sizes_.size(), links);
        std::vector<std::size_t> component_of(sizes_.size());
        for (std::size_t c = 0; c < sets.size(); ++c)
            for (auto const v : sets[c]) component_of[v] = c;
        std::vector<std::vector<factor<N>>> factors(sets.size());
        std::vector<std::vector<link>> own(sets.size());
        for (std::uint32_t v = 0; v < sizes_.size(); ++v) {
            numbers<N> const terms(net_.operators[v].data(), net_.operators[v].size());
            factors[component_of[v]].push_back({{v}, terms, repeats_ ? pool_.number_of(terms, 1) : 0});
        }
        for (std::size_t n = 0; n < net_.pairs.size(); ++n) {
            auto const& p = net_.pairs[n];
            factors[component_of[p.from]].push_back({{p.from, p.to}, p.costs, repeats_ ? pool_.number_of(p.costs, net_.choices(p.from)) : 0});
            own[component_of[p.from]].push_back(links[n]);
        }
        double left = memory_;
        for (std::size_t c = 0; c < sets.size(); ++c) {
            auto segments = split_at(sets[c], own[c], calls_.cuts(sizes_.size(), without_trees(sizes_.size(), own[c])), sizes_.size());
            exact_component<N> exact(sizes_, factors[c], std::move(segments), left);
            if (exact.keeps()) left -= exact.bytes(); // its messages stay in the pool
            components_.push_back({sets[c], std::move(factors[c]), std::move(exact)});
        }
    }

    /// The least and the largest term of each table bound sums, and what rounding makes of them. Complexity: O(terms), once.
    void look_at(component& c) const {
        if (std::exchange(c.looked_at, true)) return;
        N lower{0}, most{0};
        for (auto const& f : c.factors) {
            N least = f.table[0], largest{0};
            for (std::size_t i = 0; i < f.table.size; ++i) {
                least = std::min(least, f.table[i]);
                if (!number<N>::is_infinite(f.table[i])) largest = std::max(largest, f.table[i] < 0 ? -f.table[i] : f.table[i]);
            }
            lower = number<N>::sum(lower, least);
            most = most + largest;
        }
        if (!c.proved) c.lower = lower;
        if constexpr (std::numeric_limits<N>::is_iec559)
            if (!exact_sums_) c.tolerance = most * std::numeric_limits<N>::epsilon() * static_cast<N>(c.factors.size());
    }

    [[nodiscard]] N value_of(component const& c) const {
        N sum{0};
        for (auto const& f : c.factors) {
            std::size_t offset = 0;
            for (auto const v : f.scope) offset = offset * sizes_[v] + chosen_[v];
            sum = number<N>::sum(sum, f.table[offset]);
        }
        return sum;
    }

    bool solve(component& c) {
        std::vector<std::uint32_t> chosen(sizes_.size(), 0);
        auto const least = c.exact.run(repeats_ ? &pool_ : nullptr, chosen, [&] { return calls_.stop(phase::exact); });
        if (!least) return false;
        c.proved = true;
        c.lower = *least;
        if (!number<N>::is_infinite(*least)) {
            for (auto const v : c.variables) chosen_[v] = chosen[v];
            c.upper = *least;
        }
        return true;
    }

    /// Tells what is known of everything when a component was not finished.
    bool end_early() {
        tell_bound();
        return false;
    }

    /// A bound from mini-buckets of at most `entries` per message, as far as memory allows, and a search of at most `nodes` on it.
    bool improve(component& c, double entries, std::uint64_t nodes) {
        std::vector<table_scope> scopes;
        for (auto const& f : c.factors) scopes.push_back(f.scope);
        auto const order = elimination_order(sizes_, scopes, c.variables, order_by::entries);
        auto plan = plan_elimination(sizes_, scopes, order, entries);
        // Tables may be as large as a single one always is; beyond, memory decides.
        while ((plan.entries + plan.largest) * static_cast<double>(sizeof(N)) > memory_ && entries > 1)
            plan = plan_elimination(sizes_, scopes, order, entries /= 4);
        elimination<N> made(sizes_, c.factors, std::move(plan));
        auto const stop = [&] { return calls_.stop(phase::bounded); };
        if (!made.run(nullptr, stop)) return end_early();
        look_at(c);
        c.lower = std::max(c.lower, made.constant());
        tell_bound();
        std::vector<std::uint32_t> chosen(sizes_.size(), 0);
        auto const reached = [&](std::span<std::uint32_t const>) {
            std::vector<std::uint32_t> before;
            for (auto const v : c.variables) {
                before.push_back(chosen_[v]);
                chosen_[v] = chosen[v];
            }
            auto const value = value_of(c);
            if (value < c.upper) {
                c.upper = value;
                tell_found();
            } else {
                for (std::size_t i = 0; i < before.size(); ++i) chosen_[c.variables[i]] = before[i];
            }
            return c.upper;
        };
        auto const open = [&](N least) {
            c.lower = std::max(c.lower, least);
            tell_bound();
        };
        auto const end = branch_and_bound<N>(made, chosen, c.upper, c.tolerance, nodes, reached, open, stop);
        if (end == tree_end::complete) {
            c.proved = true;
            c.lower = c.upper;
            tell_bound();
        }
        return end != tree_end::stopped;
    }

    void tell_bound() {
        N sum{0}, tolerance{0};
        for (auto& c : components_) {
            look_at(c);
            sum = number<N>::sum(sum, c.lower);
            tolerance += c.tolerance;
        }
        calls_.bound(number<N>::is_infinite(sum) ? sum : static_cast<N>(sum - tolerance));
    }
    void tell_found() {
        N sum{0};
        for (auto const& c : components_) sum = number<N>::sum(sum, c.upper);
        if (!(sum < least_)) return;
        least_ = sum;
        calls_.found(chosen_, sum);
    }

    network<N> const& net_;
    double memory_;
    bool exact_sums_, repeats_;
    callbacks calls_;
    std::vector<std::uint32_t> sizes_, chosen_;
    table_pool<N> pool_;
    std::vector<component> components_;
    N least_ = number<N>::infinity(); ///< of the strategies told
};

} // namespace parsearch::search::additive
