#pragma once
/// Parallel graphs that grow operator by operator, in one task each.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>

namespace support {

/// Grows a graph operator by operator, weights and all.
struct grown_graph {
    using tensor_ref = parsearch::rewrite::tensor_ref;
    parsearch::rewrite::parallel_graph g;
    std::vector<tensor_ref> tensors;
    int weights = 0;

    template <class Op> std::vector<tensor_ref> add(Op const& op, std::vector<tensor_ref> in, tensor_ref const* shared = nullptr) {
        std::vector<parsearch::ops::tensor> shapes;
        for (auto const& t : in) shapes.push_back(g.tensor(t).whole);
        auto operation = op.infer(shapes);
        for (std::size_t w = 0; w < operation.weights.size(); ++w)
            in.push_back(w == 0 && shared ? *shared : g.add_weight(parsearch::text("w", weights++), parsearch::ops::tensor_of(operation.weights[w])));
        auto const slots = operation.outputs.size();
        auto name = operation.kind;
        auto const n = g.add_operator(std::move(name), std::move(operation), std::move(in));
        std::vector<tensor_ref> out;
        for (std::uint32_t slot = 0; slot < slots; ++slot) out.push_back({n, slot});
        tensors.insert(tensors.end(), out.begin(), out.end());
        return out;
    }
    void finish() {
        std::vector<tensor_ref> results;
        auto const uses = g.uses();
        for (auto const& t : tensors)
            if (g[t.producer]->kind == parsearch::rewrite::node_kind::compute &&
                std::ranges::none_of(uses[t.producer], [&](auto const& u) { return u.first == t.slot; }))
                results.push_back(t);
        g.set_results(std::move(results));
    }
};

} // namespace support
