#pragma once
// Exhaustive search: every strategy of the space, one operator changing at a time.

#include <parsearch/search/exhaustive.hpp>

namespace parsearch::search {

PARSEARCH_INLINE std::optional<std::size_t> gray_code::next() {
    auto const n = focus_[0];
    focus_[0] = 0;
    if (n == radix_.size()) return {};
    digit_[n] = up_[n] ? digit_[n] + 1 : digit_[n] - 1;
    if (digit_[n] == 0 || digit_[n] + 1 == radix_[n]) {
        up_[n] = !up_[n];
        focus_[n] = focus_[n + 1];
        focus_[n + 1] = n + 1;
    }
    return n;
}

} // namespace parsearch::search
