// Searches compared: every algorithm of the library (and those of bench/search/cases.hpp) on models and clusters, with several seeds and a time for
// each run. Writes the runs as JSON and a page with curves of the best cost over time and over evaluations, final gaps, evaluations
// per second, and the time to within 1 % of the best known. Every run starts from the cheapest of the experts' strategies.
//
//   search [--full] [--seconds S] [--seeds N] [--algorithm NAME] [--model NAME] [--cluster NAME] [--render FILE] ...     (see --help)

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/hana/for_each.hpp>
#include <fmt/format.h>

#include "guarded.hpp"
#include "search/cases.hpp"
#include "search/page.hpp"
#include "search/rows.hpp"
#include "write_file.hpp"

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

struct request {
    bool full = false;
    std::optional<double> seconds;
    std::optional<std::uint64_t> seeds;
    std::vector<std::string> algorithms, models, clusters;
    std::string out = "out/bench/search", render;
};

// An observer that keeps each improvement.
struct recorder {
    clock::time_point begin;
    std::vector<point>* curve;
    template <class C> void operator()(ps::search::improved<C> const& e) {
        curve->push_back({std::chrono::duration<double>(clock::now() - begin).count(), e.evaluation, e.cost.count()});
    }
};

template <class List> bool wanted(List const& list, std::string_view name) {
    return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

template <class P> void run_case(P const& problem, model_entry const& model, cluster_entry const& cluster, request const& asked, comparison& made) {
    auto cost_of = problem.evaluator();
    std::optional<std::pair<ps::picoseconds, ps::space::flat_strategy>> start;
    for (auto& s : problem.starts())
        if (auto const cost = cost_of(s); !start || cost < start->first) start.emplace(cost, std::move(s));
    boost::hana::for_each(all_searches, [&](auto const& entry) {
        if (!wanted(asked.algorithms, entry.name)) return;
        for (std::uint64_t seed = 1; seed <= *asked.seeds; ++seed) {
            typename std::remove_cvref_t<decltype(entry)>::options options;
            options.time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(made.seconds));
            run_row row{.algorithm = std::string(entry.name), .model = model.name, .cluster = cluster.name, .seed = seed, .reason = {}, .curve = {}};
            row.curve.push_back({0, 1, start->first.count()});
            std::mt19937_64 rng{seed};
            recorder observer{clock::now(), &row.curve};
            auto const found = entry.run(problem, start->second, rng, options, observer);
            row.seconds = std::chrono::duration<double>(clock::now() - observer.begin).count();
            // Where an algorithm tells no improvements, its answer is one.
            if (found.cost.count() < row.cost()) row.curve.push_back({row.seconds, found.stats.evaluations, found.cost.count()});
            row.evaluations = found.stats.evaluations;
            row.reason = ps::name_of(found.reason);
            fmt::print("{:<14} {:<10} {:<14} seed {:<3} {:>10.4f} ms {:>9} evaluations {:>7.2f} s  {}\n", row.model, row.cluster, row.algorithm, seed,
                       1e-9 * static_cast<double>(row.cost()), row.evaluations, row.seconds, row.reason);
            std::fflush(stdout);
            made.runs.push_back(std::move(row));
        }
    });
}

void write(comparison const& made, std::string const& out) {
    write_file(out + ".json", [&](auto& stream) { ps::io::write_json(stream, json_of(made)); });
    write_file(out + ".html", [&](auto& stream) { write_page(stream, made); });
}

int run(int argc, char** argv) {
    request asked;
    std::vector<std::string> algorithm_names, model_names, cluster_names;
    boost::hana::for_each(all_searches, [&](auto const& entry) { algorithm_names.emplace_back(entry.name); });
    for (auto const& m : models()) model_names.push_back(m.name);
    for (auto const& c : clusters()) cluster_names.push_back(c.name);
    CLI::App app{"Compares searches: anytime curves, final gaps, evaluations per second."};
    app.add_flag("--full", asked.full, "all models and clusters, 30 s and 5 seeds; else three models on one cluster, 3 s and 3 seeds");
    app.add_option("--seconds", asked.seconds, "wall time of each run")->check(CLI::Range(0.001, 86400.0));
    app.add_option("--seeds", asked.seeds, "runs of each algorithm on each case, with seeds 1, 2, ...")->check(CLI::Range(1, 1000));
    app.add_option("--algorithm", asked.algorithms, "only these")->check(CLI::IsMember(algorithm_names));
    app.add_option("--model", asked.models, "only these")->check(CLI::IsMember(model_names));
    app.add_option("--cluster", asked.clusters, "only these")->check(CLI::IsMember(cluster_names));
    app.add_option("--render", asked.render, "writes the page of the runs in this file, and measures nothing")->check(CLI::ExistingFile);
    // The last one counts: bench/run names files before the user may.
    app.add_option("--out", asked.out, "where to write: this with .json and .html")->capture_default_str()->take_last();
    CLI11_PARSE(app, argc, argv);

    if (!asked.render.empty()) {
        auto const made = read_comparison(asked.render);
        write_file(asked.out + ".html", [&](auto& stream) { write_page(stream, made); });
        fmt::print("wrote {}.html\n", asked.out);
        return 0;
    }
    if (!asked.seeds) asked.seeds = asked.full ? 5 : 3;
    comparison made{.seconds = asked.seconds.value_or(asked.full ? 30 : 3), .runs = {}};
    for (auto const& model : models())
        for (auto const& cluster : clusters()) {
            // Who names models gets them on the default cluster, and the other way round.
            bool const chosen = wanted(asked.models, model.name) && wanted(asked.clusters, cluster.name) &&
                                (asked.full || ((!asked.models.empty() || model.by_default) && (!asked.clusters.empty() || cluster.by_default)));
            if (!chosen) continue;
            auto const topology = cluster.make();
            auto const problem = ps::make_problem(model.make(static_cast<std::int64_t>(topology.size())), topology, ps::cost::roofline{topology});
            run_case(problem, model, cluster, asked, made);
            write(made, asked.out); // case by case: an interrupted comparison leaves what it has
        }
    fmt::print("\nwrote {0}.json and {0}.html\n", asked.out);
    return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
