#pragma once
// A fabric that is wired for the traffic of the plan.

#include <optional>
#include <stop_token>
#include <string_view>

#include "planner.hpp"

namespace plan {

// The fabric that `cluster` names, "fabric:NAME,key=value,..."; nothing where it is none.
[[nodiscard]] std::optional<ps::io::asked_fabric> fabric_of(std::string_view cluster);

// The fabric that `asked` wants wired for the model, where it does. Throws invalid_input where what else is asked for does not go with that, or no
// rerun can repeat the run.
[[nodiscard]] std::optional<ps::io::asked_fabric> fabric_to_wire(request const& asked);

// Its servers on an ideal switch. Throws invalid_input on servers, or interfaces, that cannot be wired.
[[nodiscard]] ps::io::named_cluster unwired(ps::io::asked_fabric const& fabric);

// Wires the fabric and searches a strategy for it, in turns: `given` has then its network and cluster, `made` the problem on these and what was
// found.
void wire_fabric(request const& asked, inputs& given, planned& made, std::stop_token const& stop);

// What the plan takes after the failure of one wire of its fabric, as far as there is time: see `single_wire_failures`.
void fail_wires(request const& asked, inputs const& given, planned& made, std::stop_token const& stop);

// What the plan takes where its servers are rewired within the iteration, as far as there is time: see `rewire_within_iteration`.
void rewire(request const& asked, inputs const& given, planned& made, std::stop_token const& stop);

} // namespace plan
