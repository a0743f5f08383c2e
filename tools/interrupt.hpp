#pragma once
// Ctrl-C, SIGTERM and the end of a terminal (SIGHUP): the first asks for an end, the second ends the program.

#include <stop_token>
#include <thread>

namespace tools {

// While it lives, SIGINT, SIGTERM and, where it is not ignored (nohup), SIGHUP are taken by a thread that waits for them, so that nothing runs inside
// a signal handler. To be made before any other thread, which then leave the signals alone too.
class interrupt_watch {
  public:
    interrupt_watch();
    interrupt_watch(interrupt_watch const&) = delete;
    interrupt_watch& operator=(interrupt_watch const&) = delete;
    ~interrupt_watch();

    // Stops at the first signal.
    [[nodiscard]] std::stop_token token() const { return interrupted_.get_token(); }
    [[nodiscard]] bool interrupted() const { return interrupted_.stop_requested(); }

  private:
    std::stop_source interrupted_;
    std::jthread waits_;
};

} // namespace tools
