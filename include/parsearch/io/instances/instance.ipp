#pragma once
// Instances of the search, whole, as JSON: a network with its devices, prices and rules, or tables of costs. See docs/instances.md.

#include <chrono>
#include <initializer_list>
#include <span>
#include <utility>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/described/described_json.hpp>
#include <parsearch/io/described/described_simulation.hpp>
#include <parsearch/io/described/described_space.hpp>
#include <parsearch/io/files/graph_file.hpp>
#include <parsearch/io/files/profile_file.hpp>
#include <parsearch/io/files/topology_file.hpp>
#include <parsearch/io/instances/instance.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>

namespace parsearch::io::detail {

/// The words for questions: of a network by `instance_question`, and of tables.
inline constexpr std::array<std::string_view, 3> questions{"strategy", "plan", "choices"};

inline constexpr byte_count most_memory = byte_count{1} << 50;            ///< of a choice
inline constexpr std::int64_t most_host_time = 86400 * 1'000'000'000'000; ///< picoseconds of a day

inline constexpr std::string_view only_of_a_strategy = "must not be given where the question is not strategy";

[[nodiscard]] inline bool has_functions(space::space_options const& o) { return o.max_degree || o.allows || o.admits; }

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE void add_network(ordered_json& root, network_instance const& n) {
    if (has_functions(n.options.space))
        throw invalid_input("the space of an instance has functions (max_degree, allows, admits): these are not written");
    if (n.prices.efficiency || n.prices.memory_efficiency || n.prices.launch_overhead)
        throw invalid_input("the prices of an instance have efficiencies or a launch overhead: devices must say these, which are not written");
    if (!n.rewritings.empty() && n.asks != instance_question::strategy)
        throw invalid_input("rewritings is an array of ", n.rewritings.size(), ": ", only_of_a_strategy);
    root["graph"] = graph_to_json(n.graph);
    if (!n.rewritings.empty()) {
        graph_rewriter(n.graph, n.rewritings).require_each();
        root["rewritings"] = rewritings_to_json(n.rewritings);
    }
    root["topology"] = topology_writer(n.cluster).write();
    ordered_json prices{{"oracle", "roofline"}, {"host_time_ps", picoseconds(n.prices.host_time).count()}, {"f8_products", n.prices.f8_products}};
    if (n.profile) prices["profile"] = profile_to_json(*n.profile);
    root["prices"] = std::move(prices);
    root["simulation"] = options_to_json(n.options.simulation);
    root["space"] = options_to_json(n.options.space);
}

PARSEARCH_IO_INLINE void add_tables(ordered_json& root, table_instance const& t) {
    validate(t);
    auto const& costs = t.costs.costs();
    auto const terms = [](std::span<picoseconds const> list) {
        auto out = ordered_json::array();
        for (auto const c : list) out.push_back(c == cost_traits<picoseconds>::infinity() ? ordered_json(nullptr) : ordered_json(c.count()));
        return out;
    };
    auto decisions = ordered_json::array(), pairs = ordered_json::array();
    for (std::size_t d = 0; d < costs.size(); ++d) {
        ordered_json decision{{"name", t.names[d]}, {"costs_ps", terms(costs.operator_costs(d))}};
        if (t.budget) decision["memory_bytes"] = t.memory[d];
        decisions.push_back(std::move(decision));
    }
    for (std::size_t e = 0; e < costs.edges().size(); ++e)
        pairs.push_back({{"from", costs.edges()[e].from}, {"to", costs.edges()[e].to}, {"costs_ps", terms(costs.edge_costs(e))}});
    ordered_json tables{{"decisions", std::move(decisions)}, {"pairs", std::move(pairs)}};
    if (t.budget) tables["budget_bytes"] = *t.budget;
    root["tables"] = std::move(tables);
}

PARSEARCH_IO_INLINE network_instance read_network(json_object const& root, instance_question asks) {
    network_instance out{
        .asks = asks, .graph = graph_from_json(root.at("graph")), .cluster = topology_reader(root.at("topology")).read(max_read_hops)};
    auto const prices = root.at("prices").object({"oracle", "host_time_ps", "f8_products", "profile"});
    (void)prices.at("oracle").one_of({"roofline"});
    if (auto const time = prices.find("host_time_ps")) {
        auto const ps = time->integer<std::int64_t>(0, most_host_time);
        if (ps % 1000 != 0) time->refuse("must be whole nanoseconds, a multiple of 1000");
        out.prices.host_time = std::chrono::nanoseconds(ps / 1000);
    }
    if (auto const f8 = prices.find("f8_products")) out.prices.f8_products = f8->boolean();
    if (auto const profile = prices.find("profile")) out.profile = profile_from_json(*profile);
    if (auto const simulation = root.find("simulation")) set_options_from_json(out.options.simulation, *simulation);
    if (auto const space = root.find("space")) set_options_from_json(out.options.space, *space);
    placed(root.value(), [&] {
        auto const problem = out.problem();
        if (asks == instance_question::plan) (void)pipeline::pipeline_simulator(problem); // which refuses what it does not simulate
    });
    if (auto const list = root.find("rewritings")) {
        if (asks != instance_question::strategy) list->refuse(only_of_a_strategy);
        out.rewritings = rewritings_from_json(*list);
        placed(root.value(), [&] { graph_rewriter(out.graph, out.rewritings).require_each(); });
    }
    return out;
}

PARSEARCH_IO_INLINE table_instance read_tables(json_value const& value) {
    auto const tables = value.object({"decisions", "pairs", "budget_bytes"});
    auto const terms = [](json_value const& list, std::size_t wanted, std::string_view of) {
        if (wanted > 0 && list.size() != wanted) list.refuse("must have ", wanted, " costs, ", of);
        std::vector<picoseconds> out;
        for (std::size_t i = 0, n = list.size(); i < n; ++i)
            out.push_back(list[i].is_null() ? cost_traits<picoseconds>::infinity()
                                            : picoseconds{list[i].integer<std::int64_t>(0, cost_traits<picoseconds>::infinity().count() - 1)});
        return out;
    };
    std::vector<std::string> names;
    std::vector<std::vector<byte_count>> memory;
    std::vector<std::vector<picoseconds>> own, of_pairs;
    std::vector<operator_pair> ends;
    std::optional<byte_count> budget;
    if (auto const bytes = tables.find("budget_bytes")) budget = bytes->integer<byte_count>(0);
    auto const decisions = tables.at("decisions");
    if (decisions.size() == 0) decisions.refuse("must have at least one decision");
    for (std::size_t d = 0, n = decisions.size(); d < n; ++d) {
        auto const decision = decisions[d].object({"name", "costs_ps", "memory_bytes"});
        names.push_back(decision.at("name").string());
        own.push_back(terms(decision.at("costs_ps"), 0, {}));
        if (own.back().empty()) decision.at("costs_ps").refuse("must have a cost for each choice, at least one");
        if (!budget) {
            if (auto const bytes = decision.find("memory_bytes")) bytes->refuse("must not be given where there is no budget_bytes");
            continue;
        }
        auto const bytes = decision.at("memory_bytes");
        if (bytes.size() != own.back().size()) bytes.refuse("must have ", own.back().size(), " amounts, one per choice");
        auto& of = memory.emplace_back();
        for (std::size_t i = 0; i < own.back().size(); ++i) of.push_back(bytes[i].integer<byte_count>(0, most_memory));
    }
    auto const pairs = tables.at("pairs");
    for (std::size_t e = 0, n = pairs.size(); e < n; ++e) {
        auto const pair = pairs[e].object({"from", "to", "costs_ps"});
        auto const end = [&](char const* member) { return pair.at(member).integer<std::size_t>(0, own.size() - 1); };
        auto const [from, to] = ends.emplace_back(end("from"), end("to"));
        if (from == to) pair.at("to").refuse("must be another decision than from");
        of_pairs.push_back(terms(pair.at("costs_ps"), own[from].size() * own[to].size(), "one for each choice of from with each of to"));
    }
    return {.names = std::move(names),
            .costs = search::additive_problem<picoseconds>({std::move(own), std::move(ends), std::move(of_pairs)}),
            .budget = budget,
            .memory = std::move(memory)};
}

PARSEARCH_IO_INLINE instance read_instance(json_document const& document) {
    auto const root =
        document.object(instance_format, instance_version,
                        {"name", "class", "description", "question", "graph", "rewritings", "topology", "prices", "simulation", "space", "tables"});
    auto const question = root.at("question").one_of({questions.begin(), questions.end()});
    bool const of_tables = question == 2;
    auto const refuse = [&](std::initializer_list<char const*> members, std::string_view where) {
        for (auto const* const member : members)
            if (auto const given = root.find(member)) given->refuse("must not be given where ", where);
    };
    if (of_tables) refuse({"graph", "rewritings", "topology", "prices", "simulation", "space"}, "the question is of choices: tables say all");
    else refuse({"tables"}, "the question is of a network");
    auto const said = [&](char const* member) { return root.has(member) ? root.at(member).string() : std::string(); };
    auto const with = [&](auto of) { return instance{said("name"), said("class"), said("description"), std::move(of)}; };
    if (of_tables) return with(read_tables(root.at("tables")));
    return with(read_network(root, static_cast<instance_question>(question)));
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE void validate(table_instance const& t) {
    auto const& costs = t.costs.costs();
    if (t.names.size() != costs.size())
        throw invalid_input("an instance of tables has ", t.names.size(), " names for ", costs.size(), " decisions: must be one each");
    if (t.memory.size() != (t.budget ? costs.size() : 0))
        throw invalid_input("an instance of tables has the memory of ", t.memory.size(), " decisions: must be of all ", costs.size(),
                            " where there is a budget, else of none");
    if (t.budget && *t.budget < 0) throw invalid_input("the budget of an instance is ", *t.budget, " bytes: must not be negative");
    auto const not_negative = [](std::span<picoseconds const> list, auto const&... what) {
        for (auto const c : list)
            if (c < picoseconds::zero()) throw invalid_input("a cost of ", what..., " of an instance is ", c.count(), " ps: must not be negative");
    };
    for (std::size_t d = 0; d < costs.size(); ++d) {
        not_negative(costs.operator_costs(d), "decision ", in_quotes(t.names[d]));
        if (!t.budget) continue;
        if (t.memory[d].size() != costs.operator_costs(d).size())
            throw invalid_input("decision ", in_quotes(t.names[d]), " of an instance has the memory of ", t.memory[d].size(),
                                " choices: must be of all ", costs.operator_costs(d).size());
        for (auto const bytes : t.memory[d])
            if (bytes < 0 || bytes > detail::most_memory)
                throw invalid_input("the memory of a choice of decision ", in_quotes(t.names[d]), " of an instance is ", bytes,
                                    " bytes: must be from 0 to 2^50");
    }
    for (std::size_t e = 0; e < costs.edges().size(); ++e) not_negative(costs.edge_costs(e), "pair ", e);
}

PARSEARCH_IO_INLINE void write_instance_json(std::ostream& out, instance const& i) {
    ordered_json root{{"format", instance_format}, {"version", instance_version}};
    auto const say = [&](char const* member, std::string const& text) {
        if (!text.empty()) root[member] = text;
    };
    say("name", i.name);
    say("class", i.group);
    say("description", i.description);
    if (auto const* const n = std::get_if<network_instance>(&i.of)) {
        root["question"] = detail::questions[static_cast<std::size_t>(n->asks)];
        detail::add_network(root, *n);
    } else {
        root["question"] = detail::questions.back();
        detail::add_tables(root, std::get<table_instance>(i.of));
    }
    write_json(out, root);
}

PARSEARCH_IO_INLINE instance read_instance_json(std::istream& in, std::string name, json_limits const& limits) {
    return detail::read_instance(json_document(in, std::move(name), limits));
}

PARSEARCH_IO_INLINE instance load_instance_json(std::string const& path, json_limits const& limits) {
    return detail::read_instance(json_document(path, limits));
}

} // namespace parsearch::io
