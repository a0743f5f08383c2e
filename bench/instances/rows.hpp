#pragma once
/// What the comparison of searches measures: a run of a search on an instance, and its JSON.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/core/version.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/json/json_writer.hpp>

namespace bench {

namespace ps = parsearch;

inline constexpr std::int64_t infinite = ps::cost_traits<ps::picoseconds>::infinity().count();

/// A cost in JSON: null where it is infinite.
[[nodiscard]] inline ps::io::ordered_json cost_to_json(std::int64_t cost) {
    return cost == infinite ? ps::io::ordered_json(nullptr) : ps::io::ordered_json(cost);
}
[[nodiscard]] inline std::int64_t cost_from_json(ps::io::json_value const& v) {
    return v.is_null() ? infinite : v.integer<std::int64_t>(0, infinite - 1);
}

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

    /// Null where there is none.
    [[nodiscard]] instance_row const* find(std::string const& name) const {
        for (auto const& i : instances)
            if (i.name == name) return &i;
        return nullptr;
    }
};

inline constexpr auto comparison_format = "parsearch.instance_comparison";

[[nodiscard]] inline ps::io::ordered_json json_of(comparison const& c) {
    auto const nothing = [](auto const& value) { return value ? ps::io::ordered_json(*value) : ps::io::ordered_json(nullptr); };
    ps::io::ordered_json instances = ps::io::ordered_json::array(), runs = ps::io::ordered_json::array();
    for (auto const& i : c.instances)
        instances.push_back({{"name", i.name},
                             {"class", i.group},
                             {"devices", i.devices},
                             {"decisions", i.decisions},
                             {"textbook_ps", cost_to_json(i.textbook)},
                             {"best_ps", cost_to_json(i.best)},
                             {"bound_ps", i.bound}});
    for (auto const& r : c.runs) {
        ps::io::ordered_json curve = ps::io::ordered_json::array();
        for (auto const& p : r.curve) curve.push_back({p.seconds, p.evaluations, cost_to_json(p.cost)});
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
            {"version", 1},
            {"library", ps::version},
            {"budget_s", nothing(c.seconds)},
            {"evaluations", nothing(c.evaluations)},
            {"instances", std::move(instances)},
            {"runs", std::move(runs)}};
}

/// Reads what `json_of` makes. Throws `invalid_input` with place, value and rule.
[[nodiscard]] inline comparison read_comparison(std::string const& path) {
    ps::io::json_document const document(path);
    auto const root = document.object(comparison_format, 1, {"library", "budget_s", "evaluations", "instances", "runs"});
    (void)root.at("library").string();
    comparison out;
    if (auto const s = root.at("budget_s"); !s.is_null()) out.seconds = s.positive();
    if (auto const n = root.at("evaluations"); !n.is_null()) out.evaluations = n.integer<std::uint64_t>(1);
    auto const instances = root.at("instances");
    for (std::size_t i = 0; i < instances.size(); ++i) {
        auto const o = instances[i].object({"name", "class", "devices", "decisions", "textbook_ps", "best_ps", "bound_ps"});
        instance_row row{.name = o.at("name").string(),
                         .group = o.at("class").string(),
                         .devices = o.at("devices").integer<std::size_t>(),
                         .decisions = o.at("decisions").integer<std::size_t>(),
                         .textbook = cost_from_json(o.at("textbook_ps")),
                         .best = cost_from_json(o.at("best_ps")),
                         .bound = o.at("bound_ps").integer<std::int64_t>(0)};
        if (out.find(row.name)) o.at("name").refuse("is an instance that is there already");
        out.instances.push_back(std::move(row));
    }
    auto const runs = root.at("runs");
    if (runs.size() == 0) runs.refuse("must have at least one run");
    for (std::size_t i = 0; i < runs.size(); ++i) {
        auto const o = runs[i].object({"search", "instance", "seed", "seconds", "evaluations", "reason", "bound_ps", "curve"});
        run_row row{.search = o.at("search").string(),
                    .instance = o.at("instance").string(),
                    .seed = o.at("seed").integer<std::uint64_t>(),
                    .seconds = o.at("seconds").number(0),
                    .evaluations = o.at("evaluations").integer<std::uint64_t>(),
                    .reason = o.at("reason").string(),
                    .curve = {}};
        if (auto const b = o.at("bound_ps"); !b.is_null()) row.bound = b.integer<std::int64_t>(0);
        auto const* const of = out.find(row.instance);
        if (!of) o.at("instance").refuse("must be one of the instances");
        auto const curve = o.at("curve");
        if (curve.size() == 0) curve.refuse("must begin with the start");
        for (std::size_t n = 0; n < curve.size(); ++n) {
            if (curve[n].size() != 3) curve[n].refuse("must be seconds, evaluations and a cost");
            row.curve.push_back({curve[n][0].number(0), curve[n][1].integer<std::uint64_t>(), cost_from_json(curve[n][2])});
            auto const& now = row.curve.back();
            if (now.cost < of->best) curve[n][2].refuse("must be at least ", of->best, ", the best cost of the instance");
            if (n == 0) continue;
            auto const& before = row.curve[n - 1];
            if (now.seconds < before.seconds || now.evaluations < before.evaluations || now.cost >= before.cost)
                curve[n].refuse("must come later than the one before it, and cost less");
        }
        out.runs.push_back(std::move(row));
    }
    return out;
}

} // namespace bench
