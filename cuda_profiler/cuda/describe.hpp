#pragma once
/// A launch in words, for messages: "convolution forward f16 x[8,64,56,56] w[64,64,3,3]".

#include <string>

#include "profiler/launch.hpp"

namespace parsearch::profiler {

[[nodiscard]] std::string describe(launch const& l);

} // namespace parsearch::profiler
