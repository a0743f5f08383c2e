#pragma once
/// What the comparison of searches measures: a run of a search on an instance, and its JSON.

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/core/version.hpp>
#include <parsearch/io/json/json_writer.hpp>

namespace bench {

namespace ps = parsearch;

inline constexpr std::int64_t infinite = ps::cost_traits<ps::picoseconds>::infinity().count();

/// The least cost so far, from this moment on.
struct point {
    double seconds = 0;
    std::uint64_t evaluations = 0;
    std::int64_t cost = 0; ///< picoseconds
    friend bool operator==(point const&, point const&) = default;
};

/// One search on one instance, with one seed.
struct run_row {
    std::string search, instance;
    std::uint64_t seed = 0;
    double seconds = 0; ///< of the whole search
    std::uint64_t evaluations = 0;
    std::string reason;
    std::optional<std::int64_t> bound{}; ///< no solution costs less
    std::vector<point> curve;            ///< the start first, then each improvement

    [[nodiscard]] std::int64_t cost() const { return curve.back().cost; }
};

/// What is known of an instance.
struct instance_row {
    std::string name, group;
    std::size_t devices = 0, decisions = 0;
    std::int64_t textbook = infinite, best = infinite; ///< the cheapest of what people try first, and the least cost known
    std::int64_t bound = 0;                            ///< no solution costs less
};

struct comparison {
    std::optional<double> seconds{}; ///< the budget of each search
    std::optional<std::uint64_t> evaluations{};
    std::vector<instance_row> instances;
    std::vector<run_row> runs;

    [[nodiscard]] instance_row const& of(std::string const& name) const {
        for (auto const& i : instances)
            if (i.name == name) return i;
        throw ps::invalid_input("a run is of instance '", name, "', of which nothing is said");
    }
};

inline constexpr auto comparison_format = "parsearch.search_comparison";

[[nodiscard]] inline ps::io::ordered_json json_of(comparison const& c) {
    auto const nothing = [](auto const& value) { return value ? ps::io::ordered_json(*value) : ps::io::ordered_json(nullptr); };
    ps::io::ordered_json instances = ps::io::ordered_json::array(), runs = ps::io::ordered_json::array();
    for (auto const& i : c.instances)
        instances.push_back({{"name", i.name},
                             {"class", i.group},
                             {"devices", i.devices},
                             {"decisions", i.decisions},
                             {"textbook_ps", i.textbook},
                             {"best_ps", i.best},
                             {"bound_ps", i.bound}});
    for (auto const& r : c.runs) {
        ps::io::ordered_json curve = ps::io::ordered_json::array();
        for (auto const& p : r.curve) curve.push_back({p.seconds, p.evaluations, p.cost});
        runs.push_back({{"search", r.search},
                        {"instance", r.instance},
                        {"seed", r.seed},
                        {"seconds", r.seconds},
                        {"evaluations", r.evaluations},
                        {"reason", r.reason},
                        {"bound_ps", nothing(r.bound)},
                        {"curve", std::move(curve)}});
    }
    return {{"format", comparison_format},
            {"version", 2},
            {"library", ps::version},
            {"budget_s", nothing(c.seconds)},
            {"evaluations", nothing(c.evaluations)},
            {"instances", std::move(instances)},
            {"runs", std::move(runs)}};
}

/// Reads what `json_of` makes. Throws `invalid_input` naming the file and what is wrong.
[[nodiscard]] inline comparison read_comparison(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw ps::invalid_input(path, ": cannot be opened");
    try {
        auto const document = nlohmann::json::parse(in);
        if (document.at("format") != comparison_format || document.at("version") != 2)
            throw ps::invalid_input(path, ": format ", document.at("format").dump(), ", version ", document.at("version").dump(), ": must be ",
                                    comparison_format, ", 2");
        comparison out;
        if (auto const& s = document.at("budget_s"); !s.is_null()) out.seconds = s.get<double>();
        if (auto const& n = document.at("evaluations"); !n.is_null()) out.evaluations = n.get<std::uint64_t>();
        if (out.seconds && !(*out.seconds > 0)) throw ps::invalid_input(path, ": budget_s is ", *out.seconds, ": must be positive");
        for (auto const& i : document.at("instances")) {
            instance_row row{.name = i.at("name"),
                             .group = i.at("class"),
                             .devices = i.at("devices"),
                             .decisions = i.at("decisions"),
                             .textbook = i.at("textbook_ps"),
                             .best = i.at("best_ps"),
                             .bound = i.at("bound_ps")};
            if (row.best <= 0) throw ps::invalid_input(path, ": instance ", row.name, " has a best cost of ", row.best, ": must be positive");
            out.instances.push_back(std::move(row));
        }
        for (auto const& r : document.at("runs")) {
            run_row row{.search = r.at("search"),
                        .instance = r.at("instance"),
                        .seed = r.at("seed"),
                        .seconds = r.at("seconds"),
                        .evaluations = r.at("evaluations"),
                        .reason = r.at("reason"),
                        .curve = {}};
            if (auto const& b = r.at("bound_ps"); !b.is_null()) row.bound = b.get<std::int64_t>();
            for (auto const& p : r.at("curve"))
                row.curve.push_back({p.at(0).get<double>(), p.at(1).get<std::uint64_t>(), p.at(2).get<std::int64_t>()});
            if (row.curve.empty()) throw ps::invalid_input(path, ": run number ", out.runs.size(), " has an empty curve: must begin with the start");
            if (row.cost() <= 0) throw ps::invalid_input(path, ": run number ", out.runs.size(), " has a cost of ", row.cost(), ": must be positive");
            (void)out.of(row.instance);
            out.runs.push_back(std::move(row));
        }
        if (out.runs.empty()) throw ps::invalid_input(path, ": has no runs: at least one is needed");
        return out;
    } catch (nlohmann::json::exception const& e) {
        throw ps::invalid_input(path, ": ", e.what());
    }
}

} // namespace bench
