#pragma once
/// What the tests of searches on several threads compare: all that is told, and problems whose evaluators share nothing.

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <parsearch/search/kernel/events.hpp>

#include "toys.hpp"

namespace toys {

namespace search = parsearch::search;

/// Everything that a search tells, in order, and on which thread.
template <class C> struct diary {
    struct line {
        int event;
        std::uint64_t evaluation, a, b;
        std::optional<C> cost;
        C best;
        friend bool operator==(line const&, line const&) = default;
    };
    std::vector<line> lines;
    std::thread::id const here = std::this_thread::get_id();
    bool elsewhere = false;

    void operator()(search::proposed<C> const& e) { add({0, e.evaluation, *e.op, e.move, e.cost, e.best}); }
    void operator()(search::accepted<C> const& e) { add({1, e.evaluation, *e.op, e.move, e.cost, e.best}); }
    void operator()(search::improved<C> const& e) { add({2, e.evaluation, 0, 0, e.cost, e.before}); }
    void operator()(search::restarted<C> const& e) { add({3, e.evaluation, 0, 0, e.cost, e.best}); }
    void operator()(search::started<C> const& e) { add({4, e.evaluation, e.start, 0, e.cost, e.cost}); }
    void operator()(search::exchanged<C> const& e) { add({7, e.evaluation, e.colder, 0, e.got, e.gave}); }
    void operator()(search::progress<C> const& e) {
        add({5, e.stats.evaluations, e.stats.proposals, e.stats.accepted, e.cost, e.best});
        add({6, e.stats.improved, e.stats.trajectory, 0, {}, e.best});
    }

  private:
    void add(line const& l) {
        elsewhere = elsewhere || std::this_thread::get_id() != here;
        lines.push_back(l);
    }
};

/// A problem whose evaluators are incremental, each with counts of its own.
template <class P> class own_counts {
  public:
    explicit own_counts(P problem) : problem_(std::move(problem)) {}
    [[nodiscard]] auto const& space() const { return problem_.space(); }
    [[nodiscard]] auto evaluator() const {
        auto counts = std::make_unique<asked>();
        return owner(std::move(counts), problem_.evaluator());
    }

  private:
    using inner = ps::evaluator_t<P>;
    struct owner : stepwise<inner, strategy, int> {
        owner(std::unique_ptr<asked> c, inner e) : stepwise<inner, strategy, int>(std::move(e), *c), counts(std::move(c)) {}
        std::unique_ptr<asked> counts;
    };
    P problem_;
};

} // namespace toys
