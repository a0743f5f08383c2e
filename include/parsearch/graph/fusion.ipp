#pragma once
// Which operators share a kernel, and so do not pass their tensors through memory.

#include <algorithm>

#include <parsearch/graph/fusion.hpp>

namespace parsearch::graph::detail {

/// True where a kernel may go on from `a` to `b`, which reads its result.
[[nodiscard]] inline bool may_share_kernel(ops::operation const& a, ops::operation const& b, fusion f) {
    if (f == fusion::dropout) return a.kind == "dropout" && b.kind == "add";
    return f == fusion::compiled && joins_kernels(b) && (joins_kernels(a) || a.work == ops::work_class::normalization);
}

} // namespace parsearch::graph::detail

namespace parsearch::graph {

PARSEARCH_INLINE operator_graph with_fused_kernels(operator_graph const& g, fusion f) {
    if (f == fusion::none) return g;
    std::vector<ops::operation> made;
    std::vector<std::uint32_t> depth(g.size(), 0); // kernels in front, at the most
    for (std::size_t op = 0; op < g.size(); ++op) {
        made.push_back(g[op].operation);
        for (auto const& from : g.inputs(op)) {
            bool const may = detail::may_share_kernel(g[from.producer].operation, g[op].operation, f);
            depth[op] = std::max(depth[op], depth[from.producer] + (may ? 0 : 1));
        }
    }
    struct readers {
        std::vector<std::pair<std::size_t, std::size_t>> fused{}; // operators in the same kernel, and which of their inputs
        bool elsewhere = false, keep = false;
    };
    std::vector<std::vector<readers>> of(g.size()); // of each output
    for (std::size_t op = 0; op < g.size(); ++op) of[op].resize(g[op].operation.outputs.size());
    for (std::size_t op = 0; op < g.size(); ++op)
        for (std::size_t i = 0; i < g.inputs(op).size(); ++i) {
            auto const [from, slot] = g.inputs(op)[i];
            auto& read = of[from][slot];
            bool const fused = depth[from] == depth[op] && detail::may_share_kernel(g[from].operation, g[op].operation, f);
            if (fused) read.fused.emplace_back(op, i);
            read.elsewhere = read.elsewhere || !fused;
            read.keep = read.keep || g[op].operation.inputs[i].saved;
        }
    for (std::size_t op = 0; op < g.size(); ++op)
        for (std::size_t slot = 0; slot < of[op].size(); ++slot) {
            auto const& read = of[op][slot];
            auto const& inputs = g[op].operation.inputs;
            bool const again = std::ranges::all_of(inputs, [](auto const& in) { return in.saved || !in.differentiable; });
            bool const written = read.fused.empty() || read.elsewhere || g[op].operation.outputs[slot].saved || (read.keep && !again);
            if (!written) made[op].outputs[slot].touched_bytes = 0;
            for (auto const& [reader, i] : read.fused) {
                made[reader].inputs[i].touched_bytes = 0;
                if (!written) made[reader].inputs[i].saved = false;
            }
        }
    operator_graph out;
    for (std::size_t op = 0; op < g.size(); ++op) out.insert(g[op].name, std::move(made[op]), g.inputs(op));
    return out;
}

} // namespace parsearch::graph
