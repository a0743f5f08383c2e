#pragma once
// A pipeline with its strategy, and how it reads.

#include <set>

#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE std::pair<std::size_t, std::size_t> offloaded_segments(pipelining const& how, std::optional<std::uint32_t> s) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> offloaded, all;
    for (std::size_t op = 0; op < how.stage.size(); ++op) {
        if (s && how.stage[op] != *s) continue;
        std::pair const segment(how.stage[op], how.segment_of(op));
        all.insert(segment);
        if (how.offloads(op)) offloaded.insert(segment);
    }
    return {offloaded.size(), all.size()};
}

PARSEARCH_INLINE std::string short_name(pipeline_plan const& plan, std::size_t devices, std::size_t replicas) {
    auto const& how = plan.how;
    std::string out;
    auto const times = [&](std::string_view what, auto n) {
        if (n > 1) out += text(out.empty() ? "" : " x ", what, ' ', n);
    };
    auto const& t = plan.tensor_parallel;
    auto const tensor = plan.most_tensor_parallel();
    times(std::any_of(t.begin(), t.end(), [&](auto n) { return n != tensor; }) ? "tensor up to" : "tensor", tensor);
    auto const groups = how.launching().groups();
    times("context", plan.context_parallel);
    times("pipeline", groups);
    auto const same_samples = std::size_t{tensor} * plan.context_parallel;
    auto data = devices * replicas / groups / same_samples;
    if (!plan.strategy.empty()) { // which may split less than there are devices: the batch, or the space, may not allow more
        std::int64_t most = 1;
        for (auto const& c : plan.strategy) most = std::max(most, c.shards());
        data = std::min(data, static_cast<std::size_t>(most) * replicas / same_samples);
    }
    times("data", data);
    if (out.empty()) out = "one device";
    if (plan.expert_parallel > 1) out += text(", experts ", plan.expert_parallel);
    if (plan.context_heads > 1) out += text(", heads ", plan.context_heads);
    if (t.empty()) out = "a strategy of its own";
    if (how.interleaved > 1) out += text(", interleaved ", how.interleaved);
    if (how.micro_batches > 1) out += text(", ", how.micro_batches, " micro-batches");
    constexpr std::array<std::string_view, all_sharded_states.size()> shared{"", ", sharded optimizer", ", sharded gradients", ", fully sharded",
                                                                             ", sharded within nodes"};
    out += shared[static_cast<std::size_t>(how.sharded)];
    auto const again = std::count(how.recompute.begin(), how.recompute.end(), true);
    if (again > 0) out += std::ranges::find(how.kept, true) != how.kept.end() ? ", computed again in part" : ", computed again";
    if (again > 0 && again < static_cast<std::ptrdiff_t>(how.recompute.size())) out += text(" in ", again, again > 1 ? " stages" : " stage");
    if (auto const [offloaded, all] = offloaded_segments(how); offloaded > 0) out += offloaded < all ? ", offloaded in part" : ", offloaded";
    return out;
}

PARSEARCH_INLINE std::string to_string(parallelization const& problem, pipeline_plan const& plan) {
    auto const& g = problem.graph();
    auto const& how = plan.how;
    validate(how, g);
    if (plan.strategy.size() != g.size())
        throw invalid_input("a pipeline's strategy of ", plan.strategy.size(), " configurations: the graph has ", g.size(),
                            " operators, must be one each");
    auto const counted = [](auto n, std::string_view what, std::string_view plural = "s") { return text(n, ' ', what, n == 1 ? "" : plural); };
    std::string out = text(counted(how.stages, "stage"), ", ", counted(how.micro_batches, "micro-batch", "es"));
    if (how.stages > 1 || how.micro_batches > 1) out += text(", ", how.interleaved > 1 ? "interleaved " : "", name_of(how.order));
    constexpr std::array<std::string_view, all_sharded_states.size()> shared{"", ", sharded optimizer", ", sharded optimizer and gradients",
                                                                             ", sharded optimizer, gradients and parameters",
                                                                             ", sharded optimizer, gradients and parameters within nodes"};
    out += shared[static_cast<std::size_t>(how.sharded)];
    out += '\n';
    for (std::uint32_t s = 0; s < how.stages; ++s) {
        std::vector<std::uint32_t> operators;
        std::vector<std::int32_t> devices;
        for (auto const op : g.order)
            if (how.stage[op] == s && g.operations[op].work != ops::work_class::source) {
                operators.push_back(op);
                for (std::int64_t n = 0; n < plan.strategy[op].shards(); ++n) devices.push_back(plan.strategy[op].device(n));
            }
        if (operators.empty()) continue;
        std::sort(devices.begin(), devices.end());
        devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
        out += text("stage ", s, ": ", g.names[operators.front()], " ... ", g.names[operators.back()], ", ", counted(operators.size(), "operator"),
                    " on ", counted(devices.size(), "device"), " from ", devices.front());
        if (s < plan.tensor_parallel.size()) out += text(", tensor parallel ", plan.tensor_parallel[s]);
        if (plan.context_parallel > 1) out += text(", context parallel ", plan.context_parallel);
        if (plan.context_heads > 1) out += text(", heads over ", plan.context_heads);
        if (how.recomputes(s)) {
            std::set<std::uint32_t> segments, again;
            for (auto const op : operators) {
                segments.insert(how.segment_of(op));
                if (how.computes_again(op)) again.insert(how.segment_of(op));
            }
            out +=
                text(", computes again in ", again.size() < segments.size() ? text(again.size(), " of ") : "", counted(segments.size(), "segment"));
        }
        if (auto const [offloaded, all] = offloaded_segments(how, s); offloaded > 0)
            out += text(", offloads ", offloaded < all ? text(offloaded, " of ") : "", counted(all, "segment"));
        out += '\n';
    }
    return out;
}

} // namespace parsearch::pipeline
