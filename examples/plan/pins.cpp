#include "pins.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/io/display/operator_names.hpp>
#include <parsearch/problem/constraints.hpp>
#include <parsearch/space/operator_space.hpp>
#include <parsearch/space/read_configuration.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace plan {

std::vector<std::string> pin_operators(request& asked, ps::graph::dense_graph const& graph, std::size_t devices) {
    ps::constraints<std::uint32_t, std::uint32_t> wanted; // by operator number
    std::set<std::size_t> named;
    std::vector<std::string> notes;
    auto const for_each = [&](std::vector<std::string> const& all, std::string_view option, auto const& add) {
        for (auto const& given : all) {
            auto const at = given.rfind('=');
            if (at == std::string::npos || at == 0)
                throw ps::invalid_input(option, " '", given, "': must be OPERATOR=SPLIT, such as fc1=s4, or 'block{1..24}.attention=s2 heads4'");
            try {
                auto const operators = ps::io::operators_named(graph, given.substr(0, at));
                for (auto const op : operators) {
                    (void)ps::space::read_configuration(given.substr(at + 1), graph.operations[op]); // throws here, where the option is known
                    add(static_cast<std::uint32_t>(op), given.substr(at + 1));
                }
                named.insert(operators.begin(), operators.end());
                notes.push_back(ps::text(option, " '", given, "' is of ", operators.size(), operators.size() == 1 ? " operator" : " operators"));
            } catch (ps::invalid_input const& e) {
                throw ps::invalid_input(option, " '", given, "': ", e.what());
            }
        }
    };
    for_each(asked.pin, "--pin", [&](std::uint32_t op, std::string const& how) { wanted.pin(op, how); });
    for_each(asked.forbid, "--forbid", [&](std::uint32_t op, std::string const& how) { wanted.forbid(op, how); });
    if (named.empty()) return notes;
    std::vector<std::uint32_t> numbers(graph.size());
    std::iota(numbers.begin(), numbers.end(), std::uint32_t{0});
    auto constrained = wanted.applied_to(asked.space, graph, numbers);
    for (auto const op : named) {
        auto const& operation = graph.operations[op];
        ps::space::operator_space const all(operation, devices, asked.space, graph.names[op]);
        auto const left = all.restricted([&](auto degrees) { return constrained.allows(graph.names[op], operation, degrees); });
        auto const admits = [&](auto const& c) { return constrained.admits(graph.names[op], operation, c); };
        if (left.size() == 0 || (constrained.admits && std::ranges::none_of(left.all(), admits)))
            throw ps::invalid_input("--pin, --forbid: no split of ", graph.names[op], " is left: of those that --space allows there are ",
                                    all.splits(), ", each of at most as many shards as there are devices, ", devices);
    }
    asked.space = std::move(constrained);
    return notes;
}

std::optional<std::string> broken_pin(request const& asked, ps::graph::dense_graph const& graph, ps::space::flat_strategy const& s) {
    auto const op = ps::space::first_not_allowed(asked.space, graph, s);
    if (!op) return {};
    return ps::text("operator ", graph.names[*op], " is ", ps::space::to_string(s[*op], graph.operations[*op]),
                    ", which --pin or --forbid rules out");
}

} // namespace plan
