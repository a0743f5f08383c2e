#pragma once
/// The translators that come with the library.

#include <parsearch/io/onnx/translators/attention_nodes.hpp>
#include <parsearch/io/onnx/translators/elementwise_nodes.hpp>
#include <parsearch/io/onnx/translators/expert_nodes.hpp>
#include <parsearch/io/onnx/translators/lookup_nodes.hpp>
#include <parsearch/io/onnx/translators/normalization_nodes.hpp>
#include <parsearch/io/onnx/translators/product_nodes.hpp>
#include <parsearch/io/onnx/translators/recognised_nodes.hpp>
#include <parsearch/io/onnx/translators/recurrent_nodes.hpp>
#include <parsearch/io/onnx/translators/reduction_nodes.hpp>
#include <parsearch/io/onnx/translators/shape_nodes.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/io/onnx/translators/window_nodes.hpp>

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
    add_experts(known);
    add_recognised(known);
    return known;
}

} // namespace parsearch::io::onnx
