#include "interrupt.hpp"

#include <csignal>
#include <ctime>

namespace tools {
namespace {
sigset_t taken() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    struct sigaction hang_up {};
    if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
    return set;
}
} // namespace

interrupt_watch::interrupt_watch() {
    auto const set = taken();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    waits_ = std::jthread([set, interrupted = interrupted_](std::stop_token const& done) mutable {
        while (!done.stop_requested()) {
            // Not longer, so that the end of the program does not wait.
            timespec const patience{.tv_sec = 0, .tv_nsec = 50'000'000};
            int const signal = sigtimedwait(&set, nullptr, &patience);
            if (signal < 0) continue;
            if (interrupted.request_stop()) continue;
            // The second: as if nobody had taken it.
            std::signal(signal, SIG_DFL);
            pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
            std::raise(signal);
        }
    });
}

interrupt_watch::~interrupt_watch() {
    waits_.request_stop();
    waits_.join();
    auto const set = taken();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

} // namespace tools
