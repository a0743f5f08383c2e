#pragma once
/// What operators keep from forward until backward, tensor by tensor.

#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::sim {

/// An operator that keeps one of its operands, or what it has beside them.
struct keeper {
    enum class part : std::uint8_t { beside, input, output };

    std::uint32_t op = 0, operand = 0;
    part what = part::beside;
};

namespace detail {
/// Adds those that read output `slot` of `op` and keep it, as it is or through views.
template <class Keeps>
void add_keeping_readers(graph::dense_graph const& g, std::uint32_t op, std::uint32_t slot, Keeps const& keeps, std::vector<keeper>& to) {
    for (auto const number : g.out(op)) {
        auto const& e = g.edges[number];
        if (e.slot != slot) continue;
        auto const& reader = g.operations[e.consumer];
        if (reader.work == ops::work_class::view)
            for (std::uint32_t s = 0; s < reader.outputs.size(); ++s) add_keeping_readers(g, e.consumer, s, keeps, to);
        else if (reader.inputs[e.input].saved && g.trains[e.consumer] && keeps(e.consumer, &e))
            to.push_back({e.consumer, e.input, keeper::part::input});
    }
}
} // namespace detail

/// Calls `take(keepers)` for all that training keeps: for what an operator has beside its operands, which it keeps alone, and for each tensor, which
/// those keep that make or read it. `keeps(op, edge)` narrows that down: to what `op` reads along an edge, or where that is null to what it makes.
/// Complexity: O(edges).
template <class Keeps, class Take> void for_kept_tensors(graph::dense_graph const& g, Keeps const& keeps, Take const& take) {
    std::vector<keeper> keepers;
    auto const give = [&] {
        if (!keepers.empty()) take(std::span<keeper const>(keepers));
        keepers.clear();
    };
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        if (operation.work == ops::work_class::view) continue; // the same bytes as its input
        bool const keeps_made = g.trains[op] && keeps(op, static_cast<graph::edge const*>(nullptr));
        if (keeps_made) keepers.push_back({.op = op});
        give();
        for (std::uint32_t slot = 0; slot < operation.outputs.size(); ++slot) {
            if (keeps_made && operation.outputs[slot].saved) keepers.push_back({op, slot, keeper::part::output});
            detail::add_keeping_readers(g, op, slot, keeps, keepers);
            give();
        }
    }
}
/// All of it.
template <class Take> void for_kept_tensors(graph::dense_graph const& g, Take const& take) {
    for_kept_tensors(
        g, [](std::uint32_t, graph::edge const*) { return true; }, take);
}

} // namespace parsearch::sim
