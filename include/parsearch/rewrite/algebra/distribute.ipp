#pragma once
// Sums of products and products of sums: distributivity, of contractions whose operands the axes tell.

#include <numeric>

#include <parsearch/rewrite/algebra/distribute.hpp>
#include <parsearch/rewrite/algebra/merge.hpp>

namespace parsearch::rewrite::detail {

/// The number of weights that are factors: a bias of linear and convolutions is none.
[[nodiscard]] inline std::size_t factor_weights(ops::operation const& op) noexcept {
    bool const biased = (op.kind == "linear" || op.kind == "conv1d" || op.kind == "conv2d") && op.weights.size() == 2;
    return op.weights.size() - (biased ? 1 : 0);
}

/// Why `op` is no plain contraction; empty where it is.
[[nodiscard]] inline std::string no_contraction(ops::operation const& op) {
    if (!is_contraction(op)) return text(op.kind, " is no contraction");
    if (!parts_of(op.kind).stages.empty()) return text(op.kind, " is no plain contraction: functions of a sum are not sums");
    return {};
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE ops::operation unbiased(ops::operation op) {
    if (factor_weights(op) == op.weights.size()) return op;
    op.flops -= op.weights.back().gradient_flops; // an addition per result, forward and backward
    op.weights.pop_back();
    return op;
}

/// The axes along reduction dim `d` of the inputs, then of the weights that are factors: all must have one.
PARSEARCH_INLINE outcome<std::vector<std::size_t>> summed_axes(ops::operation const& op, std::uint32_t d) {
    auto const& dim = op.dims[d];
    if (dim.kind != ops::dim_kind::reduction || ops::is_indexed_by(op.outputs[0], d))
        return refused("dim '", dim.name, "' of ", op.kind, " is not summed over");
    std::vector<std::size_t> axes;
    auto const all = op.inputs.size() + factor_weights(op);
    for (std::size_t i = 0; i < all; ++i) {
        auto const& o = i < op.inputs.size() ? op.inputs[i] : op.weights[i - op.inputs.size()];
        auto const a = blocks_along(op, o, d);
        if (!a) return refused("dim '", dim.name, "' of ", op.kind, " does not count consecutive blocks of one axis of '", o.name, '\'');
        if (i >= op.inputs.size() && !o.parameter.empty())
            return refused("weight '", o.name, "' of ", op.kind, " is parameter '", o.parameter, "', which others may share");
        axes.push_back(*a);
    }
    return axes;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE outcome<joining> joined_sum(std::span<ops::operation const> terms, purpose use) {
    if (terms.size() < 2) return refused(terms.size(), " terms: at least two can be joined");
    std::optional<std::uint32_t> d;
    std::vector<std::size_t> biases;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        if (auto why = detail::no_contraction(terms[i]); !why.empty()) return refusal{std::move(why)};
        auto const differing = detail::differing_dim(terms[0], terms[i]);
        if (!differing) return refusal{differing.why()};
        if (*differing && d && *d != **differing) return refused(terms[0].kind, " differ in more than one dim");
        if (*differing) d = *differing;
        if (detail::factor_weights(terms[i]) < terms[i].weights.size()) biases.push_back(i);
    }
    if (biases.size() > 1 && use == purpose::training) return refused(biases.size(), " terms have a bias: in training they are not one");
    outcome<std::vector<std::size_t>> axes = refused(terms[0].kind, " has no reduction dim");
    if (d) axes = detail::summed_axes(terms[0], *d);
    else
        for (std::uint32_t k = 0; k < terms[0].dims.size() && !axes; ++k)
            if (terms[0].dims[k].kind == ops::dim_kind::reduction)
                if (axes = detail::summed_axes(terms[0], k); axes) d = k;
    if (!axes) return refusal{axes.why()};

    auto const biased = biases.empty() ? 0 : biases[0];
    joining out{.operation = terms[biased], .dim = *d, .biases = biases};
    auto const factors = out.operation.inputs.size() + detail::factor_weights(out.operation);
    for (std::size_t i = 0; i < terms.size(); ++i) {
        auto const& op = terms[i];
        out.sizes.push_back(op.dims[*d].extent);
        if (!detail::summed_axes(op, *d)) return refusal{detail::summed_axes(op, *d).why()};
        if (op.inputs.size() + detail::factor_weights(op) != factors) return refused(op.kind, " have different numbers of factors");
        auto const& first = out.operation;
        for (std::size_t k = 0; k < factors; ++k) {
            bool const input = k < op.inputs.size();
            auto const& mine = input ? first.inputs[k] : first.weights[k - op.inputs.size()];
            auto const& other = input ? op.inputs[k] : op.weights[k - op.inputs.size()];
            if (!detail::alike(mine, other, d)) return refused("operands '", mine.name, "' of ", op.kind, " are not indexed the same way");
        }
        if (!detail::alike(first.outputs[0], op.outputs[0], std::nullopt)) return refused(op.kind, " have different outputs");
    }
    if (!detail::may_add_up(out.sizes)) return refused("dim '", terms[0].dims[*d].name, "' would be longer than 2^40");
    auto const span = std::span(*axes);
    out.inputs = detail::cuts(out.operation.inputs, span.first(out.operation.inputs.size()), out.sizes);
    auto const weights = detail::factor_weights(out.operation);
    out.weights = detail::cuts(std::span(out.operation.weights).first(weights), span.subspan(out.operation.inputs.size()), out.sizes);
    auto bias = out.operation.weights.size() > weights ? std::optional(out.operation.weights.back()) : std::nullopt;
    if (bias && !bias->parameter.empty() && biases.size() > 1) return refused("bias '", bias->parameter, "' may be shared with others");
    auto all = detail::unbiased(out.operation);
    for (std::size_t i = 0; i < terms.size(); ++i)
        if (i != biased) detail::add_work(all, detail::unbiased(terms[i]));
    detail::resize(all, *d, std::accumulate(out.sizes.begin(), out.sizes.end(), std::int64_t{0}));
    if (bias) {
        all.flops += bias->gradient_flops;
        all.weights.push_back(std::move(*bias));
    }
    out.operation = std::move(all);
    return out;
}

PARSEARCH_INLINE outcome<sum_parting> parted_sum(ops::operation const& op, std::uint32_t d, std::span<std::int64_t const> sizes) {
    if (d >= op.dims.size()) return refused(op.kind, " has no dim ", d);
    if (auto why = detail::no_contraction(op); !why.empty()) return refusal{std::move(why)};
    auto const axes = detail::summed_axes(op, d);
    if (!axes) return refusal{axes.why()};
    std::int64_t left = op.dims[d].extent;
    for (auto const n : sizes) {
        if (n < 1 || n > left) return refused("parts of dim '", op.dims[d].name, "' must be at least 1 and add up to ", op.dims[d].extent);
        left -= n;
    }
    if (sizes.size() < 2 || left) return refused("two or more parts of dim '", op.dims[d].name, "' must add up to ", op.dims[d].extent);
    sum_parting out{.sum = detail::sum_of(op.outputs[0], sizes.size())};
    auto const factors = detail::factor_weights(op);
    for (auto const n : sizes) {
        auto part = detail::unbiased(op);
        detail::scale_work(part, n, op.dims[d].extent);
        detail::resize(part, d, n);
        if (out.parts.empty() && factors < op.weights.size()) {
            part.flops += op.weights.back().gradient_flops;
            part.weights.push_back(op.weights.back());
        }
        out.parts.push_back(std::move(part));
    }
    out.inputs = detail::cuts(op.inputs, std::span(*axes).first(op.inputs.size()), sizes);
    out.weights = detail::cuts(std::span(op.weights).first(factors), std::span(*axes).subspan(op.inputs.size()), sizes);
    return out;
}

PARSEARCH_INLINE outcome<factoring> factored(std::span<ops::operation const> terms, std::size_t input) {
    if (terms.size() < 2) return refused(terms.size(), " terms: at least two can be factored");
    auto const& first = terms[0];
    if (auto why = detail::no_contraction(first); !why.empty()) return refusal{std::move(why)};
    if (input >= first.inputs.size()) return refused(first.kind, " of ", first.inputs.size(), " inputs has no input ", input);
    if (detail::factor_weights(first) != first.weights.size()) return refused("terms with a bias have no common factor");
    if (first.inputs.size() + first.weights.size() < 2) return refused(first.kind, " of one operand has no factor");
    for (auto const& w : first.weights)
        if (w.parameter.empty()) return refused("weight '", w.name, "' has no parameter name: the terms do not share it");
    for (auto const& op : terms)
        if (!(op == first)) return refused("the terms are not equal: they have no common factor");
    return factoring{.sum = detail::sum_of(first.inputs[input], terms.size()), .product = first};
}

PARSEARCH_INLINE outcome<distribution> distributed(ops::operation const& sum, ops::operation const& product, std::size_t input,
                                                   std::string_view parameter) {
    if (!detail::is_plain_sum(sum)) return refused(sum.kind, " is no sum of tensors of one shape");
    if (auto why = detail::no_contraction(product); !why.empty()) return refusal{std::move(why)};
    if (input >= product.inputs.size()) return refused(product.kind, " of ", product.inputs.size(), " inputs has no input ", input);
    if (!(ops::tensor_of(sum.outputs[0]) == ops::tensor_of(product.inputs[input])))
        return refused("the sum is ", ops::to_string(ops::tensor_of(sum.outputs[0])), ": ", product.kind, " reads ",
                       ops::to_string(ops::tensor_of(product.inputs[input])));
    auto shared = product;
    for (std::size_t w = 0; w < detail::factor_weights(shared); ++w)
        if (auto& o = shared.weights[w]; o.parameter.empty()) {
            if (parameter.empty()) return refused("weight '", o.name, "' has no parameter name to be shared by");
            o.parameter = text(parameter, '.', o.name);
        }
    distribution out{.sum = detail::sum_of(product.outputs[0], sum.inputs.size())};
    out.products.push_back(shared);
    out.products.resize(sum.inputs.size(), detail::unbiased(shared));
    return out;
}

} // namespace parsearch::rewrite
