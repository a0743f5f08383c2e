#pragma once
/// How a search over ranks begins and ends: rank 0 searches, the others obey, and all have the result.

#include <chrono>
#include <exception>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/mpi/chains.hpp>
#include <parsearch/mpi/link.hpp>
#include <parsearch/mpi/message.hpp>

namespace parsearch::mpi {

/// How long a rank that was stopped waits for the next order: an evaluation of another may take long.
inline constexpr std::chrono::seconds longest_wait{10};

/// On rank 0 what `search()` answers or throws; the other ranks get the same, and the state of the engine where its bytes are all of it. There
/// `obey(order, reader)` is called with each order until then.
template <class Result, class R, class Search, class Obey>
[[nodiscard]] Result converse(link& ranks, R& rng, std::stop_token const& stop, Search const& search, Obey const& obey) {
    constexpr bool packs = std::is_trivially_copyable_v<R>;
    if (ranks.rank() == 0) {
        std::optional<Result> found;
        std::exception_ptr thrown;
        try {
            found.emplace(search());
        } catch (...) {
            thrown = std::current_exception();
        }
        if (ranks.size() > 1) {
            writer out;
            out& order::end& failure(thrown) & found;
            if constexpr (packs) out& rng;
            ranks.send_all(tag::order, out.take());
        }
        if (thrown) std::rethrow_exception(thrown);
        return *std::move(found);
    }
    for (;;) {
        auto const next = ranks.wait(tag::order, 0, longest_wait, [&] { return stop.stop_requested(); });
        reader in(next.bytes);
        auto const what = in.next<order>();
        if (what != order::end) {
            obey(what, in);
            continue;
        }
        in.next<failure>().raise();
        auto found = in.next<std::optional<Result>>();
        if constexpr (packs) in& rng;
        return *std::move(found);
    }
}

} // namespace parsearch::mpi
