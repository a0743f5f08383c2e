#include "serve.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <parsearch/core/interruption.hpp>
#include <parsearch/io/described/described.hpp>
#include <parsearch/problem/serving.hpp>

#include "tools/streams.hpp"
#include "tools/units.hpp"
#include "output.hpp"
#include "planner.hpp"

namespace plan {
namespace {

// The same model with that many samples.
std::string with_batch(std::string const& model, std::int64_t batch) {
    auto out = ps::io::parse_settings(model);
    std::erase_if(out.settings, [](auto const& s) { return s.key == "batch"; });
    out.settings.push_back({"batch", std::to_string(batch)});
    return to_string(out);
}

// `asked` with a share of each limit of its budget.
request with_budget(request asked, double share) {
    auto const limit = [share](auto& options) {
        if (options.time) options.time = std::chrono::nanoseconds(static_cast<std::int64_t>(share * static_cast<double>(options.time->count())));
        if (options.evaluations)
            options.evaluations = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(share * static_cast<double>(*options.evaluations)));
    };
    std::visit([&](auto& options) { limit(options); }, *asked.search);
    if (asked.pipelines) limit(*asked.pipelines);
    return asked;
}
} // namespace

void choose_batch(request& asked, std::int64_t first, std::stop_token const& stop) {
    constexpr double share = 0.1;
    double left = 1;
    auto const all = ps::batches_within(*asked.latency, first, [&](std::int64_t batch) {
        ps::require_running(stop);
        auto trial = with_budget(asked, left * share);
        left *= 1 - share;
        trial.model = with_batch(asked.model, batch);
        trial.quiet = true;
        trial.out.clear();
        trial.exports.clear();
        trial.explain.clear();
        trial.diff.clear();
        auto const given = read_inputs(trial);
        auto made = begin_plan(trial, given, stop);
        finish_plan(trial, given, made, stop);
        auto const& figures = made.figures();
        return figures.fits ? figures.time : ps::cost_traits<ps::picoseconds>::infinity();
    });
    auto const* const best = ps::best_of(all);
    if (!asked.quiet || !best) {
        std::vector<std::vector<std::string>> rows;
        for (auto const& t : all) {
            bool const fits = t.latency < ps::cost_traits<ps::picoseconds>::infinity();
            rows.push_back({std::to_string(t.batch), fits ? tools::shown_time(t.latency) : "", fits ? fmt::format("{:.4g}", t.per_second()) : "",
                            &t == best ? "chosen"
                            : !fits    ? "does not fit"
                            : t.within ? ""
                                       : "beyond the limit"});
        }
        tools::print("batches within {}\n", tools::shown_time(*asked.latency));
        print_table({{"", "batch"}, {"", "latency"}, {"samples", "per second"}, {"", "", true}}, rows);
        tools::print("\n");
    }
    if (!best)
        throw ps::invalid_input("--latency-limit is ", tools::shown_time(*asked.latency), ": no batch of ", asked.model,
                                " that fits takes so little, a single sample neither");
    asked.model = with_batch(asked.model, best->batch);
    asked = with_budget(asked, left);
}

} // namespace plan
