#pragma once
// An operation and the elementwise one behind it as one operation: what is between them is never written.

#include <parsearch/ops/shard.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>
#include <parsearch/rewrite/algebra/fuse.hpp>

namespace parsearch::rewrite::detail {

/// Why nothing may be fused to `producer`; empty where something may.
PARSEARCH_INLINE std::string unfusible(ops::operation const& producer) {
    if (producer.outputs.size() != 1) return text(producer.kind, " has ", producer.outputs.size(), " outputs: must have one");
    if (producer.work == ops::work_class::source || producer.work == ops::work_class::view)
        return text(producer.kind, " computes nothing: there is no work to fuse to");
    return {};
}

/// `producer` with what `stage`, which reads its output as input `slot`, adds to it, but for further operands and the kind.
PARSEARCH_INLINE ops::operation with_stage(ops::operation producer, ops::operation const& stage, std::size_t slot, bool additive) {
    auto& y = producer.outputs[0];
    auto const& between = stage.inputs[slot];
    // Both keep the tensor between them as an operand; now it is none, and is kept beside them.
    if (y.saved || between.saved) producer.saved_bytes += static_cast<double>(ops::bytes_of(y));
    auto const amounts = ops::amounts_of(producer);
    auto const added = ops::amounts_of(stage);
    for (std::size_t i = 0; i < amounts.size(); ++i) *amounts[i] += *added[i];
    y.saved = stage.outputs[0].saved;
    y.type = stage.outputs[0].type;
    y.differentiable = stage.outputs[0].differentiable;
    // The gradient of what is between the two is needed in any case: for every input and every weight.
    if (between.differentiable) producer.backward_flops += between.gradient_flops;
    if (producer.work == ops::work_class::memory) producer.work = ops::work_class::elementwise;
    // f(a + b) is not f(a) + f(b): what is summed must be summed whole before.
    if (!additive)
        for (std::size_t k = 0; k < producer.dims.size(); ++k)
            if (!ops::is_indexed_by(y, k)) producer.dims[k].kind = ops::dim_kind::fixed;
    return producer;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE outcome<ops::operation> fused(ops::operation const& producer, ops::operation const& function) {
    if (auto why = detail::unfusible(producer); !why.empty()) return refusal{std::move(why)};
    if (!is_unary(function)) return refused(function.kind, " is no function of single elements of one tensor");
    auto const &y = producer.outputs[0], &x = function.inputs[0];
    if (!(ops::tensor_of(y) == ops::tensor_of(x)))
        return refused(function.kind, " reads ", ops::to_string(ops::tensor_of(x)), ": ", producer.kind, " makes ",
                       ops::to_string(ops::tensor_of(y)));
    if (y.differentiable && !x.differentiable) return refused("no gradient flows through ", function.kind);
    auto out = detail::with_stage(producer, function, 0, is_additive(function.kind));
    if (producer.kind == "batch_norm" && function.kind == "relu" && producer.inputs.size() == 1) {
        out.kind = "batch_norm_relu";
        out.inputs[0].gradient_flops += out.backward_flops;
        out.backward_flops = 0;
    } else {
        out.kind = text(producer.kind, '+', function.kind);
    }
    return out;
}

PARSEARCH_INLINE outcome<ops::operation> fused(ops::operation const& producer, ops::operation const& combination, std::size_t slot) {
    if (auto why = detail::unfusible(producer); !why.empty()) return refusal{std::move(why)};
    if (!reads_another(combination.kind) || combination.work != ops::work_class::elementwise || combination.inputs.size() != 2 ||
        !combination.weights.empty() || combination.outputs.size() != 1)
        return refused(combination.kind, " of ", combination.inputs.size(), " inputs and ", combination.weights.size(),
                       " weights: only an add or multiply of two inputs can be fused");
    if (slot > 1) return refused("a combination of two inputs has no input ", slot);
    auto const& y = producer.outputs[0];
    auto const& other = combination.inputs[1 - slot];
    for (auto const* o : {&combination.inputs[0], &combination.inputs[1], &combination.outputs[0]})
        if (!(ops::tensor_of(*o) == ops::tensor_of(y)) || o->axes != combination.outputs[0].axes || !is_plain(combination, *o))
            return refused(combination.kind, " of ", ops::to_string(ops::tensor_of(combination.inputs[0])), " and ",
                           ops::to_string(ops::tensor_of(combination.inputs[1])), ": both must be ", ops::to_string(ops::tensor_of(y)), ", what ",
                           producer.kind, " makes");
    if (y.differentiable && !combination.inputs[slot].differentiable) return refused("no gradient flows through ", combination.kind);
    auto further = other;
    further.name = text("x", producer.inputs.size());
    further.axes = y.axes;
    auto out = detail::with_stage(producer, combination, slot, false);
    out.inputs.push_back(std::move(further));
    out.kind = text(producer.kind, '+', combination.kind);
    return out;
}

} // namespace parsearch::rewrite
