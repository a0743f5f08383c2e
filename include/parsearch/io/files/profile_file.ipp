#pragma once
// Tables of measurements as JSON. See docs/formats.md.

#include <algorithm>

#include <parsearch/core/collective.hpp>
#include <parsearch/io/files/profile_file.hpp>

namespace parsearch::io::detail {

[[nodiscard]] cost::kernel read_kernel(json_object const& o);

[[nodiscard]] inline cost::profile_failure read_profile_failure(json_value const& value) {
    auto const o = value.object({"device", "op", "pass", "dims", "operands", "reason"});
    return {.device = o.at("device").string(), .kernel = read_kernel(o), .reason = o.at("reason").string()};
}

/// The members that models of links and of collectives share.
template <class Model> void read_fitted(json_object const& o, Model& m) {
    m.device = o.at("device").string();
    m.fitted.latency = picoseconds{o.at("latency_ps").integer<std::int64_t>(0)};
    m.fitted.rate = {o.at("bytes_per_second").positive()};
    if (auto const error = o.find("largest_error")) m.fitted.largest_error = error->number(0);
    if (auto const implementation = o.find("implementation")) m.implementation = implementation->string();
    if (auto const points = o.find("points"))
        for (std::size_t i = 0, n = points->size(); i < n; ++i) {
            auto const point = (*points)[i];
            if (point.size() != 2) point.refuse("must be bytes and picoseconds");
            m.points.push_back({point[0].integer<byte_count>(0), picoseconds{point[1].integer<std::int64_t>(0)}});
        }
}

template <class Model> [[nodiscard]] ordered_json fitted_to_json(Model const& m) {
    ordered_json j{{"device", m.device}, {"kind", name_of(m.kind)}};
    if constexpr (requires { m.size; }) j["size"] = m.size;
    j["latency_ps"] = m.fitted.latency.count();
    j["bytes_per_second"] = m.fitted.rate.bytes_per_second;
    if (m.fitted.largest_error) j["largest_error"] = *m.fitted.largest_error;
    if (!m.implementation.empty()) j["implementation"] = m.implementation;
    if (m.points.empty()) return j;
    j["points"] = ordered_json::array();
    for (auto const& p : m.points) j["points"].push_back(ordered_json::array({p.bytes, p.time.count()}));
    return j;
}

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

/// True for "2025-03-01", with month and day in range.
PARSEARCH_IO_INLINE bool is_date(std::string_view s) {
    if (s.size() != 10 || s[4] != '-' || s[7] != '-') return false;
    auto const part = [&](std::size_t first, std::size_t count) {
        int value = 0;
        for (char const c : s.substr(first, count)) {
            if (c < '0' || c > '9') return -1;
            value = value * 10 + (c - '0');
        }
        return value;
    };
    return part(0, 4) >= 0 && part(5, 2) >= 1 && part(5, 2) <= 12 && part(8, 2) >= 1 && part(8, 2) <= 31;
}

PARSEARCH_IO_INLINE cost::kernel read_kernel(json_object const& o) {
    cost::kernel k;
    k.op = o.at("op").string();
    k.pass = static_cast<ops::pass>(o.at("pass").one_of({"forward", "backward", "update"}));
    auto const dims = o.at("dims");
    if (dims.size() > ops::max_dims) dims.refuse("must have at most ", ops::max_dims);
    for (std::size_t i = 0, n = dims.size(); i < n; ++i) {
        if (dims[i].size() != 2) dims[i].refuse("must be a name and an extent");
        k.dims.push_back({dims[i][0].string(), dims[i][1].integer<std::int64_t>(0)});
    }
    if (auto const operands = o.find("operands")) k.operands = operands->string();
    return k;
}

PARSEARCH_IO_INLINE ordered_json kernel_to_json(std::string const& device, cost::kernel const& k) {
    ordered_json j{{"device", device}, {"op", k.op}, {"pass", ops::name_of(k.pass)}, {"dims", ordered_json::array()}};
    for (auto const& d : k.dims) j["dims"].push_back(ordered_json::array({d.name, d.extent}));
    if (!k.operands.empty()) j["operands"] = k.operands;
    return j;
}

PARSEARCH_IO_INLINE cost::profile_entry read_profile_entry(json_value const& value) {
    auto const o = value.object(
        {"device", "op", "pass", "dims", "operands", "time_ps", "runs", "spread_ps", "flops", "bytes", "work", "memory_bytes", "implementation"});
    cost::profile_entry e{.device = o.at("device").string(), .kernel = read_kernel(o)};
    e.time = picoseconds{o.at("time_ps").integer<std::int64_t>(0)};
    if (auto const runs = o.find("runs")) e.runs = runs->integer<std::int64_t>(1);
    if (auto const spread = o.find("spread_ps")) e.spread = picoseconds{spread->integer<std::int64_t>(0)};
    if (auto const flops = o.find("flops")) e.flops = flops->number(0);
    if (auto const bytes = o.find("bytes")) e.bytes = bytes->number(0);
    if (auto const work = o.find("work")) e.work = read_enum<ops::work_class, ops::work_classes>(*work);
    if (auto const memory = o.find("memory_bytes")) e.memory = memory->integer<byte_count>(0);
    if (auto const implementation = o.find("implementation")) e.implementation = implementation->string();
    return e;
}

PARSEARCH_IO_INLINE ordered_json profile_entry_to_json(cost::profile_entry const& e) {
    auto j = kernel_to_json(e.device, e.kernel);
    j["time_ps"] = e.time.count();
    if (e.runs != 1) j["runs"] = e.runs;
    if (e.spread) j["spread_ps"] = e.spread->count();
    if (e.flops) j["flops"] = *e.flops;
    if (e.bytes) j["bytes"] = *e.bytes;
    if (e.work) j["work"] = ops::name_of(*e.work);
    if (e.memory) j["memory_bytes"] = *e.memory;
    if (!e.implementation.empty()) j["implementation"] = e.implementation;
    return j;
}

PARSEARCH_IO_INLINE cost::link_model read_link_model(json_value const& value) {
    auto const o = value.object({"device", "kind", "latency_ps", "bytes_per_second", "largest_error", "implementation", "points"});
    cost::link_model m;
    m.kind = static_cast<cost::link_kind>(o.at("kind").one_of({"host_to_device", "device_to_host", "peer", "local"}));
    read_fitted(o, m);
    return m;
}

PARSEARCH_IO_INLINE cost::collective_model read_collective_model(json_value const& value) {
    auto const o = value.object({"device", "kind", "size", "latency_ps", "bytes_per_second", "largest_error", "implementation", "points"});
    cost::collective_model m;
    m.kind = static_cast<collective_kind>(o.at("kind").one_of({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce"}));
    m.size = o.at("size").integer<std::uint32_t>(2);
    read_fitted(o, m);
    return m;
}

PARSEARCH_IO_INLINE device_state read_device_state(json_value const& value) {
    auto const o = value.object({"sm_mhz", "memory_mhz", "temperature_c"});
    device_state s;
    if (auto const sm = o.find("sm_mhz")) s.sm_mhz = sm->integer<std::int64_t>(0);
    if (auto const memory = o.find("memory_mhz")) s.memory_mhz = memory->integer<std::int64_t>(0);
    if (auto const temperature = o.find("temperature_c")) s.temperature_c = temperature->integer<std::int64_t>();
    return s;
}

PARSEARCH_IO_INLINE profile_notes read_profile_notes(json_value const& value) {
    auto const o =
        value.object({"machine", "device", "memory_bytes", "compute_capability", "driver", "libraries", "date", "begin", "end", "throttled"});
    profile_notes n;
    if (auto const machine = o.find("machine")) n.machine = machine->string();
    if (auto const device = o.find("device")) n.device = device->string();
    if (auto const memory = o.find("memory_bytes")) n.memory = memory->integer<byte_count>(0);
    if (auto const capability = o.find("compute_capability")) n.compute_capability = capability->string();
    if (auto const driver = o.find("driver")) n.driver = driver->string();
    if (auto const libraries = o.find("libraries"))
        libraries->for_members([&](std::string const& library, json_value const& version) { n.libraries[library] = version.string(); });
    if (auto const date = o.find("date"); date && !is_date(n.date = date->string())) date->refuse("must be like 2025-03-01");
    if (auto const begin = o.find("begin")) n.begin = read_device_state(*begin);
    if (auto const end = o.find("end")) n.end = read_device_state(*end);
    if (auto const throttled = o.find("throttled"))
        throttled->for_members([&](std::string const& by, json_value const& kernels) { n.throttled[by] = kernels.integer<std::int64_t>(0); });
    return n;
}

PARSEARCH_IO_INLINE ordered_json profile_notes_to_json(profile_notes const& n) {
    auto j = ordered_json::object();
    auto const say = [&](char const* member, std::string const& value) {
        if (!value.empty()) j[member] = value;
    };
    auto const state = [&](char const* member, std::optional<device_state> const& s) {
        if (!s) return;
        j[member] = ordered_json::object();
        if (s->sm_mhz) j[member]["sm_mhz"] = *s->sm_mhz;
        if (s->memory_mhz) j[member]["memory_mhz"] = *s->memory_mhz;
        if (s->temperature_c) j[member]["temperature_c"] = *s->temperature_c;
    };
    say("machine", n.machine);
    say("device", n.device);
    if (n.memory) j["memory_bytes"] = *n.memory;
    say("compute_capability", n.compute_capability);
    say("driver", n.driver);
    if (!n.libraries.empty()) j["libraries"] = n.libraries;
    say("date", n.date);
    state("begin", n.begin);
    state("end", n.end);
    if (!n.throttled.empty()) j["throttled"] = n.throttled;
    return j;
}

PARSEARCH_IO_INLINE ordered_json profile_to_json(cost::profile const& p, profile_notes const& notes) {
    if (!notes.date.empty() && !is_date(notes.date))
        throw invalid_input("the date of a profile is ", in_quotes(notes.date), ": must be like 2025-03-01");
    if (notes.memory && *notes.memory < 0) throw invalid_input("the memory of a profile's device is ", *notes.memory, " bytes: must not be negative");
    for (auto const& state : {notes.begin, notes.end})
        if (state && (state->sm_mhz.value_or(0) < 0 || state->memory_mhz.value_or(0) < 0))
            throw invalid_input("a clock of a profile's device is ", std::min(state->sm_mhz.value_or(0), state->memory_mhz.value_or(0)),
                                " MHz: must not be negative");
    ordered_json root{{"format", profile_format}, {"version", profile_version}};
    if (auto measured = profile_notes_to_json(notes); !measured.empty()) root["measured"] = std::move(measured);
    root["kernels"] = ordered_json::array();
    for (auto const& e : p.entries()) root["kernels"].push_back(profile_entry_to_json(e));
    for (auto const& f : p.failures()) {
        root["failures"].push_back(kernel_to_json(f.device, f.kernel));
        root["failures"].back()["reason"] = f.reason;
    }
    for (auto const& m : p.links()) root["links"].push_back(fitted_to_json(m));
    for (auto const& m : p.collectives()) root["collectives"].push_back(fitted_to_json(m));
    return root;
}

PARSEARCH_IO_INLINE cost::profile profile_from_json(json_value const& document, profile_notes* notes) {
    auto const root = document.document(profile_format, profile_version, {"measured", "kernels", "failures", "links", "collectives"});
    profile_notes said;
    if (auto const measured = root.find("measured")) said = read_profile_notes(*measured);
    cost::profile p;
    auto const each = [](json_value const& list, auto const& read, auto const& add) {
        for (std::size_t i = 0, n = list.size(); i < n; ++i) {
            auto one = read(list[i]);
            placed(list[i], [&] { add(std::move(one)); });
        }
    };
    each(root.at("kernels"), read_profile_entry, [&](auto e) { p.add(std::move(e)); });
    if (auto const failures = root.find("failures")) each(*failures, read_profile_failure, [&](auto f) { p.add_failure(std::move(f)); });
    if (auto const links = root.find("links")) each(*links, read_link_model, [&](auto m) { p.add_link(std::move(m)); });
    if (auto const collectives = root.find("collectives")) each(*collectives, read_collective_model, [&](auto m) { p.add_collective(std::move(m)); });
    if (notes) *notes = std::move(said);
    return p;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE void write_profile_json(std::ostream& out, cost::profile const& p, profile_notes const& notes) {
    write_json(out, detail::profile_to_json(p, notes));
}

PARSEARCH_IO_INLINE cost::profile read_profile_json(std::istream& in, std::string name, profile_notes* notes, json_limits const& limits) {
    json_document const document(in, std::move(name), limits);
    return detail::profile_from_json(document.root(), notes);
}

} // namespace parsearch::io
