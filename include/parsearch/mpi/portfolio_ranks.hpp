#pragma once
/// `portfolio` over ranks.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/mpi/chains.hpp>
#include <parsearch/mpi/checkpoint.hpp>
#include <parsearch/mpi/conversation.hpp>
#include <parsearch/mpi/link.hpp>
#include <parsearch/mpi/message.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/threads/evaluator_pool.hpp>
#include <parsearch/search/threads/thread_team.hpp>

namespace parsearch::mpi {

namespace detail {

/// `tempering` as a member of a portfolio: on rank 0, where members run in turn, its chains are on all ranks.
struct spread_tempering {
    static constexpr search_traits traits = search::tempering_fn::traits;
    link* ranks;   ///< null: here alone
    bool* stopped; ///< set where another rank wants an end

    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, search::tempering_options const& options = {},
                                                      Os&&... observers) const {
        crew<P, S> chains(problem, ranks, options, nullptr);
        auto found = search::tempering_fn::with(chains, problem, std::move(start), rng, options, observers...);
        if (chains.stopped() && stopped) *stopped = true;
        return found;
    }
};

/// Who lets the members of a round run at once, on rank 0: all ranks.
class portfolio_ranks {
  public:
    portfolio_ranks(link& ranks, search::portfolio_options const& options, checkpoint_file* notes, bool& stopped)
        : ranks_(&ranks), options_(&options), notes_(notes), stopped_(&stopped), here_(options) {}

    template <class State> [[nodiscard]] bool resume(State& state) {
        auto const bytes = notes_ ? notes_->read() : std::nullopt;
        if (bytes) reader(*bytes) & state;
        return bytes.has_value();
    }
    template <class State> void keep(State& state) {
        if (notes_ && notes_->due()) notes_->write((writer() & state).take());
    }
    [[nodiscard]] bool stopped() const { return *stopped_; }

    template <class Members, class State, class S>
    void run(Members const& members, std::vector<State>& states, std::vector<std::size_t> const& active, S const& best,
             search::portfolio_turn const& turn) {
        auto const size = static_cast<std::size_t>(ranks_->size());
        std::vector<std::vector<std::size_t>> of_rank(size);
        for (std::size_t place = 0; place < active.size(); ++place) of_rank[size - 1 - place % size].push_back(active[place]);
        for (std::size_t r = 1; r < size; ++r) {
            if (of_rank[r].empty()) continue;
            writer out;
            out& order::turn& turn& best& of_rank[r];
            for (auto const n : of_rank[r]) out& states[n].engine& states[n].turns& states[n].slice& states[n].own;
            ranks_->send(static_cast<int>(r), tag::order, out.take());
        }
        here_.run(members, states, of_rank[0], best, turn);
        bool told = false;
        auto const began = std::chrono::steady_clock::now();
        auto const stopped = [&] {
            if (turn.time && std::chrono::steady_clock::now() - began > *turn.time) return true;
            if (!options_->stop.stop_requested() && !*stopped_) return false;
            if (!std::exchange(told, true)) ranks_->send_all(tag::halt, {});
            return true;
        };
        for (std::size_t r = 1; r < size; ++r) {
            if (of_rank[r].empty()) continue;
            try {
                auto const answer = ranks_->wait(tag::answer, static_cast<int>(r), ranks_->patience(), stopped);
                reader in(answer.bytes);
                if (in.next<bool>()) *stopped_ = true;
                for (auto const n : of_rank[r]) {
                    in& states[n].engine& states[n].found;
                    states[n].failure = in.next<failure>().pointer();
                }
            } catch (rank_lost const&) {
                *stopped_ = true;
            }
        }
    }

  private:
    link* ranks_;
    search::portfolio_options const* options_;
    checkpoint_file* notes_;
    bool* stopped_;
    search::portfolio_threads here_;
};

/// A turn that rank 0 orders, and the answer. The calling thread listens for a halt meanwhile.
template <class S, class C, class Members> void obey_turn(reader& in, link& ranks, Members const& members, search::portfolio_options const& options) {
    auto const turn = in.next<search::portfolio_turn>();
    auto const best = in.next<S>();
    auto const mine = in.next<std::vector<std::size_t>>();
    std::vector<search::portfolio_state<S, C>> states(mine.size(), {split_mix(0)});
    for (auto& s : states) in& s.engine& s.turns& s.slice& s.own;
    std::stop_source stop;
    std::atomic<bool> done = false;
    {
        std::jthread const works([&] {
            auto task = [&](std::size_t n) noexcept { members.run(mine[n], states[n], best, turn, 1, stop.get_token()); };
            search::thread_team team(std::min(search::threads_of(options.threads), mine.size()));
            team.run(mine.size(), task);
            done = true;
        });
        for (link::pause idle; !done; idle.once())
            if (options.stop.stop_requested() || ranks.poll(tag::halt, 0)) stop.request_stop();
    }
    writer out;
    out& options.stop.stop_requested();
    for (auto& s : states) out& s.engine& s.found& failure(s.failure);
    ranks.send(0, tag::answer, out.take());
}
} // namespace detail

/// `mpi::portfolio(problem, start, rng, options, observers...)`: `search::portfolio` over ranks, with `options.threads` threads on each. Where
/// members run at once (`options.concurrent`), each runs on one of the ranks; where they run in turn, `tempering` has its chains on all, and the
/// others run on rank 0.
///
/// - Called by all ranks; see `setting`. Every rank gets the result, and throws what was thrown. Observers are told on rank 0.
/// - Result, events and the engine afterwards are those of `search::portfolio`, for any number of ranks and threads.
/// - A stop on any rank ends all, with the best so far.
/// - With a checkpoint: written between two turns, or two rounds where members run at once. From there a search goes on, on any number of ranks, to
///   the same result. Turns become longer (see `search::portfolio_of`), so what is lost may be as much as the last turn.
struct portfolio_fn {
    setting over{};

    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, search::portfolio_options const& options = {},
                                                      Os&&... observers) const {
        using cost = problem_cost_t<P, S>;
        using pooled = search::pooled_problem<P>;
        link ranks(over);
        bool stopped = false;
        bool const spread = ranks.rank() == 0 && ranks.size() > 1 && !options.concurrent;
        auto const portfolio = search::portfolio_fn::members_with(detail::spread_tempering{spread ? &ranks : nullptr, &stopped});
        auto const search = [&] {
            search::validate(options);
            std::optional<checkpoint_file> notes;
            if (!over.checkpoint.empty()) notes.emplace(over, identity_of("portfolio", problem, start, rng, options.slice, options.concurrent));
            detail::portfolio_ranks crew(ranks, options, notes ? &*notes : nullptr, stopped);
            return portfolio.with(crew, problem, std::move(start), rng, options, observers...);
        };
        auto const made = [&]<class... Ms>(std::tuple<Ms...> const& all) {
            auto from = start;
            static_cast<void>(search::project_start(problem, from, "portfolio"));
            return search::portfolio_members<P, S, Ms...>(all, problem, std::move(from), 64);
        };
        std::optional<decltype(made(portfolio.members()))> mine;
        std::optional<rank_chains<pooled, S>> chains;
        return converse<search_result<S, cost>>(ranks, rng, options.stop, search, [&](order what, reader& in) {
            if (!mine) mine.emplace(made(portfolio.members()));
            if (what == order::turn) return detail::obey_turn<S, cost>(in, ranks, *mine, options);
            if (!chains) chains.emplace(mine->pool(), &ranks, options.threads, options.stop);
            chains->obey(in);
        });
    }
};
inline portfolio_fn const portfolio{};

} // namespace parsearch::mpi
