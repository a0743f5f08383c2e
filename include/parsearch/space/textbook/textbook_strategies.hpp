#pragma once
/// Strategies that experts use, as starts and yardsticks for searches.

#include <string>

#include <parsearch/space/strategy_space.hpp>
#include <parsearch/space/textbook/branch_parallel.hpp>
#include <parsearch/space/textbook/context_parallel.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>
#include <parsearch/space/textbook/expert_parallel.hpp>
#include <parsearch/space/textbook/neighbour_split.hpp>
#include <parsearch/space/textbook/operation_parallel.hpp>
#include <parsearch/space/textbook/table_parallel.hpp>
#include <parsearch/space/textbook/tensor_parallel.hpp>

namespace parsearch::space {

/// A strategy and what it is called.
struct named_strategy {
    std::string name{};
    flat_strategy strategy{};
    friend bool operator==(named_strategy const&, named_strategy const&) = default;
};

} // namespace parsearch::space
