#pragma once
/// Small problems with known answers, shared by the tests of the searches.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/core/random.hpp>

namespace toys {

namespace ps = parsearch;
using strategy = std::vector<int>;
using space = std::vector<std::vector<int>>;

/// `operators` operators; operator `op` has `least + op % spread` configurations 0, 1, ...
inline space make_space(std::size_t operators, std::size_t least, std::size_t spread = 1) {
    space x(operators);
    for (std::size_t op = 0; op < operators; ++op)
        for (std::size_t n = 0; n < least + op % spread; ++n) x[op].push_back(static_cast<int>(n));
    return x;
}

/// SplitMix64 (Steele, Lea, Flood 2014): an engine that is not the standard library's.
struct splitmix {
    std::uint64_t state;
    static constexpr std::uint64_t min() { return 0; }
    static constexpr std::uint64_t max() { return ~std::uint64_t{0}; }
    std::uint64_t operator()() {
        std::uint64_t z = (state += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
};

/// A cost from a whole number.
template <class C> C cost_of(std::int64_t n) {
    if constexpr (std::is_arithmetic_v<C>) return static_cast<C>(n);
    else return C{n};
}

/// A random cost per operator and configuration, plus a random cost per pair of neighbouring operators where `coupled`.
template <class C> class table_cost {
  public:
    table_cost(space const& x, std::uint64_t seed, bool coupled) : width_(x) {
        splitmix rng{seed};
        for (std::size_t op = 0; op < x.size(); ++op) {
            for (std::size_t n = 0; n < x[op].size(); ++n) own_[key(op, n)] = draw(rng, 100);
            if (coupled && op > 0)
                for (std::size_t n = 0; n < x[op].size() * x[op - 1].size(); ++n) pair_[key(op, n)] = draw(rng, 60);
        }
    }
    C operator()(strategy const& s) const {
        std::int64_t total = 1;
        for (std::size_t op = 0; op < s.size(); ++op) {
            auto const n = static_cast<std::size_t>(s[op]);
            total += own_[key(op, n)];
            if (op > 0) total += pair_[key(op, n * width_[op - 1].size() + static_cast<std::size_t>(s[op - 1]))];
        }
        return cost_of<C>(total);
    }

  private:
    static constexpr std::size_t most = 64; // configurations, or pairs of them, per operator
    static std::size_t key(std::size_t op, std::size_t n) { return op * most + n; }
    static std::int64_t draw(splitmix& rng, std::uint64_t below) { return static_cast<std::int64_t>(ps::uniform_index(rng, below)); }
    space width_;
    std::vector<std::int64_t> own_ = std::vector<std::int64_t>(most * most), pair_ = own_;
};

template <class C> ps::search_problem<space, table_cost<C>> table_problem(space const& x, std::uint64_t seed, bool coupled) {
    return {x, table_cost<C>(x, seed, coupled)};
}

/// The least cost of all strategies.
template <class P> auto brute_force(P const& problem) {
    auto const& x = problem.space();
    auto evaluate = problem.evaluator();
    strategy s(x.size(), 0);
    auto least = evaluate(s);
    for (;;) {
        std::size_t op = 0;
        while (op < x.size() && static_cast<std::size_t>(++s[op]) == x[op].size()) s[op++] = 0;
        if (op == x.size()) return least;
        if (auto const c = evaluate(s); c < least) least = c;
    }
}

/// Counts of what an incremental evaluator was asked, shared by its copies.
struct asked {
    int whole = 0, resets = 0, proposals = 0, above_bound = 0, commits = 0, roll_backs = 0;
};

/// Makes a plain evaluator incremental, and throws where a search breaks the protocol.
template <class E, class S, class C> class stepwise {
  public:
    using cost = ps::cost_t<E, S>;
    stepwise(E evaluator, asked& counts) : evaluator_(std::move(evaluator)), counts_(&counts) {}

    cost operator()(S const& s) {
        ++counts_->whole;
        return evaluator_(s);
    }
    cost reset(S const& s) {
        require(!open_, "reset while a proposal is open");
        ++counts_->resets;
        current_ = s;
        return evaluator_(s);
    }
    std::optional<cost> propose(std::span<ps::change<C> const> changes, cost const& bound) {
        require(current_.has_value(), "propose before reset");
        require(!open_, "propose while a proposal is open");
        open_ = true;
        ++counts_->proposals;
        proposed_ = current_;
        for (auto const& c : changes) ps::set_configuration(*proposed_, c.op, c.configuration);
        cost const priced = evaluator_(*proposed_);
        within_ = priced <= bound;
        if (within_) return priced;
        ++counts_->above_bound;
        return {};
    }
    void commit() {
        require(open_ && within_, "commit of nothing, or of a proposal above the bound");
        open_ = false;
        ++counts_->commits;
        current_ = proposed_;
    }
    void roll_back() {
        require(open_, "roll back of nothing");
        open_ = false;
        ++counts_->roll_backs;
    }

  private:
    static void require(bool holds, char const* what) {
        if (!holds) throw std::logic_error(what);
    }
    E evaluator_;
    asked* counts_;
    std::optional<S> current_, proposed_;
    bool open_ = false, within_ = false;
};

/// The same problem with an incremental evaluator.
template <class P> auto incremental(P const& problem, asked& counts) {
    using evaluator = stepwise<ps::evaluator_t<P>, strategy, int>;
    static_assert(ps::IncrementalEvaluator<evaluator, strategy, int>);
    return ps::search_problem{problem.space(), evaluator(problem.evaluator(), counts)};
}

/// Groups of neighbours: halves of the operators, then pairs. Where a group makes choice n its members have configuration n, those that have so many.
class neighbours {
  public:
    explicit neighbours(space const& x) : space_(&x) {
        for (auto const size : {(x.size() + 1) / 2, std::size_t{2}}) {
            levels_.emplace_back();
            for (std::size_t first = 0; first < x.size(); first += size) {
                levels_.back().push_back(members_.size());
                members_.emplace_back();
                for (std::size_t op = first; op < std::min(first + size, x.size()); ++op) members_.back().push_back(op);
            }
        }
    }
    [[nodiscard]] std::size_t size() const { return members_.size(); }
    [[nodiscard]] std::size_t levels() const { return levels_.size(); }
    [[nodiscard]] std::vector<std::size_t> const& level(std::size_t n) const { return levels_[n]; }
    [[nodiscard]] std::uint64_t choices(std::size_t group) const { return (*space_)[members_[group].front()].size(); }
    void changes(std::size_t group, std::uint64_t choice, std::vector<ps::change<int>>& out) const {
        for (auto const op : members_[group])
            if (choice < (*space_)[op].size()) out.push_back({op, (*space_)[op][choice]});
    }

  private:
    space const* space_;
    std::vector<std::vector<std::size_t>> levels_, members_;
};

/// The same problem with groups of neighbours.
template <class P> struct grouped : P {
    explicit grouped(P of) : P(std::move(of)) {}
    [[nodiscard]] neighbours coarsening() const { return neighbours(this->space()); }
};

/// A problem like `like` whose strategies cost what `evaluator` answers.
template <class P, class E> auto with_evaluator(P const& like, E evaluator) {
    ps::search_problem problem{like.space(), std::move(evaluator)};
    if constexpr (requires { like.coarsening(); }) return grouped(std::move(problem));
    else return problem;
}

/// All of a result but the wall time.
template <class R> bool same_run(R const& a, R const& b) {
    return a.best == b.best && a.cost == b.cost && a.reason == b.reason && a.stats.evaluations == b.stats.evaluations &&
           a.stats.proposals == b.stats.proposals && a.stats.accepted == b.stats.accepted && a.stats.improved == b.stats.improved &&
           a.stats.trajectory == b.stats.trajectory;
}

/// Runs `search(problem, options)` with a stop in its `after`-th evaluation, `within` it or behind it, then again with the evaluations that it made
/// for its budget, and checks that both are the same but for what they proposed, which is the caller's to compare. Returns both results, the cut one
/// first; nothing where the search ended by itself.
template <class P, class Options, class Search>
auto check_cut(P const& problem, Options options, std::uint64_t after, Search const& search, bool within = false) {
    using result = decltype(search(problem, options));
    std::stop_source source;
    std::atomic<std::uint64_t> calls = 0;
    auto const cutting = with_evaluator(problem, [&, cost = problem.evaluator()](strategy const& s) {
        if (auto const n = ++calls; n >= after) {
            if (n == after) source.request_stop();
            if (within && n > 1) throw ps::interrupted(); // without a price of its start a search has nothing to answer
        }
        return cost(s);
    });
    options.stop = source.get_token();
    result const cut = search(cutting, options);
    if (cut.reason != ps::stop_reason::stop_requested) return std::optional<std::pair<result, result>>();
    options.stop = {};
    options.evaluations = cut.stats.evaluations;
    result const again = search(problem, options);
    CHECK(again.stats.evaluations == cut.stats.evaluations);
    CHECK(again.best == cut.best);
    CHECK(again.cost == cut.cost);
    CHECK(again.stats.trajectory == cut.stats.trajectory);
    CHECK(again.stats.accepted == cut.stats.accepted);
    return std::optional(std::pair(cut, again));
}

} // namespace toys
