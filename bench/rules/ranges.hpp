#pragma once
// Numbers of rules as people write them.

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace bench {

// "0-6, 12, 14-15".
inline std::string ranges(std::vector<std::size_t> const& numbers) {
    std::string out;
    for (std::size_t i = 0; i < numbers.size();) {
        auto k = i;
        while (k + 1 < numbers.size() && numbers[k + 1] == numbers[k] + 1) ++k;
        out += fmt::format("{}{}", i ? ", " : "", numbers[i]);
        if (k > i) out += fmt::format("{}{}", k > i + 1 ? "-" : ", ", numbers[k]);
        i = k + 1;
    }
    return out;
}

} // namespace bench
