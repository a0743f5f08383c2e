#pragma once
/// The values of the nodes that make constants: Constant and ConstantOfShape.

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/io/onnx/file/proto.hpp>
#include <parsearch/io/onnx/lower/fold_tensors.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx {

/// The value of `p`, a Constant; `n` is its name in messages. Throws `invalid_input` for constants that are not numbers.
[[nodiscard]] inline typed_tensor constant_of(node const& n, pb::NodeProto const& p) {
    if (p.attribute_size() != 1) throw invalid_input(shown(n), ": ", p.attribute_size(), " attributes: must be one, the value");
    auto const& a = p.attribute(0);
    if (a.name() == "value") return read_tensor(a.t(), shown(n));
    auto const value = read_attribute(a, shown(n));
    typed_tensor t{.shape = {.extents = {}, .type = ops::dtype::f32}, .element = pb::TensorProto::FLOAT, .contents = {}};
    auto const set = [&](auto elements, bool list) {
        if (list) t.shape.extents = {static_cast<std::int64_t>(elements.size())};
        if (elements.size() <= max_folded) t.contents = std::make_shared<constant const>(constant{std::move(elements)});
    };
    auto const integer = [&] {
        t.shape.type = ops::dtype::i64;
        t.element = pb::TensorProto::INT64;
    };
    if (!value) throw invalid_input(shown(n), ": attribute '", a.name(), "' holds a graph: must be numbers");
    if (auto const* const i = std::get_if<std::int64_t>(&*value)) integer(), set(std::vector{*i}, false);
    else if (auto const* const f = std::get_if<double>(&*value)) set(std::vector{*f}, false);
    else if (auto const* const is = std::get_if<std::vector<std::int64_t>>(&*value)) integer(), set(*is, true);
    else if (auto const* const fs = std::get_if<std::vector<double>>(&*value)) set(*fs, true);
    else throw invalid_input(shown(n), ": attribute '", a.name(), "' does not hold numbers");
    return t;
}

/// The value of `p`, a ConstantOfShape, of shape `extents`: without contents where they are more than `max_folded`.
[[nodiscard]] inline typed_tensor filled(node const& n, pb::NodeProto const& p, std::vector<std::int64_t> const& extents) {
    typed_tensor t{.shape = {.extents = extents, .type = ops::dtype::f32}, .element = pb::TensorProto::FLOAT, .contents = {}};
    constant filling{std::vector<double>{0}};
    for (auto const& a : p.attribute()) {
        auto const value = read_tensor(a.t(), shown(n));
        if (!value.contents || value.contents->size() != 1) throw invalid_input(shown(n), ": attribute 'value' must hold one element");
        t.shape.type = value.shape.type;
        t.element = value.element;
        filling = *value.contents;
    }
    auto const count = checked_elements(t.shape.extents, shown(n), 0);
    if (count <= static_cast<std::int64_t>(max_folded))
        t.contents = std::make_shared<constant const>(folding::taken(filling, std::vector<std::size_t>(static_cast<std::size_t>(count))));
    return t;
}

} // namespace parsearch::io::onnx
