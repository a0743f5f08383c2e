#pragma once
/// What the comparison of searches measures: what was asked, a run, and its JSON.

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <parsearch/core/error.hpp>
#include <parsearch/core/version.hpp>
#include <parsearch/io/json/json_writer.hpp>

namespace bench {

namespace ps = parsearch;

/// The least cost so far, from this moment on.
struct point {
    double seconds = 0;
    std::uint64_t evaluations = 0;
    std::int64_t cost = 0; ///< picoseconds
    friend bool operator==(point const&, point const&) = default;
};

/// One search: an algorithm on a case (a model on a cluster), with one seed.
struct run_row {
    std::string algorithm, model, cluster;
    std::uint64_t seed = 0;
    double seconds = 0; ///< of the whole search
    std::uint64_t evaluations = 0;
    std::string reason;
    std::vector<point> curve; ///< the start first, then each improvement
    friend bool operator==(run_row const&, run_row const&) = default;

    [[nodiscard]] std::int64_t cost() const { return curve.back().cost; }
};

struct comparison {
    double seconds = 0; ///< the budget of each search
    std::vector<run_row> runs;
};

inline constexpr auto format_name = "parsearch.search_comparison";

[[nodiscard]] inline ps::io::ordered_json json_of(comparison const& c) {
    ps::io::ordered_json runs = ps::io::ordered_json::array();
    for (auto const& r : c.runs) {
        ps::io::ordered_json curve = ps::io::ordered_json::array();
        for (auto const& p : r.curve) curve.push_back({p.seconds, p.evaluations, p.cost});
        runs.push_back({{"algorithm", r.algorithm},
                        {"model", r.model},
                        {"cluster", r.cluster},
                        {"seed", r.seed},
                        {"seconds", r.seconds},
                        {"evaluations", r.evaluations},
                        {"reason", r.reason},
                        {"curve", std::move(curve)}});
    }
    return {{"format", format_name}, {"version", 1}, {"library", ps::version}, {"budget_s", c.seconds}, {"runs", std::move(runs)}};
}

/// Reads what `json_of` makes. Throws `invalid_input` naming the file and what is wrong.
[[nodiscard]] inline comparison read_comparison(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw ps::invalid_input(path, ": cannot be opened");
    try {
        auto const document = nlohmann::json::parse(in);
        if (document.at("format") != format_name || document.at("version") != 1)
            throw ps::invalid_input(path, ": format ", document.at("format").dump(), ", version ", document.at("version").dump(), ": must be ",
                                    format_name, ", 1");
        comparison out{.seconds = document.at("budget_s").get<double>(), .runs = {}};
        for (auto const& r : document.at("runs")) {
            run_row row{.algorithm = r.at("algorithm"),
                        .model = r.at("model"),
                        .cluster = r.at("cluster"),
                        .seed = r.at("seed"),
                        .seconds = r.at("seconds"),
                        .evaluations = r.at("evaluations"),
                        .reason = r.at("reason"),
                        .curve = {}};
            for (auto const& p : r.at("curve"))
                row.curve.push_back({p.at(0).get<double>(), p.at(1).get<std::uint64_t>(), p.at(2).get<std::int64_t>()});
            if (row.curve.empty()) throw ps::invalid_input(path, ": run number ", out.runs.size(), " has an empty curve: must begin with the start");
            if (row.cost() <= 0) throw ps::invalid_input(path, ": run number ", out.runs.size(), " has a cost of ", row.cost(), ": must be positive");
            out.runs.push_back(std::move(row));
        }
        if (out.runs.empty()) throw ps::invalid_input(path, ": has no runs: at least one is needed");
        if (!(out.seconds > 0)) throw ps::invalid_input(path, ": budget_s is ", out.seconds, ": must be positive");
        return out;
    } catch (nlohmann::json::exception const& e) {
        throw ps::invalid_input(path, ": ", e.what());
    }
}

} // namespace bench
