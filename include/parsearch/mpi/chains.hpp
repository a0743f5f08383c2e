#pragma once
/// The chains of `tempering` over ranks: rank 0 tells of all, each rank lets its own walk.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/mpi/checkpoint.hpp>
#include <parsearch/mpi/link.hpp>
#include <parsearch/mpi/message.hpp>
#include <parsearch/search/chain/replica.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/tempering.hpp>
#include <parsearch/search/threads/thread_team.hpp>

namespace parsearch::mpi {

/// What rank 0 orders.
enum class order : std::uint8_t {
    end,  ///< of the search, with its result
    walk, ///< of chains, for a round
    turn, ///< of members of a portfolio
    begin,
    better,
    work,
    share,
    save,
    quit ///< of a tree of `exact`: see there
};

namespace detail {
/// What cut a walk short.
enum class cut : std::uint8_t { no, time, stop };

struct walk_order {
    std::uint64_t chain, quota;
    double temperature;
};
} // namespace detail

/// The chains that one rank has, by number, and the threads that let them walk.
template <class P, class S> class rank_chains {
    using cost = problem_cost_t<P, S>;
    using replica = search::replica<P, S>;

  public:
    /// Refers to the problem and the link, which may be null: then nobody orders a halt.
    rank_chains(P const& problem, link* ranks, std::uint64_t threads, std::stop_token stop)
        : problem_(&problem), ranks_(ranks), threads_(search::threads_of(threads)), stop_(std::move(stop)) {}

    replica& add(std::uint64_t number, S const& start, cost const& known, split_mix engine) {
        auto& place = chains_[number];
        place = std::make_unique<replica>(*problem_, start, known, engine);
        return *place;
    }
    [[nodiscard]] replica& operator[](std::uint64_t number) { return *chains_.at(number); }

    /// Ends before their next proposals when `time` has passed since `began`, at a stop, or where rank 0 orders a halt.
    [[nodiscard]] detail::cut walk(std::vector<detail::walk_order> const& orders, std::uint64_t most_idle,
                                   std::optional<std::chrono::nanoseconds> time) {
        using clock = std::chrono::steady_clock;
        auto const began = clock::now();
        auto const here = std::this_thread::get_id(); // the one that may talk
        std::atomic<detail::cut> cut = detail::cut::no;
        auto looked = began;
        auto const halts = [&] { // rarely asked: that costs more than some evaluations
            auto const now = clock::now();
            if (now - looked < std::chrono::milliseconds{1}) return false;
            looked = now;
            return ranks_->poll(tag::halt, 0).has_value();
        };
        auto const halted = [&] {
            if (cut.load(std::memory_order_relaxed) != detail::cut::no) return true;
            if (time && clock::now() - began >= *time) cut = detail::cut::time;
            else if (stop_.stop_requested()) cut = detail::cut::stop;
            else if (ranks_ && ranks_->rank() > 0 && std::this_thread::get_id() == here && halts()) cut = detail::cut::stop;
            return cut != detail::cut::no;
        };
        if (!team_) team_.emplace(std::min(threads_, std::max<std::size_t>(1, orders.size())));
        auto task = [&](std::size_t n) noexcept { (*this)[orders[n].chain].walk(orders[n].temperature, orders[n].quota, most_idle, halted); };
        if (!orders.empty()) team_->run(orders.size(), task);
        return cut;
    }

    /// What rank 0 orders, and the answer.
    void obey(reader& in) {
        if (in.next<bool>()) chains_.clear();
        auto const most_idle = in.next<std::uint64_t>();
        auto const time = in.next<std::optional<std::chrono::nanoseconds>>();
        for (auto fresh = in.next<std::uint64_t>(); fresh > 0; --fresh) {
            auto const number = in.next<std::uint64_t>();
            auto const start = in.next<S>();
            auto const known = in.next<cost>();
            split_mix engine(0);
            in& engine;
            add(number, start, known, engine);
        }
        auto const orders = in.next<std::vector<detail::walk_order>>();
        auto const cut = walk(orders, most_idle, time);
        writer out;
        out& cut;
        for (auto const& o : orders) {
            auto const& chain = (*this)[o.chain];
            out& chain.exhausted& chain.engine() & static_cast<std::uint64_t>(chain.steps);
            for (std::size_t n = 0; n < chain.steps; ++n) {
                auto const& step = chain.step(n);
                out& step.evaluated& step.accepted& step.priced& step.origin& static_cast<std::uint64_t>(step.changes.size());
                for (auto const& c : step.changes) out& c.op& c.configuration;
                out& failure(step.failure);
            }
        }
        ranks_->send(0, tag::answer, out.take());
    }

  private:
    P const* problem_;
    link* ranks_;
    std::size_t threads_;
    std::stop_token stop_;
    std::map<std::uint64_t, std::unique_ptr<replica>> chains_;
    std::optional<search::thread_team> team_;
};

/// For `search::tempering_fn::with`, on rank 0: the chains of all ranks. Chains stay where they are; temperatures move.
template <class P, class S> class crew {
    using cost = problem_cost_t<P, S>;
    using log = search::replica_log<P, S>;

  public:
    /// Refers to all of it. `ranks`: null where all chains are here; `notes`: null where nothing is written down.
    crew(P const& problem, link* ranks, search::tempering_options const& options, checkpoint_file* notes)
        : ranks_(ranks), options_(&options), notes_(notes), clock_({.time = options.time, .evaluations = {}, .stop = options.stop}),
          mine_(problem, ranks, options.threads, options.stop), fresh_(ranks ? static_cast<std::size_t>(ranks->size()) : 1) {}

    template <class State> [[nodiscard]] bool resume(State& state) {
        if (!notes_) return false;
        require_memoryless();
        auto const bytes = notes_->read();
        if (!bytes) return false;
        reader in(*bytes);
        in& state;
        for (std::uint64_t n = 0; n < options_->replicas; ++n) {
            auto const told = in.next<S>();
            auto const known = in.next<cost>();
            split_mix engine(0);
            in& engine;
            add(told, known, engine);
        }
        return true;
    }
    template <class State> void keep(State& state) {
        if (!notes_ || !notes_->due()) return;
        writer out;
        out& state;
        for (auto const number : at_) {
            auto const& one = *all_[number];
            out& one.told& one.told_cost&(owner(number) == 0 ? mine_[number].engine() : engines_[number]);
        }
        notes_->write(out.take());
    }

    void add(S const& start, cost const& known, split_mix engine) {
        auto const number = all_.size();
        at_.push_back(number);
        engines_.push_back(engine);
        if (owner(number) == 0) {
            all_.push_back(&mine_.add(number, start, known, engine));
        } else {
            others_.push_back(std::make_unique<log>(start, known));
            all_.push_back(others_.back().get());
            auto& for_rank = fresh_[owner(number)];
            for_rank.body& std::uint64_t{number} & start& known& engine;
            ++for_rank.chains;
        }
    }
    [[nodiscard]] log& operator[](std::size_t n) { return *all_[at_[n]]; }
    void exchange(std::size_t a, std::size_t b) { std::swap(at_[a], at_[b]); }

    [[nodiscard]] std::optional<stop_reason> walk(std::vector<double> const& temperatures, std::vector<std::uint64_t> const& quotas,
                                                  std::uint64_t most_idle) {
        std::vector<std::vector<detail::walk_order>> orders(fresh_.size());
        for (std::size_t n = 0; n < at_.size(); ++n)
            orders[owner(at_[n])].push_back({.chain = at_[n], .quota = quotas[n], .temperature = temperatures[n]});
        std::optional<std::chrono::nanoseconds> left;
        if (options_->time) left = *options_->time - std::min(*options_->time, clock_.elapsed());
        for (std::size_t r = 1; r < orders.size(); ++r) {
            if (orders[r].empty()) continue;
            writer out;
            out& order::walk& first_& most_idle& left& std::uint64_t{std::exchange(fresh_[r].chains, 0)};
            ranks_->send(static_cast<int>(r), tag::order, out.take() + fresh_[r].body.take() + (writer() & orders[r]).take());
        }
        first_ = false;
        auto cut = mine_.walk(orders[0], most_idle, left);
        bool told = false;
        auto const stopped = [&] {
            auto const now = cut != detail::cut::no || options_->stop.stop_requested();
            if (now && ranks_ && !std::exchange(told, true)) ranks_->send_all(tag::halt, {});
            return now;
        };
        static_cast<void>(stopped());
        for (std::size_t r = 1; r < orders.size(); ++r) {
            if (orders[r].empty()) continue;
            try {
                auto const answer = ranks_->wait(tag::answer, static_cast<int>(r), ranks_->patience(), stopped);
                reader in(answer.bytes);
                if (auto const theirs = in.next<detail::cut>(); cut == detail::cut::no) cut = theirs;
                stopped_ = stopped_ || cut == detail::cut::stop;
                for (auto const& o : orders[r]) read(in, o.chain);
            } catch (rank_lost const&) {
                for (auto const& o : orders[r]) all_[o.chain]->steps = 0;
                if (cut == detail::cut::no) cut = detail::cut::stop;
                stopped_ = true;
            }
        }
        if (cut == detail::cut::time) return stop_reason::time_budget;
        if (cut == detail::cut::stop || options_->stop.stop_requested()) return stop_reason::stop_requested;
        return {};
    }

    /// A rank was stopped, or lost.
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }

  private:
    struct newcomers {
        std::uint64_t chains = 0;
        writer body;
    };
    [[nodiscard]] std::size_t owner(std::size_t number) const { return fresh_.size() - 1 - number % fresh_.size(); }

    void read(reader& in, std::size_t number) {
        auto& chain = *all_[number];
        in& chain.exhausted& engines_[number];
        chain.steps = 0;
        for (auto count = in.next<std::uint64_t>(); count > 0; --count) {
            auto& step = chain.next_step();
            in& step.evaluated& step.accepted& step.priced& step.origin;
            for (auto changes = in.next<std::uint64_t>(); changes > 0; --changes) {
                auto const op = in.next<std::size_t>();
                step.changes.push_back({op, in.next<problem_configuration_t<P>>()});
            }
            step.failure = in.next<failure>().pointer();
        }
    }
    static void require_memoryless() {
        if constexpr (!search::replica<P, S>::memoryless)
            throw invalid_input("tempering: checkpoints are asked for, and the problem has moves that learn: they cannot be written down");
    }

    link* ranks_;
    search::tempering_options const* options_;
    checkpoint_file* notes_;
    search::stopping clock_;
    rank_chains<P, S> mine_;
    std::vector<log*> all_; // by number
    std::vector<std::unique_ptr<log>> others_;
    std::vector<split_mix> engines_;
    std::vector<std::size_t> at_;  // the numbers, by temperature
    std::vector<newcomers> fresh_; // of each rank: chains that it does not have yet
    bool first_ = true, stopped_ = false;
};

} // namespace parsearch::mpi
