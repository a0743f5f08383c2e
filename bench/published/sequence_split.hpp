#pragma once
/// Context parallelism: sequences split among devices.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/textbook/tensor_parallel.hpp>

namespace bench {

/// Tensor parallelism of degree `tensor` among neighbours, positions of the sequences over `context` groups of these, samples over the rest.
/// Attention reads all keys and values, so these are gathered. An operator without positions leaves devices idle.
inline parsearch::space::flat_strategy with_sequences_split(parsearch::graph::dense_graph const& g, std::size_t devices, std::uint32_t tensor,
                                                            std::uint32_t context) {
    auto s = parsearch::space::tensor_parallel(g, devices / context, tensor);
    if (context == 1) return s;
    auto const inner = static_cast<std::int32_t>(tensor), parts = static_cast<std::int32_t>(context);
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto& c = s[op];
        auto const& dims = g.operations[op].dims;
        for (std::size_t k = 0; k < dims.size(); ++k)
            if (c.stride[k] >= inner && dims[k].kind == parsearch::ops::dim_kind::sample) c.stride[k] *= parts;
        auto const positions = std::ranges::find_if(dims, [](auto const& d) { return d.name == "l" || d.name == "lq"; });
        if (positions == dims.end()) continue;
        auto const k = static_cast<std::size_t>(positions - dims.begin());
        c.stride[k] = c.degree[k] > 1 ? c.stride[k] : inner;
        c.degree[k] *= parts;
    }
    return s;
}

} // namespace bench
