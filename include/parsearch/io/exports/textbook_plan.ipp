#pragma once
// Plans that runtimes know by a few numbers: degrees of tensor, context, expert, pipeline and data parallelism. What is none of these is refused.

#include <parsearch/io/exports/device_mesh.hpp>
#include <parsearch/io/exports/textbook_plan.hpp>
#include <parsearch/space/textbook/expert_parallel.hpp>
#include <parsearch/space/textbook/neighbour_split.hpp>
#include <parsearch/space/textbook/tensor_parallel.hpp>

namespace parsearch::io::detail {

/// How many operators of attention each stage has: what stands for a transformer's layers.
PARSEARCH_IO_INLINE std::vector<std::uint32_t> layers_of(exported_plan const& p) {
    std::vector<std::uint32_t> out(p.plan.how.stages, 0);
    for (std::size_t op = 0; op < p.graph.size(); ++op)
        if (p.graph.operations[op].work == ops::work_class::attention) ++out[p.plan.how.stage[op]];
    return out;
}

/// Where the layers of a transformer begin in `order`, and behind these where the last ends (nothing of a single layer). Between attentions that is
/// where fewest tensors cross, the last such place ahead of the next: behind a sum or norm that all of the layer reads. Complexity: linear in edges.
PARSEARCH_IO_INLINE std::vector<std::size_t> ends_of_layers(exported_plan const& p, std::vector<std::uint32_t> const& order) {
    std::vector<std::size_t> at(p.graph.size(), 0), attentions;
    for (std::size_t i = 0; i < order.size(); ++i) {
        at[order[i]] = i;
        if (p.graph.operations[order[i]].work == ops::work_class::attention) attentions.push_back(i);
    }
    std::vector<std::int64_t> crossing(order.size() + 1, 0);
    for (auto const op : order) {
        std::vector<std::size_t> last(p.graph.operations[op].outputs.size(), at[op]);
        for (auto const e : p.graph.out(op)) last[p.graph.edges[e].slot] = std::max(last[p.graph.edges[e].slot], at[p.graph.edges[e].consumer]);
        for (auto const reader : last) {
            ++crossing[at[op] + 1];
            --crossing[reader + 1];
        }
    }
    for (std::size_t i = 1; i < crossing.size(); ++i) crossing[i] += crossing[i - 1];
    std::vector<std::size_t> out;
    for (std::size_t i = 0, from = 1; i < attentions.size(); from = attentions[i++] + 1) {
        auto best = std::min(from, attentions[i]);
        for (auto b = best; b <= attentions[i]; ++b)
            if (crossing[b] <= crossing[best]) best = b;
        out.push_back(best);
    }
    if (out.size() > 1) out.push_back(2 * out.back() - out[out.size() - 2]);
    return out;
}

/// Refuses stages that begin within a layer, or hold what is before the first or behind the last elsewhere than at the ends of a pipeline.
PARSEARCH_IO_INLINE void refuse_cut_layers(exported_plan const& p, std::vector<std::uint32_t> const& layers, std::string_view runtime) {
    auto const& how = p.plan.how;
    if (how.stages == 1 || !has_layers(layers)) return;
    std::vector<std::uint32_t> order;
    for (auto const op : p.graph.order)
        if (!is_source(p.graph.operations[op])) order.push_back(op);
    auto const ends = ends_of_layers(p, order);
    std::size_t before = 0, last = 0;
    std::vector<std::uint32_t> wanted(order.size(), 0); // stage of each operator
    for (std::uint32_t s = 1; s < how.stages; ++s) {
        before += layers[s - 1];
        auto const begin = before < ends.size() ? ends[before] : order.size();
        if (begin >= order.size() || begin <= last)
            throw takes_no_such(runtime, "stage ", s, " has no layer of its own: stages are cut between layers");
        std::fill(wanted.begin() + static_cast<std::ptrdiff_t>(begin), wanted.end(), s);
        last = begin;
    }
    for (std::size_t i = 0; i < order.size(); ++i)
        if (how.stage[order[i]] != wanted[i])
            throw takes_no_such(runtime, "operator '", p.graph.names[order[i]], "' (", p.graph.operations[order[i]].kind, ") is in stage ",
                                how.stage[order[i]], ", with the layers that are cut there it must be in stage ", wanted[i],
                                ": stages begin with a layer, what is before the first is in the first stage, what is behind the last in the last");
}

/// The same shards on the same devices.
PARSEARCH_IO_INLINE bool runs_alike(space::configuration const& a, space::configuration const& b) {
    if (!std::ranges::equal(a.degrees(), b.degrees())) return false;
    for (std::int64_t n = 0; n < a.shards(); ++n)
        if (a.place(n) != b.place(n)) return false;
    return true;
}

PARSEARCH_IO_INLINE std::uint32_t tensor_of(exported_plan const& p, std::vector<exported_stage> const& stages) {
    auto const devices = static_cast<std::uint32_t>(p.topology.size() / p.plan.how.launching().groups());
    auto const of_mixture = space::has_experts(p.graph); // whose experts may be split beside
    auto const first_other = [&](std::uint32_t tensor, std::uint32_t const* only) -> std::uint32_t const* {
        auto const wanted = space::tensor_parallel(p.graph, devices, tensor);
        for (auto const& stage : stages)
            for (auto const& op : stage.operators) {
                auto c = wanted[op];
                c.start += stage.mesh.first;
                if (!of_mixture[op] && (!only || only == &op) && !runs_alike(p.plan.strategy[op], c)) return &op;
            }
        return nullptr;
    };
    auto const* const other = first_other(1, nullptr);
    for (std::uint32_t tensor = 2; other && tensor <= devices; ++tensor)
        if (devices % tensor == 0 && !first_other(tensor, other)) return tensor;
    return 1;
}

PARSEARCH_IO_INLINE std::uint32_t experts_over(exported_plan const& p, std::vector<exported_stage> const& stages, std::uint32_t tensor) {
    auto const devices = static_cast<std::uint32_t>(p.topology.size() / p.plan.how.launching().groups());
    auto const of_mixture = space::has_experts(p.graph);
    for (auto const& stage : stages)
        for (auto const& op : stage.operators) {
            if (!of_mixture[op]) continue;
            for (std::uint32_t experts = 1; experts <= devices; ++experts) {
                if (devices % experts != 0 || (experts > 1 && experts % tensor != 0)) continue;
                auto c = space::split_among_neighbours(p.graph, devices, {.tensor = tensor, .experts = experts})[op];
                c.start += stage.mesh.first;
                if (runs_alike(p.plan.strategy[op], c)) return experts;
            }
            return 1;
        }
    return 1;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE textbook_plan textbook_of(exported_plan const& p, std::string_view runtime) {
    auto const& how = p.plan.how;
    auto const stages = stages_of(p);
    auto const wrong = [&](auto const&... why) { return detail::takes_no_such(runtime, why...); };
    textbook_plan out{.context = p.plan.context_parallel, .heads = p.plan.context_heads, .experts = p.plan.expert_parallel};
    auto const& tensor = p.plan.tensor_parallel;
    if (!tensor.empty()) out.tensor = tensor.front();
    else out.tensor = detail::tensor_of(p, stages);
    if (tensor.empty() && out.experts == 1 && out.context == 1) out.experts = detail::experts_over(p, stages, out.tensor);
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
    detail::refuse_cut_layers(p, out.layers, runtime);
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
