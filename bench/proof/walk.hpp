#pragma once
/// A walk through the strategies of one problem on which the delta simulator is compared with the full one.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/sim/delta_simulator.hpp>

#include "draw.hpp"
#include "judge.hpp"

namespace proof {

struct counts {
    std::uint64_t random = 0;    // proposals drawn, each compared task by task
    std::uint64_t proposals = 0; // asked for: drawn ones two to four times, and those that lead back
    std::uint64_t committed = 0, rolled_back = 0, over = 0;
    std::uint64_t comparisons = 0, tasks = 0; // of everything, task by task
    std::uint64_t by_definition = 0;          // schedules held against the definition
    std::uint64_t largest = 0;                // tasks of the largest strategy

    counts& operator+=(counts const& c) {
        random += c.random, proposals += c.proposals, committed += c.committed, rolled_back += c.rolled_back, over += c.over;
        comparisons += c.comparisons, tasks += c.tasks, by_definition += c.by_definition, largest = std::max(largest, c.largest);
        return *this;
    }
};

struct walk_options {
    std::uint64_t seed = 0, proposals = 0;
    std::int32_t most_shards = 0; // of operators drawn several at once, and of the stages to start from; 0: as many as devices
    std::optional<strategy> expert{};
    std::optional<std::size_t> cache_bytes{}; // of the delta simulator
};

// The walk goes in legs from different starts. In a batch, up to eight proposals are drawn; the full simulator prices each. First all are
// asked for under some bound and dropped, as in a search, one to three times in another order; then each is asked for again, committed and
// compared with the full simulator in everything. All but at most one are left by the proposal that leads back, which is committed and
// sometimes compared too.
// The first n proposals are the same whatever their number is.
template <class P> class walk {
  public:
    walk(P const& problem, walk_options options, std::atomic<bool> const& stop)
        : problem_(problem), options_(std::move(options)), stop_(stop), rng_(options_.seed), draw_(problem, options_.most_shards),
          simulator_(problem.simulator()), delta_(make_delta()) {}

    // Throws `invalid_input` at the first mismatch.
    counts run() {
        batch_.resize(most_drawn);
        for (std::size_t leg = 0; done_.random < options_.proposals && !stop_; ++leg) {
            start(leg);
            auto const end = done_.random + std::min<std::uint64_t>(256, std::uint64_t{16} << std::min<std::size_t>(leg, 4));
            while (done_.random < std::min(end, options_.proposals) && !stop_) do_batch();
        }
        return done_;
    }

  private:
    using delta_type = decltype(std::declval<P const&>().evaluator());
    static constexpr std::size_t most_drawn = 8;

    struct drawn {
        changes there, back;
        reference wanted;
    };

    delta_type make_delta() const {
        if (!options_.cache_bytes) return problem_.evaluator();
        return delta_type(problem_.workload(), {.cache_bytes = *options_.cache_bytes});
    }

    [[noreturn]] void fail(std::string const& what) const {
        std::string last;
        if (changed_)
            for (auto const& c : *changed_)
                last += ps::text("\n    ", problem_.graph().names[c.op], ": ", to_string(current_[c.op], problem_.graph().operations[c.op]), " -> ",
                                 to_string(c.configuration, problem_.graph().operations[c.op]));
        throw ps::invalid_input("seed ", options_.seed, ", after ", done_.random, " proposals (leg ", legs_, ", number ", done_.proposals,
                                " asked for, ", asked_, "): ", what, last);
    }

    void start(std::size_t leg) {
        legs_ = leg;
        asked_ = "start";
        changed_ = nullptr;
        auto const most = options_.most_shards > 0 ? options_.most_shards : static_cast<std::int32_t>(problem_.topology().size());
        evenly_ = leg % 5 == 2;
        switch (leg % 5) {
        case 0: current_ = draw_.stages(most); break;
        case 1:
        case 2: current_ = ps::data_parallel(problem_); break;
        case 3: current_ = draw_.scattered(rng_); break;
        default: current_ = options_.expert ? *options_.expert : draw_.scattered(rng_); break;
        }
        // A simulator that has seen nothing, so that a plan which it should have renewed does not go unnoticed.
        simulator_ = problem_.simulator();
        refer(simulator_, now_, current_);
        if (auto const cost = delta_.reset(current_); cost != now_.cost) fail(ps::text("reset answers ", cost.count(), ", not ", now_.cost.count()));
        compare(now_);
        if (leg % 5 == 3) {
            asked_ = "copied";
            delta_ = delta_type(delta_);
            compare(now_);
            if (auto const whole = delta_.simulate_whole(); whole.count() != now_.schedule.makespan)
                fail("simulated as a whole it takes another time");
            compare(now_);
        }
        // Strategies do not grow beyond: full simulation of them would take too long.
        most_tasks_ = 2 * now_.tasks.size() + 1000;
    }

    void do_batch() {
        auto const n = 1 + below(rng_, most_drawn);
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < n; ++i) {
            auto& d = batch_[i];
            draw_(rng_, current_, evenly_, d.there);
            d.back.clear();
            for (auto const& c : d.there) d.back.push_back({c.op, current_[c.op]});
            apply(d.there);
            refer(simulator_, d.wanted, current_);
            apply(d.back);
            order.push_back(i);
        }
        // Half of the batches leave one to go on from.
        auto const kept = below(rng_, 2) == 0 ? below(rng_, n) : n;
        for (auto rounds = 1 + below(rng_, 3); rounds > 0; --rounds) {
            shuffle(order);
            for (auto const i : order) {
                asked_ = "dropped";
                auto const bound = any_bound(rng_, batch_[i].wanted.cost, now_.cost);
                drop(propose(batch_[i].there, batch_[i].wanted.cost, bound));
            }
        }
        shuffle(order);
        for (auto const i : order)
            if (i != kept) visit(batch_[i]);
        if (kept < n) keep(batch_[kept]);
        if (below(rng_, 4) == 0) compare(now_);
    }

    void visit(drawn& d) {
        go(d.there, d.wanted);
        compare(d.wanted);
        ++done_.random;
        asked_ = "back";
        if (auto const answer = propose(d.back, now_.cost, any_bound(rng_, now_.cost, d.wanted.cost))) {
            commit();
        } else {
            drop(answer);
            go(d.back, now_);
        }
        if (below(rng_, 4) == 0) compare(now_);
    }
    void keep(drawn& d) {
        if (d.wanted.tasks.size() > most_tasks_) return visit(d);
        if (evenly_ && !std::all_of(d.there.begin(), d.there.end(), [&](auto const& c) { return draw_.is_even(c.configuration); })) return visit(d);
        go(d.there, d.wanted);
        apply(d.there);
        std::swap(now_, d.wanted);
        compare(now_);
        ++done_.random;
    }
    void go(changes const& to, reference const& wanted) {
        asked_ = "kept";
        (void)propose(to, wanted.cost, bound_above(rng_, wanted.cost));
        commit();
    }

    // The answer, which is compared with `cost`.
    std::optional<ps::picoseconds> propose(changes const& what, ps::picoseconds cost, ps::picoseconds bound) {
        ++done_.proposals;
        changed_ = &what;
        auto const answer = delta_.propose(what, bound);
        auto const wanted = cost > bound ? std::nullopt : std::optional(cost);
        auto const shown = [](std::optional<ps::picoseconds> const& c) { return c ? ps::text(c->count()) : std::string("nothing"); };
        if (answer != wanted) fail(ps::text("the answer is ", shown(answer), ", not ", shown(wanted), ", under a bound of ", bound.count()));
        return answer;
    }
    void commit() {
        delta_.commit();
        ++done_.committed;
    }
    void drop(std::optional<ps::picoseconds> const& answer) {
        ++(answer ? done_.rolled_back : done_.over);
        delta_.roll_back();
    }

    void compare(reference const& wanted) {
        if (auto const where = difference(wanted, delta_); !where.empty()) fail(where);
        ++done_.comparisons;
        done_.tasks += wanted.tasks.size();
        done_.largest = std::max<std::uint64_t>(done_.largest, wanted.tasks.size());
        if (done_.comparisons % 8 != 1) return;
        ++done_.by_definition;
        if (auto const where = definition_.broken(delta_.tasks(), delta_.schedule(), problem_.options().discipline); !where.empty()) fail(where);
    }

    void apply(changes const& what) {
        for (auto const& c : what) current_[c.op] = c.configuration;
    }
    void shuffle(std::vector<std::size_t>& order) {
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(rng_, i)]);
    }

    P const& problem_;
    walk_options options_;
    std::atomic<bool> const& stop_;
    engine rng_;
    proposer<P> draw_;
    decltype(std::declval<P const&>().simulator()) simulator_;
    delta_type delta_;
    definition definition_;
    strategy current_;
    reference now_;
    std::vector<drawn> batch_;
    std::size_t most_tasks_ = 0, legs_ = 0;
    bool evenly_ = false;    // nodes are alike, most proposals keep them so
    char const* asked_ = ""; // for messages: what was last asked for
    changes const* changed_ = nullptr;
    counts done_;
};

} // namespace proof
