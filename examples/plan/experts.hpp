#pragma once
// The strategies that a plan is compared with.

#include <optional>
#include <string>
#include <vector>

#include <parsearch/problem/problem.hpp>
#include <parsearch/space/strategy_space.hpp>

#include "request.hpp"

namespace plan {

struct expert {
    std::string name, help;
};
// All experts, data parallelism first.
[[nodiscard]] std::vector<expert> expert_list();

// Whether there is one of this name.
[[nodiscard]] bool is_expert(std::string const& name);

// The strategy of an expert. Throws invalid_input where it does not apply, and on an unknown name.
[[nodiscard]] ps::space::flat_strategy expert_strategy(std::string const& name, ps::parallelization const& problem);

} // namespace plan
