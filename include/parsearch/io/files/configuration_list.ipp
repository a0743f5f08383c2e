#pragma once
// What documents of plans say of operators: the configuration of each, by the names of operators and dims. See docs/formats.md.

#include <algorithm>

#include <parsearch/io/files/configuration_list.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE std::map<std::string_view, std::size_t> operators_by_name(graph::dense_graph const& g, std::string_view document) {
    std::map<std::string_view, std::size_t> out;
    for (std::size_t op = 0; op < g.size(); ++op)
        if (auto const [at, fresh] = out.emplace(g.names[op], op); !fresh)
            throw invalid_input("operators ", at->second, " and ", op, " of the graph are both named ", in_quotes(g.names[op]), ": ", document,
                                " tells operators by name");
    return out;
}

PARSEARCH_IO_INLINE ordered_json configurations_writer::begin(std::string_view format, std::uint64_t version, plan_notes const& notes) const {
    ordered_json root{{"format", format}, {"version", version}};
    auto const identity = [](std::string const& name, char const* counted, std::size_t count) {
        auto out = ordered_json::object();
        if (!name.empty()) out["name"] = name;
        out[counted] = count;
        return out;
    };
    root["model"] = identity(notes.model, "operators", graph_.size());
    root["topology"] = identity(notes.topology, "devices", devices_);
    if (notes.predicted) root["predicted_ps"] = notes.predicted->count();
    if (!notes.rewritten_by.empty()) root["rewritten_by"] = notes.rewritten_by;
    return root;
}

PARSEARCH_IO_INLINE void configurations_writer::add(ordered_json& list, std::size_t op, space::configuration const& c) const {
    auto const& operation = graph_.operations[op];
    space::validate(c, operation, devices_, graph_.names[op]);
    if (operation.work == ops::work_class::source && c == space::whole(operation)) return;
    auto const names = cost::dim_names(operation);
    auto degrees = ordered_json::object(), strides = ordered_json::object();
    for (std::size_t k = 0; k < c.rank; ++k) {
        if (c.degree[k] > 1) degrees[names[k]] = c.degree[k];
        if (c.degree[k] > 1 || c.stride[k] != 0) strides[names[k]] = c.stride[k];
    }
    ordered_json entry{{"name", graph_.names[op]}};
    if (!degrees.empty()) entry["degrees"] = std::move(degrees);
    if (c.listed.empty()) {
        entry["start"] = c.start;
        if (!strides.empty()) entry["strides"] = std::move(strides);
    } else {
        entry["devices"] = c.listed;
    }
    list.push_back(std::move(entry));
}

PARSEARCH_IO_INLINE std::string configurations_reader::read_identity(std::string_view member, std::string_view counted, std::size_t have,
                                                                     std::string_view owner) const {
    auto const o = root_.at(member).object({"name", counted});
    auto const count = o.at(counted);
    if (count.integer<std::size_t>() != have) count.refuse(owner, " has ", have);
    return o.has("name") ? o.at("name").string() : std::string();
}

PARSEARCH_IO_INLINE space::configuration configurations_reader::read_configuration(json_object const& entry, ops::operation const& operation,
                                                                                   std::string_view owner) const {
    auto const names = cost::dim_names(operation);
    auto c = space::whole(operation);
    std::vector<bool> has_stride(names.size());
    auto const for_dims = [&](std::string_view member, auto const& f) {
        auto const dims = entry.find(member);
        if (!dims) return;
        dims->for_members([&](std::string const& name, json_value const& value) {
            auto const k = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
            if (k == names.size()) {
                std::string list;
                for (auto const& n : names) list += text(list.empty() ? "" : ", ", n);
                throw invalid_input(
                    value.place(), ": operator '", owner, "' (", operation.kind, ") has no such dim: its dims are ", list.empty() ? "none" : list,
                    name == "copies" || name == "sums" ? text("; option '", name, "' of the space, above 1, adds it") : std::string());
            }
            f(k, value);
        });
    };
    for_dims("degrees", [&](std::size_t k, json_value const& value) { c.degree[k] = value.integer<std::int32_t>(1); });
    auto const valid = [&] { placed(entry.value(), [&] { space::validate(c, operation, devices_, owner); }); };
    if (auto const devices = entry.find("devices")) {
        for (auto const* const member : {"start", "strides"})
            if (auto const other = entry.find(member)) other->refuse("must not be given beside devices");
        for (std::size_t i = 0, n = devices->size(); i < n; ++i) c.listed.push_back((*devices)[i].integer<std::int32_t>());
        if (c.listed.empty()) devices->refuse("must name a device for each shard");
        valid();
        return c;
    }
    valid(); // the degrees first
    c.start = entry.at("start").integer<std::int32_t>();
    for_dims("strides", [&](std::size_t k, json_value const& value) {
        c.stride[k] = value.integer<std::int32_t>();
        has_stride[k] = true;
    });
    for (std::size_t k = 0; k < names.size(); ++k)
        if (c.degree[k] > 1 && !has_stride[k])
            throw invalid_input(entry.value().place(), ": strides.", names[k], " is missing: every split dim must have one");
    valid();
    return c;
}

} // namespace parsearch::io::detail
