#pragma once
// Tables of the additive terms of graphs, each made once for all operators and edges of equal content, and kept within a limit of memory.

#include <algorithm>

#include <parsearch/problem/surrogate_store.hpp>

namespace parsearch::detail {

PARSEARCH_INLINE std::size_t content_hash::operator()(operator_content const& c) const noexcept {
    auto h = std::hash<std::string>{}(c.operation.kind);
    mix(h, c.gradients * 4 + (c.trains ? 2 : 0) + (c.own ? 1 : 0));
    for (auto const& d : c.operation.dims) mix(h, static_cast<std::uint64_t>(d.extent));
    for (auto const* operands : {&c.operation.inputs, &c.operation.outputs})
        for (auto const& o : *operands)
            for (auto const& a : o.axes) {
                mix(h, static_cast<std::uint64_t>(a.extent));
                mix(h, static_cast<std::uint64_t>(a.offset));
            }
    return h;
}

PARSEARCH_INLINE std::size_t content_hash::operator()(std::vector<space::configuration> const& list) const noexcept {
    std::size_t h = list.size();
    for (auto const& c : list) {
        mix(h, static_cast<std::uint64_t>(c.start));
        for (std::uint32_t k = 0; k < c.rank; ++k)
            mix(h, static_cast<std::uint64_t>(c.degree[k]) * 0x100000001 + static_cast<std::uint64_t>(c.stride[k]));
        for (auto const d : c.listed) mix(h, static_cast<std::uint64_t>(d));
    }
    return h;
}

/// Content of operator `op`; `shared[root]`: how many operators share the weights of `root`. Parameters that no other operator has are named
/// by the first weight that they are.
PARSEARCH_INLINE operator_content content_of(graph::dense_graph const& g, std::uint32_t op, std::vector<std::uint32_t> const& shared) {
    operator_content c{g.operations[op], std::vector<bool>(g.operations[op].outputs.size(), false), g.input_gradients(op), g.trains[op], false};
    for (auto const e : g.out(op)) c.reads[g.edges[e].slot] = true;
    auto const& weights = g.operations[op].weights;
    c.own = !weights.empty() && shared[g.sharing[op]] == 1;
    for (std::size_t w = 0; w < weights.size(); ++w) {
        if (weights[w].parameter.empty()) continue;
        auto const first = std::find_if(weights.begin(), weights.end(), [&](auto const& other) { return other.parameter == weights[w].parameter; });
        c.operation.weights[w].parameter = c.own ? std::to_string(first - weights.begin()) : std::string{};
    }
    return c;
}

/// Bytes that an operation takes, about.
PARSEARCH_INLINE std::uint64_t bytes_held(ops::operation const& op) noexcept {
    std::uint64_t sum = sizeof(ops::operation) + op.dims.size() * sizeof(ops::dim);
    for (auto const* operands : {&op.inputs, &op.weights, &op.outputs})
        for (auto const& o : *operands) {
            sum += sizeof(ops::operand);
            for (auto const& a : o.axes) sum += sizeof(ops::axis) + a.terms.size() * sizeof(ops::term);
        }
    return sum;
}

} // namespace parsearch::detail

namespace parsearch {

PARSEARCH_INLINE std::vector<std::uint64_t> surrogate_store::numbers_of(graph::dense_graph const& g) {
    std::vector<std::uint32_t> shared(g.size(), 0);
    for (std::uint32_t op = 0; op < g.size(); ++op)
        if (!g.operations[op].weights.empty()) ++shared[g.sharing[op]];
    ++now_;
    std::vector<std::uint64_t> out;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        auto content = detail::content_of(g, op, shared);
        auto const size = detail::bytes_held(content.operation);
        out.push_back(number(contents_, std::move(content), size));
    }
    return out;
}

PARSEARCH_INLINE void surrogate_store::forget() {
    if (bytes_ <= most_) return;
    std::map<std::uint64_t, std::uint64_t> last_used; // bytes by call
    auto const each = [&](auto const& f) { f(contents_), f(lists_), f(choices_), f(operators_), f(pairs_); };
    each([&](auto const& known) {
        for (auto const& [key, e] : known) last_used[e.used] += e.bytes;
    });
    std::uint64_t until = 0, left = bytes_;
    for (auto const& [call, size] : last_used) {
        if (left <= most_ / 4 * 3) break;
        until = call;
        left -= size;
    }
    each([&](auto& known) {
        for (auto at = known.begin(); at != known.end();) {
            if (at->second.used > until) {
                ++at;
                continue;
            }
            bytes_ -= at->second.bytes;
            at = known.erase(at);
        }
    });
}

} // namespace parsearch
