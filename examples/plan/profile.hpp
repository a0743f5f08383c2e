#pragma once
// Measured kernels that the user names.

#include <string>

#include <parsearch/cost/profile.hpp>
#include <parsearch/topology/cluster.hpp>

namespace plan {

namespace ps = parsearch;

// The file that `given` names: itself, or NAME of a profile that comes with the library. Throws invalid_input that lists these.
[[nodiscard]] std::string profile_path(std::string const& given);

// Reads a profile, or a file of FlexNet's, which names no device and is taken for the only kind that `cluster` has. Throws invalid_input.
[[nodiscard]] ps::cost::profile load_profile(std::string const& path, ps::topology::cluster const& cluster);

} // namespace plan
