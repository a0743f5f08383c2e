#pragma once
/// Random splits of operators, the same for a seed on every platform.

#include <cstddef>
#include <random>

#include <parsearch/core/random.hpp>
#include <parsearch/rewrite/parallel/operator_split.hpp>

namespace support {

/// About two of five dims that may be are split in two.
inline parsearch::rewrite::operator_split random_split(parsearch::ops::operation const& op, std::mt19937_64& rng) {
    auto s = parsearch::rewrite::unsplit(op);
    for (std::size_t d = 0; d < op.dims.size(); ++d)
        if (parsearch::bernoulli(rng, 0.4) && op.dims[d].extent % 2 == 0 && op.dims[d].kind != parsearch::ops::dim_kind::fixed) s.degree[d] = 2;
    return s;
}

} // namespace support
