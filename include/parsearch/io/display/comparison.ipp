#pragma once
// The figures by which strategies are compared: time, throughput, utilisation, traffic, memory.

#include <algorithm>

#include <parsearch/io/display/comparison.hpp>

namespace parsearch::io {

PARSEARCH_IO_INLINE iteration_batch batch_of(graph::dense_graph const& g) {
    for (std::size_t i = 0; i < g.size(); ++i) {
        auto const& op = g.operations[i];
        if (op.work != ops::work_class::source) continue;
        auto const& x = op.outputs.front();
        if (x.axes.empty()) return {};
        auto const batch = static_cast<double>(x.axes[0].extent);
        bool const indices = x.type == ops::dtype::i32 || x.type == ops::dtype::i64;
        auto const keeps_positions = [&](std::uint32_t number) {
            auto const& e = g.edges[number];
            auto const& reader = g.operations[e.consumer];
            auto const& positions = reader.inputs[e.input].axes[1].terms;
            return positions.size() != 1 || ops::is_indexed_by(reader.outputs.front(), positions[0].dim);
        };
        if (indices && x.axes.size() == 2 && std::ranges::any_of(g.out(i), keeps_positions))
            return {batch * static_cast<double>(x.axes[1].extent), "tokens", x.axes[0].extent};
        return {batch, "samples", x.axes[0].extent};
    }
    return {};
}

PARSEARCH_IO_INLINE fullest_device fullest_of(std::span<sim::memory_use const> memory, std::span<device_description const> devices) noexcept {
    fullest_device out;
    double fullest = -1;
    for (std::size_t d = 0; d < memory.size(); ++d) {
        auto const use = memory[d].total(), have = devices[d].memory;
        out.fits = out.fits && use <= have;
        auto const share = have > 0 ? static_cast<double>(use) / static_cast<double>(have) : static_cast<double>(use);
        if (share <= fullest) continue;
        fullest = share;
        out.device = d;
        out.use = use;
        out.memory = have;
    }
    return out;
}

} // namespace parsearch::io
