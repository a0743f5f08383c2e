#pragma once
// What is shown while a search runs, and remembered for the report.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/io/report/report_data.hpp>
#include <parsearch/search/kernel/events.hpp>

namespace parsearch::pipeline {
struct simulated_pipeline;
}
namespace parsearch::rewrite {
struct rewritten_graph;
}

namespace plan {

namespace ps = parsearch;

// An observer of a search. On a terminal one line of stderr is redrawn up to ten times a second; elsewhere there is a line every few seconds.
class progress_display {
  public:
    // `baseline` is the cost of data parallelism, where it is feasible.
    progress_display(bool quiet, std::optional<std::chrono::nanoseconds> time, ps::picoseconds start, std::optional<ps::picoseconds> baseline);
    progress_display(progress_display const&) = delete;
    progress_display& operator=(progress_display const&) = delete;

    void operator()(ps::search::proposed<ps::picoseconds> const& e) { count(e.evaluation); }
    void operator()(ps::rewrite::rewritten_graph const& e);
    void operator()(ps::pipeline::simulated_pipeline const& e);
    void operator()(ps::search::accepted<ps::picoseconds> const& e) { current_ = e.cost; }
    void operator()(ps::search::improved<ps::picoseconds> const& e);
    void operator()(ps::search::restarted<ps::picoseconds> const& e) { current_ = e.best; }
    void operator()(ps::search::member_turn<ps::picoseconds> const& e) { current_ = e.best; }
    void operator()(ps::search::started<ps::picoseconds> const& e) { best_ = std::min(best_, e.cost); }

    // A line of its own, with the time.
    void say(std::string const& what);
    // Ends the line, adds the last point.
    void finish(std::uint64_t evaluations);
    [[nodiscard]] std::vector<ps::io::cost_point> const& curve() const noexcept { return curve_; }

  private:
    using clock = std::chrono::steady_clock;

    // The clock is read rarely where evaluations are quick.
    void count(std::uint64_t evaluations) {
        evaluations_ = evaluations;
        if (--until_look_ == 0) look();
    }
    void look();
    void draw(double seconds);
    void remember(double seconds) { curve_.push_back({seconds, evaluations_, current_, best_}); }
    [[nodiscard]] double elapsed() const { return std::chrono::duration<double>(clock::now() - begin_).count(); }

    bool quiet_, terminal_;
    std::string limit_;
    std::optional<ps::picoseconds> baseline_;
    clock::time_point begin_ = clock::now();
    std::uint64_t evaluations_ = 1;
    ps::picoseconds current_, best_;
    std::uint32_t until_look_ = 1, between_looks_ = 1;
    double looked_ = 0, drawn_ = 0, sampled_ = 0;
    std::vector<ps::io::cost_point> curve_;
};

} // namespace plan
