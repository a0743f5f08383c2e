#pragma once
/// The version of the library. These three numbers are its only source: the build reads them from here.

#include <string_view>

#include <parsearch/core/compiler.hpp>

#define PARSEARCH_VERSION_MAJOR 0
#define PARSEARCH_VERSION_MINOR 1
#define PARSEARCH_VERSION_PATCH 0

#define PARSEARCH_DETAIL_DOTTED_(a, b, c) #a "." #b "." #c
#define PARSEARCH_DETAIL_DOTTED(a, b, c) PARSEARCH_DETAIL_DOTTED_(a, b, c)

namespace parsearch {

/// "major.minor.patch"
inline constexpr std::string_view version = PARSEARCH_DETAIL_DOTTED(PARSEARCH_VERSION_MAJOR, PARSEARCH_VERSION_MINOR, PARSEARCH_VERSION_PATCH);

} // namespace parsearch

#undef PARSEARCH_DETAIL_DOTTED
#undef PARSEARCH_DETAIL_DOTTED_
