#pragma once
/// What a run of a search was given and what it found, as JSON: enough to run it again. See docs/schemas/run.schema.json.

#include <array>
#include <cstdint>
#include <fstream>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/version.hpp>
#include <parsearch/io/described/described.hpp>
#include <parsearch/io/described/described_json.hpp>
#include <parsearch/io/described/described_kernels.hpp>
#include <parsearch/io/described/described_pipeline.hpp>
#include <parsearch/io/described/described_simulation.hpp>
#include <parsearch/io/described/described_space.hpp>
#include <parsearch/io/described/searches.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/json/json_writer.hpp>

namespace parsearch::io {

inline constexpr std::string_view run_format = "parsearch.run";
inline constexpr std::uint64_t run_version = 1;

/// Something that a run read.
struct run_input {
    std::string given; ///< as the user wrote it
    std::string hash;  ///< of the file, see `hash_of_file`; empty where it is none
    friend bool operator==(run_input const&, run_input const&) = default;
};
template <>
inline constexpr auto described<run_input> = boost::hana::make_tuple(field("given", &run_input::given, "as the user wrote it"),
                                                                     field("hash", &run_input::hash, "of the file; empty where it is none"));

/// A file that a run wrote.
struct run_file {
    std::string name; ///< in the folder of the manifest
    std::string hash; ///< see `hash_of_file`
    friend bool operator==(run_file const&, run_file const&) = default;
};
template <>
inline constexpr auto described<run_file> =
    boost::hana::make_tuple(field("name", &run_file::name, "in the folder of the manifest"), field("hash", &run_file::hash, "of what was written"));

/// The figures of a strategy.
struct run_figures {
    std::string strategy;
    std::int64_t time_ps = 0;
    double speed_up = 1, throughput = 0;
    std::string throughput_unit = "samples";
    double flops_utilisation = 0, activation_bytes = 0, gradient_bytes = 0, partial_sum_bytes = 0, weight_gradient_bytes = 0;
    std::int64_t peak_memory = 0;
    bool fits = true;
    friend bool operator==(run_figures const&, run_figures const&) = default;
};
template <>
inline constexpr auto described<run_figures> = boost::hana::make_tuple(
    field("strategy", &run_figures::strategy, "its name"), field("time_ps", &run_figures::time_ps, "of an iteration, in picoseconds"),
    field("speed_up", &run_figures::speed_up, "over data parallelism"), field("throughput", &run_figures::throughput, "per second"),
    field("throughput_unit", &run_figures::throughput_unit, "what is counted"),
    field("flops_utilisation", &run_figures::flops_utilisation, "share of the peak of all devices"),
    field("activation_bytes", &run_figures::activation_bytes, "moved between devices in an iteration"),
    field("gradient_bytes", &run_figures::gradient_bytes, "moved between devices in an iteration"),
    field("partial_sum_bytes", &run_figures::partial_sum_bytes, "moved between devices in an iteration"),
    field("weight_gradient_bytes", &run_figures::weight_gradient_bytes, "moved between devices in an iteration"),
    field("peak_memory", &run_figures::peak_memory, "bytes on the fullest device"),
    field("fits", &run_figures::fits, "no device needs more than it has"));

template <>
inline constexpr auto enumerators<stop_reason> =
    std::array{stop_reason::exhausted,      stop_reason::evaluation_budget, stop_reason::time_budget, stop_reason::stop_requested,
               stop_reason::proved_optimal, stop_reason::no_improvement,    stop_reason::observer,    stop_reason::out_of_memory};

/// What a run found.
struct run_result {
    std::int64_t cost_ps = 0; ///< what the search minimises: time and what the memory policy adds
    std::string start;        ///< the strategy that it started from
    std::uint64_t evaluations = 0, proposals = 0, accepted = 0, improved = 0;
    std::string trajectory; ///< hash of the accepted changes, hexadecimal
    double seconds = 0;     ///< of search
    std::optional<stop_reason> reason{};
    friend bool operator==(run_result const&, run_result const&) = default;
};
template <>
inline constexpr auto described<run_result> = boost::hana::make_tuple(
    field("cost_ps", &run_result::cost_ps, "what the search minimises, in picoseconds: time and what the memory policy adds"),
    field("start", &run_result::start, "the strategy that it started from"), field("evaluations", &run_result::evaluations, "strategies priced"),
    field("proposals", &run_result::proposals, "changes drawn"), field("accepted", &run_result::accepted, "proposals that became current"),
    field("improved", &run_result::improved, "proposals better than all before"),
    field("trajectory", &run_result::trajectory, "hash of the accepted changes"), field("seconds", &run_result::seconds, "wall time of the search"),
    field("reason", &run_result::reason, "why the search ended; none: there was none"));

/// The parts of the computing time of the found strategy by what they rest on: see `cost::cost_source`.
struct run_sources {
    double exact = 0, interpolated = 0, roofline = 0, published = 0, data_sheet = 0, fallback = 0;
    friend bool operator==(run_sources const&, run_sources const&) = default;
};
template <>
inline constexpr auto described<run_sources> =
    boost::hana::make_tuple(field("exact", &run_sources::exact, "measured"),
                            field("interpolated", &run_sources::interpolated, "between measurements"),
                            field("roofline", &run_sources::roofline, "by a roofline calibrated on measurements"),
                            field("published", &run_sources::published, "by a roofline at rates of published runs"),
                            field("data_sheet", &run_sources::data_sheet, "by a roofline at rates that no published run tells"),
                            field("fallback", &run_sources::fallback, "by another oracle"));

/// What a joint search did to the model's operators.
struct run_rewriting {
    std::vector<std::string> applied{};               ///< rules, in order: name, then operators
    std::uint64_t operators = 0, plain_operators = 0; ///< inputs included: of the graph found, and of the model's
    std::int64_t plain_cost_ps = 0;                   ///< of the best strategy found without rules
    std::uint64_t plain_evaluations = 0;              ///< that this took
    friend bool operator==(run_rewriting const&, run_rewriting const&) = default;
};
template <>
inline constexpr auto described<run_rewriting> = boost::hana::make_tuple(
    field("operators", &run_rewriting::operators, "operators and inputs of the graph found"),
    field("plain_operators", &run_rewriting::plain_operators, "operators and inputs of the model"),
    field("plain_cost_ps", &run_rewriting::plain_cost_ps, "of the best strategy found for the model's own operators, in picoseconds"),
    field("plain_evaluations", &run_rewriting::plain_evaluations, "graphs priced and strategies simulated for that"));

/// What a search of pipelines was given and what it found.
struct run_pipelines {
    pipeline::partition_options options{};
    std::int64_t cost_ps = 0;
    std::uint64_t evaluations = 0; ///< pipelines simulated
    std::uint64_t plans = 0;       ///< priced by the search that went on from the best, decision by decision
    double seconds = 0;
    stop_reason reason{};
};
template <>
inline constexpr auto described<run_pipelines> =
    boost::hana::make_tuple(field("cost_ps", &run_pipelines::cost_ps, "of the best, in picoseconds: time and what the memory policy adds"),
                            field("evaluations", &run_pipelines::evaluations, "pipelines simulated"),
                            field("plans", &run_pipelines::plans, "plans priced by the search that went on from the best"),
                            field("seconds", &run_pipelines::seconds, "wall time of the search"),
                            field("reason", &run_pipelines::reason, "why the search ended"));

/// How blocks that repeat were planned alike.
struct run_regular {
    double share = 0;              ///< by which a strategy that differs must be faster
    std::uint64_t evaluations = 0; ///< strategies without a difference priced
    friend bool operator==(run_regular const&, run_regular const&) = default;
};
template <>
inline constexpr auto described<run_regular> =
    boost::hana::make_tuple(field("share", &run_regular::share, "by which a strategy must be faster that differs between blocks that repeat"),
                            field("evaluations", &run_regular::evaluations, "strategies without a difference priced"));

/// A run. `search` is empty where a strategy was only evaluated.
struct run_manifest {
    std::string library{version};
    run_input model, cluster, start;
    std::optional<run_input> profile{}; ///< where measurements were used
    std::optional<run_input> rules{};   ///< where a joint search was given a file of rules
    std::uint64_t seed = 0;
    std::optional<search_options> search{};
    sim::simulation_options simulation{};
    kernel_options kernels{};
    space::space_options space{};
    std::vector<std::string> pin{}, forbid{}; ///< OPERATOR=SPLIT: how operators were to be split, or not
    std::optional<run_regular> regular{};     ///< none: nothing was asked of blocks that repeat
    run_result result{};
    std::optional<std::int64_t> lower_bound_ps{}; ///< no plan in the space of its operators costs less; none: not known
    std::optional<run_sources> compute{};         ///< of the plan
    std::optional<run_rewriting> rewriting{};     ///< of a joint search
    std::optional<run_pipelines> pipelines{};     ///< where pipelines were searched
    std::vector<run_figures> strategies{};        ///< those compared, the found one last
    std::vector<run_file> files{};                ///< written beside the manifest, which is the last of them
};

/// `n` in sixteen hexadecimal digits.
[[nodiscard]] inline std::string hexadecimal(std::uint64_t n) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out(16, '0');
    for (std::size_t i = out.size(); i-- > 0; n >>= 4) out[i] = digits[n & 15];
    return out;
}

/// "fnv1a64:" and the 64-bit FNV-1a hash (Fowler, Noll, Vo) of all bytes of a file. Throws `invalid_input` where it cannot be read.
[[nodiscard]] inline std::string hash_of_file(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw invalid_input(path, ": cannot be opened");
    std::uint64_t hash = 0xcbf29ce484222325;
    std::array<char, 1 << 16> chunk{};
    do {
        in.read(chunk.data(), chunk.size());
        for (std::streamsize i = 0; i < in.gcount(); ++i)
            hash = (hash ^ static_cast<unsigned char>(chunk[static_cast<std::size_t>(i)])) * 0x100000001b3;
    } while (in);
    if (in.bad()) throw invalid_input(path, ": cannot be read to its end");
    return "fnv1a64:" + hexadecimal(hash);
}

/// Writes a manifest. Throws `invalid_input` as `write_json` does.
inline void write_run_manifest(std::ostream& out, run_manifest const& m) {
    nlohmann::ordered_json json{{"format", run_format}, {"version", run_version}, {"library", m.library}};
    json["model"] = options_to_json(m.model);
    json["cluster"] = options_to_json(m.cluster);
    json["start"] = options_to_json(m.start);
    if (m.profile) json["profile"] = options_to_json(*m.profile);
    if (m.rules) json["rules"] = options_to_json(*m.rules);
    json["seed"] = m.seed;
    json["search"] = {{"name", "none"}, {"options", nlohmann::ordered_json::object()}};
    if (m.search)
        visit_search(*m.search, [&](auto const& entry, auto const& options) {
            json["search"] = {{"name", entry.name}, {"options", options_to_json(options)}};
        });
    json["simulation"] = options_to_json(m.simulation);
    if (m.kernels != kernel_options{}) json["kernels"] = options_to_json(m.kernels);
    json["space"] = options_to_json(m.space);
    if (!m.pin.empty()) json["pin"] = m.pin;
    if (!m.forbid.empty()) json["forbid"] = m.forbid;
    if (m.regular) json["regular"] = options_to_json(*m.regular);
    json["result"] = options_to_json(m.result);
    if (m.lower_bound_ps) json["lower_bound_ps"] = *m.lower_bound_ps;
    if (m.compute) json["compute"] = options_to_json(*m.compute);
    if (m.rewriting) {
        json["rewriting"] = options_to_json(*m.rewriting);
        json["rewriting"]["applied"] = m.rewriting->applied;
    }
    if (m.pipelines) {
        json["pipelines"] = options_to_json(*m.pipelines);
        json["pipelines"]["options"] = options_to_json(m.pipelines->options);
    }
    json["strategies"] = nlohmann::ordered_json::array();
    for (auto const& s : m.strategies) json["strategies"].push_back(options_to_json(s));
    json["files"] = nlohmann::ordered_json::array();
    for (auto const& f : m.files) json["files"].push_back(options_to_json(f));
    write_json(out, json);
}

namespace detail {
/// Throws `invalid_input` where `value`, the member `name` of `json`, is negative.
template <class T> void require_not_negative(json_value const& json, std::string_view name, T value) {
    if (value < 0) throw invalid_input(json.place(), '.', name, " is ", value, ": must not be negative");
}
} // namespace detail

/// Reads a manifest. Throws `invalid_input` with place, value and rule on another format or version, an unknown or missing member, a
/// value of the wrong kind. Options that are missing have their defaults; where earlier releases could not do what one says, that it is not done.
[[nodiscard]] inline run_manifest read_run_manifest(json_document const& document) {
    auto const root =
        document.object(run_format, run_version, {"library",        "model",      "cluster",   "start",     "profile",    "rules",   "seed",
                                                  "search",         "simulation", "space",     "pin",       "forbid",     "regular", "result",
                                                  "lower_bound_ps", "compute",    "rewriting", "pipelines", "strategies", "files",   "kernels"});
    run_manifest m;
    m.library = root.at("library").string();
    m.model = described_from_json<run_input>(root.at("model"));
    m.cluster = described_from_json<run_input>(root.at("cluster"));
    m.start = described_from_json<run_input>(root.at("start"));
    if (auto const profile = root.find("profile")) m.profile = described_from_json<run_input>(*profile);
    if (auto const rules = root.find("rules")) m.rules = described_from_json<run_input>(*rules);
    m.seed = root.at("seed").integer<std::uint64_t>();
    auto const search = root.at("search").object({"name", "options"});
    if (auto const name = search.at("name"); name.string() != "none") {
        try {
            m.search = default_options(name.string());
        } catch (invalid_input const& e) {
            throw invalid_input(name.place(), ": ", e.what());
        }
        visit_search(*m.search, [&](auto const&, auto& options) { set_options_from_json(options, search.at("options")); });
    }
    set_options_from_json(m.simulation, root.at("simulation"));
    if (auto const kernels = root.find("kernels")) set_options_from_json(m.kernels, *kernels);
    set_options_from_json(m.space, root.at("space"));
    auto const read_list = [&](std::string_view name, std::vector<std::string>& to) {
        if (auto const list = root.find(name))
            for (std::size_t i = 0; i < list->size(); ++i) to.push_back((*list)[i].string());
    };
    read_list("pin", m.pin);
    read_list("forbid", m.forbid);
    if (auto const regular = root.find("regular")) {
        m.regular = described_from_json<run_regular>(*regular);
        detail::require_not_negative(*regular, "share", m.regular->share);
    }
    auto const result = root.at("result");
    m.result = described_from_json<run_result>(result);
    detail::require_not_negative(result, "cost_ps", m.result.cost_ps);
    detail::require_not_negative(result, "seconds", m.result.seconds);
    if (m.result.accepted > m.result.proposals)
        throw invalid_input(result.place(), ".accepted is ", m.result.accepted, ": must be at most the ", m.result.proposals, " proposals");
    if (auto const& t = m.result.trajectory; !t.empty() && (t.size() != 16 || t.find_first_not_of("0123456789abcdef") != t.npos))
        throw invalid_input(result.place(), ".trajectory is ", in_quotes(t), ": must be sixteen hexadecimal digits, or empty");
    if (auto const bound = root.find("lower_bound_ps")) m.lower_bound_ps = bound->integer<std::int64_t>(0);
    if (auto const compute = root.find("compute")) set_options_from_json(m.compute.emplace(), *compute);
    if (auto const rewriting = root.find("rewriting")) {
        auto const said = rewriting->object({"operators", "plain_operators", "plain_cost_ps", "plain_evaluations", "applied"});
        run_rewriting r{.operators = said.at("operators").integer<std::uint64_t>(),
                        .plain_operators = said.at("plain_operators").integer<std::uint64_t>(),
                        .plain_cost_ps = said.at("plain_cost_ps").integer<std::int64_t>(0),
                        .plain_evaluations = said.at("plain_evaluations").integer<std::uint64_t>(1)};
        auto const applied = said.at("applied");
        for (std::size_t i = 0; i < applied.size(); ++i) r.applied.push_back(applied[i].string());
        m.rewriting = std::move(r);
    }
    if (auto const pipelines = root.find("pipelines")) {
        auto const said = pipelines->object({"cost_ps", "evaluations", "plans", "seconds", "reason", "options"});
        run_pipelines p;
        for_each_field(p, [&](auto const& f, auto& member) {
            if (auto const at = said.find(f.name); at || f.name != "plans") detail::value_from_json(at ? *at : said.at(f.name), member); // or older
        });
        detail::require_not_negative(*pipelines, "cost_ps", p.cost_ps);
        detail::require_not_negative(*pipelines, "seconds", p.seconds);
        p.options.offload = false; // of earlier releases, which did not
        set_options_from_json(p.options, said.at("options"));
        m.pipelines = std::move(p);
    }
    auto const strategies = root.at("strategies");
    for (std::size_t i = 0; i < strategies.size(); ++i) {
        auto const& s = m.strategies.emplace_back(described_from_json<run_figures>(strategies[i]));
        detail::require_not_negative(strategies[i], "time_ps", s.time_ps);
        detail::require_not_negative(strategies[i], "peak_memory", s.peak_memory);
    }
    if (auto const files = root.find("files"))
        for (std::size_t i = 0; i < files->size(); ++i) m.files.push_back(described_from_json<run_file>((*files)[i]));
    return m;
}

/// The search of `m` without clocks: one that ended by time, or by a request to stop, has its number of evaluations as budget instead, so
/// that it takes the same way and ends at the same place. Empty where `m` has no search.
[[nodiscard]] inline std::optional<search_options> repeatable_search(run_manifest const& m) {
    auto search = m.search;
    if (!search) return search;
    visit_search(*search, [&](auto const&, auto& options) {
        bool by_clock = m.result.reason == stop_reason::time_budget || m.result.reason == stop_reason::stop_requested ||
                        m.result.reason == stop_reason::out_of_memory;
        options.time.reset();
        if constexpr (requires { options.time_patience; })
            if (std::exchange(options.time_patience, 0) > 0) by_clock = by_clock || m.result.reason == stop_reason::no_improvement;
        if (by_clock) options.evaluations = m.result.evaluations;
        if (!m.result.reason) options.evaluations = 1; // it was left out
    });
    return search;
}

/// The options of the search of pipelines of `m` without clocks, as above. Empty where `m` has none.
[[nodiscard]] inline std::optional<pipeline::partition_options> repeatable_pipelines(run_manifest const& m) {
    if (!m.pipelines) return {};
    auto options = m.pipelines->options;
    options.time.reset();
    if (m.pipelines->reason != stop_reason::exhausted) options.evaluations = m.pipelines->evaluations;
    return options;
}

} // namespace parsearch::io
