#pragma once
/// The ranks of a search, and messages between them.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/mpi/communicator.hpp>

#include <parsearch/core/error.hpp>

namespace parsearch::mpi {

/// Messages of a rank, as many as it has sent, and their bytes.
struct traffic {
    std::uint64_t messages = 0, bytes = 0;
};

/// Where a search runs, and what it writes down. All ranks of `world` call the search with the same arguments but for stop token and observers. Of
/// options and random engine those of rank 0 count; `threads` and `stop` are each rank's own.
struct setting {
    std::optional<boost::mpi::communicator> world{};           ///< nothing: all ranks of the program
    std::string checkpoint{};                                  ///< a file that rank 0 writes; empty: none
    std::chrono::nanoseconds every = std::chrono::seconds{30}; ///< from one checkpoint to the next, at least
    bool resume = false;                                       ///< goes on from `checkpoint`, where there is that file
    /// How long a stop waits for ranks that do not answer; they may have died.
    std::chrono::nanoseconds patience = std::chrono::milliseconds{250};
    traffic* counted = nullptr; ///< what this rank sends is added there
};

/// Thrown where a rank does not answer although the search was stopped.
class rank_lost : public std::runtime_error {
  public:
    explicit rank_lost(int rank) : std::runtime_error(text("rank ", rank, " does not answer: it may have died")) {}
};

/// Whether a rank of a search of this process was lost: then `MPI_Finalize` may wait for ever, and the program is to end without it.
[[nodiscard]] inline std::atomic<bool>& any_lost() {
    static std::atomic<bool> lost = false;
    return lost;
}

enum class tag : int { order, answer, halt };

/// The messages of one running search, apart from all others. Its members are for one thread.
class link {
  public:
    static constexpr int any = -1;
    struct envelope {
        int from = 0;
        std::string bytes;
    };

    /// To be made by all ranks.
    explicit link(setting const& where)
        : world_(std::make_unique<boost::mpi::communicator>(where.world.value_or(boost::mpi::communicator()), boost::mpi::comm_duplicate)),
          patience_(where.patience), counted_(where.counted) {}
    link(link const&) = delete;
    link& operator=(link const&) = delete;
    ~link() {
        // Who waits for one who died, or frees what all must free, may wait for ever.
        auto const late = clock::now() + patience_;
        while (!lost_ && !sent_.empty()) {
            reap();
            if (clock::now() > late) lost_ = true;
        }
        if (!lost_) return;
        any_lost() = true;
        static_cast<void>(new std::deque<letter>(std::move(sent_)));
        static_cast<void>(new std::deque<letter>(std::move(coming_)));
        static_cast<void>(world_.release());
    }

    [[nodiscard]] int rank() const { return world_->rank(); }
    [[nodiscard]] int size() const { return world_->size(); }
    [[nodiscard]] std::chrono::nanoseconds patience() const noexcept { return patience_; }
    /// Some rank has died.
    [[nodiscard]] bool lost() const noexcept { return lost_; }
    void lose() noexcept { lost_ = true; }

    /// Returns at once. Throws `invalid_input` on more than 2^31 - 1 bytes.
    void send(int to, tag what, std::string bytes) {
        if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
            throw invalid_input("a message to rank ", to, " has ", bytes.size(), " bytes: must be below 2^31");
        reap();
        if (counted_) {
            ++counted_->messages;
            counted_->bytes += bytes.size();
        }
        auto& one = sent_.emplace_back();
        one.bytes = std::make_unique<std::string>(std::move(bytes));
        one.request = world_->isend(to, static_cast<int>(what), one.bytes->data(), static_cast<int>(one.bytes->size()));
    }
    void send_all(tag what, std::string const& bytes) {
        for (int to = 0; to < size(); ++to)
            if (to != rank()) send(to, what, bytes);
    }

    /// A message that has arrived, if any has.
    [[nodiscard]] std::optional<envelope> poll(tag what, int from = any) {
        // Never blocks: who sends a long one may die before all of it has arrived.
        if (auto const status = world_->iprobe(from == any ? boost::mpi::any_source : from, static_cast<int>(what))) {
            auto& one = coming_.emplace_back();
            one.from = status->source();
            one.what = what;
            one.bytes = std::make_unique<std::string>(static_cast<std::size_t>(*status->template count<char>()), char());
            one.request = world_->irecv(one.from, static_cast<int>(what), one.bytes->data(), static_cast<int>(one.bytes->size()));
        }
        std::vector<int> late; // whose next message is not there whole
        for (auto one = coming_.begin(); one != coming_.end(); ++one) {
            if (one->what != what || (from != any && one->from != from) || std::find(late.begin(), late.end(), one->from) != late.end()) continue;
            if (!one->request.test()) {
                late.push_back(one->from);
                continue;
            }
            envelope out{.from = one->from, .bytes = std::move(*one->bytes)};
            coming_.erase(one);
            return out;
        }
        return {};
    }
    /// Waits for a message. While it does, `stopped()` is asked now and then; from when it is true on no longer than `longest`, and then throws
    /// `rank_lost`.
    template <class Stopped> [[nodiscard]] envelope wait(tag what, int from, std::chrono::nanoseconds longest, Stopped const& stopped) {
        if (lost_) longest = std::min<std::chrono::nanoseconds>(longest, std::chrono::milliseconds{10}); // this was waited for before
        std::optional<clock::time_point> since;
        for (pause idle;; idle.once()) {
            if (auto one = poll(what, from)) return *std::move(one);
            reap();
            if (!stopped()) continue;
            if (!since) since = clock::now();
            if (clock::now() - *since <= longest) continue;
            lost_ = true;
            throw rank_lost(from == any ? 0 : from);
        }
    }

    /// Waits a little, the longer the more often it is called: there may be fewer cores than ranks.
    class pause {
      public:
        void once() {
            if (count_ < 20) std::this_thread::yield();
            else std::this_thread::sleep_for(std::chrono::microseconds(count_ < 500 ? 20 : 500));
            ++count_;
        }

      private:
        int count_ = 0;
    };

  private:
    using clock = std::chrono::steady_clock;
    struct letter {
        int from = 0;
        tag what = tag::order;
        std::unique_ptr<std::string> bytes;
        boost::mpi::request request;
    };
    void reap() {
        std::erase_if(sent_, [](letter& one) { return one.request.test().has_value(); });
    }

    std::unique_ptr<boost::mpi::communicator> world_;
    std::chrono::nanoseconds patience_;
    traffic* counted_;
    std::deque<letter> sent_, coming_;
    bool lost_ = false;
};

} // namespace parsearch::mpi
