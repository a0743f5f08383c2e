// `plan_mpi` searches with all processes that mpirun started. Rank 0 is `plan`; the others read the same files and wait for its searches.

#include "examples/plan/ranks.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <boost/mpi/environment.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <parsearch/io/described/searches.hpp>
#include <parsearch/mpi/exact_ranks.hpp>
#include <parsearch/mpi/portfolio_ranks.hpp>
#include <parsearch/mpi/tempering_ranks.hpp>

#include "examples/plan/planner.hpp"

namespace plan {
namespace {

ps::mpi::setting over;           // of all searches
ps::mpi::link* others = nullptr; // hear of each search before it begins

template <class Options>
inline constexpr bool runs_over_ranks = std::same_as<Options, ps::search::tempering_options> ||
                                        std::same_as<Options, ps::search::portfolio_options> || std::same_as<Options, ps::search::exact_options>;

// MPI's threads must leave these signals to who waits for them (tools/interrupt.hpp).
void block_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int const signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

ps::mpi::setting read_options(int& argc, char** argv) {
    ps::mpi::setting out;
    int kept = 1;
    for (int n = 1; n < argc; ++n) {
        std::string_view const option = argv[n];
        if (option == "--resume") {
            out.resume = true;
        } else if (option == "--checkpoint" || option == "--every") {
            if (++n == argc) throw ps::invalid_input("plan_mpi: ", option, " wants a value");
            if (option == "--checkpoint") {
                out.checkpoint = argv[n];
                continue;
            }
            double seconds = 0;
            auto const end = argv[n] + std::strlen(argv[n]);
            if (auto const read = std::from_chars(argv[n], end, seconds); read.ptr != end || !(seconds >= 0 && seconds <= 1e6))
                throw ps::invalid_input("plan_mpi: --every is '", argv[n], "': must be seconds, between 0 and 1000000");
            out.every = std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
        } else {
            argv[kept++] = argv[n];
        }
    }
    if (out.resume && out.checkpoint.empty()) throw ps::invalid_input("plan_mpi: --resume is given without --checkpoint FILE");
    argc = kept;
    return out;
}
} // namespace

struct ranks::state {
    // Exceptions are told by main.
    boost::mpi::environment environment{boost::mpi::threading::funneled, false};
    ps::mpi::link orders{ps::mpi::setting{}};
    // Of a rank that helps: what it says goes into a file, for rank 0 says the same.
    int standard_error = -1;
    std::FILE* said = nullptr;

    // What rank 0 orders next. If it dies, mpirun ends who waits for it.
    std::string next_order() {
        return orders.wait(ps::mpi::tag::order, 0, ps::mpi::longest_wait, [] { return false; }).bytes;
    }
};

ranks::ranks() {
    block_signals();
    state_ = std::make_unique<state>();
    others = &state_->orders;
    if (!helps()) return;
    if (!std::freopen("/dev/null", "w", stdout)) std::fclose(stdout);
    state_->standard_error = dup(STDERR_FILENO);
    state_->said = std::tmpfile();
    if (state_->said) dup2(fileno(state_->said), STDERR_FILENO);
}
void ranks::take_options(int& argc, char** argv) {
    over = read_options(argc, argv);
    for (int n = 1; n < argc; ++n)
        if (std::string_view const option = argv[n]; option == "--help" || option == "-h")
            fmt::print("plan_mpi is plan over the ranks of MPI, by the searches portfolio, tempering and exact. It has three options more:\n\n"
                       "  --checkpoint FILE     where rank 0 writes what to go on from\n"
                       "  --every SECONDS       from one checkpoint to the next, at least; 30\n"
                       "  --resume              goes on from that file, where it is there, on any number of ranks\n\n");
    std::error_code error;
    if (over.resume && !std::filesystem::exists(over.checkpoint, error))
        fmt::print(stderr, "note: --resume: there is no '{}' yet: the search begins anew\n", over.checkpoint);
}
int ranks::ended(int code) const {
    if (!helps() || code == ok) return code;
    // An exit code that is not 0 lets mpirun kill the others: rank 0 is let speak first. If it searches, this rank alone has failed.
    if (state_->next_order() == "end") return ok;
    std::fflush(stderr);
    if (state_->said && state_->standard_error >= 0) {
        std::rewind(state_->said);
        auto const prefix = fmt::format("rank {}: ", state_->orders.rank());
        static_cast<void>(write(state_->standard_error, prefix.data(), prefix.size()));
        std::array<char, 4096> part{};
        while (auto const size = std::fread(part.data(), 1, part.size(), state_->said))
            static_cast<void>(write(state_->standard_error, part.data(), size));
    }
    std::_Exit(code); // MPI would wait for the others
}
ranks::~ranks() {
    if (!helps()) others->send_all(ps::mpi::tag::order, "end");
    others = nullptr;
    if (!ps::mpi::any_lost()) return;
    // MPI would wait for who has died.
    std::fflush(nullptr);
    std::_Exit(interrupted);
}
void ranks::require(request& asked, inputs const& given) const {
    if (given.to_wire) throw ps::invalid_input("a fabric that is to be wired is not searched over ranks: plan does that");
    if (asked.latency) throw ps::invalid_input("--latency-limit: batches are not tried over ranks: plan does that");
    if (asked.rerun && asked.rewriting)
        throw ps::invalid_input(
            "--rerun: the plan is of operators that rules made of the model's: these are not searched over ranks, plan does that");
    if (asked.rewriting) {
        asked.rewriting.reset();
        asked.notes.emplace_back("operators stay as they are, though others may be faster: all ranks search for these");
    }
    if (!asked.search) return;
    ps::io::visit_search(*asked.search, [&]<class Options>(auto const& entry, Options const&) {
        if (!runs_over_ranks<Options>)
            throw ps::invalid_input("search '", entry.name, "' does not run over ranks: must be exact, portfolio or tempering; plan has the others");
    });
}
bool ranks::helps() const { return state_->orders.rank() > 0; }

void ranks::help(request const& asked, planned const& made) const {
    while (state_->next_order() != "end") {
        progress_display progress(true, {}, {}, {});
        std::mt19937_64 rng{asked.seed};
        ps::search::move_counts counts;
        // Rank 0 says where to start; any will do here.
        static_cast<void>(search_once(*asked.search, made.problem, made.strategies.front().strategy, rng, progress, counts));
    }
}

ps::search_result<ps::space::flat_strategy, ps::picoseconds> search_once(ps::io::search_options const& options, ps::parallelization const& problem,
                                                                         ps::space::flat_strategy start, std::mt19937_64& rng,
                                                                         progress_display& progress, ps::search::move_counts& counts) {
    using result = ps::search_result<ps::space::flat_strategy, ps::picoseconds>;
    return ps::io::visit_search(options, [&]<class Options>([[maybe_unused]] auto const& entry, Options const& chosen) -> result {
        auto const with = [&](auto const& search) {
            if (others->rank() == 0) others->send_all(ps::mpi::tag::order, "search");
            return search(problem, std::move(start), rng, chosen, progress, counts);
        };
        if constexpr (std::same_as<Options, ps::search::tempering_options>) return with(ps::mpi::tempering_fn{over});
        else if constexpr (std::same_as<Options, ps::search::portfolio_options>) return with(ps::mpi::portfolio_fn{over});
        else if constexpr (std::same_as<Options, ps::search::exact_options>) return with(ps::mpi::exact_fn{over});
        else throw std::logic_error(std::string(entry.name)); // see ranks::require
    });
}

} // namespace plan
