#pragma once
/// What the models of the zoo are put together from: checks of options, chains of operators, the loss.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models::detail {

using graph::operator_graph;
using graph::tensor_ref;

/// Throws `invalid_input` unless `least <= value <= 2^28`: so bounded, products of two options and small factors stay within 64 bits.
inline void check_size(std::string_view model, std::string_view option, std::int64_t value, std::int64_t least = 1) {
    if (value < least) throw invalid_input(model, ": ", option, " is ", value, ": must be at least ", least);
    if (value > std::int64_t{1} << 28) throw invalid_input(model, ": ", option, " is ", value, ": must be at most 2^28");
}

/// Throws `invalid_input` unless 1 <= value <= 65536: the bound of what a model makes operators of.
inline void check_count(std::string_view model, std::string_view option, std::int64_t value) {
    check_size(model, option, value);
    if (value > 65536) throw invalid_input(model, ": ", option, " is ", value, ": must be at most 65536");
}

/// Throws `invalid_input` unless `value` is a positive multiple of the positive `divisor`.
inline void check_multiple(std::string_view model, std::string_view option, std::int64_t value, std::string_view by, std::int64_t divisor) {
    check_size(model, option, value);
    check_size(model, by, divisor);
    if (value % divisor) throw invalid_input(model, ": ", option, " is ", value, ": must be a multiple of ", by, ", which is ", divisor);
}

/// Throws `invalid_input` unless activations can be of type `type`.
inline void check_floating(std::string_view model, ops::dtype type) {
    if (!ops::kit::is_floating(type)) throw invalid_input(model, ": type is ", ops::name_of(type), ": must be a floating-point type");
}

/// Throws `invalid_input` unless 0 <= value < 1.
inline void check_probability(std::string_view model, std::string_view option, double value) {
    if (!(value >= 0 && value < 1)) throw invalid_input(model, ": ", option, " is ", value, ": must be at least 0 and below 1");
}

/// A graph that grows at tensor `end`: `net.then("fc1", ops::linear{.out = 10}).then("relu1", relu)`.
struct chain {
    operator_graph& graph;
    tensor_ref end;
    template <ops::ShapedOperator Op> chain& then(std::string name, Op const& op) {
        end = graph.add(std::move(name), op, end);
        return *this;
    }
};

inline constexpr ops::unary relu{ops::function::relu};

/// Dropout at the end of `net`; a rate of 0 adds nothing.
inline void drop(chain& net, std::string name, double rate) {
    if (rate > 0) net.then(std::move(name), ops::dropout{.rate = rate});
}

/// Elementwise sum of two tensors, as in a residual connection.
inline tensor_ref sum(operator_graph& g, std::string name, tensor_ref a, tensor_ref b) {
    return g.add(std::move(name), ops::nary{ops::combine::add}, a, b);
}

/// The graph input of a model for RGB images, [batch, 3, image, image], once its options are checked.
template <class Options> tensor_ref images(operator_graph& g, std::string_view model, Options const& o, std::int64_t least_image) {
    check_size(model, "image", o.image, least_image);
    check_size(model, "classes", o.classes);
    check_size(model, "batch", o.batch);
    if constexpr (requires { o.dropout; }) check_probability(model, "dropout", o.dropout);
    check_floating(model, o.type);
    return g.input("images", {{o.batch, 3, o.image, o.image}, o.type});
}

/// Convolution without bias, batch normalization and, if `activate`, ReLU.
tensor_ref normalized_conv(operator_graph& g, std::string const& name, tensor_ref x, ops::conv2d conv, bool activate = true);

/// The loss of `logits`, [..., classes], against a graph input of labels, [...]. Names: "labels" and "loss", then `suffix`.
void add_loss(operator_graph& g, tensor_ref logits, std::string const& suffix = {});

/// Whether a language model is trained, or generates text behind `cached` tokens that it has seen.
struct generation {
    bool inference = false;
    std::int64_t cached = 0;
};
[[nodiscard]] inline generation checked_generation(std::string_view model, bool inference, std::int64_t cached) {
    check_size(model, "cached", cached, 0);
    if (cached && !inference) throw invalid_input(model, ": cached is ", cached, ": must be 0 where inference is false");
    return {inference, cached};
}

/// Of the tokens of each sample, [batch, sequence, hidden], those whose followers are wanted: in inference the last.
inline void take_predicting(chain& net, generation const& how) {
    if (auto const length = net.graph.shape(net.end).extents[1]; how.inference && length > 1)
        net.then("last", ops::slice{.axis = 1, .begin = length - 1, .end = length});
}
/// The end of a language model: the loss, where it is trained.
inline void finish(chain const& net, generation const& how) {
    if (!how.inference) add_loss(net.graph, net.end);
}

} // namespace parsearch::models::detail

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/parts/layers.ipp>
#endif
