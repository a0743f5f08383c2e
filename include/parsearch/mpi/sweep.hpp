#pragma once
/// A table of runs over ranks: models x clusters x seeds, say, for benchmarks and Pareto fronts.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/mpi/conversation.hpp>
#include <parsearch/mpi/link.hpp>
#include <parsearch/mpi/message.hpp>

namespace parsearch::mpi {

/// `mpi::sweep(cells, run)`: `run(cell)` of each, cell number n on rank n modulo their number; every rank gets all answers, in the order of the
/// cells. Called by all ranks with the same cells; `run` must not call what all ranks must call. Answers go through a `writer`.
///
/// - Throws on every rank what the first cell has thrown that did; the others are run all the same.
/// - Where `stop` is requested on a rank, the cells that it has not begun stay without an answer.
struct sweep_fn {
    setting over{};

    template <class Cell, class Run>
    [[nodiscard]] auto operator()(std::vector<Cell> const& cells, Run const& run, std::stop_token const& stop = {}) const
        -> std::vector<std::optional<std::remove_cvref_t<std::invoke_result_t<Run const&, Cell const&>>>> {
        using answer = std::optional<std::remove_cvref_t<std::invoke_result_t<Run const&, Cell const&>>>;
        link ranks(over);
        auto const size = static_cast<std::size_t>(ranks.size());
        auto const mine = static_cast<std::size_t>(ranks.rank());
        std::vector<std::pair<answer, failure>> made;
        for (auto n = mine; n < cells.size(); n += size) {
            auto& one = made.emplace_back();
            if (stop.stop_requested()) continue;
            try {
                one.first.emplace(run(cells[n]));
            } catch (...) {
                one.second = failure(std::current_exception());
            }
        }
        if (mine > 0) ranks.send(0, tag::answer, (writer() & made).take());
        std::uint64_t engine = 0;
        auto const collect = [&] {
            std::vector<answer> out(cells.size());
            std::vector<failure> thrown(cells.size());
            for (std::size_t r = 0; r < size; ++r) {
                if (r > 0) {
                    auto const theirs = ranks.wait(tag::answer, static_cast<int>(r), longest_wait, [&] { return stop.stop_requested(); });
                    reader(theirs.bytes) & made;
                }
                for (std::size_t n = 0; n < made.size(); ++n) {
                    out[r + n * size] = std::move(made[n].first);
                    thrown[r + n * size] = std::move(made[n].second);
                }
            }
            for (auto const& each : thrown) each.raise();
            return out;
        };
        return converse<std::vector<answer>>(ranks, engine, stop, collect, [](order, reader&) {});
    }
};
inline sweep_fn const sweep{};

} // namespace parsearch::mpi
