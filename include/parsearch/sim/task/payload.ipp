#pragma once
// What the tasks of a task graph carry.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <parsearch/sim/task/assemble.hpp>
#include <parsearch/sim/task/payload.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE std::vector<payload> payloads(iteration_plan const& plan, graph::dense_graph const& g, task_graph const& tasks,
                                               simulation_options const& options) {
    std::vector<payload> out(tasks.size());
    std::vector<bool> pulls(tasks.size(), false); // brings weights back from their server
    byte_count left = 0;                          // of the message whose segments come next
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        auto const kind = tasks.kind[t];
        if (kind != task_kind::transfer && kind != task_kind::collective) continue;
        auto const& who = tasks.label[t];
        bool const message = kind == task_kind::transfer;
        if (who.traffic == traffic_kind::weight_gradient) {
            auto const& group = plan.classes[plan.class_of[who.op]].sync.groups[who.number];
            if (auto const before = tasks.before(t); message && !before.empty())
                pulls[t] = tasks.kind[before.front()] == task_kind::update || pulls[before.front()];
            out[t] = {pulls[t] ? group.bytes : group.gradients, message ? 2 : static_cast<std::uint32_t>(group.holders()),
                      collective_kind::all_reduce};
        } else if (message && who.edge == task_label::no_edge) {
            continue; // a copy to a host or back: the plan knows its bytes
        } else if (message) {
            auto const& e = g.edges[who.edge];
            auto const& made = g.operations[e.producer].outputs[e.slot];
            out[t] = {plan.edges[who.edge].table->pairs[who.number].elements * ops::size_of(made.type), 2, {}};
        } else {
            auto const& c =
                who.edge == task_label::no_edge ? plan.operators[who.op].partial_outputs[who.number] : plan.edges[who.edge].collectives[who.number];
            bool const gradient = who.traffic == traffic_kind::gradient;
            out[t] = {gradient ? c.backward_bytes : c.bytes, c.size, gradient ? c.backward_kind : c.forward_kind};
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
