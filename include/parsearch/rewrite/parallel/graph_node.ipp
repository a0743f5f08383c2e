#pragma once
// What stands in a parallel graph: a node, what it is, and which tensors it reads.

#include <parsearch/rewrite/parallel/graph_node.hpp>

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE void hasher::add(std::uint64_t x) noexcept { // the finaliser of splitmix64 over what was and what comes
    x ^= state + 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    state = x ^ (x >> 31);
}

PARSEARCH_INLINE void hasher::add(parallel_tensor const& t) noexcept {
    for (auto const e : t.whole.extents) add(static_cast<std::uint64_t>(e));
    for (auto const d : t.degree) add(static_cast<std::uint64_t>(d));
    add(static_cast<std::uint64_t>(t.copies) << 32 | static_cast<std::uint32_t>(t.sums));
    if (t.micro_batches > 1) add(static_cast<std::uint64_t>(t.micro_batches) << 32 | t.sample_axis);
}

PARSEARCH_INLINE std::uint64_t hash_of(node_content const& c) {
    hasher h;
    h.add(static_cast<std::uint64_t>(c.kind));
    if (c.kind == node_kind::input || c.kind == node_kind::weight) h.add(c.name);
    h.add(c.operation.kind);
    for (auto const& d : c.operation.dims) h.add(static_cast<std::uint64_t>(d.extent));
    for (auto const d : c.split.degree) h.add(static_cast<std::uint64_t>(d));
    if (c.split.micro_batches > 1) h.add(static_cast<std::uint64_t>(c.split.micro_batches));
    h.add(static_cast<std::uint64_t>(c.how) << 32 | c.axis);
    h.add(static_cast<std::uint64_t>(c.degree));
    for (auto const& t : c.outputs) h.add(t);
    return h.state;
}

} // namespace parsearch::rewrite::detail
