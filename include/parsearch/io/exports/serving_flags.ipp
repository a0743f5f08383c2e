#pragma once
// Plans of inference as command lines of what serves: vLLM. See docs/run.md for what it cannot say.

#include <algorithm>
#include <string>
#include <string_view>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/flags_file.hpp>
#include <parsearch/io/exports/serving_flags.hpp>
#include <parsearch/io/exports/textbook_plan.hpp>
#include <parsearch/space/textbook/expert_parallel.hpp>

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
    // Not `t.samples`: a mixture may have tokens of several sequences in one.
    auto const tokens = std::ranges::find(p.graph.operations, ops::work_class::source, &ops::operation::work);
    flags.add("--max-num-seqs", tokens->outputs.front().axes.front().extent * p.plan.how.micro_batches / t.data);
    using ops::dtype;
    if (detail::has_type(p, dtype::f64)) throw wrong("weights are f64: it has float32 at most");
    auto const type = detail::has_type(p, dtype::bf16) ? "bfloat16" : detail::has_type(p, dtype::f16) ? "float16" : "float32";
    flags.add("--dtype", type);
    if (detail::has_type(p, dtype::i8)) flags.note("weights of i8 are of the model's own quantization, not of these flags");
    flags.add("--gpu-memory-utilization", 1 - p.options.memory_kept_free);
    if (std::ranges::any_of(t.layers, [&](auto n) { return n != t.layers.front(); })) {
        std::string layers;
        for (auto const n : t.layers) layers += text(layers.empty() ? "" : ",", n);
        flags.note(text("stages have different numbers of layers: export VLLM_PP_LAYER_PARTITION=", layers));
    }
    if (t.groups > 1) flags.note("it divides samples into micro-batches by itself");
    flags.write(out);
}

} // namespace parsearch::io
