#pragma once
/// The simulated task graph as execution traces of Chakra (MLCommons), one per device: what network simulators read.
/// Source of the format: mlcommons/chakra, schema/protobuf/et_def.proto. Its numbers of fields are the only thing known of it here.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/io/exports/exported_file.hpp>
#include <parsearch/io/exports/exported_plan.hpp>
#include <parsearch/sim/report.hpp>

namespace parsearch::io {

/// The traces of a simulated plan, "PREFIX.DEVICE.et", and the devices of each group that collectives name, "PREFIX.groups.json". Nodes are numbered
/// by the tasks of the simulation; durations are in whole microseconds, and in picoseconds as the attribute duration_ps; bytes of collectives are
/// those of `collective_kind`. An all-to-all with different sizes is told by its sum. Throws `invalid_input` where the plan was not simulated, where
/// activations are on hosts, where messages are not streamed whole, and where links do not tell the ends of a message or the devices of a collective.
/// Complexity: O(n^2) in devices, linear in tasks.
[[nodiscard]] std::vector<exported_file> chakra_traces(std::string const& prefix, exported_plan const& p);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/exports/chakra_trace.ipp>
#endif
