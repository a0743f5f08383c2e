#pragma once
/// Exact search: branch and bound over strategies, with a proof that the best one found is optimal.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/core/ranges.hpp>
#include <parsearch/core/stable_order.hpp>
#include <parsearch/search/bounds/problem_bounds.hpp>
#include <parsearch/search/kernel/choices.hpp>
#include <parsearch/search/kernel/moves.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/session.hpp>

namespace parsearch::search {

/// Options of `exact`. It always ends by itself, after a time that nobody knows before.
struct exact_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `budget`
    std::optional<std::uint64_t> evaluations{};     ///< see `budget`
    std::stop_token stop{};                         ///< see `budget`

    /// Before branching begins, a first good strategy is looked for: a random walk of so many proposals, which takes what is not worse than the
    /// best by more than a fiftieth; where it is not set, 1000 + 100 per operator. Then sweeps of best responses over the operators.
    std::optional<std::uint64_t> walk{};
    std::uint64_t sweeps = 3; ///< at most; they end where nothing improves
    /// Partial strategies kept in a queue ordered by bound. The least of them is the lower bound that is reported, and is continued first;
    /// when the queue is full, depth first. 1: depth first from the start.
    std::uint64_t open = std::uint64_t{1} << 16;
    std::optional<std::uint64_t> nodes{}; ///< partial strategies bounded, at most; then the reason is `evaluation_budget`

    std::uint64_t progress_interval = 100'000; ///< partial strategies bounded from one `progress` to the next; 0: none
};

/// Throws `invalid_input` naming the option, its value and the rule.
inline void validate(exact_options const& o) {
    require_budget(budget_of(o), "exact");
    if (o.open == 0) throw invalid_input("exact: option 'open' is 0: must be at least 1, the empty strategy is kept");
}

/// A partial strategy of `exact` that is still to be continued.
template <class C> struct exact_node {
    C bound;
    std::vector<std::uint32_t> choices; ///< numbers of configurations, of the first operators of the order
};

/// Those who share the work of a tree: here nobody.
struct no_peers {
    /// Whether the tree is that of another run, which this one goes on with.
    template <class Tree, class R> [[nodiscard]] static bool resume(Tree&, R&) { return false; }
    /// Called before each partial strategy is continued. Answers why the search must end, if it must.
    template <class Tree> [[nodiscard]] static std::optional<stop_reason> poll(Tree&) { return {}; }
    /// The least bound of all, where it is `here` for this tree.
    template <class C> [[nodiscard]] static C const& least(C const& here) { return here; }
    /// Nothing is open here: waits for more, and answers whether there is; if not, `ended()` says why the search ends before nothing is open
    /// anywhere.
    template <class Tree> [[nodiscard]] static bool wait(Tree&) { return false; }
    [[nodiscard]] static std::optional<stop_reason> ended() { return {}; }
    /// The search ends here.
    template <class Tree> static void end(Tree&) {}
};

/// The running search: one path of fixed operators, whose bounds are known, and the queue of partial strategies.
template <class P, class S, class Peers, class... Os> class exact_tree {
    using cost = problem_cost_t<P, S>;
    using configuration = problem_configuration_t<P>;
    using bounds_type = decltype(make_bounds<S>(std::declval<evaluator_t<P>&>(), std::declval<space_t<P> const&>()));

    struct child {
        cost bound;
        std::uint32_t choice;
    };
    using node = exact_node<cost>;

  public:
    /// Refers to all but the start.
    exact_tree(Peers& peers, P const& problem, S start, std::uint64_t projected, exact_options const& options, Os&... observers)
        : peers_(peers), problem_(problem), options_(options), space_(problem.space()),
          run_("exact", problem, std::move(start), budget_of(options), patience_rule{}, 0, observers...), evaluator_(problem.evaluator()),
          bounds_(make_bounds<S>(evaluator_, space_)), levels_(space_.size()), tried_(space_.size()), order_(find_order()) {
        run_.count_projected(projected);
    }

    template <class R> search_result<S, cost> search(R& rng) {
        auto const reason = explore(rng);
        peers_.end(*this);
        if (reason) return run_.finish(*reason);
        run_.raise_bound(run_.best_cost());
        return run_.finish(stop_reason::proved_optimal);
    }

    /// Continues all that is open, here or got from peers. Answers why it ended before nothing was.
    [[nodiscard]] std::optional<stop_reason> work() {
        do {
            while (!queue_.empty() && queue_.front().bound < run_.best_cost()) {
                std::pop_heap(queue_.begin(), queue_.end(), later);
                node const next = std::move(queue_.back());
                queue_.pop_back();
                go_to(next.choices);
                root_ = path_.size();
                least_ = next.bound;
                bound_is(peers_.least(next.bound));
                bool const dive = queue_.size() + 1 >= options_.open || path_.size() + 1 >= order_.size();
                if (auto const reason = dive ? descend(next.bound) : branch(next)) return reason;
            }
            queue_.clear();
        } while (peers_.wait(*this));
        return peers_.ended();
    }

    // For peers, when they are asked: partial strategies that wait here and may go elsewhere.
    [[nodiscard]] auto& run() noexcept { return run_; }
    /// Nothing that is open here is below it.
    [[nodiscard]] cost least() const { return queue_.empty() || least_ < queue_.front().bound ? least_ : queue_.front().bound; }
    void take(std::vector<node> nodes) {
        for (auto& n : nodes)
            if (n.bound < run_.best_cost()) push(std::move(n));
    }
    /// Half of what waits, and at most `most`; of a strategy that is extended depth first what is nearest to its root.
    [[nodiscard]] std::vector<node> give(std::size_t most) {
        std::vector<node> out;
        if (queue_.size() > 1) {
            std::vector<node> kept;
            for (std::size_t n = 0; n < queue_.size(); ++n) (n % 2 == 1 && out.size() < most ? out : kept).push_back(std::move(queue_[n]));
            queue_ = std::move(kept);
            std::make_heap(queue_.begin(), queue_.end(), later);
            return out;
        }
        for (auto depth = root_; depth < path_.size() && out.empty(); ++depth) {
            auto& children = levels_[depth];
            auto const kept = children.size() - std::min(most, (children.size() - tried_[depth] + 1) / 2);
            for (auto n = kept; n < children.size(); ++n) out.push_back(child_of(depth, children[n]));
            children.resize(kept);
        }
        return out;
    }
    /// All that is open, when a peer is asked within a step: what waits, what is being continued and what waits on the way to it.
    [[nodiscard]] std::vector<node> open() const {
        auto out = queue_;
        for (auto depth = root_; depth < path_.size(); ++depth)
            for (auto n = tried_[depth]; n < levels_[depth].size(); ++n) out.push_back(child_of(depth, levels_[depth][n]));
        if (continued_) out.push_back({*continued_, path_});
        return out;
    }

    /// Whether any partial strategies wait here.
    [[nodiscard]] bool waiting() const noexcept { return !queue_.empty(); }

  private:
    /// Answers why it ended before nothing was open.
    template <class R> std::optional<stop_reason> explore(R& rng) {
        if (!peers_.resume(*this, rng)) {
            cost const root = checked(bounds_.value());
            bound_is(root);
            if (!(root < run_.best_cost())) return {};
            if (auto const reason = walk(rng)) return reason;
            for (std::uint64_t sweep = 0; sweep < options_.sweeps; ++sweep) {
                auto const improved = run_.stats().improved;
                if (auto const reason = improve()) return reason;
                if (run_.stats().improved == improved) break;
            }
            if (order_.empty()) return {};
            push({root, {}});
        }
        return work();
    }

    /// What is least first; among equals what is most complete, then the smallest numbers, so that it is a total order.
    static bool later(node const& a, node const& b) {
        if (a.bound != b.bound) return b.bound < a.bound;
        if (a.choices.size() != b.choices.size()) return a.choices.size() < b.choices.size();
        return b.choices < a.choices;
    }
    void push(node n) {
        queue_.push_back(std::move(n));
        std::push_heap(queue_.begin(), queue_.end(), later);
    }

    /// Nothing is below `bound`, nor is the start below its own cost.
    void bound_is(cost const& bound) { run_.raise_bound(bound < run_.best_cost() ? bound : run_.best_cost()); }
    static cost checked(cost bound) {
        if (!(bound == bound)) throw invalid_input("exact: a bound does not equal itself (NaN): bounds must be totally ordered");
        return bound;
    }

    /// Bounds the children of the current path, best first; those that cannot be better than the best are left out.
    void find_children(std::vector<child>& out, cost const& parent) {
        out.clear();
        auto const op = order_[path_.size()];
        for (std::uint64_t i = 0, n = choice_count(space_, op); i < n; ++i) {
            bounds_.fix(op, static_cast<std::size_t>(i));
            cost bound = checked(bounds_.value());
            bounds_.release(op);
            run_.explored(options_.progress_interval);
            if (bound < parent) bound = parent;
            if (bound < run_.best_cost()) out.push_back({std::move(bound), static_cast<std::uint32_t>(i)});
        }
        std::sort(out.begin(), out.end(),
                  [](child const& a, child const& b) { return a.bound < b.bound || (!(b.bound < a.bound) && a.choice < b.choice); });
    }
    void fix(std::uint32_t choice) {
        bounds_.fix(order_[path_.size()], choice);
        path_.push_back(choice);
    }
    void release() {
        bounds_.release(order_[path_.size() - 1]);
        path_.pop_back();
    }
    void go_to(std::vector<std::uint32_t> const& choices) {
        auto const same = static_cast<std::size_t>(std::mismatch(path_.begin(), path_.end(), choices.begin(), choices.end()).first - path_.begin());
        while (path_.size() > same) release();
        while (path_.size() < choices.size()) fix(choices[path_.size()]);
    }

    [[nodiscard]] node child_of(std::size_t depth, child const& c) const {
        node out{c.bound, {path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(depth)}};
        out.choices.push_back(c.choice);
        return out;
    }

    /// `bound`: of the path, which is continued next.
    [[nodiscard]] std::optional<stop_reason> due(cost const& bound) {
        continued_ = bound;
        auto const reason = peers_.poll(*this);
        continued_.reset();
        if (reason) return reason;
        if (options_.nodes && run_.stats().nodes >= *options_.nodes) return stop_reason::evaluation_budget;
        return run_.due();
    }

    /// Puts the children of the current path into the queue.
    std::optional<stop_reason> branch(node const& parent) {
        if (auto const reason = due(parent.bound)) return reason;
        auto& children = levels_[path_.size()];
        find_children(children, parent.bound);
        for (auto const& c : children) {
            node next{c.bound, parent.choices};
            next.choices.push_back(c.choice);
            push(std::move(next));
        }
        return {};
    }

    /// Everything that extends the current path, depth first.
    std::optional<stop_reason> descend(cost const& parent) {
        if (auto const reason = due(parent)) return reason;
        auto& children = levels_[path_.size()];
        auto& tried = tried_[path_.size()]; // peers may take what is behind it
        find_children(children, parent);
        for (tried = 0; tried < children.size();) {
            auto const c = children[tried++];
            if (!(c.bound < run_.best_cost())) break; // and so are all after it
            if (path_.size() + 1 == order_.size()) {
                path_.push_back(c.choice);
                auto const reason = price();
                path_.pop_back();
                if (reason) return reason;
                continue;
            }
            fix(c.choice);
            auto const reason = descend(c.bound);
            release();
            if (reason) return reason;
        }
        return {};
    }

    /// Prices the complete strategy of the path.
    std::optional<stop_reason> price() {
        changes_.clear();
        for (std::size_t n = 0; n < path_.size(); ++n) {
            change<configuration> c{order_[n], choice(space_, order_[n], path_[n])};
            if constexpr (std::equality_comparable<configuration>) {
                configuration const& now = configuration_of(run_.current(), c.op);
                if (now == c.configuration) continue;
            }
            changes_.push_back(std::move(c));
        }
        if (changes_.empty()) return {};
        return try_changes({});
    }
    std::optional<stop_reason> try_changes(std::optional<std::uint64_t> index) {
        if (auto const reason = run_.due()) return reason;
        auto const priced = run_.propose(changes_, run_.best_cost(), {.move = 0, .index = index});
        if (priced && *priced < run_.best_cost()) run_.keep();
        else run_.drop();
        return {};
    }

    template <class R> std::optional<stop_reason> walk(R& rng) {
        using traits = cost_traits<cost>;
        auto const proposals = options_.walk.value_or(1000 + 100 * static_cast<std::uint64_t>(order_.size()));
        if (proposals == 0) return {};
        auto moves = moves_of(problem_);
        for (std::uint64_t n = 0; n < proposals; ++n) {
            if (auto const reason = run_.due()) return reason;
            changes_.clear();
            auto const drawn = moves(space_, run_.current(), rng, changes_);
            if (!drawn || changes_.empty()) continue;
            for (auto const& c : changes_)
                if (c.op >= order_.size())
                    throw invalid_input("exact: move number ", drawn->move, " changed operator number ", c.op, ": the space has ", order_.size(),
                                        " operators");
            auto limit = traits::infinity();
            if (run_.best_cost() < limit) {
                double const value = traits::value(run_.best_cost());
                double const volatile by = 0.02 * (value < 0 ? -value : value); // volatile: not fused with the sum, which rounds differently
                limit = traits::raised(run_.best_cost(), by);
            }
            if (run_.propose(changes_, limit, {.move = drawn->move, .index = drawn->index})) run_.keep();
            else run_.drop();
        }
        run_.restart();
        return {};
    }

    /// Best responses of one operator at a time, as `greedy`.
    std::optional<stop_reason> improve() {
        for (auto const op : order_)
            for (std::uint64_t i = 0, n = choice_count(space_, op); i < n; ++i) {
                changes_.clear();
                changes_.push_back({op, choice(space_, op, i)});
                if constexpr (std::equality_comparable<configuration>) {
                    configuration const& now = configuration_of(run_.current(), op);
                    if (now == changes_.front().configuration) continue;
                }
                if (auto const reason = try_changes(i)) return reason;
            }
        return {};
    }

    [[nodiscard]] std::vector<std::size_t> find_order() const {
        std::vector<std::size_t> order;
        if constexpr (requires { requires InputRange<decltype(bounds_.order())>; }) {
            std::vector<bool> seen(space_.size(), false);
            for (auto const& given : bounds_.order()) {
                auto const op = static_cast<std::size_t>(given);
                if (op >= seen.size() || seen[op])
                    throw invalid_input("exact: the order of the bounds lists operator number ", op, ": must be each below ", seen.size(), " once");
                seen[op] = true;
                order.push_back(op);
            }
            if (order.size() != seen.size())
                throw invalid_input("exact: the order of the bounds lists ", order.size(), " operators: the space has ", seen.size());
        } else {
            order = stable_order(space_.size(), [&](std::size_t a, std::size_t b) { return choice_count(space_, a) < choice_count(space_, b); });
        }
        return order;
    }

    Peers& peers_;
    P const& problem_;
    exact_options const& options_;
    decltype(std::declval<P const&>().space()) space_; // a copy where the problem answers a value
    session<P, S, Os...> run_;
    evaluator_t<P> evaluator_;
    bounds_type bounds_;
    std::vector<std::vector<child>> levels_; // children on the way to the path,
    std::vector<std::size_t> tried_;         // and how many of them have been continued
    std::size_t root_ = 0;                   // where the way begins that is continued depth first
    cost least_ = cost_traits<cost>::infinity();
    std::optional<cost> continued_;
    std::vector<std::size_t> order_;
    std::vector<std::uint32_t> path_;
    std::vector<node> queue_;
    std::vector<change<configuration>> changes_;
};

/// `exact(problem, start, rng, options, observers...)`: branch and bound (Land and Doig, Econometrica 28, 1960). Operators are fixed one
/// after the other; a partial strategy whose bound is not below the least cost known is dropped with all that extend it. Best first
/// while the queue has room, depth first with children by bound where it has not.
///
/// - Needs bounds: the evaluator is a `BoundedEvaluator` or an `AdditiveEvaluator`. Operators are fixed as `order()` of the bounds
///   lists them, else those with fewest configurations first.
/// - Reason `proved_optimal`: no strategy of the space, nor `start`, costs less than the answer, and `lower_bound` equals its cost. Where
///   the answer's cost is infinity, no strategy of the space is feasible. With another reason `lower_bound` is the least bound among what is left.
/// - One evaluation per complete strategy that the bounds do not exclude, with the least cost so far as bound of incremental evaluators;
///   `stats.nodes` counts partial strategies bounded. Memory: `open` partial strategies.
/// - Draws from `rng` for the walk alone (record-to-record travel: Dueck, J. Comput. Phys. 104, 1993, through the problem's moves). Equal
///   problem, start, options and engine state give the same search unless time or a stop token ends it.
/// - Throws `invalid_input` on options out of range, an operator without configurations, a start of the wrong length, an order that is not
///   a permutation, or a cost or bound that is not a number.
struct exact_fn {
    static constexpr search_traits traits{.bounds = true, .looks_inside = true, .small_spaces = true, .repeats = true};
    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, exact_options const& options = {}, Os&&... observers) const {
        static_assert(has_bounds<P, S>, "exact needs lower bounds: the problem's evaluator must be a BoundedEvaluator (e.bounds(space)) or an "
                                        "AdditiveEvaluator whose costs can be added; random_search and exhaustive need none");
        if constexpr (has_bounds<P, S>) {
            validate(options);
            auto const projected = project_start(problem, start, "exact");
            no_peers alone;
            return exact_tree<P, S, no_peers, std::remove_reference_t<Os>...>(alone, problem, std::move(start), projected, options, observers...)
                .search(rng);
        }
    }
};
inline constexpr exact_fn exact{};

} // namespace parsearch::search
