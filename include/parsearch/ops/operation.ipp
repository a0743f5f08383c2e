#pragma once
// What an operator is: an iteration space and the operands that it indexes.

#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE void validate(operation const& op, std::string_view where) {
    auto const place = text("operator '", where, "' (", op.kind, "): ");
    if (op.dims.size() > max_dims) throw invalid_input(place, op.dims.size(), " iteration dims: at most ", max_dims, " are supported");
    if (op.kind.empty()) throw invalid_input(place, "its kind is empty: operators that differ must have kinds that differ");
    for (std::size_t k = 0; k < op.dims.size(); ++k) {
        if (op.dims[k].name.empty()) throw invalid_input(place, "dim ", k, " has an empty name: each dim must have a name of its own");
        for (std::size_t other = 0; other < k; ++other)
            if (op.dims[k].name == op.dims[other].name)
                throw invalid_input(place, "dims ", other, " and ", k, " are both named '", op.dims[k].name,
                                    "': each dim must have a name of its own");
    }
    for (auto const& d : op.dims)
        if (d.extent < 1) throw invalid_input(place, "dim '", d.name, "' has extent ", d.extent, ": must be at least 1");
    auto const not_negative = [&](double v, std::string_view what) {
        if (!(v >= 0) || v > 1e300) throw invalid_input(place, what, " is ", v, ": must be finite and not negative");
    };
    not_negative(op.flops, "flops");
    not_negative(op.multiply_adds, "multiply_adds");
    not_negative(op.backward_flops, "backward_flops");
    not_negative(op.saved_bytes, "saved_bytes");
    not_negative(op.intermediate_bytes, "intermediate_bytes");
    not_negative(op.backward_intermediate_bytes, "backward_intermediate_bytes");
    auto const among = [&](double part, double all, std::string_view name, std::string_view of) {
        not_negative(part, name);
        if (part > all) throw invalid_input(place, name, " is ", part, ": must be at most ", of, ", ", all);
    };
    among(op.product_flops, op.flops, "product_flops", "flops");
    among(op.backward_product_flops, op.backward_flops, "backward_product_flops", "backward_flops");
    bool const all_products = op.work == work_class::matmul || op.work == work_class::convolution;
    if (op.product_flops > 0 && all_products)
        throw invalid_input(place, "product_flops is ", op.product_flops, ": must be 0 where work is ", name_of(op.work), ", whose flops all are");
    if (op.backward_product_flops > 0 && op.product_flops == 0)
        throw invalid_input(place, "backward_product_flops is ", op.backward_product_flops, ": must be 0 where product_flops is");
    auto const said = [](char c) { return (c >= 'a' && c <= 'z') || c == ' ' || c == ','; };
    if (!std::all_of(op.variant.begin(), op.variant.end(), said))
        throw invalid_input(place, "variant is '", op.variant, "': must be of small letters, blanks and commas");
    auto const has = [&](dim_kind k) { return std::count_if(op.dims.begin(), op.dims.end(), [&](auto const& d) { return d.kind == k; }); };
    for (auto const k : {dim_kind::copies, dim_kind::sums})
        if (has(k) > 1) throw invalid_input(place, has(k), " dims of ", k == dim_kind::copies ? "copies" : "partial sums", ": at most one");
    if (std::any_of(op.inputs.begin(), op.inputs.end(), [](auto const& o) { return o.summed; }) != (has(dim_kind::sums) == 1))
        throw invalid_input(place, has(dim_kind::sums), " dims of partial sums for inputs of which ", has(dim_kind::sums) ? "none is" : "some are",
                            " summed: must be one where there are such inputs, else none");
    auto const check = [&](std::vector<operand> const& operands, std::string_view role) {
        for (auto const& o : operands) {
            if (o.summed && role != "input") throw invalid_input(place, role, " '", o.name, "' is summed: inputs alone may be");
            if (o.cache && role != "weight") throw invalid_input(place, role, " '", o.name, "' is a cache: weights alone may be");
            if (o.cache && !o.parameter.empty())
                throw invalid_input(place, "cache '", o.name, "' is parameter '", o.parameter, "': each operator has caches of its own");
            not_negative(o.gradient_flops, "gradient_flops");
            if (o.touched_bytes != o.touched_bytes || o.touched_bytes > 1e300)
                throw invalid_input(place, role, " '", o.name, "' has touched_bytes ", o.touched_bytes,
                                    ": must be finite, or negative for all of it");
            double elements = 1;
            for (auto const& a : o.axes) {
                if (a.extent < 1) throw invalid_input(place, role, " '", o.name, "' has an axis of extent ", a.extent, ": must be at least 1");
                if (a.span < 1) throw invalid_input(place, role, " '", o.name, "' has an axis of span ", a.span, ": must be at least 1");
                elements *= static_cast<double>(a.extent);
                double reach = static_cast<double>(a.span) + (a.offset < 0 ? -1.0 : 1.0) * static_cast<double>(a.offset);
                for (auto const& t : a.terms) {
                    if (t.dim >= op.dims.size() || t.stride < 1)
                        throw invalid_input(place, role, " '", o.name, "' has a term of dim ", t.dim, " and stride ", t.stride,
                                            ": the dim must exist and the stride be at least 1");
                    if (repeats_work(op.dims[t.dim].kind))
                        throw invalid_input(place, role, " '", o.name, "' has a term of dim '", op.dims[t.dim].name,
                                            "', which repeats work: it must index nothing");
                    reach += static_cast<double>(t.stride) * static_cast<double>(op.dims[t.dim].extent - 1);
                }
                if (reach > 4e18) throw invalid_input(place, role, " '", o.name, "' has an axis that reaches to ", reach, ": must be below 4e18");
            }
            if (elements * static_cast<double>(size_of(o.type)) > 4e18)
                throw invalid_input(place, role, " '", o.name, "' has ", elements, " elements: more than 64 bits of bytes");
        }
    };
    check(op.inputs, "input");
    check(op.weights, "weight");
    check(op.outputs, "output");
    // What the iteration space writes of an axis must be all of it: terms by stride, each filling up what those before it cover.
    for (auto const& o : op.outputs)
        for (auto const& a : o.axes) {
            if (a.terms.empty()) continue;
            auto terms = a.terms;
            std::sort(terms.begin(), terms.end(), [](auto const& x, auto const& y) { return x.stride < y.stride; });
            bool gaps = a.offset > 0;
            auto covered = a.span;
            for (auto const& t : terms) {
                gaps = gaps || t.stride > covered;
                covered += t.stride * (op.dims[t.dim].extent - 1);
            }
            if (gaps || a.offset + covered < a.extent)
                throw invalid_input(place, "output '", o.name, "' has an axis of extent ", a.extent,
                                    " of which the iteration space writes only a part within [", a.offset, ", ", a.offset + covered,
                                    "): must be all of it");
        }
    if (op.outputs.empty()) throw invalid_input(place, "no output: an operator has at least one");
}

} // namespace parsearch::ops
