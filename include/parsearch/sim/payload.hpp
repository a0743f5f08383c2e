#pragma once
/// How many bytes the data movement tasks of a task graph are about, and in which collective.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/assemble.hpp>
#include <parsearch/sim/options.hpp>
#include <parsearch/sim/task_graph.hpp>

namespace parsearch::sim {

/// What a transfer or collective carries.
struct payload {
    byte_count bytes = 0;         ///< of the message (of its segment under `cut_through`), or of the tensor as `collective_kind` counts it; 0 for other tasks
    std::uint32_t devices = 0;    ///< in the collective; 2 for a message, 0 for other tasks
    collective_kind collective{}; ///< of no matter for other tasks
};

/// By task of `tasks`, which an `assembler` made of `plan` and `g` under `options`. Complexity: linear in tasks.
[[nodiscard]] inline std::vector<payload> payloads(iteration_plan const& plan, graph::dense_graph const& g, task_graph const& tasks,
                                                   simulation_options const& options) {
    std::vector<payload> out(tasks.size());
    byte_count left = 0; // of the message whose segments come next
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        auto const kind = tasks.kind[t];
        if (kind != task_kind::transfer && kind != task_kind::collective) continue;
        auto const& who = tasks.label[t];
        bool const message = kind == task_kind::transfer;
        if (who.traffic == traffic_kind::weight_gradient) {
            auto const& group = plan.classes[plan.class_of[who.op]].sync.groups[who.number];
            out[t] = {group.bytes, message ? 2 : static_cast<std::uint32_t>(group.devices.size()), collective_kind::all_reduce};
        } else if (message) {
            auto const& e = g.edges[who.edge];
            auto const& made = g.operations[e.producer].outputs[e.slot];
            out[t] = {plan.edges[who.edge].table->pairs[who.number].elements * ops::size_of(made.type), 2, {}};
        } else {
            auto const& c = who.edge == task_label::no_edge ? plan.operators[who.op].partial_outputs[who.number]
                                                            : plan.edges[who.edge].collectives[who.number];
            out[t] = {c.bytes, c.size, who.traffic == traffic_kind::gradient ? c.backward_kind : c.forward_kind};
        }
        if (!message || options.transfers != transfer_model::cut_through) continue;
        if (tasks.ties[t].task != task_tie::none) {
            out[t].bytes = out[t - 1].bytes;
        } else {
            if (left == 0) left = out[t].bytes;
            out[t].bytes = std::min(left, options.segment);
            left -= out[t].bytes;
        }
    }
    return out;
}

} // namespace parsearch::sim
