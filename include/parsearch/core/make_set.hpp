#pragma once
/// Sets as sorted vectors.

#include <algorithm>
#include <vector>

#include <parsearch/core/compiler.hpp>

namespace parsearch {

/// Sorted, without repetition.
template <class T> void make_set(std::vector<T>& v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
}

} // namespace parsearch
