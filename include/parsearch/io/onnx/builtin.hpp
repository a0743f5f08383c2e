#pragma once
/// The translators that come with the library.

#include <parsearch/io/onnx/operators.hpp>
#include <parsearch/io/onnx/translators/attention.hpp>
#include <parsearch/io/onnx/translators/elementwise.hpp>
#include <parsearch/io/onnx/translators/lookup.hpp>
#include <parsearch/io/onnx/translators/normalization.hpp>
#include <parsearch/io/onnx/translators/products.hpp>
#include <parsearch/io/onnx/translators/recognised.hpp>
#include <parsearch/io/onnx/translators/recurrent.hpp>
#include <parsearch/io/onnx/translators/reduction.hpp>
#include <parsearch/io/onnx/translators/shape.hpp>
#include <parsearch/io/onnx/translators/windows.hpp>

namespace parsearch::io::onnx {

/// The translators of all families, each of which lists its operators where it adds them. A value of the caller's own, to add to.
[[nodiscard]] inline operators builtin_operators() {
    operators known;
    add_windows(known);
    add_products(known);
    add_elementwise(known);
    add_shape(known);
    add_reduction(known);
    add_lookup(known);
    add_normalization(known);
    add_recurrent(known);
    add_attention(known);
    add_recognised(known);
    return known;
}

} // namespace parsearch::io::onnx
