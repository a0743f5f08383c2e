#pragma once
/// What the tests of rewrites share: operations run on random residues, and small loops written without an iteration space.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/lab/reference/reference.hpp>
#include <parsearch/ops/all_operators.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>

#include "support/cases.hpp"
#include "support/random_operators.hpp"

namespace support {

namespace reference = parsearch::rewrite::reference;
using arrays = std::vector<reference::array>;

template <class R> arrays random_arrays(std::vector<parsearch::ops::operand> const& operands, R& rng) {
    arrays out;
    for (auto const& o : operands) out.push_back(reference::random_array(parsearch::ops::tensor_of(o).extents, rng));
    return out;
}

/// Everything that an operation makes of its operands, given the gradients of its outputs.
struct ran {
    arrays outputs, input_gradients, weight_gradients;
};
inline ran run(parsearch::ops::operation const& op, arrays const& x, arrays const& w, arrays const& g,
               parsearch::rewrite::purpose use = parsearch::rewrite::purpose::training) {
    auto back = reference::gradients_of(op, x, w, g, use);
    return {reference::outputs_of(op, x, w, use), std::move(back.inputs), std::move(back.weights)};
}
inline arrays outputs(parsearch::ops::operation const& op, arrays const& x, arrays const& w = {},
                      parsearch::rewrite::purpose use = parsearch::rewrite::purpose::training) {
    return reference::outputs_of(op, x, w, use);
}

/// a + b, element by element.
inline reference::array added(reference::array a, reference::array const& b) {
    for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = reference::sum(a.values[i], b.values[i]);
    return a;
}

/// Element of a row-major array.
inline std::int64_t& element(reference::array& a, std::initializer_list<std::int64_t> at) {
    std::int64_t n = 0;
    auto e = a.extents.begin();
    for (auto const i : at) n = n * *e++ + i;
    return a.values[static_cast<std::size_t>(n)];
}
inline std::int64_t element(reference::array const& a, std::initializer_list<std::int64_t> at) {
    return element(const_cast<reference::array&>(a), at);
}

/// Calls `body(rng, drawer)` for every one of `count` random cases of a test, fewer under sanitizers; a failure shows seed and number.
template <class Body> void on_random(std::uint64_t seed, int count, Body&& body) {
    parsearch::split_mix rng(seed);
    parsearch::test::drawer d(rng);
    for (int i = 0; i < cases(count); ++i) {
        CAPTURE(seed);
        CAPTURE(i);
        body(rng, d);
    }
}

/// What cut `c` makes of `a`, and what makes it whole.
inline arrays cut_up(reference::array const& a, parsearch::rewrite::cut const& c) {
    arrays out;
    std::int64_t begin = 0;
    for (auto const n : c.sizes) {
        out.push_back(reference::part(a, c.axis, begin, n));
        begin += n;
    }
    return out;
}
inline reference::array rejoined(arrays const& parts, parsearch::rewrite::cut const& c) { return reference::joined(parts, c.axis); }

/// Operand number `k` of each.
inline arrays column(std::vector<arrays> const& rows, std::size_t k) {
    arrays out;
    for (auto const& row : rows) out.push_back(row[k]);
    return out;
}

/// A small operation of one output that the reference knows: a contraction, convolution, normalization, pooling, lookup, combination or move.
template <class R> parsearch::ops::operation random_known_operation(parsearch::test::drawer<R>& d) {
    using namespace parsearch;
    using test::random_application;
    for (;;) {
        auto const op = [&]() -> ops::operation {
            switch (d.between(0, 13)) {
            case 0: return random_application<ops::linear>::draw(d).infer();
            case 1: return random_application<ops::conv2d>::draw(d).infer();
            case 2: return random_application<ops::conv1d>::draw(d).infer();
            case 3: return random_application<ops::einsum>::draw(d).infer();
            case 4: return random_application<ops::batched_matmul>::draw(d).infer();
            case 5: return random_application<ops::layer_norm>::draw(d).infer();
            case 6: return random_application<ops::batch_norm>::draw(d).infer();
            case 7: return random_application<ops::softmax>::draw(d).infer();
            case 8: return random_application<ops::embedding>::draw(d).infer();
            case 9: return random_application<ops::concat>::draw(d).infer();
            case 10: return ops::reduce{.axes = {0}}.infer(std::vector{d.floats(2, 3)});
            case 11: return ops::nary{d.coin() ? ops::combine::add : ops::combine::multiply}.infer(std::vector(2, d.floats(1, 3)));
            case 12: return random_application<ops::transpose>::draw(d).infer();
            default:
                return ops::pool2d{.mode = ops::pool_mode::average, .kernel = {2, 2}, .padding = {1, 1}}.infer(std::vector{d.floats(d.extents(4))});
            }
        }();
        auto const floating = [](auto const& o) { return ops::kit::is_floating(o.type); };
        if (floating(op.outputs[0])) return op;
    }
}

} // namespace support
