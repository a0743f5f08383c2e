#pragma once
/// What the tests of the device side share: CPU references in double precision, and a device where there is one.

#include <memory>
#include <span>
#include <vector>

#include "prepared.hpp"

namespace parsearch::profiler::testing {

/// The first device; empty where there is none.
[[nodiscard]] std::unique_ptr<cuda_session> const& session();

} // namespace parsearch::profiler::testing
