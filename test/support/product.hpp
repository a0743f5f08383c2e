#pragma once
/// A matrix product described by hand, for tests that need some operator and none of the built-in ones.

#include <cstdint>
#include <string>

#include <parsearch/ops/operation.hpp>

namespace support {

/// y[m, n] = sum over k of x[m, k] w[n, k].
inline parsearch::ops::operation product(std::int64_t m, std::int64_t n, std::int64_t k, parsearch::ops::dtype type = parsearch::ops::dtype::f32) {
    using namespace parsearch::ops;
    operation op{.kind = "product", .work = work_class::matmul};
    op.dims = {{"m", m, dim_kind::sample}, {"n", n, dim_kind::parameter}, {"k", k, dim_kind::reduction}};
    auto const matrix = [&](std::string name, std::uint32_t row, std::uint32_t column) {
        operand o{.name = std::move(name), .type = type};
        for (auto const d : {row, column}) o.axes.push_back({.extent = op.dims[d].extent, .terms = {{d, 1}}});
        o.gradient_flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
        return o;
    };
    op.inputs = {matrix("x", 0, 2)};
    op.inputs[0].saved = true;
    op.weights = {matrix("w", 1, 2)};
    op.outputs = {matrix("y", 0, 1)};
    op.flops = op.weights[0].gradient_flops;
    op.multiply_adds = op.flops / 2;
    return op;
}

} // namespace support
