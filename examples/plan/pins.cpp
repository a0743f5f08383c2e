#include "pins.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/io/display/operator_names.hpp>
#include <parsearch/space/split_rules.hpp>

namespace plan {

void pin_operators(request& asked, ps::graph::dense_graph const& graph) {
    ps::space::split_rules rules;
    auto const for_each = [&](std::vector<std::string> const& all, std::string_view option, auto const& add) {
        for (auto const& given : all) {
            auto const at = given.rfind('=');
            if (at == std::string::npos || at == 0)
                throw ps::invalid_input(option, " '", given, "': must be OPERATOR=SPLIT, such as fc1=s4, or 'block{1..24}.attention=s2 heads4'");
            try {
                for (auto const op : ps::io::operators_named(graph, given.substr(0, at)))
                    add(graph.names[op], ps::space::read_split(given.substr(at + 1), graph.operations[op]));
            } catch (ps::invalid_input const& e) {
                throw ps::invalid_input(option, " '", given, "': ", e.what());
            }
        }
    };
    for_each(asked.pin, "--pin", [&](auto const& name, auto const& split) { rules.require(name, split); });
    for_each(asked.forbid, "--forbid", [&](auto const& name, auto const& split) { rules.forbid(name, split); });
    if (!rules.empty()) asked.space.allows = rules;
}

} // namespace plan
