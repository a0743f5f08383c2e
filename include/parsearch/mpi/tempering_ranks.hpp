#pragma once
/// `tempering` over ranks.

#include <optional>
#include <string_view>
#include <utility>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/mpi/chains.hpp>
#include <parsearch/mpi/checkpoint.hpp>
#include <parsearch/mpi/conversation.hpp>
#include <parsearch/mpi/link.hpp>
#include <parsearch/search/tempering.hpp>

namespace parsearch::mpi {

/// `mpi::tempering(problem, start, rng, options, observers...)`: `search::tempering` with its chains on all ranks, `options.threads` threads on each.
///
/// - Called by all ranks; see `setting`. Every rank gets the result, and throws what was thrown. Observers are told on rank 0.
/// - Result, events and the engine afterwards are those of `search::tempering`, for any number of ranks and threads.
/// - A stop on any rank ends all, with the best so far.
/// - Strategies, configurations and costs must go through a `writer`. Communication: after each round rank 0 hears of every step of each chain.
/// - With a checkpoint: written between two rounds. From there a search goes on, on any number of ranks, to the same result and engine. Moves that
///   learn cannot be written down: then it throws `invalid_input`.
struct tempering_fn {
    static constexpr search_traits traits{.draws_moves = true};
    setting over{};

    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, search::tempering_options const& options = {},
                                                      Os&&... observers) const {
        using result = search_result<S, problem_cost_t<P, S>>;
        link ranks(over);
        auto const search = [&] {
            search::validate(options);
            std::optional<checkpoint_file> notes;
            if (!over.checkpoint.empty())
                notes.emplace(over, identity_of("tempering", problem, start, rng, options.replicas, options.temperature, options.relative_temperature,
                                                options.ratio, options.exchange_interval, options.problem_starts, options.random_starts));
            crew<P, S> chains(problem, &ranks, options, notes ? &*notes : nullptr);
            return search::tempering_fn::with(chains, problem, std::move(start), rng, options, observers...);
        };
        std::optional<rank_chains<P, S>> mine;
        return converse<result>(ranks, rng, options.stop, search, [&](order, reader& in) {
            if (!mine) mine.emplace(problem, &ranks, options.threads, options.stop);
            mine->obey(in);
        });
    }
};
inline tempering_fn const tempering{};

} // namespace parsearch::mpi
