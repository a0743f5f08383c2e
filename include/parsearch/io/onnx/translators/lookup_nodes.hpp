#pragma once
/// Translators of look-ups, and of tensors that are known before the iteration.

#include <cstdint>
#include <optional>
#include <vector>

#include <parsearch/io/onnx/translators/shape_nodes.hpp>
#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/indexing.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// The first of known indices that follow each other, or nothing. Throws where one lies outside of the axis.
inline std::optional<std::int64_t> first_of_run(translation const& t, std::size_t i, std::int64_t extent) {
    auto const* const list = t.has_input(i) ? integers_of(t.net(), t.node().inputs[i]) : nullptr;
    if (!list || list->empty() || t.rank(i) > 1) return std::nullopt;
    std::optional<std::int64_t> first;
    bool run = true;
    for (std::size_t k = 0; k < list->size(); ++k) {
        auto const index = (*list)[k], at = index < 0 ? index + extent : index;
        if (at < 0 || at >= extent)
            throw invalid_input("index ", index, ": must be between ", -extent, " and ", extent - 1, " for an axis of extent ", extent);
        if (!first) first = at;
        run = run && at == *first + static_cast<std::int64_t>(k);
    }
    return run ? first : std::nullopt;
}

/// Rows of a trained table are an embedding, whatever the indices, and so are those of a table that is not trained, of indices that vary; a run of
/// known indices is a slice.
inline void translate_gather(translation& t) {
    auto const& data = t.extents(0);
    auto const at = ops::kit::axis_number("axis", t.integer("axis", 0), data.size());
    auto const axis = static_cast<std::int64_t>(at);
    bool const frozen = t.is_fixed(0) && !t.is_fixed(1) && ops::kit::is_floating(t.shape(0).type);
    if ((t.is_parameter(0) || frozen) && data.size() == 2 && at == 0 && t.rank(1) > 0) {
        t.emit(ops::embedding{.entries = data[0], .features = data[1], .type = t.shape(0).type}, {t.input(1)}, {t.input(0)});
        return;
    }
    if (auto const first = first_of_run(t, 1, data[at])) {
        auto const count = t.rank(1) ? t.extents(1)[0] : 1;
        argument part = t.input(0);
        if (count != data[at]) part = t.emit(ops::slice{.axis = axis, .begin = *first, .end = *first + count}, part);
        if (t.rank(1)) return t.output(0, part);
        auto shape = data;
        shape.erase(shape.begin() + axis);
        return t.output(0, t.as("reshape").emit(ops::reshape{std::move(shape)}, part));
    }
    t.emit(ops::gather{.axis = axis}, t.input(0), t.input(1));
}

/// Truth values where the indices are those of the last (or `axis`) axis.
inline void translate_one_hot(translation& t) {
    auto const depth = required(t, "depth", 1);
    if (depth.size() != 1) throw invalid_input("has ", depth.size(), " depths: must have one");
    auto shape = t.extents(0);
    auto const at = ops::kit::axis_number("axis", t.integer("axis", -1), shape.size() + 1);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), 1);
    integer_list places(shape.size() - at, 1);
    places[0] = depth[0];
    auto const entries = t.source("entries", {.extents = places, .type = t.shape(0).type});
    auto const hit = t.as("equal").emit(ops::nary{ops::combine::compare}, t.reshaped(t.input(0), shape), entries);
    t.emit(ops::cast{t.shape(2).type}, hit);
}

/// What was not folded away, though it depends on no data.
inline void translate_known(translation& t) {
    auto const* const shape = t.known_output(0);
    if (!shape) throw invalid_input("the shape of its output is not known");
    t.output(0, t.source("value", *shape));
}
} // namespace detail

/// Gather, GatherElements, GatherND, ScatterElements, ScatterND, OneHot; Range, ConstantOfShape, Shape, ... where they were not folded.
inline void add_lookup(operators& known) {
    known.add("", "Gather", detail::translate_gather);
    known.add("", "GatherElements", [](translation& t) { t.emit(ops::gather_elements{.axis = t.integer("axis", 0)}, t.input(0), t.input(1)); });
    known.add("", "GatherND", [](translation& t) { t.emit(ops::gather_nd{.batch_axes = t.integer("batch_dims", 0)}, t.input(0), t.input(1)); });
    known.add("", {"ScatterElements", "Scatter"},
              [](translation& t) { t.emit(ops::scatter_elements{.axis = t.integer("axis", 0)}, t.input(0), t.input(1), t.input(2)); });
    known.add("", "ScatterND", [](translation& t) { t.emit(ops::scatter_nd{}, t.input(0), t.input(1), t.input(2)); });
    known.add("", "OneHot", detail::translate_one_hot);
    known.add("",
              {"Constant", "ConstantOfShape", "Range", "Shape", "Size", "EyeLike", "RandomNormal", "RandomNormalLike", "RandomUniform",
               "RandomUniformLike"},
              detail::translate_known);
}

} // namespace parsearch::io::onnx
