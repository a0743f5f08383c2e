#pragma once
// What a run of a search was given and what it found, as JSON: enough to run it again. See docs/schemas/run.schema.json.

#include <array>
#include <fstream>
#include <utility>

#include <parsearch/io/described/searches.hpp>
#include <parsearch/io/files/run_manifest.hpp>
#include <parsearch/io/json/json_writer.hpp>

namespace parsearch::io::detail {

inline constexpr std::uint64_t fnv1a64_begin = 0xcbf29ce484222325;
[[nodiscard]] inline std::uint64_t fnv1a64(std::uint64_t hash, std::string_view text) noexcept {
    for (char const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

/// Throws `invalid_input` where `value`, the member `name` of `json`, is negative.
template <class T> void require_not_negative(json_value const& json, std::string_view name, T value) {
    if (value < 0) throw invalid_input(json.place(), '.', name, " is ", value, ": must not be negative");
}

/// `options` without the clock for a search of pipelines that ended as `before` says.
template <class Before> [[nodiscard]] pipeline::partition_options repeatable(pipeline::partition_options options, Before const& before) {
    options.time.reset();
    if (before.reason == stop_reason::exhausted) return options;
    options.evaluations = before.evaluations;
    if (before.estimates) options.estimates = before.estimates;
    return options;
}

[[nodiscard]] inline nlohmann::ordered_json rewiring_to_json(run_rewiring const& r) {
    auto json = options_to_json(r);
    json["phases"] = nlohmann::ordered_json::array();
    for (auto const& p : r.phases) {
        auto& phase = json["phases"].emplace_back(options_to_json(p));
        phase["links"] = nlohmann::ordered_json::array();
        for (auto const& l : p.links) phase["links"].push_back({l.a, l.b, l.wires});
    }
    return json;
}

/// Sets the described members of `to`, all of which must be there and not negative.
template <class T> void read_counts(json_value const& json, json_object const& said, T& to) {
    for_each_field(to, [&](auto const& f, auto& member) {
        value_from_json(said.at(f.name), member);
        require_not_negative(json, f.name, member);
    });
}

[[nodiscard]] inline run_rewiring rewiring_from_json(json_value const& json) {
    auto const said = json.object({"reconfiguration_ps", "cost_ps", "one_wiring_ps", "rewirings", "wirings", "phases"});
    run_rewiring out;
    read_counts(json, said, out);
    auto const phases = said.at("phases");
    for (std::size_t i = 0; i < phases.size(); ++i) {
        auto const phase = phases[i].object({"begin_ps", "end_ps", "bytes", "links"});
        read_counts(phases[i], phase, out.phases.emplace_back());
        auto const links = phase.at("links");
        for (std::size_t l = 0; l < links.size(); ++l) {
            auto const ends = links[l];
            if (ends.size() != 3)
                throw invalid_input(ends.place(), " has ", ends.size(), " elements: must be two servers and how many wires join them");
            out.phases.back().links.push_back(
                {ends[0].integer<std::uint32_t>(), ends[1].integer<std::uint32_t>(), ends[2].integer<std::uint32_t>(1)});
        }
    }
    return out;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE std::string hexadecimal(std::uint64_t n) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out(16, '0');
    for (std::size_t i = out.size(); i-- > 0; n >>= 4) out[i] = digits[n & 15];
    return out;
}

PARSEARCH_IO_INLINE std::string hash_of_text(std::string_view text) { return "fnv1a64:" + hexadecimal(detail::fnv1a64(detail::fnv1a64_begin, text)); }

PARSEARCH_IO_INLINE std::string hash_of_file(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw invalid_input(path, ": cannot be opened");
    auto hash = detail::fnv1a64_begin;
    std::array<char, 1 << 16> chunk{};
    do {
        in.read(chunk.data(), chunk.size());
        hash = detail::fnv1a64(hash, {chunk.data(), static_cast<std::size_t>(in.gcount())});
    } while (in);
    if (in.bad()) throw invalid_input(path, ": cannot be read to its end");
    return "fnv1a64:" + hexadecimal(hash);
}

PARSEARCH_IO_INLINE void write_run_manifest(std::ostream& out, run_manifest const& m) {
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
    if (m.replicas > 1) json["replicas"] = m.replicas;
    if (!m.runtime.empty()) json["runtime"] = m.runtime;
    if (!m.pin.empty()) json["pin"] = m.pin;
    if (!m.forbid.empty()) json["forbid"] = m.forbid;
    if (m.regular) json["regular"] = options_to_json(*m.regular);
    json["result"] = options_to_json(m.result);
    if (m.lower_bound_ps) json["lower_bound_ps"] = *m.lower_bound_ps;
    if (m.compute) json["compute"] = options_to_json(*m.compute);
    if (m.rewriting) {
        json["rewriting"] = options_to_json(*m.rewriting);
        if (m.rewriting->first) json["rewriting"]["first"] = options_to_json(*m.rewriting->first);
        json["rewriting"]["applied"] = m.rewriting->applied;
    }
    if (m.pipelines) {
        json["pipelines"] = options_to_json(*m.pipelines);
        json["pipelines"]["options"] = options_to_json(m.pipelines->options);
    }
    if (m.failures) json["failures"] = options_to_json(*m.failures);
    if (m.rewiring) json["rewiring"] = detail::rewiring_to_json(*m.rewiring);
    json["strategies"] = nlohmann::ordered_json::array();
    for (auto const& s : m.strategies) json["strategies"].push_back(options_to_json(s));
    json["files"] = nlohmann::ordered_json::array();
    for (auto const& f : m.files) json["files"].push_back(options_to_json(f));
    write_json(out, json);
}

PARSEARCH_IO_INLINE run_manifest read_run_manifest(json_document const& document) {
    auto const root = document.object(
        run_format, run_version, {"library",    "model", "cluster", "start",    "profile",  "rules",          "seed",    "search",    "simulation",
                                  "space",      "pin",   "forbid",  "regular",  "result",   "lower_bound_ps", "compute", "rewriting", "pipelines",
                                  "strategies", "files", "kernels", "replicas", "failures", "runtime",        "rewiring"});
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
    if (auto const replicas = root.find("replicas")) m.replicas = replicas->integer<std::uint32_t>(2);
    if (auto const runtime = root.find("runtime")) m.runtime = runtime->string();
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
        auto const said = rewriting->object({"operators", "plain_operators", "plain_cost_ps", "plain_evaluations", "first", "applied"});
        run_rewriting r{.operators = said.at("operators").integer<std::uint64_t>(),
                        .plain_operators = said.at("plain_operators").integer<std::uint64_t>(),
                        .plain_cost_ps = said.at("plain_cost_ps").integer<std::int64_t>(0),
                        .plain_evaluations = said.at("plain_evaluations").integer<std::uint64_t>(1)};
        auto const applied = said.at("applied");
        for (std::size_t i = 0; i < applied.size(); ++i) r.applied.push_back(applied[i].string());
        if (auto const first = said.find("first")) {
            r.first = described_from_json<run_rewriting_first>(*first);
            detail::require_not_negative(*first, "share", r.first->share);
        }
        m.rewriting = std::move(r);
    }
    if (auto const pipelines = root.find("pipelines")) {
        auto const said = pipelines->object({"cost_ps", "evaluations", "estimates", "plans", "seconds", "reason", "options"});
        run_pipelines p;
        for_each_field(p, [&](auto const& f, auto& member) {
            bool const newer = f.name == "plans" || f.name == "estimates";
            if (auto const at = said.find(f.name); at || !newer) detail::value_from_json(at ? *at : said.at(f.name), member);
        });
        detail::require_not_negative(*pipelines, "cost_ps", p.cost_ps);
        detail::require_not_negative(*pipelines, "seconds", p.seconds);
        p.options.offload = false; // of earlier releases, which did not
        set_options_from_json(p.options, said.at("options"));
        m.pipelines = std::move(p);
    }
    if (auto const failures = root.find("failures")) m.failures = described_from_json<run_failures>(*failures);
    if (auto const rewiring = root.find("rewiring")) m.rewiring = detail::rewiring_from_json(*rewiring);
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

PARSEARCH_IO_INLINE std::optional<search_options> repeatable_search(run_manifest const& m) {
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

PARSEARCH_IO_INLINE std::optional<pipeline::partition_options> repeatable_pipelines(run_manifest const& m) {
    if (!m.pipelines) return {};
    return detail::repeatable(m.pipelines->options, *m.pipelines);
}

PARSEARCH_IO_INLINE std::optional<pipeline::partition_options> repeatable_rewriting(run_manifest const& m) {
    if (!m.pipelines || !m.rewriting || !m.rewriting->first) return {};
    return detail::repeatable(m.pipelines->options, *m.rewriting->first);
}

} // namespace parsearch::io
