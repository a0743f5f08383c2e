#pragma once
/// Operators with functions, sums or products of single elements fused behind them, as `rewrite::fused` makes them: "linear+gelu", "conv2d+add+relu".

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/ops/elementwise.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>

#include "shard.hpp"

namespace parsearch::profiler::detail {

/// A stage of a fused operator, and what one element of it takes.
struct stage {
    std::string kind;
    bool reads_another = false; ///< a further input of the operator
    bool keeps_input = false, keeps_output = false, keeps_mask = false;
    bool passes_gradient_on = false;
    double forward = 0, backward = 0; ///< flops
};

/// A stage that the library does not make has no arithmetic where `any` may be, else it throws `no_lowering`.
[[nodiscard]] inline stage stage_of(shard const& s, std::string const& kind, bool any) {
    for (auto const& f : ops::function_table)
        if (f.name == kind)
            return {.kind = kind, .keeps_input = f.keeps_input, .keeps_output = f.keeps_output, .forward = f.forward, .backward = f.backward};
    if (kind == "add") return {.kind = kind, .reads_another = true, .passes_gradient_on = true, .forward = 1};
    if (kind == "multiply") return {.kind = kind, .reads_another = true, .keeps_input = true, .forward = 1, .backward = 2};
    if (kind == ops::dropout::kind) return {.kind = kind, .keeps_mask = true, .forward = 2, .backward = 2};
    s.expect(kind == "cast" || any, text("stage '", kind, "' has no lowering"));
    return {.kind = kind};
}

/// An operator before its stages were fused to it.
struct unfused {
    std::vector<stage> stages{};
    ops::operation base{};
};

[[nodiscard]] inline unfused unfused_of(shard const& s, bool any) {
    auto parts = rewrite::parts_of(s.op().kind);
    unfused out{.stages = {}, .base = s.op()};
    auto& base = out.base;
    base.kind = std::move(parts.base);
    auto const elements = static_cast<double>(ops::elements_of(base.outputs.at(0)));
    for (auto const& kind : parts.stages) {
        auto& added = out.stages.emplace_back(stage_of(s, kind, any));
        s.expect(!added.reads_another || !base.inputs.empty(), "has fewer inputs than its stages read");
        if (added.reads_another) base.inputs.pop_back();
        base.flops = std::max(0.0, base.flops - added.forward * elements);
        base.backward_flops = std::max(0.0, base.backward_flops - added.backward * elements);
        auto const* const own = !base.weights.empty() ? &base.weights[0] : !base.inputs.empty() ? &base.inputs[0] : nullptr;
        if (kind == "cast" && own) base.outputs[0].type = own->type;
    }
    return out;
}

/// The stages from number `first` on, behind an array in memory that holds what the stage before makes: in one launch. It is joined to what `out`
/// ends with where that is a stream of the same elements.
inline void append_stages(launches& out, shard const& s, unfused const& u, std::size_t first) {
    if (first == u.stages.size()) return;
    auto const& y = s.op().outputs[0];
    auto const size = s.elements(y);
    auto const type = u.base.outputs[0].type;
    streaming added;
    double flops = 0;
    auto another = u.base.inputs.size();
    for (std::size_t i = 0; i < u.stages.size(); ++i) {
        auto const& now = u.stages[i];
        if (i >= first && now.reads_another) added.reads.push_back({size, s.op().inputs[another].type});
        another += now.reads_another;
        if (i < first) continue;
        flops += now.forward;
        if (now.keeps_mask) added.writes.push_back({size, ops::dtype::i8});
        if (i + 1 < u.stages.size() && (now.keeps_output || u.stages[i + 1].keeps_input)) added.writes.push_back({size, type});
    }
    added.writes.push_back({size, y.type});
    auto* const last = out.empty() ? nullptr : std::get_if<streaming>(&out.back());
    auto const kept = static_cast<std::size_t>(u.stages[first].keeps_input); // of what `out` ends with, which nobody writes any more
    if (last && last->writes == std::vector<stream>{{size, type}} && last->reads.size() + added.reads.size() <= max_streams &&
        added.writes.size() + kept <= max_streams) {
        last->reads.insert(last->reads.end(), added.reads.begin(), added.reads.end());
        last->writes = std::move(added.writes);
        last->writes.insert(last->writes.end(), kept, {size, type});
        last->flops += std::llround(flops);
        return;
    }
    added.reads.insert(added.reads.begin(), {size, type});
    append_streaming(out, std::move(added.reads), std::move(added.writes), flops * static_cast<double>(size));
}

/// The gradients of all stages, in one launch: that of the base's result and those of further inputs.
inline void append_stage_gradients(launches& out, shard const& s, unfused const& u) {
    auto const& y = s.op().outputs[0];
    auto const size = s.elements(y);
    auto const type = u.base.outputs[0].type;
    std::vector<stream> reads{{size, y.type}}, writes;
    if (std::ranges::any_of(u.stages, [](stage const& g) { return !g.passes_gradient_on; })) writes.push_back({size, type});
    double flops = 0;
    auto another = u.base.inputs.size();
    for (std::size_t i = 0; i < u.stages.size(); ++i) {
        auto const& now = u.stages[i];
        bool const kept_before = i > 0 && u.stages[i - 1].keeps_output;
        flops += now.backward;
        if (now.keeps_mask) reads.push_back({size, ops::dtype::i8});
        if (now.keeps_input || kept_before) reads.push_back({size, type});
        if (i + 1 == u.stages.size() && now.keeps_output) reads.push_back({size, y.type});
        if (!now.reads_another) continue;
        if (now.keeps_input) reads.push_back({size, s.op().inputs[another].type});
        if (s.wants(another)) writes.push_back({size, s.op().inputs[another].type});
        ++another;
    }
    if (!writes.empty()) append_streaming(out, std::move(reads), std::move(writes), flops * static_cast<double>(size));
}

/// True where a product can end in the stage.
[[nodiscard]] inline activation epilogue_of(stage const& s) noexcept {
    return s.kind == "relu" ? activation::relu : s.kind == "gelu" ? activation::gelu : activation::none;
}

/// `u` is what `s` was fused of; `lower_base` makes the launches of the base, whose shard it is given. A product that they end with takes relu or
/// gelu into its epilogue; stages that are left run in one launch, also behind others. Backward, one launch comes before those of the base.
template <class LowerBase> [[nodiscard]] launches lower_fused(shard const& s, unfused const& u, LowerBase const& lower_base) {
    auto const work = ops::work_of(u.base, {s.work().degrees.data(), u.base.dims.size()}, s.work().pass,
                                   s.backward() ? s.work().input_gradients : ~std::uint64_t{0});
    launches out;
    if (s.backward()) append_stage_gradients(out, s, u);
    auto const base = lower_base(shard(work));
    out.insert(out.end(), base.begin(), base.end());
    if (s.backward()) return out;
    std::size_t first = 0;
    if (auto* const product = out.empty() ? nullptr : std::get_if<matmul>(&out.back()))
        if (product->then = epilogue_of(u.stages[0]); product->then != activation::none) first = 1;
    append_stages(out, s, u, first);
    return out;
}

} // namespace parsearch::profiler::detail
