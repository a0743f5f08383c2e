#pragma once
// A move that gives one configuration to an operator and all its repeats.

#include <map>

#include <parsearch/space/alike_operators.hpp>
#include <parsearch/space/repeat.hpp>

namespace parsearch::space {

PARSEARCH_INLINE repeat_move::repeat_move(graph::dense_graph const& g) : family_of_(2, std::vector<std::uint32_t>(g.size())), families_(2) {
    auto const alike = first_alike(g);
    for (std::size_t kind = 0; kind < 2; ++kind) {
        std::map<std::uint32_t, std::uint32_t> number; // of the family that begins with an operator
        for (std::uint32_t op = 0; op < g.size(); ++op)
            join(kind, op, number.try_emplace(kind == 0 ? g.sharing[op] : alike[op], static_cast<std::uint32_t>(number.size())).first->second);
    }
}

} // namespace parsearch::space
