#pragma once
/// Progress with the time that is left.

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace parsearch::profiler {

/// How much of a list of tasks is done. A task's weight is a guess of its time; what is left is guessed by how long the weight that is done has
/// taken.
class progress_estimate {
  public:
    /// `weights` are positive.
    explicit progress_estimate(std::vector<double> weights) : weights_(std::move(weights)) {
        for (auto const w : weights_) left_ += w;
    }
    /// Task number `n` is finished and took `seconds`; each once.
    void finish(std::size_t n, double seconds) {
        left_ -= weights_[n];
        done_weight_ += weights_[n];
        seconds_ += seconds;
        ++done_;
    }
    /// Seconds that the other tasks take, by those that are finished; by the weights alone as long as none is.
    [[nodiscard]] double seconds_left() const noexcept {
        if (done_ == weights_.size()) return 0;
        return done_ == 0 || !(done_weight_ > 0) ? left_ : left_ * seconds_ / done_weight_;
    }
    [[nodiscard]] std::size_t done() const noexcept { return done_; }
    [[nodiscard]] std::size_t size() const noexcept { return weights_.size(); }

  private:
    std::vector<double> weights_;
    double left_ = 0, done_weight_ = 0, seconds_ = 0;
    std::size_t done_ = 0;
};

/// When a line is due: often on a terminal, where it is redrawn, and every few seconds elsewhere.
class progress_clock {
  public:
    explicit progress_clock(bool terminal) : interval_(terminal ? 0.1 : 5.0) {}
    /// `now` in seconds, not decreasing.
    [[nodiscard]] bool due(double now) noexcept {
        if (now - last_ < interval_) return false;
        last_ = now;
        return true;
    }

  private:
    double interval_, last_ = 0;
};

} // namespace parsearch::profiler
