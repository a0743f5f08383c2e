#pragma once
/// The blocks of a network, read off the names of its operators.

#include <cstddef>
#include <cstdint>
#include <regex>
#include <string>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>

namespace bench {

struct network_blocks {
    std::vector<std::uint32_t> of; ///< of each operator, counted from 0 over all stacks; operators outside of blocks belong to the one before
    std::uint32_t count = 1;
    std::vector<bool> behind; ///< of each operator, whether it comes after all blocks: the output layer and the loss
};

inline network_blocks blocks_of(parsearch::graph::dense_graph const& g) {
    static std::regex const numbered(R"(^(.*?(?:block|layers?|h)[._/]?)(\d+)[._/].*)");
    network_blocks out{.of = std::vector<std::uint32_t>(g.size(), 0), .behind = std::vector<bool>(g.size(), false)};
    std::string last;
    std::vector<std::uint32_t> outside; // since the last operator of a block
    for (auto const op : g.order) {
        if (g.operations[op].work == parsearch::ops::work_class::source) continue;
        if (std::smatch match; std::regex_match(g.names[op], match, numbered)) {
            auto const name = match[1].str() + match[2].str();
            if (!last.empty() && name != last) ++out.count;
            last = name;
            outside.clear();
        } else if (!last.empty()) outside.push_back(op);
        out.of[op] = out.count - 1;
    }
    for (auto const op : outside) out.behind[op] = true;
    return out;
}

} // namespace bench
