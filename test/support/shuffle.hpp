#pragma once
/// Random orders that are the same on every platform, which those of std::shuffle are not.

#include <cstddef>
#include <utility>
#include <vector>

#include <parsearch/core/random.hpp>

namespace support {

/// D. Knuth, The Art of Computer Programming 2, 3.4.2, algorithm P.
template <class T, class R> void shuffle(std::vector<T>& v, R& rng) {
    for (std::size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[parsearch::uniform_index(rng, i)]);
}

} // namespace support
