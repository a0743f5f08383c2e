#pragma once
// Which rules of a file match a model, and why the others do not.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/foreign/substitutions.hpp>
#include <parsearch/lab/rules/translate_rules.hpp>
#include <parsearch/rewrite/parallel/conversion.hpp>
#include <parsearch/rewrite/rules/applications.hpp>
#include <parsearch/rewrite/rules/typed_node.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "tools/model.hpp"

#include "../write_file.hpp"
#include "ranges.hpp"

namespace bench {

namespace ps = parsearch;

struct match_request {
    std::string model{}; // as tools::load_model takes it
    std::vector<std::string> strategies{"none", "data_parallel"};
    std::size_t devices = 4;
    std::string out{}; // the rows as JSON; empty: none
};

// The model as a graph of parallel tensors, split by a strategy.
struct lifted_model {
    std::string strategy;
    ps::rewrite::parallel_graph graph;
    std::map<std::string_view, std::size_t> named{}; // nodes that rules can name, by type
    std::size_t unnamed = 0;                         // operators that they cannot
};

inline constexpr std::string_view strategies_known = "none, data_parallel, one_weird_trick, tensor_parallel_D, expert_parallel_D";

// Throws invalid_input where there is no strategy of this name.
inline ps::space::flat_strategy strategy_of(ps::graph::dense_graph const& g, std::string const& name, std::size_t devices) {
    namespace space = ps::space;
    if (name == "none") return space::data_parallel(g, 1);
    if (name == "data_parallel") return space::data_parallel(g, devices);
    if (name == "one_weird_trick") return space::one_weird_trick(g, devices);
    auto const at = name.find_last_of('_') + 1;
    auto const family = name.substr(0, at);
    std::size_t degree = 0;
    auto const [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), degree);
    bool const numbered = error == std::errc() && end == name.data() + name.size();
    if (numbered && family == "tensor_parallel_") return space::tensor_parallel(g, devices, degree);
    if (numbered && family == "expert_parallel_") return space::expert_parallel(g, devices, degree);
    throw ps::invalid_input("strategy '", name, "': must be one of ", strategies_known);
}

// Throws invalid_input where there is no strategy of this name, or its splits leave no equal blocks.
inline lifted_model lift_under(ps::graph::dense_graph const& g, std::string const& name, std::size_t devices) {
    lifted_model out{.strategy = name, .graph = ps::rewrite::lift(g, strategy_of(g, name, devices)).graph};
    for (std::uint32_t n = 0; n < out.graph.bound(); ++n)
        if (auto const t = ps::rewrite::typed(out.graph, n)) ++out.named[t->type];
        else out.unnamed += out.graph[n]->kind == ps::rewrite::node_kind::compute;
    return out;
}

// What becomes of a rule.
struct match_row {
    std::size_t number = 0;
    std::string name;
    ps::rewrite::untranslatable untold = ps::rewrite::untranslatable::no;
    std::string strategy{};                           // under which it gets farthest, the last of equals
    std::optional<ps::rewrite::applications> found{}; // there; none where the rule says nothing of parallel tensors
};

inline match_row match_rule(std::size_t number, ps::rewrite::rule const& r, std::vector<lifted_model> const& models, std::size_t devices) {
    auto const translated = translate(r);
    match_row out{.number = number, .name = r.name, .untold = translated.why};
    if (!translated.parallel) return out;
    std::vector<ps::rewrite::bindings> choices;
    for (std::size_t d = 2; d <= devices; ++d)
        if (devices % d == 0) choices.push_back({{std::string(ps::io::substitution_degree), static_cast<std::int64_t>(d)}});
    for (auto const& m : models) {
        auto found = applications_of(m.graph, *translated.parallel, choices);
        if (out.found && found.fate() < out.found->fate()) continue;
        out.strategy = m.strategy;
        out.found = std::move(found);
    }
    return out;
}

inline std::string counted(std::size_t n, std::string_view one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

// What became of the rule, and why it does not apply; `kind`: without what differs from rule to rule.
struct outcome_text {
    std::string_view fate;
    std::string reason{}, kind{};
};
inline outcome_text outcome_of(match_row const& r) {
    if (!r.found) return {"says nothing of parallel tensors", std::string(reason_of(r.untold)), std::string(reason_of(r.untold))};
    using ps::rewrite::rule_fate;
    auto const fate = r.found->fate();
    auto const& why = r.found->why_not;
    if (fate == rule_fate::no_match) return {name_of(fate), why, why.substr(0, why.find(": "))};
    if (fate == rule_fate::refused) {
        std::string most(r.found->refusal());
        auto const others = r.found->refused.size() - 1;
        return {name_of(fate), others ? fmt::format("{}, and {}", most, counted(others, "other reason")) : most, most};
    }
    return {name_of(fate)};
}

inline void print_match(match_row const& r) {
    auto const said = outcome_of(r);
    fmt::print("{} {}: {}", r.number, r.name, said.fate);
    if (r.found) fmt::print(" ({})", r.strategy);
    if (r.found && r.found->places) fmt::print(", {}", counted(r.found->places, "place"));
    if (r.found && r.found->graphs) fmt::print(", {}", counted(r.found->graphs, "different graph"));
    fmt::print("{}{}\n", said.reason.empty() ? "" : ": ", said.reason);
}

inline void print_named(lifted_model const& m) {
    fmt::print("{}: ", m.strategy);
    for (auto const& [type, count] : m.named) fmt::print("{} {}, ", count, type);
    fmt::print("{} that no rule can name\n", counted(m.unnamed, "operator"));
}

inline void print_summary(std::vector<match_row> const& rows) {
    std::map<std::pair<std::string_view, std::string>, std::vector<std::size_t>> groups;
    for (auto const& r : rows) {
        auto said = outcome_of(r);
        groups[{said.fate, std::move(said.kind)}].push_back(r.number);
    }
    fmt::print("\n| of {} rules | why | rules | which |\n|---|---|--:|---|\n", rows.size());
    for (auto const& [said, numbers] : groups) fmt::print("| {} | {} | {} | {} |\n", said.first, said.second, numbers.size(), ranges(numbers));
}

inline nlohmann::json json_of(match_row const& r) {
    auto const said = outcome_of(r);
    nlohmann::json out{{"number", r.number}, {"name", r.name}, {"outcome", said.fate}};
    if (!said.reason.empty()) out["reason"] = said.reason;
    if (!r.found) return out;
    out["strategy"] = r.strategy;
    out["places"] = r.found->places;
    out["graphs"] = r.found->graphs;
    for (auto const& [why, times] : r.found->refused) out["refused"].push_back({{"why", why}, {"times", times}});
    return out;
}

// Prints what becomes of each of `rules` on the model, then how many of them have the same fate. Throws invalid_input where the model, or a lift of
// it, is refused, or the file cannot be written.
inline void match(std::vector<ps::rewrite::rule> const& rules, match_request const& asked) {
    auto const loaded = tools::load_model(asked.model, asked.devices);
    for (auto const& note : loaded.notes) fmt::print(stderr, "{}\n", note);
    auto const g = ps::graph::read_graph(loaded.graph).graph;
    std::vector<lifted_model> models;
    for (auto const& name : asked.strategies) models.push_back(lift_under(g, name, asked.devices));
    // The more a rule could name, the more its reason says.
    std::ranges::stable_sort(models, {}, [](auto const& m) { return m.graph.size() - m.unnamed; });
    for (auto const& m : models) print_named(m);
    fmt::print("\n");
    std::vector<match_row> rows;
    nlohmann::json written = nlohmann::json::array();
    for (auto const& r : rules) {
        rows.push_back(match_rule(rows.size(), r, models, asked.devices));
        print_match(rows.back());
        written.push_back(json_of(rows.back()));
    }
    print_summary(rows);
    if (asked.out.empty()) return;
    write_rows(asked.out,
               nlohmann::json{{"model", asked.model}, {"devices", asked.devices}, {"strategies", asked.strategies}, {"rules", std::move(written)}});
}

} // namespace bench
