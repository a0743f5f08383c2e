#pragma once
// Graphs whose operators may run in copies and on partial sums.

#include <parsearch/ops/kit/replicas.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/space/replicated_operators.hpp>

namespace parsearch::space {

PARSEARCH_INLINE graph::dense_graph with_replicas(graph::dense_graph g, space_options const& o) {
    validate(o, 1);
    auto const has_room = [](ops::operation const& op) { return op.dims.size() < ops::max_dims; };
    auto const comes_in_parts = [&](graph::edge const& e) { // which may be no sums
        auto const& made = g.operations[e.producer];
        for (std::size_t k = 0; k < made.dims.size(); ++k)
            if (made.dims[k].kind != ops::dim_kind::fixed && made.dims[k].extent > 1 && ops::leaves_partial_sums(made, made.outputs[e.slot], k))
                return true;
        return false;
    };
    for (auto const i : g.order) {
        auto& op = g.operations[i];
        if (op.work == ops::work_class::source) continue;
        if (o.sums > 1 && has_room(op) && !ops::replica_dim(op, ops::dim_kind::sums) && op.inputs.size() < 64) {
            auto const all = (std::uint64_t{1} << op.inputs.size()) - 1;
            std::uint64_t summed = 0;
            bool const jointly = ops::linear_in(op, all);
            bool sums = true;
            for (auto const& e : g.in(i)) {
                if (!comes_in_parts(e)) continue;
                bool const adds_up = ops::adds_up(g.operations[e.producer]);
                sums = sums && (adds_up || !jointly);
                if (summed == 0 && adds_up) summed = jointly ? all : std::uint64_t{1} << e.input;
            }
            if (sums && summed != 0 && ops::linear_in(op, summed)) op = ops::with_sums(std::move(op), o.sums, summed);
        }
        if (o.copies > 1 && has_room(op) && !ops::replica_dim(op, ops::dim_kind::copies)) op = ops::with_copies(std::move(op), o.copies);
    }
    return g;
}

} // namespace parsearch::space
