#pragma once
// Operators of a network that others may stand for which compute the same, and the graph of a choice of these. See docs/instances.md.

#include <algorithm>
#include <set>
#include <string_view>

#include <parsearch/core/error.hpp>
#include <parsearch/io/instances/rewritings.hpp>
#include <parsearch/io/text/text.hpp>

namespace parsearch::io::detail {

/// "rewritings[1].by[0]".
[[nodiscard]] inline std::string alternative_path(std::size_t place, std::size_t number) { return text("rewritings[", place, "].by[", number, ']'); }

template <class... Rule> [[noreturn]] void refuse_name(std::string const& path, std::string const& name, Rule const&... rule) {
    throw invalid_input(path, " is ", in_quotes(name), ": ", rule...);
}
template <class... Rule> [[noreturn]] void refuse_list(std::string const& path, std::size_t size, Rule const&... rule) {
    throw invalid_input(path, " is an array of ", size, ": ", rule...);
}

PARSEARCH_IO_INLINE ordered_json rewritings_to_json(std::vector<rewriting> const& places) {
    auto out = ordered_json::array();
    for (auto const& place : places) {
        auto by = ordered_json::array();
        for (auto const& a : place.by) {
            auto operators = ordered_json::array(), results = ordered_json::array();
            for (auto const& o : a.operators) operators.push_back(operator_to_json(o.name, o.operation, o.inputs));
            for (auto const& [of, is] : a.results) {
                ordered_json result{{"of", of.op}};
                if (of.slot != 0) result["output"] = of.slot;
                result["is"] = is.op;
                if (is.slot != 0) result["is_output"] = is.slot;
                results.push_back(std::move(result));
            }
            by.push_back({{"operators", std::move(operators)}, {"results", std::move(results)}});
        }
        out.push_back({{"replaces", place.replaces}, {"by", std::move(by)}});
    }
    return out;
}

PARSEARCH_IO_INLINE std::vector<rewriting> rewritings_from_json(json_value const& list) {
    std::vector<rewriting> out;
    for (std::size_t p = 0, places = list.size(); p < places; ++p) {
        auto const place = list[p].object({"replaces", "by"});
        auto& made = out.emplace_back();
        auto const replaces = place.at("replaces"), by = place.at("by");
        for (std::size_t i = 0, n = replaces.size(); i < n; ++i) made.replaces.push_back(replaces[i].string());
        for (std::size_t k = 0, n = by.size(); k < n; ++k) {
            auto const given = by[k].object({"operators", "results"});
            auto& a = made.by.emplace_back();
            auto const operators = given.at("operators"), results = given.at("results");
            for (std::size_t o = 0, count = operators.size(); o < count; ++o) a.operators.push_back(operator_from_json(operators[o]));
            for (std::size_t r = 0, count = results.size(); r < count; ++r) {
                auto const result = results[r].object({"of", "output", "is", "is_output"});
                auto const end = [&](char const* name, char const* slot) {
                    return named_output{result.at(name).string(), result.has(slot) ? result.at(slot).integer<std::uint32_t>() : 0};
                };
                a.results.push_back({end("of", "output"), end("is", "is_output")});
            }
        }
    }
    return out;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE graph_rewriter::graph_rewriter(graph::dense_graph const& g, std::vector<rewriting> const& places)
    : graph_(g), places_(places), place_(g.size(), nowhere) {
    if (places.empty()) return;
    std::map<std::string_view, std::uint32_t> numbers;
    for (std::uint32_t op = 0; op < g.size(); ++op)
        if (!numbers.emplace(g.names[op], op).second)
            throw invalid_input("two operators of the graph are called ", in_quotes(g.names[op]), ": names must differ where there are rewritings");
    find_places(numbers);
    require_names(numbers);
    number(numbers);
    require_results();
}

PARSEARCH_IO_INLINE void graph_rewriter::find_places(std::map<std::string_view, std::uint32_t> const& numbers) {
    for (std::uint32_t p = 0; p < places_.size(); ++p) {
        auto const& replaces = places_[p].replaces;
        if (replaces.empty()) detail::refuse_list(text("rewritings[", p, "].replaces"), 0, "must name at least one operator");
        if (places_[p].by.empty()) detail::refuse_list(text("rewritings[", p, "].by"), 0, "must have at least one alternative");
        first_.push_back(nowhere);
        for (std::size_t i = 0; i < replaces.size(); ++i) {
            auto const path = text("rewritings[", p, "].replaces[", i, ']');
            auto const at = numbers.find(replaces[i]);
            if (at == numbers.end()) detail::refuse_name(path, replaces[i], "must be the name of an operator of the graph");
            auto const op = at->second;
            if (graph_.operations[op].work == ops::work_class::source)
                detail::refuse_name(path, replaces[i], "is a graph input: must be another operator");
            if (place_[op] != nowhere)
                detail::refuse_name(path, replaces[i], "is in rewritings[", place_[op], "] already: an operator is in one place, once");
            place_[op] = p;
            first_[p] = std::min(first_[p], op);
        }
    }
}

PARSEARCH_IO_INLINE void graph_rewriter::require_names(std::map<std::string_view, std::uint32_t> const& numbers) const {
    std::map<std::string_view, std::size_t> of_place; // new names
    for (std::size_t p = 0; p < places_.size(); ++p)
        for (std::size_t k = 0; k < places_[p].by.size(); ++k) {
            std::set<std::string_view> own;
            auto const& operators = places_[p].by[k].operators;
            for (std::size_t o = 0; o < operators.size(); ++o) {
                auto const& name = operators[o].name;
                auto const path = text(detail::alternative_path(p, k), ".operators[", o, ']');
                if (!own.insert(name).second)
                    detail::refuse_name(path + ".name", name, "is the name of another operator of the alternative: names must differ");
                if (auto const at = numbers.find(name); at != numbers.end() && place_[at->second] != p)
                    detail::refuse_name(path + ".name", name, "is the name of an operator of the graph outside of the place: names must differ");
                if (auto const [at, fresh] = of_place.emplace(name, p); at->second != p)
                    detail::refuse_name(path + ".name", name, "is the name of an operator of rewritings[", at->second, "]: names must differ");
                if (operators[o].operation.work == ops::work_class::source)
                    detail::refuse_name(path + ".work", std::string(name_of(ops::work_class::source)),
                                        "must be another: an alternative has no inputs of its own");
            }
        }
}

PARSEARCH_IO_INLINE void graph_rewriter::number(std::map<std::string_view, std::uint32_t> const& numbers) {
    for (std::size_t p = 0; p < places_.size(); ++p) {
        auto& here = numbered_.emplace_back();
        for (std::size_t k = 0; k < places_[p].by.size(); ++k) {
            auto const& a = places_[p].by[k];
            auto& made = here.emplace_back();
            std::map<std::string_view, std::uint32_t> own;
            for (std::uint32_t o = 0; o < a.operators.size(); ++o) own.emplace(a.operators[o].name, o);
            auto const outputs_of = [&](output const& t) -> auto const& {
                return t.own ? a.operators[t.op].operation.outputs : graph_.operations[t.op].outputs;
            };
            // What `name` tells at `path`; `of` and `slot` are the members that do.
            auto const read = [&](std::string const& path, named_output const& name, char const* of, char const* slot) {
                output out{.slot = name.slot};
                if (auto const at = own.find(name.op); at != own.end()) {
                    out.own = true;
                    out.op = at->second;
                } else {
                    auto const there = numbers.find(name.op);
                    if (there == numbers.end() || place_[there->second] == p)
                        detail::refuse_name(text(path, '.', of), name.op,
                                            "must be the name of an operator of the alternative, or of one of the graph outside of the place");
                    out.op = there->second;
                }
                if (auto const count = outputs_of(out).size(); name.slot >= count)
                    throw invalid_input(path, '.', slot, " is ", name.slot, ": must be below ", count, ", the outputs of ", in_quotes(name.op));
                return out;
            };
            auto const path = detail::alternative_path(p, k);
            for (std::size_t o = 0; o < a.operators.size(); ++o) {
                auto const& inputs = a.operators[o].inputs;
                auto& list = made.inputs.emplace_back();
                for (std::size_t i = 0; i < inputs.size(); ++i)
                    list.push_back(read(text(path, ".operators[", o, "].inputs[", i, ']'), inputs[i], "of", "output"));
            }
            for (std::size_t r = 0; r < a.results.size(); ++r) {
                auto const& [of, is] = a.results[r];
                auto const at = text(path, ".results[", r, ']');
                auto const replaced = numbers.find(of.op);
                if (replaced == numbers.end() || place_[replaced->second] != p)
                    detail::refuse_name(at + ".of", of.op, "must be one of the operators that are replaced");
                auto const op = replaced->second;
                if (auto const count = graph_.operations[op].outputs.size(); of.slot >= count)
                    throw invalid_input(at, ".output is ", of.slot, ": must be below ", count, ", the outputs of ", in_quotes(of.op));
                auto const stands = read(at, is, "is", "is_output");
                auto const wanted = ops::tensor_of(graph_.operations[op].outputs[of.slot]), found = ops::tensor_of(outputs_of(stands)[is.slot]);
                if (!(wanted == found))
                    detail::refuse_name(at + ".is", is.op, "its output ", is.slot, " is ", ops::to_string(found), ", must be ",
                                        ops::to_string(wanted), ", as output ", of.slot, " of ", in_quotes(of.op), " is");
                if (!made.stands_for.emplace(std::pair{op, of.slot}, stands).second)
                    detail::refuse_name(at + ".of", of.op, "something stands for its output ", of.slot, " already: must be there once");
            }
        }
    }
}

PARSEARCH_IO_INLINE void graph_rewriter::require_results() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::string_view> readers; // of outputs, outside of their place: one of them
    for (auto const& e : graph_.edges)
        if (place_[e.producer] != nowhere && place_[e.producer] != place_[e.consumer])
            readers.emplace(std::pair{e.producer, e.slot}, graph_.names[e.consumer]);
    for (std::size_t p = 0; p < places_.size(); ++p)
        for (std::size_t k = 0; k < places_[p].by.size(); ++k) {
            auto const& a = numbered_[p][k];
            auto const add = [&](output const& t, std::string_view reader) {
                if (!t.own && place_[t.op] != nowhere) readers.emplace(std::pair{t.op, t.slot}, reader);
            };
            for (std::size_t o = 0; o < a.inputs.size(); ++o)
                for (auto const& t : a.inputs[o]) add(t, places_[p].by[k].operators[o].name);
            for (auto const& [of, is] : a.stands_for) add(is, graph_.names[of.first]);
        }
    for (auto const& [read, reader] : readers)
        for (std::size_t k = 0, p = place_[read.first]; k < places_[p].by.size(); ++k)
            if (!numbered_[p][k].stands_for.contains(read))
                detail::refuse_list(detail::alternative_path(p, k) + ".results", places_[p].by[k].results.size(), "must say what stands for output ",
                                    read.second, " of ", in_quotes(graph_.names[read.first]), ", which ", in_quotes(reader), " reads");
}

PARSEARCH_IO_INLINE void graph_rewriter::require_fragment(std::size_t place, std::size_t number) const {
    auto const& a = places_[place].by[number];
    auto const& inputs = numbered_[place][number].inputs;
    if (a.operators.empty()) return;
    graph::dense_graph out;
    std::map<std::uint32_t, std::uint32_t> outside; // operators of the graph as inputs
    auto const begin = [&](std::string const& name, ops::operation operation) {
        out.first_in.push_back(static_cast<std::uint32_t>(out.edges.size()));
        out.names.push_back(name);
        out.operations.push_back(std::move(operation));
    };
    for (auto const& list : inputs)
        for (auto const& t : list)
            if (!t.own && outside.emplace(t.op, out.names.size()).second) {
                auto source = graph_.operations[t.op];
                source.work = ops::work_class::source;
                source.inputs.clear();
                source.weights.clear();
                begin(graph_.names[t.op], std::move(source));
            }
    auto const first = static_cast<std::uint32_t>(out.names.size());
    for (std::uint32_t o = 0; o < a.operators.size(); ++o) {
        begin(a.operators[o].name, a.operators[o].operation);
        for (std::uint32_t i = 0; i < inputs[o].size(); ++i)
            out.edges.push_back({inputs[o][i].own ? first + inputs[o][i].op : outside.at(inputs[o][i].op), inputs[o][i].slot, first + o, i});
    }
    out.first_in.push_back(static_cast<std::uint32_t>(out.edges.size()));
    static_cast<void>(graph::read_graph(out));
}

PARSEARCH_IO_INLINE void graph_rewriter::require_each() const {
    std::vector<std::uint32_t> position(graph_.size()), reached(graph_.size(), nowhere); // in the order; from which place
    for (std::uint32_t n = 0; n < graph_.size(); ++n) position[graph_.order[n]] = n;
    std::vector<std::vector<std::uint32_t>> members(places_.size());
    for (std::uint32_t op = 0; op < graph_.size(); ++op)
        if (place_[op] != nowhere) members[place_[op]].push_back(op);
    std::vector<std::uint32_t> open;
    auto choices = none();
    for (std::uint32_t p = 0; p < places_.size(); ++p) {
        std::uint32_t first = nowhere, last = 0; // what leads back to an alternative lies between these
        for (auto const op : members[p]) {
            first = std::min(first, position[op]);
            open.push_back(op);
        }
        auto const each_outside = [&](std::size_t k, auto const& f) {
            for (auto const& list : numbered_[p][k].inputs)
                for (auto const& t : list)
                    if (!t.own) f(t.op);
            for (auto const& [of, is] : numbered_[p][k].stands_for)
                if (!is.own) f(is.op);
        };
        for (std::size_t k = 0; k < places_[p].by.size(); ++k) each_outside(k, [&](std::uint32_t op) { last = std::max(last, position[op]); });
        if (last < first) open.clear();
        while (!open.empty()) {
            auto const op = open.back();
            open.pop_back();
            for (auto const e : graph_.out(op))
                if (auto const next = graph_.edges[e].consumer; position[next] <= last && reached[next] != p) {
                    reached[next] = p;
                    open.push_back(next);
                }
        }
        for (std::uint32_t k = 0; k < places_[p].by.size(); ++k) {
            bool whole = false; // it is more than the fragment that has to fit
            each_outside(k, [&](std::uint32_t op) { whole = whole || reached[op] == p; });
            for (auto const& o : places_[p].by[k].operators)
                for (auto const& w : o.operation.weights) whole = whole || !w.parameter.empty();
            try {
                require_fragment(p, k);
                choices[p] = k + 1;
                if (whole) static_cast<void>((*this)(choices));
            } catch (invalid_input const& e) {
                throw invalid_input(detail::alternative_path(p, k), ": ", e.what());
            }
        }
        choices[p] = 0;
    }
}

PARSEARCH_IO_INLINE graph::dense_graph graph_rewriter::operator()(std::span<std::uint32_t const> choices) const {
    if (choices.size() != places_.size())
        throw invalid_input(choices.size(), " choices of alternatives: there are ", places_.size(), " places, must be one each");
    for (std::size_t p = 0; p < choices.size(); ++p)
        if (auto const count = places_[p].by.size(); choices[p] > count)
            throw invalid_input("choice ", choices[p], " of place ", p, " (", in_quotes(places_[p].replaces.front()), "): must be from 1 to ", count,
                                ", its alternatives, or 0");
    auto const replaced = [&](std::uint32_t op) { return place_[op] != nowhere && choices[place_[op]] > 0; };
    std::vector<std::uint32_t> at(graph_.size()), base(places_.size()); // the number of an operator that stays, of an alternative's first
    std::uint32_t count = 0;
    for (std::uint32_t op = 0; op < graph_.size(); ++op) {
        at[op] = count;
        if (!replaced(op)) ++count;
        else if (auto const p = place_[op]; first_[p] == op) {
            base[p] = count;
            count += static_cast<std::uint32_t>(places_[p].by[choices[p] - 1].operators.size());
        }
    }
    std::size_t most_steps = 0; // from one output that stands for another to the next: each at most once
    for (std::size_t p = 0; p < choices.size(); ++p)
        if (choices[p] > 0) most_steps += numbered_[p][choices[p] - 1].stands_for.size();
    // Where a tensor is made that is read at place `p`, or outside of all.
    auto const made = [&](output t, std::size_t p) {
        for (std::size_t steps = 0; !t.own && replaced(t.op); ++steps) {
            if (steps > most_steps)
                throw invalid_input("output ", t.slot, " of ", in_quotes(graph_.names[t.op]), " stands for itself: these alternatives make a cycle");
            p = place_[t.op];
            t = numbered_[p][choices[p] - 1].stands_for.at({t.op, t.slot});
        }
        return std::pair{t.own ? base[p] + t.op : at[t.op], t.slot};
    };
    graph::dense_graph out;
    auto const add = [&](std::string const& name, ops::operation const& operation) {
        out.first_in.push_back(static_cast<std::uint32_t>(out.edges.size()));
        out.names.push_back(name);
        out.operations.push_back(operation);
    };
    auto const read = [&](output const& t, std::size_t p) {
        auto const [producer, slot] = made(t, p);
        auto const consumer = static_cast<std::uint32_t>(out.names.size() - 1);
        out.edges.push_back({producer, slot, consumer, static_cast<std::uint32_t>(out.edges.size()) - out.first_in.back()});
    };
    for (std::uint32_t op = 0; op < graph_.size(); ++op) {
        if (!replaced(op)) {
            add(graph_.names[op], graph_.operations[op]);
            for (auto const& e : graph_.in(op)) read({.op = e.producer, .slot = e.slot}, places_.size());
        } else if (auto const p = place_[op]; first_[p] == op) {
            auto const& a = places_[p].by[choices[p] - 1];
            for (std::size_t o = 0; o < a.operators.size(); ++o) {
                add(a.operators[o].name, a.operators[o].operation);
                for (auto const& t : numbered_[p][choices[p] - 1].inputs[o]) read(t, p);
            }
        }
    }
    out.first_in.push_back(static_cast<std::uint32_t>(out.edges.size()));
    return graph::read_graph(out).graph;
}

} // namespace parsearch::io
