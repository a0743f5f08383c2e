#pragma once
// Threads that wait for work without a mutex, and a team of them that shares the tasks of one round after the other.

#include <parsearch/search/threads/thread_team.hpp>

namespace parsearch::search::detail {

PARSEARCH_INLINE void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

} // namespace parsearch::search::detail

namespace parsearch::search {

PARSEARCH_INLINE thread_team::thread_team(std::size_t threads) {
    try {
        for (std::size_t n = 1; n < threads; ++n) threads_.emplace_back([this] { serve(); });
    } catch (...) {
        end();
        throw;
    }
}

PARSEARCH_INLINE void thread_team::serve() {
    for (std::uint32_t seen = 0; !ending_.load();) {
        detail::wait_until([&] { return round_.load() != seen; }, [&] { round_.wait(seen); });
        seen = round_.load();
        work(seen);
    }
}

PARSEARCH_INLINE void thread_team::work(std::uint32_t round) {
    for (auto claimed = next_.load(); claimed >> 32 == round && static_cast<std::uint32_t>(claimed) > 0;) {
        if (!next_.compare_exchange_weak(claimed, claimed - 1)) continue;
        call_(task_, static_cast<std::uint32_t>(claimed) - 1);
        if (left_.fetch_sub(1) == 1) left_.notify_all();
        claimed = next_.load();
    }
}

} // namespace parsearch::search
