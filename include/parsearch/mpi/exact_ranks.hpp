#pragma once
/// `exact` over ranks: branch and bound whose open nodes go to ranks that have none.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/mpi/checkpoint.hpp>
#include <parsearch/mpi/conversation.hpp>
#include <parsearch/mpi/link.hpp>
#include <parsearch/mpi/message.hpp>
#include <parsearch/search/exact.hpp>

namespace parsearch::mpi {

template <class Archive, class C> void serialize(Archive& a, search::exact_node<C>& n, unsigned) { a& n.bound& n.choices; }

namespace detail {

/// How often a tree looks for messages, at least.
inline constexpr std::chrono::milliseconds between_looks{1};
/// Open nodes that go to another rank at once.
inline constexpr std::size_t most_given = 512;

/// What a rank tells rank 0.
template <class S, class C> struct exact_report {
    using nodes = std::vector<search::exact_node<C>>;

    std::optional<std::pair<S, C>> better{}; ///< than what it knew
    search_stats done{};                     ///< since it told before
    std::uint64_t received = 0;              ///< times that it got nodes
    std::optional<C> least{};                ///< bound of what is open there; nothing: nothing is
    bool stopped = false;
    bool asked = false;          ///< this answers the order to share,
    bool last = false;           ///< or to end
    std::optional<nodes> open{}; ///< answers the order to save
    nodes given{};
    failure thrown{};

    template <class Archive> void serialize(Archive& a, unsigned) { a& better& done& received& least& stopped& asked& last& open& given& thrown; }
};

/// Of two counts of one search, what the later has beyond the earlier.
[[nodiscard]] inline search_stats beyond(search_stats const& later, search_stats const& earlier) {
    search_stats out;
    out.evaluations = later.evaluations - earlier.evaluations;
    out.proposals = later.proposals - earlier.proposals;
    out.accepted = later.accepted - earlier.accepted;
    out.nodes = later.nodes - earlier.nodes;
    return out;
}

/// On every rank but the first: works on the nodes that it gets, until rank 0 orders the end.
template <class S, class C> class exact_worker {
    using report = exact_report<S, C>;

  public:
    exact_worker(link& ranks, std::stop_token stop) : ranks_(&ranks), stop_(std::move(stop)) {}

    /// Works until the end.
    template <class Tree> void work(Tree& tree) {
        known_ = tree.run().best_cost();
        counted_.evaluations = tree.run().stats().evaluations; // the start, which rank 0 has counted
        static_cast<void>(tree.work());
    }
    /// Waits for the end after `thrown`.
    void fail(std::exception_ptr const& thrown) {
        if (over_) return;
        send({.thrown = failure(thrown)});
        while (!over_) {
            auto const next = ranks_->wait(tag::order, 0, longest_wait, [&] { return stop_.stop_requested(); });
            auto const what = reader(next.bytes).template next<order>();
            if (what == order::share) send({.asked = true});
            if (what == order::save) send({.open = typename report::nodes()});
            if (what != order::quit) continue;
            over_ = true;
            send({.last = true});
        }
    }

    [[nodiscard]] static C const& least(C const& here) { return here; }
    template <class Tree> [[nodiscard]] std::optional<stop_reason> poll(Tree& tree) {
        auto const now = clock::now();
        if (now - looked_ < between_looks) return {};
        looked_ = now;
        while (auto const order = ranks_->poll(tag::order, 0))
            if (!obey(tree, order->bytes)) return stop_reason::stop_requested;
        if (now - told_ > between_tellings || (stop_.stop_requested() && !told_stop_) || tree.run().best_cost() < known_)
            tell(tree, {.least = least_of(tree)});
        return {};
    }
    template <class Tree> [[nodiscard]] bool wait(Tree& tree) {
        if (over_) return false;
        idle_ = true;
        tell(tree, {});
        for (;;) {
            auto const next = ranks_->wait(tag::order, 0, longest_wait, [&] {
                if (stop_.stop_requested() && !told_stop_) tell(tree, {});
                return stop_.stop_requested();
            });
            auto const before = received_;
            if (!obey(tree, next.bytes)) return false;
            if (received_ > before) return true;
        }
    }
    [[nodiscard]] static std::optional<stop_reason> ended() { return stop_reason::stop_requested; }

  private:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds between_tellings{50};

    template <class Tree> [[nodiscard]] std::optional<C> least_of(Tree const& tree) const {
        return idle_ ? std::nullopt : std::optional<C>(tree.least());
    }
    // Whether the search goes on.
    template <class Tree> bool obey(Tree& tree, std::string const& bytes) {
        reader in(bytes);
        switch (in.next<order>()) {
        case order::better: {
            auto const best = in.next<S>();
            auto const cost = in.next<C>();
            if (cost < tree.run().best_cost()) tree.run().begin(best, cost);
            if (cost < known_) known_ = cost; // what is better here is still to be told
            return true;
        }
        case order::work:
            ++received_;
            idle_ = false;
            tree.take(in.next<typename report::nodes>());
            return true;
        case order::share: {
            auto given = tree.give(most_given);
            tell(tree, {.least = least_of(tree), .asked = true, .given = std::move(given)});
            return true;
        }
        case order::save: tell(tree, {.least = least_of(tree), .open = tree.open()}); return true;
        default:
            tell(tree, {.last = true});
            over_ = true;
            return false;
        }
    }
    template <class Tree> void tell(Tree& tree, report what) {
        auto const& run = tree.run();
        if (run.best_cost() < known_) {
            what.better.emplace(run.best(), run.best_cost());
            known_ = run.best_cost();
        }
        what.done = beyond(run.stats(), counted_);
        counted_ = run.stats();
        send(std::move(what));
    }
    void send(report what) {
        what.received = received_;
        what.stopped = told_stop_ = stop_.stop_requested();
        told_ = clock::now();
        ranks_->send(0, tag::answer, (writer() & what).take());
    }

    link* ranks_;
    std::stop_token stop_;
    C known_ = cost_traits<C>::infinity(); // that all know
    search_stats counted_{};
    std::uint64_t received_ = 0;
    bool over_ = false, idle_ = false, told_stop_ = false;
    clock::time_point looked_{}, told_ = clock::now();
};

/// On rank 0: works, too, and hands on what others find and what they have too much of.
template <class S, class C> class exact_broker {
    using report = exact_report<S, C>;

  public:
    exact_broker(link& ranks, search::exact_options const& options, checkpoint_file* notes)
        : ranks_(&ranks), options_(&options), notes_(notes), others_(static_cast<std::size_t>(ranks.size())) {}

    template <class Tree, class R> [[nodiscard]] bool resume(Tree& tree, R& rng) {
        if constexpr (std::is_trivially_copyable_v<R>) write_engine_ = [&rng](writer& out) { out& rng; };
        auto const bytes = notes_ ? notes_->read() : std::nullopt;
        if (!bytes) return false;
        reader in(*bytes);
        in& tree.run();
        tree.take(in.next<typename report::nodes>());
        if constexpr (std::is_trivially_copyable_v<R>) in& rng;
        return true;
    }

    template <class Tree> [[nodiscard]] std::optional<stop_reason> poll(Tree& tree) {
        auto const now = clock::now();
        if (now - looked_ < between_looks) return {};
        looked_ = now;
        hear(tree);
        share(tree, true);
        if (notes_ && notes_->due()) save(tree);
        return stopped_ ? std::optional(stop_reason::stop_requested) : std::nullopt;
    }
    [[nodiscard]] C least(C const& here) const {
        C out = here;
        for (auto const& r : others_)
            if (!r.idle && r.least && *r.least < out) out = *r.least;
        return out;
    }
    template <class Tree> [[nodiscard]] bool wait(Tree& tree) {
        for (link::pause idle;; idle.once()) {
            hear(tree);
            if (tree.waiting()) return true;
            bool busy = false;
            for (std::size_t r = 1; r < others_.size(); ++r) busy = busy || !others_[r].idle || others_[r].asked;
            if (!busy) return false;
            if (stopped_) ended_ = stop_reason::stop_requested;
            else ended_ = due(tree);
            if (ended_) return false;
            share(tree, false);
            if (notes_ && notes_->due()) save(tree);
        }
    }
    [[nodiscard]] std::optional<stop_reason> ended() const { return ended_; }

    template <class Tree> void end(Tree& tree) { close(&tree); }
    /// Ends the others and hears what they still have found. `tree` may be null.
    template <class Tree> void close(Tree* tree) {
        if (std::exchange(closed_, true)) return;
        ranks_->send_all(tag::order, (writer() & order::quit).take());
        for (std::size_t left = others_.size() - 1; left > 0;) {
            try {
                auto const one = ranks_->wait(tag::answer, link::any, ranks_->patience(), [] { return true; });
                auto what = reader(one.bytes).template next<report>();
                if (tree) note(*tree, what);
                if (what.last) --left;
            } catch (rank_lost const&) {
                return;
            }
        }
    }

  private:
    using clock = std::chrono::steady_clock;
    struct other {
        bool idle = true, asked = false;
        std::uint64_t sent = 0;           // times that it got nodes
        clock::time_point empty_handed{}; // when it last had none to share
        std::optional<C> least{};
    };

    template <class Tree> std::optional<stop_reason> due(Tree& tree) {
        if (options_->nodes && tree.run().stats().nodes >= *options_->nodes) return stop_reason::evaluation_budget;
        return tree.run().due();
    }
    template <class Tree> void note(Tree& tree, report& what) {
        tree.run().count(what.done);
        if (what.better && what.better->second < tree.run().best_cost()) tree.run().improve(what.better->first, what.better->second);
    }
    template <class Tree> void hear(Tree& tree) {
        while (auto const one = ranks_->poll(tag::answer)) take(tree, one->from, reader(one->bytes).template next<report>());
        if (!(tree.run().best_cost() < told_)) return;
        told_ = tree.run().best_cost();
        ranks_->send_all(tag::order, (writer() & order::better & tree.run().best() & told_).take());
    }
    // What it hands out stays here where nobody waits for it.
    template <class Tree> void take(Tree& tree, int from, report what) {
        auto& rank = others_[static_cast<std::size_t>(from)];
        note(tree, what);
        what.thrown.raise();
        stopped_ = stopped_ || what.stopped;
        if (what.received == rank.sent) {
            rank.least = what.least;
            rank.idle = !what.least && what.given.empty();
        }
        if (what.asked) {
            rank.asked = false;
            rank.empty_handed = what.given.empty() ? clock::now() : clock::time_point{};
        }
        if (what.open) saved_.push_back(*std::move(what.open));
        if (what.given.empty()) return;
        auto const waits = std::find_if(others_.begin() + 1, others_.end(), [](auto const& r) { return r.idle; });
        if (waits == others_.end() || saving_) tree.take(std::move(what.given));
        else give(static_cast<std::size_t>(waits - others_.begin()), what.given);
    }
    void give(std::size_t to, typename report::nodes const& nodes) {
        auto& rank = others_[to];
        rank.idle = false;
        ++rank.sent;
        rank.least = std::min_element(nodes.begin(), nodes.end(), [](auto const& a, auto const& b) { return a.bound < b.bound; })->bound;
        ranks_->send(static_cast<int>(to), tag::order, (writer() & order::work & nodes).take());
    }
    // Who waits gets what this rank has, where it has something; else the next of the others is asked.
    template <class Tree> void share(Tree& tree, bool works) {
        bool hungry = !works, asked = false;
        for (std::size_t r = 1; r < others_.size(); ++r) {
            if (others_[r].idle && works)
                if (auto const given = tree.give(most_given); !given.empty()) give(r, given);
            hungry = hungry || others_[r].idle;
            asked = asked || others_[r].asked;
        }
        if (!hungry || asked) return;
        for (std::size_t tries = 1; tries < others_.size(); ++tries) {
            next_ = next_ % (others_.size() - 1) + 1;
            auto& rank = others_[next_];
            if (rank.idle || clock::now() - rank.empty_handed < std::chrono::milliseconds{2}) continue;
            rank.asked = true;
            ranks_->send(static_cast<int>(next_), tag::order, (writer() & order::share).take());
            return;
        }
    }
    // All open nodes: each rank tells its own; what is on its way to rank 0 then stays here.
    template <class Tree> void save(Tree& tree) {
        saving_ = true;
        saved_.clear();
        ranks_->send_all(tag::order, (writer() & order::save).take());
        try {
            while (saved_.size() + 1 < others_.size()) {
                auto const one = ranks_->wait(tag::answer, link::any, ranks_->patience(), [&] { return options_->stop.stop_requested(); });
                take(tree, one.from, reader(one.bytes).template next<report>());
            }
        } catch (rank_lost const&) { // the checkpoint before stays
            stopped_ = true;
            return;
        }
        saving_ = false;
        auto open = tree.open();
        for (auto& part : saved_) open.insert(open.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
        writer out;
        out& tree.run() & open;
        if (write_engine_) write_engine_(out);
        notes_->write(out.take());
    }

    link* ranks_;
    search::exact_options const* options_;
    checkpoint_file* notes_;
    std::vector<other> others_; // by rank; the first is this one, and never idle
    C told_ = cost_traits<C>::infinity();
    std::size_t next_ = 0;
    bool stopped_ = false, saving_ = false, closed_ = false;
    std::vector<typename report::nodes> saved_;
    std::optional<stop_reason> ended_;
    std::function<void(writer&)> write_engine_;
    clock::time_point looked_{};
};
} // namespace detail

/// `mpi::exact(problem, start, rng, options, observers...)`: `search::exact` over ranks. Rank 0 begins; a rank that has nothing open gets half of
/// what another has (work stealing, through rank 0), and all know the least cost found at once.
///
/// - Called by all ranks; see `setting`. Every rank gets the result, and throws what was thrown. Observers are told on rank 0.
/// - The cost of the answer and the proof are those of `search::exact`; of several best strategies it may be another, and counts and the trajectory
///   depend on which rank was quicker. On one rank all of it is the same. `open` is of each rank.
/// - Budgets of evaluations and of nodes are of all ranks together, looked at every 50 ms: it may be some more.
/// - A stop on any rank ends all, with the best so far and the least bound.
/// - With a checkpoint: written from time to time, with all that is open on any rank; a search goes on from it on any number of ranks.
struct exact_fn {
    static constexpr search_traits traits = search::exact_fn::traits;
    setting over{};

    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, search::exact_options const& options = {},
                                                      Os&&... observers) const {
        using cost = problem_cost_t<P, S>;
        static_assert(search::has_bounds<P, S>, "exact needs lower bounds: see search::exact");
        link ranks(over);
        auto const search = [&] {
            search::validate(options);
            auto const projected = search::project_start(problem, start, "exact");
            std::optional<checkpoint_file> notes;
            if (!over.checkpoint.empty()) notes.emplace(over, identity_of("exact", problem, start, rng));
            using broker = detail::exact_broker<S, cost>;
            using tree = search::exact_tree<P, S, broker, std::remove_reference_t<Os>...>;
            broker peers(ranks, options, notes ? &*notes : nullptr);
            std::optional<tree> mine;
            bool begun = false;
            try {
                mine.emplace(peers, problem, start, projected, options, observers...);
                ranks.send_all(tag::order, (writer() & order::begin).take());
                begun = true;
                return mine->search(rng);
            } catch (...) {
                if (begun) peers.close(static_cast<tree*>(nullptr));
                throw;
            }
        };
        return converse<search_result<S, cost>>(ranks, rng, options.stop, search, [&](order, reader&) { // to begin
            using worker = detail::exact_worker<S, cost>;
            worker peers(ranks, options.stop);
            try {
                search::exact_options here = options; // rank 0 keeps the budget
                here.time.reset();
                here.evaluations.reset();
                here.nodes.reset();
                here.stop = {};
                here.progress_interval = 0;
                S from = start;
                static_cast<void>(search::project_start(problem, from, "exact"));
                search::exact_tree<P, S, worker> tree(peers, problem, std::move(from), 0, here);
                peers.work(tree);
            } catch (rank_lost const&) {
                throw;
            } catch (...) {
                peers.fail(std::current_exception());
            }
        });
    }
};
inline exact_fn const exact{};

} // namespace parsearch::mpi
