#pragma once
// Convolutions in another form: with a larger kernel, and with the batch normalization behind them folded in.

#include <parsearch/rewrite/algebra/attributes.hpp>
#include <parsearch/rewrite/algebra/convolve.hpp>
#include <parsearch/rewrite/algebra/fuse.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE outcome<enlargement> enlarged(ops::operation const& conv, std::span<std::int64_t const> kernel, purpose use,
                                               bool border_stays_zero) {
    auto const windows = read_windows(conv);
    if (!windows) return refused(conv.kind, " is no convolution");
    if (use == purpose::training && !border_stays_zero) return refused("in training the border of the larger kernel would not stay zero");
    if (kernel.size() != windows->size()) return refused(kernel.size(), " kernel extents: ", conv.kind, " has ", windows->size(), " spatial axes");
    if (!conv.weights[0].parameter.empty())
        return refused("weight '", conv.weights[0].name, "' of ", conv.kind, " is parameter '", conv.weights[0].parameter,
                       "', which others may share");
    enlargement out{.operation = conv};
    auto& op = out.operation;
    double before = 1, after = 1;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
        auto const& w = (*windows)[i];
        auto const more = kernel[i] - w.kernel;
        if (kernel[i] < w.kernel || more % 2 || kernel[i] > ops::kit::largest_extent)
            return refused("kernel ", w.kernel, " can not be written as ", kernel[i], ": it must grow by an even number");
        auto& x = op.inputs[0].axes[2 + i];
        x.offset -= more / 2 * w.dilation;
        x.span += more * w.dilation;
        op.weights[0].axes[2 + i].extent = kernel[i];
        out.border.push_back(more / 2);
        before *= static_cast<double>(w.kernel);
        after *= static_cast<double>(kernel[i]);
    }
    auto const products = conv.multiply_adds / before * after, more = 2 * (products - conv.multiply_adds);
    op.multiply_adds = products;
    op.flops += more;
    op.inputs[0].gradient_flops += more;
    op.weights[0].gradient_flops += more;
    return out;
}

PARSEARCH_INLINE outcome<ops::operation> folded(ops::operation const& producer, ops::operation const& norm, purpose use) {
    if (use == purpose::training) return refused("in training the statistics of a batch normalization depend on the batch: folding is for inference");
    auto const kind = parts_of(norm.kind);
    bool const relu = kind.stages == std::vector<std::string>{"relu"};
    if (kind.base != "batch_norm" || !(relu || kind.stages.empty()) || norm.inputs.size() != 1 || norm.weights.size() != 2 ||
        norm.outputs.size() != 1)
        return refused(norm.kind, " is no batch normalization with scale and offset");
    if (producer.kind != "conv1d" && producer.kind != "conv2d" && producer.kind != "linear")
        return refused(producer.kind, " is no convolution or linear layer");
    if (producer.outputs.size() != 1 || producer.inputs.size() != 1 || producer.weights.empty() || producer.weights.size() > 2)
        return refused(producer.kind, " of ", producer.inputs.size(), " inputs and ", producer.weights.size(),
                       " weights has another form than expected");
    auto const& y = producer.outputs[0];
    if (!(ops::tensor_of(y) == ops::tensor_of(norm.inputs[0])))
        return refused(norm.kind, " reads ", ops::to_string(ops::tensor_of(norm.inputs[0])), ": ", producer.kind, " makes ",
                       ops::to_string(ops::tensor_of(y)));
    if (y.axes.size() < 2 || !(y.axes[1] == producer.weights[0].axes[0]))
        return refused("axis 1 of what ", producer.kind, " makes is not that of its weights");
    auto out = producer;
    for (auto& w : out.weights) w.parameter.clear();
    if (out.weights.size() == 1) {
        auto bias = out.weights[0];
        bias.name = "bias";
        bias.axes = {y.axes[1]};
        bias.gradient_flops = static_cast<double>(ops::elements_of(y));
        out.flops += bias.gradient_flops;
        out.weights.push_back(std::move(bias));
    }
    if (!relu) return out;
    std::vector<ops::tensor> const made{ops::tensor_of(y)};
    return fused(out, ops::relu{}.infer(made));
}

} // namespace parsearch::rewrite
