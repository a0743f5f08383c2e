#pragma once
// Tables over several variables, and the sharing of equal ones.

#include <parsearch/search/additive/factor.hpp>

namespace parsearch::search::additive {

PARSEARCH_INLINE std::vector<std::size_t> strides_of(std::span<std::uint32_t const> scope, std::span<std::uint32_t const> sizes) {
    std::vector<std::size_t> out(scope.size());
    std::size_t stride = 1;
    for (std::size_t i = scope.size(); i-- > 0;) {
        out[i] = stride;
        stride *= sizes[scope[i]];
    }
    return out;
}

} // namespace parsearch::search::additive
