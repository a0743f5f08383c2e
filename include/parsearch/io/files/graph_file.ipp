#pragma once
// Operator graphs as JSON: iteration spaces, operands, amounts of work. See docs/formats.md.

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <parsearch/core/error.hpp>
#include <parsearch/io/files/configuration_list.hpp>
#include <parsearch/io/files/graph_file.hpp>

namespace parsearch::io::detail {

/// Members of numbers and of booleans, which are written where they are not as they are by default.
struct amount_member {
    std::string_view name;
    double ops::operation::*amount;
};
inline constexpr std::array amount_members{
    amount_member{"flops", &ops::operation::flops},
    amount_member{"multiply_adds", &ops::operation::multiply_adds},
    amount_member{"backward_flops", &ops::operation::backward_flops},
    amount_member{"product_flops", &ops::operation::product_flops},
    amount_member{"backward_product_flops", &ops::operation::backward_product_flops},
    amount_member{"saved_bytes", &ops::operation::saved_bytes},
    amount_member{"intermediate_bytes", &ops::operation::intermediate_bytes},
    amount_member{"backward_intermediate_bytes", &ops::operation::backward_intermediate_bytes},
};
static_assert(amount_members.size() == std::tuple_size_v<decltype(ops::amounts_of(std::declval<ops::operation&>()))>,
              "an amount of work is not written");

/// What an operand is to its operator: members that mean something of one alone are of that alone.
enum class operand_role : std::uint8_t { input, weight, output };

struct flag_member {
    std::string_view name;
    bool ops::operand::*flag;
    std::optional<operand_role> of{}; ///< of all where it is not set
};
inline constexpr std::array flag_members{flag_member{"saved", &ops::operand::saved}, flag_member{"differentiable", &ops::operand::differentiable},
                                         flag_member{"summed", &ops::operand::summed, operand_role::input},
                                         flag_member{"passed_on", &ops::operand::passed_on, operand_role::input},
                                         flag_member{"cache", &ops::operand::cache, operand_role::weight}};

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE ordered_json axes_to_json(std::vector<ops::axis> const& axes) {
    auto out = ordered_json::array();
    for (auto const& a : axes) {
        ordered_json axis{{"extent", a.extent}, {"terms", ordered_json::array()}};
        for (auto const& t : a.terms) axis["terms"].push_back({t.dim, t.stride});
        if (a.offset != 0) axis["offset"] = a.offset;
        if (a.span != 1) axis["span"] = a.span;
        out.push_back(std::move(axis));
    }
    return out;
}

PARSEARCH_IO_INLINE void add_operand(ordered_json& out, ops::operand const& o, operand_role role, std::string_view owner) {
    if (!o.name.empty()) out["name"] = o.name;
    out["type"] = name_of(o.type);
    out["axes"] = axes_to_json(o.axes);
    ops::operand const plain;
    auto const refuse = [&](std::string_view what, std::string_view of) {
        throw invalid_input("operator ", in_quotes(owner), ": operand ", in_quotes(o.name), " has ", what, ": this is of ", of, " alone");
    };
    for (auto const& m : flag_members) {
        if (o.*m.flag == plain.*m.flag) continue;
        if (m.of && *m.of != role) refuse(m.name, *m.of == operand_role::input ? "inputs" : "weights");
        out[std::string(m.name)] = o.*m.flag;
    }
    if (o.gradient_flops != 0) out["gradient_flops"] = o.gradient_flops;
    if (o.touched_bytes >= 0) out["touched_bytes"] = o.touched_bytes;
    if (o.parameter.empty()) return;
    if (role != operand_role::weight) refuse("parameter", "weights");
    out["parameter"] = o.parameter;
}

PARSEARCH_IO_INLINE ordered_json operator_to_json(std::string const& name, ops::operation const& op, std::span<named_output const> inputs) {
    if (inputs.size() != op.inputs.size())
        throw invalid_input("operator ", in_quotes(name), " (", op.kind, "): ", inputs.size(), " inputs by name: it has ", op.inputs.size());
    ordered_json out{{"name", name}, {"kind", op.kind}};
    if (!op.variant.empty()) out["variant"] = op.variant;
    out["work"] = name_of(op.work);
    for (auto const& m : amount_members)
        if (op.*m.amount != 0) out[std::string(m.name)] = op.*m.amount;
    auto& dims = out["dims"] = ordered_json::array();
    for (std::size_t k = 0; k < op.dims.size(); ++k) {
        auto const& d = op.dims[k];
        if (d.shares)
            throw invalid_input("operator ", in_quotes(name), " (", op.kind, "): dim ", in_quotes(d.name),
                                " has shares of devices: these are of a simulation, and not written");
        auto dim = ordered_json::object();
        if (d.name != text('#', k)) dim["name"] = d.name;
        dim["extent"] = d.extent;
        dim["kind"] = name_of(d.kind);
        dims.push_back(std::move(dim));
    }
    auto const add = [&](char const* member, operand_role role, std::vector<ops::operand> const& operands, auto const& begin) {
        if (operands.empty()) return;
        auto& list = out[member] = ordered_json::array();
        for (std::size_t i = 0; i < operands.size(); ++i) {
            auto operand = begin(i);
            add_operand(operand, operands[i], role, name);
            list.push_back(std::move(operand));
        }
    };
    add("inputs", operand_role::input, op.inputs, [&](std::size_t i) {
        ordered_json input{{"of", inputs[i].op}};
        if (inputs[i].slot != 0) input["output"] = inputs[i].slot;
        return input;
    });
    auto const nothing = [](std::size_t) { return ordered_json::object(); };
    add("weights", operand_role::weight, op.weights, nothing);
    add("outputs", operand_role::output, op.outputs, nothing);
    return out;
}

PARSEARCH_IO_INLINE ordered_json graph_to_json(graph::dense_graph const& given) {
    auto const g = graph::read_graph(given).graph; // which checks it
    (void)operators_by_name(g, "a document");
    ordered_json root{{"format", graph_format}, {"version", graph_version}, {"operators", ordered_json::array()}};
    for (std::size_t op = 0; op < g.size(); ++op) {
        std::vector<named_output> inputs;
        for (auto const& e : g.in(op)) inputs.push_back({g.names[e.producer], e.slot});
        root["operators"].push_back(operator_to_json(g.names[op], g.operations[op], inputs));
    }
    return root;
}

PARSEARCH_IO_INLINE ops::operand read_operand(json_object const& o) {
    ops::operand out;
    if (auto const name = o.find("name")) out.name = name->string();
    out.type = read_enum<ops::dtype, ops::dtypes>(o.at("type"));
    auto const axes = o.at("axes");
    for (std::size_t i = 0, n = axes.size(); i < n; ++i) {
        auto const axis = axes[i].object({"extent", "terms", "offset", "span"});
        auto& a = out.axes.emplace_back();
        a.extent = axis.at("extent").integer<std::int64_t>(1);
        auto const terms = axis.at("terms");
        for (std::size_t t = 0, count = terms.size(); t < count; ++t) {
            if (terms[t].size() != 2) terms[t].refuse("must be the number of a dim and a stride");
            a.terms.push_back({terms[t][0].integer<std::uint32_t>(), terms[t][1].integer<std::int64_t>(1)});
        }
        if (auto const offset = axis.find("offset")) a.offset = offset->integer<std::int64_t>();
        if (auto const span = axis.find("span")) a.span = span->integer<std::int64_t>(1);
    }
    for (auto const& m : flag_members)
        if (auto const flag = o.find(m.name)) out.*m.flag = flag->boolean();
    if (auto const flops = o.find("gradient_flops")) out.gradient_flops = flops->number(0);
    if (auto const bytes = o.find("touched_bytes")) out.touched_bytes = bytes->number(0);
    if (auto const parameter = o.find("parameter")) out.parameter = parameter->string();
    return out;
}

PARSEARCH_IO_INLINE ops::operation read_operation(json_object const& o) {
    ops::operation out;
    out.kind = o.at("kind").string();
    if (auto const variant = o.find("variant")) out.variant = variant->string();
    out.work = read_enum<ops::work_class, ops::work_classes>(o.at("work"));
    for (auto const& m : amount_members)
        if (auto const amount = o.find(m.name)) out.*m.amount = amount->number(0);
    auto const dims = o.at("dims");
    for (std::size_t i = 0, n = dims.size(); i < n; ++i) {
        auto const dim = dims[i].object({"name", "extent", "kind"});
        out.dims.push_back({.name = dim.has("name") ? dim.at("name").string() : text('#', i),
                            .extent = dim.at("extent").integer<std::int64_t>(1),
                            .kind = read_enum<ops::dim_kind, ops::dim_kinds>(dim.at("kind"))});
    }
    return out;
}

/// The members of an operand.
[[nodiscard]] PARSEARCH_IO_INLINE member_names members_of(operand_role role) {
    member_names out{"name", "type", "axes", "gradient_flops", "touched_bytes"};
    if (role == operand_role::input) out.insert(out.end(), {"of", "output"});
    if (role == operand_role::weight) out.emplace_back("parameter");
    for (auto const& m : flag_members)
        if (!m.of || *m.of == role) out.push_back(m.name);
    return out;
}
/// An operator, all of whose members are known.
[[nodiscard]] PARSEARCH_IO_INLINE json_object operator_object(json_value const& value) {
    member_names members{"name", "kind", "variant", "work", "dims", "inputs", "weights", "outputs"};
    for (auto const& m : amount_members) members.push_back(m.name);
    return value.object(std::move(members));
}

PARSEARCH_IO_INLINE named_operator operator_from_json(json_value const& value) {
    auto const entry = operator_object(value);
    named_operator out{.name = entry.at("name").string(), .operation = read_operation(entry)};
    auto const operands = [&](std::string_view member, operand_role role, std::vector<ops::operand>& list, auto const& with) {
        auto const given = entry.find(member);
        auto const known = members_of(role);
        for (std::size_t i = 0, n = given ? given->size() : 0; i < n; ++i) {
            auto const o = (*given)[i].object(known);
            with(o);
            list.push_back(read_operand(o));
        }
    };
    auto const nothing = [](json_object const&) {};
    operands("inputs", operand_role::input, out.operation.inputs, [&](json_object const& input) {
        out.inputs.push_back({input.at("of").string(), input.has("output") ? input.at("output").integer<std::uint32_t>() : 0});
    });
    operands("weights", operand_role::weight, out.operation.weights, nothing);
    operands("outputs", operand_role::output, out.operation.outputs, nothing);
    return out;
}

PARSEARCH_IO_INLINE graph::dense_graph graph_from_json(json_value const& document) {
    auto const root = document.document(graph_format, graph_version, {"description", "operators"});
    if (auto const description = root.find("description")) (void)description->string();
    auto const list = root.at("operators");
    std::map<std::string, std::uint32_t, std::less<>> numbers;
    for (std::size_t i = 0, n = list.size(); i < n; ++i) {
        auto const name = operator_object(list[i]).at("name");
        if (auto const [at, fresh] = numbers.emplace(name.string(), static_cast<std::uint32_t>(i)); !fresh)
            name.refuse("is the name of operators[", at->second, "] already: names must differ");
    }
    graph::dense_graph g;
    for (std::uint32_t i = 0; i < numbers.size(); ++i) {
        auto made = operator_from_json(list[i]);
        g.first_in.push_back(static_cast<std::uint32_t>(g.edges.size()));
        for (std::uint32_t k = 0; k < made.inputs.size(); ++k) {
            auto const at = numbers.find(made.inputs[k].op);
            if (at == numbers.end())
                operator_object(list[i])
                    .at("inputs")[k]
                    .object(members_of(operand_role::input))
                    .at("of")
                    .refuse("must be the name of an operator of the document");
            g.edges.push_back({at->second, made.inputs[k].slot, i, k});
        }
        g.names.push_back(std::move(made.name));
        g.operations.push_back(std::move(made.operation));
    }
    g.first_in.push_back(static_cast<std::uint32_t>(g.edges.size()));
    return placed(list, [&] { return graph::read_graph(g).graph; });
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE void write_graph_json(std::ostream& out, graph::dense_graph const& g) { write_json(out, detail::graph_to_json(g)); }

PARSEARCH_IO_INLINE graph::dense_graph read_graph_json(std::istream& in, std::string name, json_limits const& limits) {
    json_document const document(in, std::move(name), limits);
    return detail::graph_from_json(document.root());
}

PARSEARCH_IO_INLINE graph::dense_graph load_graph_json(std::string const& path, json_limits const& limits) {
    json_document const document(path, limits);
    return detail::graph_from_json(document.root());
}

} // namespace parsearch::io
