#pragma once
// The files of substitution rules that FlexFlow's Unity reads (`graph_subst_3_v2.json`) and TASO's generator makes.

#include <limits>
#include <set>

#include <parsearch/io/foreign/substitutions.hpp>
#include <parsearch/io/json/json_writer.hpp>

namespace parsearch::io::detail {

inline constexpr std::int64_t degree_placeholder = 2;

/// A name that begins with `prefix` and goes on.
[[nodiscard]] inline std::string prefixed_name(json_value const& value, std::string_view prefix) {
    auto const& name = value.string();
    if (!name.starts_with(prefix) || name.size() == prefix.size()) value.refuse("must begin with ", prefix, " and go on");
    return name;
}

/// `f()`, with `where` behind what it refuses.
template <class F> decltype(auto) located(std::string const& where, F const& f) {
    try {
        return f();
    } catch (invalid_input const& e) {
        throw invalid_input(e.what(), where);
    }
}

[[nodiscard]] inline rewrite::pattern_tensor read_pattern_tensor(json_object const& o, std::string_view op, std::string_view slot) {
    return {o.at(op).integer<std::int32_t>(), o.at(slot).integer<std::int32_t>(0)};
}

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

/// An object that says of which type it is: "_t".
PARSEARCH_IO_INLINE json_object typed_object(json_value const& value, std::string_view type, member_names known) {
    known.insert(known.begin(), "_t");
    auto o = value.object(std::move(known));
    if (auto const given = o.at("_t"); given.string() != type) given.refuse("must be \"", type, '"');
    return o;
}

PARSEARCH_IO_INLINE rewrite::pattern_operator read_pattern_operator(json_value const& given) {
    auto const o = typed_object(given, "Operator", {"type", "input", "para"});
    rewrite::pattern_operator out{.type = prefixed_name(o.at("type"), "OP_")};
    located(text(" (", printable(out.type, 60), ')'), [&] {
        auto const takes = o.at("input"), has = o.at("para");
        for (std::size_t i = 0, n = takes.size(); i < n; ++i)
            out.inputs.push_back(read_pattern_tensor(typed_object(takes[i], "Tensor", {"opId", "tsId"}), "opId", "tsId"));
        for (std::size_t i = 0, n = has.size(); i < n; ++i) {
            auto const p = typed_object(has[i], "Parameter", {"key", "value"});
            auto const key = prefixed_name(p.at("key"), "PM_");
            auto const number = located(text(" (", printable(key, 60), ')'), [&] {
                bool const degree = key == rewrite::op_key::parallel_degree;
                return p.at("value").integer<std::int64_t>(degree ? 1 : std::numeric_limits<std::int64_t>::min());
            });
            bool const any = key == rewrite::op_key::parallel_degree && number == degree_placeholder;
            out.parameters.push_back({key, any ? rewrite::value(substitution_degree) : rewrite::value(number)});
        }
    });
    return out;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE std::vector<rewrite::rule> read_substitutions(std::istream& in, std::string name, json_limits const& limits) {
    json_document const document(in, std::move(name), limits);
    auto const list = detail::typed_object(document.root(), "RuleCollection", {"rule"}).at("rule");
    std::vector<rewrite::rule> out;
    std::set<std::string> known;
    for (std::size_t i = 0, n = list.size(); i < n; ++i) {
        auto const given = list[i];
        auto const o = detail::typed_object(given, "Rule", {"name", "srcOp", "dstOp", "mappedOutput"});
        rewrite::rule r{.name = o.at("name").string()};
        if (r.name.empty()) o.at("name").refuse("must not be empty");
        if (!known.insert(r.name).second) o.at("name").refuse("must be another one: a rule before it has this name");
        detail::located(text(" (rule ", in_quotes(r.name), ')'), [&] {
            auto const source = o.at("srcOp"), target = o.at("dstOp"), mapped = o.at("mappedOutput");
            for (std::size_t k = 0, m = source.size(); k < m; ++k) r.source.operators.push_back(detail::read_pattern_operator(source[k]));
            for (std::size_t k = 0, m = target.size(); k < m; ++k) r.target.operators.push_back(detail::read_pattern_operator(target[k]));
            for (std::size_t k = 0, m = mapped.size(); k < m; ++k) {
                auto const pair = detail::typed_object(mapped[k], "MapOutput", {"srcOpId", "srcTsId", "dstOpId", "dstTsId"});
                r.outputs.push_back(
                    {detail::read_pattern_tensor(pair, "srcOpId", "srcTsId"), detail::read_pattern_tensor(pair, "dstOpId", "dstTsId")});
            }
        });
        auto terms = detail::degree_terms_of(r);
        r.parameters = std::move(terms.parameters);
        r.constraints = std::move(terms.constraints);
        placed(given, [&] { rewrite::check(r); });
        out.push_back(std::move(r));
    }
    return out;
}

PARSEARCH_IO_INLINE void write_substitutions(std::ostream& out, std::vector<rewrite::rule> const& rules) {
    ordered_json root{{"_t", "RuleCollection"}, {"rule", ordered_json::array()}};
    std::set<std::string> known;
    auto const operators_json = [](rewrite::rule const& r, rewrite::pattern const& p, std::string_view side) {
        auto list = ordered_json::array();
        for (std::size_t i = 0; i < p.operators.size(); ++i) {
            auto const& o = p.operators[i];
            auto const refuse = [&](auto const&... why) {
                throw invalid_input("rule ", in_quotes(r.name), ": ", side, " operator ", i, " (", printable(o.type, 60), "): ", why...);
            };
            if (!o.type.starts_with("OP_") || o.type.size() == 3) refuse("a type of the format begins with OP_ and goes on");
            ordered_json one{{"_t", "Operator"}, {"type", o.type}, {"input", ordered_json::array()}, {"para", ordered_json::array()}};
            for (auto const t : o.inputs) one["input"].push_back({{"_t", "Tensor"}, {"opId", t.op}, {"tsId", t.slot}});
            for (auto const& q : o.parameters) {
                bool const degree = q.key == rewrite::op_key::parallel_degree, any = q.value.variable == substitution_degree;
                if (!q.key.starts_with("PM_") || q.key.size() == 3)
                    refuse("key ", in_quotes(q.key), ": a key of the format begins with PM_ and goes on");
                if (q.value.is_variable() && (!degree || !any))
                    refuse(q.key, " is variable ", q.value.variable, ": the format has none but ", substitution_degree, ", as ",
                           rewrite::op_key::parallel_degree);
                if (degree && !any && q.value.literal == detail::degree_placeholder)
                    refuse(q.key, " is the number ", detail::degree_placeholder, ", which stands for any degree in the format");
                if (degree && !any && q.value.literal < 1) refuse(q.key, " is ", q.value.literal, ": must be at least 1");
                one["para"].push_back({{"_t", "Parameter"}, {"key", q.key}, {"value", any ? detail::degree_placeholder : q.value.literal}});
            }
            list.push_back(std::move(one));
        }
        return list;
    };
    for (auto const& r : rules) {
        rewrite::check(r);
        if (!known.insert(r.name).second) throw invalid_input("rule ", in_quotes(r.name), ": a rule before it has this name: must be another one");
        auto const terms = detail::degree_terms_of(r);
        if (r.parameters != terms.parameters || r.constraints != terms.constraints)
            throw invalid_input("rule ", in_quotes(r.name), ": the format has no parameters and constraints of a rule but that ", substitution_degree,
                                " is chosen and at least 2");
        ordered_json one{{"_t", "Rule"}, {"name", r.name}};
        one["srcOp"] = operators_json(r, r.source, "source");
        one["dstOp"] = operators_json(r, r.target, "target");
        one["mappedOutput"] = ordered_json::array();
        for (auto const& m : r.outputs)
            one["mappedOutput"].push_back(
                {{"_t", "MapOutput"}, {"srcOpId", m.source.op}, {"srcTsId", m.source.slot}, {"dstOpId", m.target.op}, {"dstTsId", m.target.slot}});
        root["rule"].push_back(std::move(one));
    }
    write_json(out, root);
}

} // namespace parsearch::io
