#pragma once
// Plans of inference as command lines of what serves: vLLM. See docs/run.md for what it cannot say.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/flags_file.hpp>
#include <parsearch/io/exports/serving_flags.hpp>
#include <parsearch/io/exports/textbook_plan.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/space/textbook/expert_parallel.hpp>

namespace parsearch::io::detail {

/// Of a micro-batch. Not `textbook_plan::samples`: a mixture may have tokens of several sequences in one. Precondition: some operator is attention.
[[nodiscard]] inline std::int64_t sequences_of(exported_plan const& p) {
    auto const attention = std::ranges::find(p.graph.operations, ops::work_class::attention, &ops::operation::work);
    auto const samples = std::ranges::find(attention->dims, ops::dim_kind::sample, &ops::dim::kind);
    return samples != attention->dims.end() ? samples->extent : 1;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE void write_vllm_flags(std::ostream& out, exported_plan const& p) {
    constexpr std::string_view runtime = "vLLM";
    auto const wrong = [&](auto const&... why) { return detail::takes_no_such(runtime, why...); };
    if (p.options.training) throw wrong("it is of training: the runtime serves, --inference plans that");
    auto const t = textbook_of(p, runtime);
    if (!detail::has_layers(t.layers)) throw wrong("no operator is attention: it serves transformers");
    if (t.context > 1) throw wrong("context parallelism is ", t.context, ": it splits no positions of a pass, must be 1");
    if (t.interleaved > 1) throw wrong(t.interleaved, " stages are on each group of devices: it runs one");
    bool const mixture = space::experts_of(p.graph) > 1;
    auto const engines = t.tensor * t.data;
    if (mixture && t.experts != engines && (t.experts > 1 || t.data > 1))
        throw wrong("experts are split over ", t.experts, " of the ", engines,
                    " devices of a stage: it splits them over all, or with one replica as other layers, must be ", engines,
                    t.data > 1 ? "" : " or 1");
    detail::flags_file flags;
    flags.note(text("vLLM, ", p.notes.model, " on ", p.notes.topology, ": vllm serve MODEL $(grep -v '^#' FILE)"));
    flags.add("--tensor-parallel-size", t.tensor);
    flags.add("--pipeline-parallel-size", t.groups);
    flags.add("--data-parallel-size", t.data);
    if (mixture && t.experts > 1) flags.add("--enable-expert-parallel");
    auto const sequences = detail::sequences_of(p) * p.plan.how.micro_batches;
    if (sequences % t.data != 0) throw wrong(sequences, " sequences on ", t.data, " replicas: must be whole ones on each");
    flags.add("--max-num-seqs", sequences / t.data);
    flags.note("not said: --max-model-len, and --max-num-batched-tokens of a prefill, which its passes may not exceed");
    using ops::dtype;
    if (detail::has_type(p, dtype::f64)) throw wrong("weights are f64: it has float32 at most");
    auto const type = detail::has_type(p, dtype::bf16) ? "bfloat16" : detail::has_type(p, dtype::f16) ? "float16" : "float32";
    flags.add("--dtype", type);
    if (detail::has_type(p, dtype::i8)) flags.note("weights of i8 are of the model's own quantization, not of these flags");
    flags.add("--gpu-memory-utilization", std::round(1e4 * (1 - p.options.memory_kept_free)) / 1e4);
    if (std::ranges::any_of(t.layers, [&](auto n) { return n != t.layers.front(); })) {
        std::string layers;
        for (auto const n : t.layers) layers += text(layers.empty() ? "" : ",", n);
        flags.note(text("stages have different numbers of layers: export VLLM_PP_LAYER_PARTITION=", layers));
    }
    if (t.groups > 1) flags.note("it divides samples into micro-batches by itself");
    if (auto const node = static_cast<std::uint32_t>(detail::node_size(p)); node < p.topology.size()) {
        if (t.groups == 1 && t.data > 1 && node % t.tensor == 0) {
            flags.add("--data-parallel-size-local", node / t.tensor);
            flags.note("on each node: with --data-parallel-address of the first, on the others --headless and --data-parallel-start-rank, too");
        } else {
            flags.note(text("over nodes of ", node, " devices: --distributed-executor-backend ray on a cluster of Ray"));
        }
    }
    flags.write(out);
}

} // namespace parsearch::io
