#pragma once
/// A problem whose evaluators outlive the searches that use them, so that the next search finds what they have learnt.

#include <concepts>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/concepts/search_problem.hpp>

namespace parsearch::search {

namespace detail {

/// Evaluators that nobody uses now. Safe to use from several threads.
template <class P> class evaluator_pool {
  public:
    using evaluator = evaluator_t<P>;
    explicit evaluator_pool(P const& problem) : problem_(&problem) {}

    [[nodiscard]] std::unique_ptr<evaluator> take() {
        {
            std::lock_guard const lock(mutex_);
            if (!idle_.empty()) {
                auto one = std::move(idle_.back());
                idle_.pop_back();
                return one;
            }
        }
        return std::unique_ptr<evaluator>(new evaluator(problem_->evaluator()));
    }
    void give_back(std::unique_ptr<evaluator> one) noexcept {
        std::lock_guard const lock(mutex_);
        if (idle_.size() < idle_.capacity()) idle_.push_back(std::move(one));
    }
    /// Room for `count` idle evaluators; what does not fit is destroyed.
    void reserve(std::size_t count) { idle_.reserve(count); }

  private:
    P const* problem_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<evaluator>> idle_;
};

} // namespace detail

/// An evaluator of `P` on loan, plain or incremental as that is, which goes back to the pool in the end. Nothing of what it was used for before
/// shows in its answers, since every use begins with a strategy given whole.
template <class P> class pooled_evaluator {
    using pool = detail::evaluator_pool<P>;
    using E = evaluator_t<P>;

  public:
    explicit pooled_evaluator(std::shared_ptr<pool> from) : pool_(std::move(from)), one_(pool_->take()) {}
    pooled_evaluator(pooled_evaluator&&) noexcept = default;
    pooled_evaluator& operator=(pooled_evaluator&& other) noexcept {
        std::swap(pool_, other.pool_);
        std::swap(one_, other.one_);
        return *this;
    }
    ~pooled_evaluator() {
        if (one_) pool_->give_back(std::move(one_));
    }

    template <class S>
        requires std::invocable<E&, S const&>
    decltype(auto) operator()(S const& s) {
        return (*one_)(s);
    }
    template <class S>
        requires requires(E& e, S const& s) { e.reset(s); }
    decltype(auto) reset(S const& s) {
        return one_->reset(s);
    }
    template <class C, class Bound>
        requires requires(E& e, std::span<change<C> const> changes, Bound const& bound) { e.propose(changes, bound); }
    decltype(auto) propose(std::span<change<C> const> changes, Bound const& bound) {
        return one_->propose(changes, bound);
    }
    void commit()
        requires requires(E& e) { e.commit(); }
    {
        one_->commit();
    }
    void roll_back()
        requires requires(E& e) { e.roll_back(); }
    {
        one_->roll_back();
    }

  private:
    std::shared_ptr<pool> pool_;
    std::unique_ptr<E> one_;
};

/// `problem` with evaluators from a pool. It refers to the problem; copies share the pool.
template <class P> class pooled_problem {
  public:
    /// `idle`: so many evaluators are kept at most.
    pooled_problem(P const& problem, std::size_t idle) : problem_(&problem), pool_(std::make_shared<detail::evaluator_pool<P>>(problem)) {
        pool_->reserve(idle);
    }

    [[nodiscard]] decltype(auto) space() const { return problem_->space(); }
    [[nodiscard]] pooled_evaluator<P> evaluator() const { return pooled_evaluator<P>(pool_); }
    [[nodiscard]] decltype(auto) moves() const
        requires requires(P const& p) { p.moves(); }
    {
        return problem_->moves();
    }
    [[nodiscard]] decltype(auto) order() const
        requires requires(P const& p) { p.order(); }
    {
        return problem_->order();
    }
    [[nodiscard]] decltype(auto) coarsening() const
        requires requires(P const& p) { p.coarsening(); }
    {
        return problem_->coarsening();
    }
    [[nodiscard]] decltype(auto) starts() const
        requires requires(P const& p) { p.starts(); }
    {
        return problem_->starts();
    }
    template <class S>
        requires OffersFeasibility<P, S>
    [[nodiscard]] bool feasible(S const& s) const {
        return problem_->feasible(s);
    }

  private:
    P const* problem_;
    std::shared_ptr<detail::evaluator_pool<P>> pool_;
};

} // namespace parsearch::search
