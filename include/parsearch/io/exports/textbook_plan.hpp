#pragma once
/// Plans that runtimes know by a few numbers: degrees of tensor, context, expert, pipeline and data parallelism. What is none of these is refused.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/device_mesh.hpp>
#include <parsearch/io/exports/exported_plan.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/textbook/neighbour_split.hpp>
#include <parsearch/space/textbook/tensor_parallel.hpp>

namespace parsearch::io {

/// A plan in numbers. tensor * context * data is the number of devices of a group.
struct textbook_plan {
    std::uint32_t tensor = 1, context = 1, heads = 1, experts = 1, data = 1;
    std::uint32_t groups = 1; ///< of devices; `interleaved` stages on each
    std::uint32_t interleaved = 1;
    std::int64_t samples = 0, micro_batch = 0; ///< of an iteration; of one micro-batch on one replica
    std::vector<std::uint32_t> layers{};       ///< of each stage: its operators of attention
    bool recomputes = false;                   ///< all stages do
    std::uint32_t segments = 0;                ///< of the stage with most that are computed again
};

namespace detail {

/// How many operators of attention each stage has: what stands for a transformer's layers.
[[nodiscard]] inline std::vector<std::uint32_t> layers_of(exported_plan const& p) {
    std::vector<std::uint32_t> out(p.plan.how.stages, 0);
    for (std::size_t op = 0; op < p.graph.size(); ++op)
        if (p.graph.operations[op].work == ops::work_class::attention) ++out[p.plan.how.stage[op]];
    return out;
}

/// The same shards on the same devices.
[[nodiscard]] inline bool runs_alike(space::configuration const& a, space::configuration const& b) {
    if (!std::ranges::equal(a.degrees(), b.degrees())) return false;
    for (std::int64_t n = 0; n < a.shards(); ++n)
        if (a.place(n) != b.place(n)) return false;
    return true;
}
/// The degree of tensor parallelism of a strategy that says none: of the first operator that is not as in data parallelism, the least that makes it
/// as it is; 1 where there is no such operator or degree.
[[nodiscard]] inline std::uint32_t tensor_of(exported_plan const& p, std::vector<exported_stage> const& stages) {
    auto const devices = static_cast<std::uint32_t>(p.topology.size() / p.plan.how.launching().groups());
    auto const first_other = [&](std::uint32_t tensor, std::uint32_t const* only) -> std::uint32_t const* {
        auto const wanted = space::tensor_parallel(p.graph, devices, tensor);
        for (auto const& stage : stages)
            for (auto const& op : stage.operators) {
                auto c = wanted[op];
                c.start += stage.mesh.first;
                if ((!only || only == &op) && !runs_alike(p.plan.strategy[op], c)) return &op;
            }
        return nullptr;
    };
    auto const* const other = first_other(1, nullptr);
    for (std::uint32_t tensor = 2; other && tensor <= devices; ++tensor)
        if (devices % tensor == 0 && !first_other(tensor, other)) return tensor;
    return 1;
}
} // namespace detail

/// The numbers of a plan. Throws `invalid_input` naming the first operator whose configuration is not that of the strategy which the numbers stand
/// for
/// (`space::split_among_neighbours` on the devices of its stage), or where a plan says no degree of tensor parallelism, stages differ in it or in
/// computing again, or a replica has a part of a sample. `runtime`: for messages. Complexity: linear in operators and shards.
[[nodiscard]] inline textbook_plan textbook_of(exported_plan const& p, std::string_view runtime) {
    auto const& how = p.plan.how;
    auto const stages = stages_of(p);
    auto const wrong = [&](auto const&... why) { return invalid_input(runtime, " takes no such plan: ", why...); };
    textbook_plan out{.context = p.plan.context_parallel, .heads = p.plan.context_heads, .experts = p.plan.expert_parallel};
    auto const& tensor = p.plan.tensor_parallel;
    if (!tensor.empty()) out.tensor = tensor.front();
    else out.tensor = detail::tensor_of(p, stages);
    for (std::size_t s = 0; s < tensor.size(); ++s)
        if (tensor[s] != out.tensor)
            throw wrong("stage ", s, " has tensor parallelism of ", tensor[s], ", stage 0 of ", out.tensor, ": it must be one number");
    out.groups = how.launching().groups();
    out.interleaved = how.interleaved;
    auto const devices = static_cast<std::uint32_t>(p.topology.size() / out.groups);
    auto const same_samples = out.tensor * out.context;
    if (devices % same_samples != 0)
        throw wrong("tensor parallelism of ", out.tensor, " and context parallelism of ", out.context, " on groups of ", devices,
                    " devices: their product must divide these");
    out.data = devices / same_samples;
    auto const wanted =
        space::split_among_neighbours(p.graph, devices, {.tensor = out.tensor, .experts = out.experts, .context = out.context, .heads = out.heads});
    for (auto const& stage : stages)
        for (auto const op : stage.operators) {
            auto textbook = wanted[op];
            textbook.start += stage.mesh.first;
            auto const& operation = p.graph.operations[op];
            if (!detail::runs_alike(p.plan.strategy[op], textbook))
                throw wrong("operator '", p.graph.names[op], "' (", operation.kind, ") is ", space::to_string(p.plan.strategy[op], operation),
                            ", with tensor parallelism of ", out.tensor, ", context parallelism of ", out.context, ", experts over ", out.experts,
                            " and data parallelism of ", out.data, " it must be ", space::to_string(textbook, operation));
        }
    out.samples = samples_of(p);
    auto const replicas = std::int64_t{out.data} * how.micro_batches;
    if (out.samples % replicas != 0)
        throw wrong(out.samples, " samples in ", how.micro_batches, " micro-batches on ", out.data, " replicas: must be whole samples on each");
    out.micro_batch = out.samples / replicas;
    out.layers = detail::layers_of(p);
    out.recomputes = how.recomputes(0);
    for (std::uint32_t s = 0; s < how.stages; ++s) {
        if (how.recomputes(s) != out.recomputes)
            throw wrong("stage ", s, how.recomputes(s) ? " computes" : " does not compute", " activations again, stage 0 ",
                        out.recomputes ? "does" : "does not", ": must be alike");
        std::vector<std::uint32_t> segments;
        for (auto const op : stages[s].operators)
            if (how.computes_again(op)) segments.push_back(how.segment_of(op));
        std::ranges::sort(segments);
        auto const repeated = std::ranges::unique(segments);
        out.segments = std::max(out.segments, static_cast<std::uint32_t>(segments.size() - repeated.size()));
    }
    return out;
}

} // namespace parsearch::io
