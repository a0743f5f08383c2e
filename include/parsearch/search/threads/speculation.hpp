#pragma once
/// Pricing proposals ahead on several threads, for chains that mostly reject.
///
/// As long as a chain rejects, its next proposals do not depend on the costs of those before, so they can be drawn ahead and priced
/// at the same time. An accepted one makes void what was drawn after it: the chain is the same as on one thread, and what was priced in
/// vain is never seen. Source: E. E. Witte, R. D. Chamberlain, M. A. Franklin, Parallel simulated annealing using speculative
/// computation, IEEE Transactions on Parallel and Distributed Systems 2 (4), 1991; here along rejections only, in a sliding window.

#include <algorithm>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <parsearch/search/kernel/merged_changes.hpp>
#include <parsearch/search/kernel/session.hpp>
#include <parsearch/search/threads/thread_team.hpp>

namespace parsearch::search {

/// A pricer for `basic_session` whose proposals are written ahead, in the order in which the session will propose them, and priced
/// by the calling thread and `threads - 1` others, each with an evaluator of its own. All members are for the calling thread.
/// `keep` and `jump` change the current strategy, and so make void what was written and not yet proposed.
///
/// Exceptions of an evaluator are thrown by the `propose` that a single thread would have thrown them from, or never where the proposal
/// became void. The other threads follow an accepted proposal by pricing it too.
template <class P, class S> class speculator {
  public:
    using cost = problem_cost_t<P, S>;
    using configuration = problem_configuration_t<P>;
    using changes = std::span<change<configuration> const>;

    /// Precondition: `threads` > 0. `problem` must outlive it.
    speculator(P const& problem, S const& start, std::size_t threads)
        : problem_(&problem), start_(start), current_(start), most_ahead_(8 * threads),
          slots_(std::bit_ceil(std::max<std::size_t>(64, 4 * most_ahead_))), entries_(8 * slots_.size()) {
        for (std::size_t n = 0; n < slots_.size(); ++n) slots_[n].state.store(done(n - slots_.size()), std::memory_order_relaxed);
        own_.prices.emplace(problem, start);
        own_.priced_start = true; // by the session
        try {
            for (std::size_t n = 1; n < threads; ++n) threads_.emplace_back([this] { serve(); });
        } catch (...) {
            end();
            throw;
        }
    }
    speculator(speculator const&) = delete;
    speculator& operator=(speculator const&) = delete;
    ~speculator() { end(); }

    // What a session needs.
    [[nodiscard]] S const& current() const noexcept { return current_; }
    [[nodiscard]] cost price() { return own_.prices->price(); }
    [[nodiscard]] cost look_at(S const& s) { return own_.prices->look_at(s); }
    [[nodiscard]] bool feasible(S const& s) const
        requires OffersFeasibility<P, S>
    {
        return problem_->feasible(s);
    }
    /// Precondition: `what` are the changes of the first slot written and not yet proposed.
    [[nodiscard]] std::optional<cost> propose(changes, cost const&) {
        slot& s = slots_[tail_ & mask()];
        await(s, tail_++);
        if (s.failure) std::rethrow_exception(std::exchange(s.failure, nullptr));
        return s.priced;
    }
    /// The most proposals that are written and not yet proposed.
    [[nodiscard]] std::size_t most_ahead() const noexcept { return static_cast<std::size_t>(most_ahead_); }
    void keep() {
        slot const& s = slots_[(tail_ - 1) & mask()];
        for (auto const& c : s.what) set_configuration(current_, c.op, c.configuration);
        auto& e = next_entry();
        detail::copy_changes<configuration>(s.what, e.what);
        e.sequence = tail_ - 1;
        if (version_ % slots_.size() == 0) e.whole = std::make_shared<S const>(current_); // for a thread that slept since long
        acceptance_ += (1 - acceptance_) / 64;
        make_void();
    }
    void drop() {
        acceptance_ -= acceptance_ / 64;
        if (found_.load(std::memory_order_relaxed) == tail_ - 1) valid_from_.store(tail_); // after all it was not accepted
    }
    void jump(S const& to) {
        auto& e = next_entry();
        if (!differences(to, e.what)) {
            e.what.clear();
            e.jumps = true;
        }
        current_ = to;
        if (e.jumps || version_ % slots_.size() == 0) e.whole = std::make_shared<S const>(current_);
        make_void();
    }

    /// Whether it is worth to write another proposal now.
    [[nodiscard]] bool wants_more() const {
        if (head_here_ - tail_ >= ahead() || found_ahead()) return false;
        // The slot may still be in the hands of a thread that prices what became void.
        auto const& s = slots_[head_here_ & mask()];
        return s.state.load(std::memory_order_acquire) == done(head_here_ - slots_.size());
    }
    /// Writes a proposal, which is priced from now on; waits for room.
    void write(std::vector<change<configuration>> const& what, cost const& bound, bool from_feasible) {
        slot& s = slots_[head_here_ & mask()];
        await(s, head_here_ - slots_.size());
        detail::copy_changes<configuration>(what, s.what);
        s.bound = bound;
        s.from_feasible = from_feasible;
        s.version = version_;
        s.failure = nullptr;
        s.state.store(open(head_here_), std::memory_order_relaxed);
        if (ahead() == 1 && head_here_ == tail_) { // not worth a hand-over
            claimed_here_ = head_here_;
            next_.store(head_here_ + 1);
            head_.store(++head_here_);
        } else {
            head_.store(++head_here_);
            if (sleeping_.load() > 0) wake();
        }
    }

  private:
    using traits = cost_traits<cost>;
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

    // A proposal, from when it is written until the one a whole ring later.
    struct alignas(64) slot {
        std::atomic<std::uint32_t> state{0}; // open(n) or done(n); 32 bits are what systems wait for
        bool from_feasible = false;
        std::uint64_t version = 0; // of the current strategy that it changes
        std::vector<change<configuration>> what;
        std::optional<cost> bound, priced;
        std::exception_ptr failure;
    };
    // How the current strategy became what it is: version n of it by entry n.
    struct entry {
        std::vector<change<configuration>> what;
        std::uint64_t sequence = none;  // of the proposal that was accepted
        bool jumps = false;             // or else a jump to `whole`
        std::shared_ptr<S const> whole; // the strategy from then on, in some entries
    };
    // What a thread prices with.
    struct worker {
        std::optional<pricer<P, S>> prices;
        std::uint64_t version = 0;
        bool priced_start = false;
        bool broken = false;                     // its evaluator threw
        std::uint64_t open = none;               // the proposal that it left open, since it is likely to be kept,
        std::uint64_t open_version = 0;          // the version that it changes,
        std::vector<change<configuration>> held; // and its changes from the thread's own

        merged_changes<configuration> merged; // what was accepted between its version and `merged_version`
        std::uint64_t merged_version = none;
        int uses = 0; // how often proposals were priced together with it
    };

    [[nodiscard]] std::uint64_t mask() const noexcept { return slots_.size() - 1; }
    [[nodiscard]] static std::uint32_t open(std::uint64_t n) noexcept { return static_cast<std::uint32_t>(2 * n); }
    [[nodiscard]] static std::uint32_t done(std::uint64_t n) noexcept { return static_cast<std::uint32_t>(2 * n + 1); }
    [[nodiscard]] entry& entry_of(std::uint64_t version) { return entries_[version % entries_.size()]; }

    // How many proposals are written ahead: as many as are all rejected with probability 1/10, and no more than keep all busy.
    [[nodiscard]] std::uint64_t ahead() const noexcept {
        double const few = 2.3 * (1 - acceptance_) / acceptance_;
        return few < static_cast<double>(most_ahead_) ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(few)) : most_ahead_;
    }
    // A proposal of the current strategy is known to be accepted: what comes after it is void, if nothing before it is accepted.
    [[nodiscard]] bool found_ahead() const noexcept {
        auto const n = found_.load(std::memory_order_relaxed);
        return n != none && n >= valid_from_.load(std::memory_order_relaxed);
    }

    entry& next_entry() {
        entry& e = entry_of(++version_);
        e.what.clear();
        e.whole.reset();
        e.sequence = none;
        e.jumps = false;
        return e;
    }

    // What leads from the current strategy to `to`, where that is known and not most of it.
    [[nodiscard]] bool differences(S const& to, std::vector<change<configuration>>& out) const {
        if constexpr (std::equality_comparable<configuration>) {
            std::size_t const operators = problem_->space().size();
            for (std::size_t op = 0; op < operators; ++op) {
                configuration const& there = configuration_of(to, op);
                configuration const& here = configuration_of(current_, op);
                if (there == here) continue;
                if (out.size() >= operators / 4) return false;
                out.push_back({op, there});
            }
            return true;
        } else {
            return false;
        }
    }

    // What is written and not proposed is taken back where no thread has claimed it; what threads price now, they price in vain.
    void make_void() {
        for (auto n = next_.load(); n < head_here_;)
            if (next_.compare_exchange_weak(n, head_here_)) {
                for (; n < head_here_; ++n) slots_[n & mask()].state.store(done(n), std::memory_order_relaxed);
                break;
            }
        tail_ = head_here_;
        valid_from_.store(head_here_);
    }

    void end() noexcept {
        ending_.store(true);
        wake();
    }

    void wake() noexcept {
        signal_.fetch_add(1);
        signal_.notify_all();
    }

    // Takes the next proposal to price, the oldest first.
    [[nodiscard]] bool claim(std::uint64_t& n) {
        for (n = next_.load();;) {
            if (n >= head_.load()) return false;
            if (auto const found = found_.load(std::memory_order_relaxed);
                found != none && found >= valid_from_.load(std::memory_order_relaxed) && n > found)
                return false;
            if (next_.compare_exchange_weak(n, n + 1)) return true;
        }
    }

    // The calling thread helps while it waits for the answer to proposal `n`.
    void await(slot& s, std::uint64_t n) {
        auto const ready = [&] { return s.state.load(std::memory_order_acquire) == done(n); };
        if (auto const mine = std::exchange(claimed_here_, none); mine != none) work(own_, mine);
        while (!ready()) {
            std::uint64_t other = 0;
            if (claim(other)) {
                work(own_, other);
                continue;
            }
            detail::wait_until(ready, [&] {
                waiting_.store(true);
                if (auto const now = s.state.load(); now != done(n)) s.state.wait(now);
                waiting_.store(false);
            });
        }
    }

    void serve() {
        worker w;
        for (std::uint64_t n = 0; !ending_.load();) {
            if (claim(n)) {
                work(w, n);
                continue;
            }
            bool claimed = false;
            detail::wait_until([&] { return claimed || ending_.load() || (claimed = claim(n)); },
                               [&] {
                                   sleeping_.fetch_add(1);
                                   auto const before = signal_.load();
                                   if (!ending_.load() && !(claimed = claim(n))) signal_.wait(before);
                                   sleeping_.fetch_sub(1);
                               });
            if (claimed) work(w, n);
        }
    }

    // Prices proposal `n`, which this thread has claimed.
    void work(worker& w, std::uint64_t n) noexcept {
        slot& s = slots_[n & mask()];
        try {
            catch_up(w, s.version);
            auto const what = w.version == s.version ? changes(s.what) : w.merged.with(s.what);
            s.priced = w.prices->propose(what, *s.bound);
            if (s.priced && !(s.from_feasible && *s.priced >= traits::infinity())) {
                detail::copy_changes<configuration>(what, w.held);
                w.prices->hold(w.held);
                w.open = n;
                w.open_version = s.version;
                find(n);
            } else {
                w.prices->drop();
            }
        } catch (...) {
            s.failure = std::current_exception();
            w.broken = true;
        }
        s.state.store(done(n));
        if (waiting_.load()) s.state.notify_all();
    }

    void find(std::uint64_t n) noexcept {
        auto known = found_.load(std::memory_order_relaxed);
        for (;;) {
            auto const valid = valid_from_.load(std::memory_order_relaxed);
            if (n < valid || (known != none && known >= valid && known <= n)) return;
            if (found_.compare_exchange_weak(known, n, std::memory_order_relaxed)) return;
        }
    }

    // Makes the strategy of that version the thread's current one. While the proposal that it has claimed is open, no more proposals than
    // the ring holds are written after it, and each makes two versions at most: the entries that are read here stay as they are.
    void catch_up(worker& w, std::uint64_t version) {
        if (!w.prices) {
            w.prices.emplace(*problem_, start_);
            w.version = 0;
            w.priced_start = false;
            w.merged_version = none;
        }
        if (!w.priced_start) {
            static_cast<void>(w.prices->price());
            w.priced_start = true;
        }
        if (w.broken) {
            if constexpr (pricer<P, S>::incremental) { // what state it is in nobody knows: another one takes its place
                S at = w.prices->current();
                w.prices.emplace(*problem_, std::move(at));
                static_cast<void>(w.prices->price());
            } else {
                w.prices->drop();
            }
            w.broken = false;
            w.open = none;
        }
        std::uint64_t const reach = 2 * slots_.size();
        if (auto const left_open = std::exchange(w.open, none); left_open != none) {
            if (w.open_version < version && version - w.open_version <= reach && entry_of(w.open_version + 1).sequence == left_open) {
                w.prices->keep();
                w.version = w.open_version + 1;
            } else {
                w.prices->drop();
            }
        }
        if (w.version == version) return;
        if (w.merged_version != version) {
            w.merged_version = none; // until the end of this
            // From the last entry that holds a whole strategy, where there was a jump to it or there is no way from here.
            bool const far = version - w.version > reach;
            for (auto v = version; v > w.version; --v)
                if (auto const& e = entry_of(v); e.jumps || (far && e.whole)) {
                    w.version = v; // first: where the evaluator throws, the pricer is there already
                    w.prices->jump(*e.whole);
                    break;
                }
            w.merged.clear();
            for (auto v = version; v > w.version; --v) {
                auto const& what = entry_of(v).what;
                for (auto c = what.rbegin(); c != what.rend(); ++c) w.merged.add(*c, w.prices->current());
            }
            w.merged_version = version;
            w.uses = 0;
        }
        if (w.merged.all().empty()) { // there and back again
            w.version = version;
            return;
        }
        // With an incremental evaluator to follow is to price: where the chain soon goes on, this would be dearer than a few larger proposals.
        if (!pricer<P, S>::incremental || w.uses++ >= most_uses || version - w.version > most_behind) {
            w.prices->follow(w.merged.all());
            w.version = version;
        }
    }
    static constexpr int most_uses = 2;
    static constexpr std::uint64_t most_behind = 8;

    P const* problem_;
    S start_, current_;
    std::uint64_t most_ahead_;
    std::vector<slot> slots_;
    std::vector<entry> entries_;
    worker own_;
    double acceptance_ = 0.1; // about, of the last hundred proposals
    std::uint64_t head_here_ = 0, tail_ = 0, version_ = 0;
    std::uint64_t claimed_here_ = none; // the proposal that the calling thread keeps for itself

    alignas(64) std::atomic<std::uint64_t> head_ = 0; // proposals written
    std::atomic<std::uint64_t> valid_from_ = 0;       // those before are proposed or void
    std::atomic<std::uint32_t> signal_ = 0;           // counts what may wake a thread
    std::atomic<bool> ending_ = false, waiting_ = false;
    alignas(64) std::atomic<std::uint64_t> next_ = 0; // proposals claimed
    std::atomic<std::uint64_t> found_ = none;         // a proposal that would be accepted; meaningless before `valid_from_`
    std::atomic<std::uint32_t> sleeping_ = 0;

    std::vector<std::jthread> threads_; // last: they use all the above
};

} // namespace parsearch::search
