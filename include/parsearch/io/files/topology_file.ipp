#pragma once
// Clusters as JSON: devices, switches, links, the routes that are not the shortest, rings. See docs/formats.md.

#include <limits>

#include <parsearch/core/error.hpp>
#include <parsearch/io/files/topology_file.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE topology::cluster topology_reader::read(std::size_t max_hops) {
    if (auto const description = root_.find("description")) (void)description->string();
    root_.at("kinds").for_members([&](std::string const& name, json_value const& kind) { kinds_.emplace(name, read_kind(name, kind)); });
    for_each("devices", [&](json_value const& device) { add_device(device); });
    if (root_.has("switches")) for_each("switches", [&](json_value const& name) { add_switch(name); });
    if (root_.has("links")) for_each("links", [&](json_value const& link) { add_link(link); });
    if (root_.has("routes")) for_each("routes", [&](json_value const& route) { add_route(route); });
    if (root_.has("rings")) for_each("rings", [&](json_value const& ring) { add_ring(ring); });
    return placed(root_.value(), [&] { return builder_.build(max_hops); });
}

PARSEARCH_IO_INLINE std::optional<picoseconds> topology_reader::read_time(json_object const& o, std::string const& name) {
    auto const ps = o.find(name + "_ps"), s = o.find(name + "_s");
    if (ps && s) s->refuse("must not be given beside ", name, "_ps");
    if (ps) return picoseconds{ps->integer<std::int64_t>(0)};
    if (!s) return std::nullopt;
    auto const seconds = s->number(0);
    if (seconds > 86400) s->refuse("must be at most 86400, a day");
    return from_seconds(seconds);
}

PARSEARCH_IO_INLINE topology::device_spec topology_reader::read_kind(std::string const& name, json_value const& value) {
    auto const o = value.object({"preset", "memory_bytes", "host_bytes_per_second", "memory_bytes_per_second", "launch_overhead_ps",
                                 "launch_overhead_s", "contraction_flops_per_second", "elementwise_flops_per_second", "multiprocessors", "reached"});
    topology::device_spec spec;
    if (auto const preset = o.find("preset")) {
        member_names names;
        for (auto const& d : device_names) names.emplace_back(d.spec->kind);
        spec = *device_names[preset->one_of(names)].spec;
    }
    spec.kind = name;
    if (auto const memory = o.find("memory_bytes")) spec.memory = memory->integer<byte_count>(0);
    if (auto const rate = o.find("host_bytes_per_second")) spec.host_rate = {rate->number(0)};
    if (auto const rate = o.find("memory_bytes_per_second")) spec.memory_rate = {rate->number(0)};
    if (auto const overhead = read_time(o, "launch_overhead")) spec.launch_overhead = *overhead;
    if (auto const rates = o.find("contraction_flops_per_second")) read_formats(*rates, spec.contraction);
    if (auto const rates = o.find("elementwise_flops_per_second")) read_formats(*rates, spec.elementwise);
    if (auto const processors = o.find("multiprocessors")) spec.multiprocessors = processors->integer<std::uint32_t>();
    // Published runs are of the preset as it is.
    static constexpr std::string_view priced[]{"memory_bytes_per_second",
                                               "launch_overhead_ps",
                                               "launch_overhead_s",
                                               "contraction_flops_per_second",
                                               "elementwise_flops_per_second",
                                               "multiprocessors",
                                               "reached"};
    if (std::ranges::any_of(priced, [&](auto member) { return o.has(member); })) spec.reached.runs = {}, spec.reached.error = {};
    if (auto const parts = o.find("reached")) read_reached(*parts, spec.reached);
    placed(value, [&] { topology::validate(spec, "the kind"); });
    return spec;
}

PARSEARCH_IO_INLINE void topology_reader::read_formats(json_value const& value, topology::by_format& numbers) {
    member_names names;
    for (auto const& [name, member] : topology::format_members) names.push_back(name);
    auto const o = value.object(std::move(names));
    for (auto const& [name, member] : topology::format_members)
        if (auto const number = o.find(name)) numbers.*member = number->number(0);
}

PARSEARCH_IO_INLINE void topology_reader::read_reached(json_value const& value, topology::reached_parts& reached) {
    member_names names{"memory", "runs", "error"};
    for (auto const& m : topology::reached_members) names.push_back(m.name);
    auto const o = value.object(names);
    if (auto const memory = o.find("memory")) reached.memory = memory->number(0);
    if (auto const error = o.find("error")) read_formats(*error, reached.error);
    names.erase(names.begin(), names.begin() + 3);
    auto const runs = o.find("runs");
    auto const told = runs ? std::optional(runs->object(names)) : std::nullopt;
    for (auto const& m : topology::reached_members) {
        if (auto const parts = o.find(m.name)) read_formats(*parts, reached.*m.part);
        if (auto const number = told ? told->find(m.name) : std::nullopt) read_formats(*number, reached.runs.*m.runs);
    }
}

PARSEARCH_IO_INLINE void topology_reader::add_device(json_value const& value) {
    auto const o = value.object({"kind", "node", "memory_bytes", "count"});
    auto const kind = kinds_.find(o.at("kind").string());
    if (kind == kinds_.end()) o.at("kind").refuse("must be one of the document's kinds");
    auto spec = kind->second;
    if (auto const memory = o.find("memory_bytes")) spec.memory = memory->integer<byte_count>(0);
    auto const node = o.has("node") ? o.at("node").integer<std::uint32_t>() : 0;
    auto const count = o.has("count") ? o.at("count").integer<std::uint32_t>(1, topology::cluster_builder::max_devices) : 1;
    for (std::uint32_t i = 0; i < count; ++i) placed(value, [&] { devices_.push_back(builder_.add_device(spec, node)); });
}

PARSEARCH_IO_INLINE void topology_reader::add_switch(json_value const& value) {
    auto const made = builder_.add_switch(value.string());
    // A name that several have means none of them.
    if (auto const [at, fresh] = named_.try_emplace(value.string(), made); !fresh) at->second.reset();
    switches_.push_back(made);
}

PARSEARCH_IO_INLINE topology::vertex topology_reader::read_end(json_value const& value) const {
    auto const o = value.object({"device", "switch"});
    if (o.has("device") == o.has("switch")) value.refuse("must have either a device or a switch");
    if (auto const device = o.find("device")) return read_device(*device);
    auto const by = o.at("switch");
    if (by.is_string()) {
        auto const at = named_.find(by.string());
        if (at == named_.end()) by.refuse("must be the name or the number of a switch");
        if (!at->second) by.refuse("must be the name of one switch: several have it, use a number");
        return *at->second;
    }
    if (switches_.empty()) by.refuse("there are no switches");
    return switches_[by.integer<std::uint32_t>(0, static_cast<std::uint32_t>(switches_.size() - 1))];
}

PARSEARCH_IO_INLINE void topology_reader::add_link(json_value const& value) {
    auto const o = value.object({"name", "from", "to", "bus", "duplex", "bytes_per_second", "latency_ps", "latency_s", "reduction_bytes_per_second"});
    bandwidth const rate{o.at("bytes_per_second").positive()};
    auto const latency = read_time(o, "latency");
    if (!latency) throw invalid_input(value.place(), ": latency_ps (or latency_s) is missing");
    auto const name = o.has("name") ? o.at("name").string() : std::string();
    bool const both_ways = o.has("duplex") && o.at("duplex").boolean();
    if (o.has("bus") && o.at("bus").boolean()) {
        for (auto const* const member : {"from", "to", "reduction_bytes_per_second"})
            if (auto const end = o.find(member)) end->refuse("must not be given: a bus has no ends");
        if (both_ways) o.at("duplex").refuse("must not be given: a bus has no direction");
        placed(value, [&] { (void)builder_.add_bus(rate, *latency, name); });
        return;
    }
    auto const from = read_end(o.at("from")), to = read_end(o.at("to"));
    link_description link{rate, *latency};
    if (auto const reduction = o.find("reduction_bytes_per_second")) link.reduction = {reduction->number(0)};
    placed(value, [&] {
        (void)builder_.add_link(from, to, link, name);
        if (both_ways) (void)builder_.add_link(to, from, link, name);
    });
}

PARSEARCH_IO_INLINE void topology_reader::add_route(json_value const& value) {
    auto const o = value.object({"from", "to", "links"});
    auto const from = read_device(o.at("from")), to = read_device(o.at("to"));
    auto const links = read_numbers(o.at("links"));
    placed(value, [&] { builder_.set_route(from, to, links); });
}

PARSEARCH_IO_INLINE ordered_json kind_to_json(topology::device_spec const& d) {
    auto kind = ordered_json::object();
    if (d.memory != std::numeric_limits<byte_count>::max()) kind["memory_bytes"] = d.memory;
    if (d.host_rate.bytes_per_second != 0) kind["host_bytes_per_second"] = d.host_rate.bytes_per_second;
    kind["memory_bytes_per_second"] = d.memory_rate.bytes_per_second;
    kind["launch_overhead_ps"] = d.launch_overhead.count();
    auto const formats = [](topology::by_format const& numbers) {
        auto object = ordered_json::object();
        for (auto const& [name, number] : topology::format_members)
            if (numbers.*number != 0) object[std::string(name)] = numbers.*number;
        return object;
    };
    kind["contraction_flops_per_second"] = formats(d.contraction);
    kind["elementwise_flops_per_second"] = formats(d.elementwise);
    if (d.multiprocessors) kind["multiprocessors"] = d.multiprocessors;
    if (d.reached == topology::reached_parts{}) return kind;
    auto reached = ordered_json::object(), runs = ordered_json::object();
    auto const add = [&](ordered_json& to, std::string_view name, topology::by_format const& numbers) {
        if (numbers != topology::by_format{}) to[std::string(name)] = formats(numbers);
    };
    for (auto const& m : topology::reached_members) {
        add(reached, m.name, d.reached.*m.part);
        add(runs, m.name, d.reached.runs.*m.runs);
    }
    if (d.reached.memory != 0) reached["memory"] = d.reached.memory;
    if (!runs.empty()) reached["runs"] = std::move(runs);
    add(reached, "error", d.reached.error);
    kind["reached"] = std::move(reached);
    return kind;
}

PARSEARCH_IO_INLINE ordered_json topology_writer::write() const {
    ordered_json root;
    root["format"] = topology_format;
    root["version"] = topology_version;
    add_devices(root);
    if (!cluster_.switches().empty()) root["switches"] = cluster_.switches();
    add_links(root);
    add_routes(root);
    if (!cluster_.rings().empty()) root["rings"] = cluster_.rings();
    return root;
}

PARSEARCH_IO_INLINE void topology_writer::add_devices(ordered_json& root) const {
    auto kinds = ordered_json::object(), devices = ordered_json::array();
    std::map<std::string, byte_count> memory; // of each kind: that of its first device
    for (std::uint32_t d = 0; d < cluster_.size();) {
        auto const& spec = cluster_.describe_device(d);
        auto const [at, fresh] = memory.try_emplace(spec.kind, spec.memory);
        if (fresh) kinds[spec.kind] = kind_to_json(spec);
        std::uint32_t count = 1;
        while (d + count < cluster_.size() && cluster_.describe_device(d + count) == spec && cluster_.node_of(d + count) == cluster_.node_of(d))
            ++count;
        ordered_json device{{"kind", spec.kind}, {"node", cluster_.node_of(d)}};
        if (spec.memory != at->second) device["memory_bytes"] = spec.memory;
        if (count > 1) device["count"] = count;
        devices.push_back(std::move(device));
        d += count;
    }
    root["kinds"] = std::move(kinds);
    root["devices"] = std::move(devices);
}

PARSEARCH_IO_INLINE void topology_writer::add_links(ordered_json& root) const {
    auto links = ordered_json::array();
    auto const count = static_cast<std::uint32_t>(cluster_.links().size());
    for (std::uint32_t l = 0; l < count; ++l) {
        auto const& link = cluster_.describe_link(l);
        auto const& ends = cluster_.ends_of(l);
        auto const& name = cluster_.given_name_of_link(l);
        bool const bus = ends.from.what == topology::vertex::type::bus;
        ordered_json j;
        if (!name.empty()) j["name"] = name;
        if (bus) {
            j["bus"] = true;
        } else {
            j["from"] = end(ends.from);
            j["to"] = end(ends.to);
        }
        j["bytes_per_second"] = link.rate.bytes_per_second;
        j["latency_ps"] = link.latency.count();
        if (link.reduction.bytes_per_second > 0) j["reduction_bytes_per_second"] = link.reduction.bytes_per_second;
        if (!bus && l + 1 < count && cluster_.ends_of(l + 1) == topology::link_ends{ends.to, ends.from} && cluster_.describe_link(l + 1) == link &&
            cluster_.given_name_of_link(l + 1) == name) {
            j["duplex"] = true;
            ++l;
        }
        links.push_back(std::move(j));
    }
    root["links"] = std::move(links);
}

PARSEARCH_IO_INLINE void topology_writer::add_routes(ordered_json& root) const {
    if (cluster_.routes().groups() > 1) return; // all are those that the builder finds
    topology::cluster_builder builder;
    auto const n = static_cast<std::uint32_t>(cluster_.size());
    std::vector<topology::vertex> devices;
    for (std::uint32_t d = 0; d < n; ++d) devices.push_back(builder.add_device(cluster_.describe_device(d), cluster_.node_of(d)));
    for (auto const& name : cluster_.switches()) (void)builder.add_switch(name);
    for (auto const l : cluster_.links()) {
        auto const& [from, to] = cluster_.ends_of(l);
        auto const& link = cluster_.describe_link(l);
        if (from.what == topology::vertex::type::bus) (void)builder.add_bus(link.rate, link.latency, {});
        else (void)builder.add_link(from, to, link);
    }
    auto const passes_bus = [&](std::uint32_t a, std::uint32_t b) {
        return std::ranges::any_of(cluster_.route(a, b), [&](auto l) { return cluster_.ends_of(l).from.what == topology::vertex::type::bus; });
    };
    // A route without a bus shows that links join the two: with the others set, the builder finds one for every pair.
    for (std::uint32_t a = 0; a < n; ++a)
        for (std::uint32_t b = 0; b < n; ++b)
            if (a != b && passes_bus(a, b)) {
                auto const given = cluster_.route(a, b);
                builder.set_route(devices[a], devices[b], std::vector<std::uint32_t>(given.begin(), given.end()));
            }
    auto const shortest = builder.build();
    auto routes = ordered_json::array();
    for (std::uint32_t a = 0; a < n; ++a)
        for (std::uint32_t b = 0; b < n; ++b) {
            auto const given = cluster_.route(a, b);
            if (a == b || (std::ranges::equal(given, shortest.route(a, b)) && !passes_bus(a, b))) continue;
            routes.push_back({{"from", a}, {"to", b}, {"links", std::vector<std::uint32_t>(given.begin(), given.end())}});
        }
    if (!routes.empty()) root["routes"] = std::move(routes);
}

} // namespace parsearch::io::detail
