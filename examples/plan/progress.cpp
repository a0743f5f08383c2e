#include "progress.hpp"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include <parsearch/pipeline/partition.hpp>
#include <parsearch/rewrite/joint/joint.hpp>

#include "tools/streams.hpp"
#include "tools/units.hpp"

namespace plan {

static constexpr char const* clear_line = "\x1b[K"; // to its end

progress_display::progress_display(bool quiet, std::optional<std::chrono::nanoseconds> time, ps::picoseconds start,
                                   std::optional<ps::picoseconds> baseline)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1), baseline_(baseline), current_(start), best_(start) {
    if (time) limit_ = " of " + tools::shown_seconds(std::chrono::duration<double>(*time).count());
    remember(0);
}

void progress_display::operator()(ps::search::improved<ps::picoseconds> const& e) {
    best_ = std::min(best_, e.cost);
    current_ = e.cost;
    // A search that improves at every step would make the report heavy: the points in between are sampled by `look`.
    if (curve_.size() < 5000) remember(elapsed());
}

void progress_display::operator()(ps::rewrite::rewritten_graph const& e) { count(e.evaluation); }
void progress_display::operator()(ps::pipeline::simulated_pipeline const& e) { count(e.evaluation); }

void progress_display::look() {
    auto const now = elapsed();
    if (now - looked_ < 0.005) between_looks_ = between_looks_ < 4096 ? between_looks_ * 2 : between_looks_;
    else if (now - looked_ > 0.05) between_looks_ = 1;
    looked_ = now;
    until_look_ = between_looks_;
    // At most a few thousand samples, evenly over any time.
    if (now - sampled_ > 0.05 + sampled_ / 1000) {
        sampled_ = now;
        remember(now);
    }
    if (!quiet_ && now - drawn_ >= (terminal_ ? 0.1 : 5.0)) {
        drawn_ = now;
        draw(now);
    }
}

void progress_display::draw(double seconds) {
    auto line = fmt::format("{}{}  {} evaluations, {}/s  best {}", tools::shown_seconds(seconds), limit_, evaluations_,
                            tools::shown_count(static_cast<double>(evaluations_) / seconds), tools::shown_time(best_));
    if (baseline_) line += fmt::format(" ({:.2f}x)", static_cast<double>(baseline_->count()) / static_cast<double>(best_.count()));
    line += fmt::format("  current {}", tools::shown_time(current_));
    if (terminal_) std::fputs("\r", stderr);
    tools::print(stderr, "{}{}", line, terminal_ ? "" : "\n");
    if (terminal_) std::fputs(clear_line, stderr);
    std::fflush(stderr);
}

void progress_display::say(std::string const& what) {
    if (quiet_) return;
    if (terminal_) std::fputs("\r", stderr);
    tools::print(stderr, "{}{}  {}{}\n", tools::shown_seconds(elapsed()), limit_, what, terminal_ ? clear_line : "");
    std::fflush(stderr);
}

void progress_display::finish(std::uint64_t evaluations) {
    evaluations_ = evaluations;
    auto const now = elapsed();
    remember(now);
    if (quiet_ || !terminal_ || drawn_ <= 0) return;
    std::fputs("\r", stderr);
    std::fputs(clear_line, stderr);
    std::fflush(stderr);
}

} // namespace plan
