#pragma once
/// Threads that wait for work without a mutex, and a team of them that shares the tasks of one round after the other.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::search {

namespace detail {
/// Tells the processor that a loop waits for another thread.
void relax() noexcept;

/// Waits until `ready()`: briefly without giving up the processor, a while giving it to whoever has work, then through `sleep()`, which
/// may wake for nothing.
template <class Ready, class Sleep> void wait_until(Ready const& ready, Sleep const& sleep) {
    for (int n = 0; n < 500; ++n) {
        if (ready()) return;
        relax();
    }
    for (int n = 0; n < 20; ++n) {
        if (ready()) return;
        std::this_thread::yield();
    }
    while (!ready()) sleep();
}

} // namespace detail

/// The calling thread and `threads - 1` others. Each round they share tasks number 0, 1, ...: whoever is free takes the next.
class thread_team {
  public:
    /// Precondition: `threads` > 0. Throws `std::system_error` where a thread cannot be started.
    explicit thread_team(std::size_t threads);
    thread_team(thread_team const&) = delete;
    thread_team& operator=(thread_team const&) = delete;
    ~thread_team() { end(); }

    /// Calls `task(n)` once for each n < `count`, on any of the threads, and returns when all are done. Precondition: `task` throws nothing,
    /// and `count` is below 2^32.
    template <class Task> void run(std::size_t count, Task& task) {
        call_ = [](void* t, std::size_t n) noexcept { (*static_cast<Task*>(t))(n); };
        task_ = &task;
        left_.store(static_cast<std::uint32_t>(count));
        auto const now = round_.load() + 1;
        next_.store((std::uint64_t{now} << 32) + count);
        round_.store(now);
        round_.notify_all();
        work(now);
        detail::wait_until([&] { return left_.load() == 0; },
                           [&] {
                               if (auto const left = left_.load(); left > 0) left_.wait(left);
                           });
    }

  private:
    void end() noexcept {
        ending_.store(true);
        round_.fetch_add(1);
        round_.notify_all();
    }

    void serve();

    // Takes tasks of that round, the last first: a claim fails once another round has begun, since `next_` carries its number.
    void work(std::uint32_t round);

    void (*call_)(void*, std::size_t) noexcept = nullptr;
    void* task_ = nullptr;
    std::atomic<std::uint64_t> next_ = 0; // round, and how many of its tasks nobody has taken
    std::atomic<std::uint32_t> left_ = 0, round_ = 0;
    std::atomic<bool> ending_ = false;
    std::vector<std::jthread> threads_; // last: they use all the above
};

} // namespace parsearch::search

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/threads/thread_team.ipp>
#endif
