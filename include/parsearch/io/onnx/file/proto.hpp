#pragma once
/// What is read of ONNX's protobuf messages one by one: element types, tensors, attributes.

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <onnx/onnx_pb.h>

#include <parsearch/core/error.hpp>
#include <parsearch/io/onnx/network/element_types.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::io::onnx {

/// The messages of the ONNX schema.
namespace pb = ::onnx;

/// The most elements of a constant whose contents are held.
inline constexpr std::size_t max_folded = 65'536;
/// The most axes, the largest extent and the most elements of a tensor.
inline constexpr std::size_t max_rank = 32;
inline constexpr std::int64_t max_extent = std::int64_t{1} << 40;
inline constexpr std::int64_t max_elements = std::int64_t{1} << 56;
/// The longest name.
inline constexpr std::size_t max_name = 4096;

/// An element type as the file numbers it (`TensorProto.DataType`).
using element_type = std::int32_t;

/// The library's type of the elements, as `dtype_numbered`. Throws `invalid_input` beginning with `place` where there is none.
[[nodiscard]] inline ops::dtype dtype_of(element_type t, std::string_view place) {
    if (auto const known = dtype_numbered(t)) return *known;
    switch (t) {
    case pb::TensorProto::UNDEFINED: throw invalid_input(place, ": no element type is given");
    case pb::TensorProto::STRING: throw invalid_input(place, ": elements are strings: must be numbers");
    case pb::TensorProto::COMPLEX64:
    case pb::TensorProto::COMPLEX128: throw invalid_input(place, ": elements are complex numbers: must be real");
    default: throw invalid_input(place, ": element type ", t, " of ONNX is not supported");
    }
}

/// The file's number of a type.
[[nodiscard]] constexpr element_type element_of(ops::dtype t) noexcept {
    switch (t) {
    case ops::dtype::f64: return pb::TensorProto::DOUBLE;
    case ops::dtype::f16: return pb::TensorProto::FLOAT16;
    case ops::dtype::bf16: return pb::TensorProto::BFLOAT16;
    case ops::dtype::i64: return pb::TensorProto::INT64;
    case ops::dtype::i32: return pb::TensorProto::INT32;
    case ops::dtype::i8: return pb::TensorProto::INT8;
    case ops::dtype::f32:
    case ops::dtype::tf32: break;
    }
    return pb::TensorProto::FLOAT;
}

/// Elements of a tensor. Throws `invalid_input` beginning with `place` where there are too many axes or elements, or an extent is below `least`.
[[nodiscard]] inline std::int64_t checked_elements(std::span<std::int64_t const> extents, std::string_view place, std::int64_t least) {
    if (extents.size() > max_rank) throw invalid_input(place, ": has ", extents.size(), " axes: at most ", max_rank, " are supported");
    std::int64_t n = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        auto const e = extents[i];
        if (e < least || e > max_extent) throw invalid_input(place, ": the extent of axis ", i, " is ", e, ": must be in [", least, ", 2^40]");
        if (e > 0 && n > max_elements / e) throw invalid_input(place, ": has more than 2^56 elements");
        n *= e;
    }
    return n;
}

/// The value of an IEEE half or a bfloat16.
[[nodiscard]] inline double half_value(std::uint16_t bits) noexcept {
    auto const exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double const sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31) return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
    double scale = 1.0 / (1 << 24); // of subnormals
    for (int i = 1; i < exponent; ++i) scale *= 2;
    return sign * scale * (exponent == 0 ? fraction : fraction + 1024);
}
[[nodiscard]] inline double bfloat_value(std::uint16_t bits) noexcept {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

/// Shape, element type and, where they are known, elements of a tensor.
struct typed_tensor {
    ops::tensor shape;
    element_type element = 0;
    std::shared_ptr<constant const> contents; ///< nothing where they lie outside the file, are left out, or are more than `max_folded`
};

namespace detail {

/// `count` little-endian elements of type `Stored` as numbers of type `Number`.
template <class Stored, class Number, class Convert> std::vector<Number> unpack(std::string const& raw, std::size_t count, Convert convert) {
    std::vector<Number> out(count);
    for (std::size_t i = 0; i < count; ++i) {
        Stored x;
        std::memcpy(&x, raw.data() + i * sizeof(Stored), sizeof(Stored));
        out[i] = convert(x);
    }
    return out;
}

template <class Number, class Field, class Convert> std::vector<Number> converted(Field const& field, Convert convert) {
    std::vector<Number> out;
    out.reserve(static_cast<std::size_t>(field.size()));
    for (auto const x : field) out.push_back(convert(x));
    return out;
}

[[nodiscard]] constexpr std::size_t stored_bytes(element_type t) noexcept {
    switch (t) {
    case pb::TensorProto::DOUBLE:
    case pb::TensorProto::INT64:
    case pb::TensorProto::UINT64: return 8;
    case pb::TensorProto::FLOAT:
    case pb::TensorProto::INT32:
    case pb::TensorProto::UINT32: return 4;
    case pb::TensorProto::FLOAT16:
    case pb::TensorProto::BFLOAT16:
    case pb::TensorProto::INT16:
    case pb::TensorProto::UINT16: return 2;
    default: return 1;
    }
}

[[nodiscard]] inline std::int64_t signed_of(std::uint64_t x, std::string_view place) {
    if (x > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        throw invalid_input(place, ": element ", x, " is more than 2^63 - 1");
    return static_cast<std::int64_t>(x);
}

/// Elements that are stored as raw bytes.
[[nodiscard]] inline constant raw_contents(pb::TensorProto const& t, std::size_t n, std::string_view place) {
    auto const& raw = t.raw_data();
    auto const integer = [](auto x) { return static_cast<std::int64_t>(x); };
    auto const number = [](auto x) { return static_cast<double>(x); };
    switch (t.data_type()) {
    case pb::TensorProto::FLOAT: return {unpack<float, double>(raw, n, number)};
    case pb::TensorProto::DOUBLE: return {unpack<double, double>(raw, n, number)};
    case pb::TensorProto::FLOAT16: return {unpack<std::uint16_t, double>(raw, n, half_value)};
    case pb::TensorProto::BFLOAT16: return {unpack<std::uint16_t, double>(raw, n, bfloat_value)};
    case pb::TensorProto::BOOL: return {unpack<std::uint8_t, std::int64_t>(raw, n, [](std::uint8_t x) { return std::int64_t{x != 0}; })};
    case pb::TensorProto::UINT8: return {unpack<std::uint8_t, std::int64_t>(raw, n, integer)};
    case pb::TensorProto::INT8: return {unpack<std::int8_t, std::int64_t>(raw, n, integer)};
    case pb::TensorProto::INT16: return {unpack<std::int16_t, std::int64_t>(raw, n, integer)};
    case pb::TensorProto::UINT16: return {unpack<std::uint16_t, std::int64_t>(raw, n, integer)};
    case pb::TensorProto::INT32: return {unpack<std::int32_t, std::int64_t>(raw, n, integer)};
    case pb::TensorProto::UINT32: return {unpack<std::uint32_t, std::int64_t>(raw, n, integer)};
    case pb::TensorProto::UINT64: return {unpack<std::uint64_t, std::int64_t>(raw, n, [&](std::uint64_t x) { return signed_of(x, place); })};
    default: return {unpack<std::int64_t, std::int64_t>(raw, n, integer)};
    }
}

/// Elements that are stored in the field of their type.
[[nodiscard]] inline constant field_contents(pb::TensorProto const& t, std::string_view place) {
    auto const number = [](auto x) { return static_cast<double>(x); };
    switch (t.data_type()) {
    case pb::TensorProto::FLOAT: return {converted<double>(t.float_data(), number)};
    case pb::TensorProto::DOUBLE: return {converted<double>(t.double_data(), number)};
    case pb::TensorProto::FLOAT16:
        return {converted<double>(t.int32_data(), [](std::int32_t x) { return half_value(static_cast<std::uint16_t>(x)); })};
    case pb::TensorProto::BFLOAT16:
        return {converted<double>(t.int32_data(), [](std::int32_t x) { return bfloat_value(static_cast<std::uint16_t>(x)); })};
    case pb::TensorProto::BOOL: return {converted<std::int64_t>(t.int32_data(), [](std::int32_t x) { return std::int64_t{x != 0}; })};
    case pb::TensorProto::UINT32:
    case pb::TensorProto::UINT64: return {converted<std::int64_t>(t.uint64_data(), [&](std::uint64_t x) { return signed_of(x, place); })};
    case pb::TensorProto::INT64: return {converted<std::int64_t>(t.int64_data(), [](std::int64_t x) { return x; })};
    default: return {converted<std::int64_t>(t.int32_data(), [](std::int32_t x) { return std::int64_t{x}; })};
    }
}

/// The number of elements in the field of the tensor's type.
[[nodiscard]] inline std::int64_t field_size(pb::TensorProto const& t) noexcept {
    switch (t.data_type()) {
    case pb::TensorProto::FLOAT: return t.float_data_size();
    case pb::TensorProto::DOUBLE: return t.double_data_size();
    case pb::TensorProto::INT64: return t.int64_data_size();
    case pb::TensorProto::UINT32:
    case pb::TensorProto::UINT64: return t.uint64_data_size();
    default: return t.int32_data_size();
    }
}

} // namespace detail

/// A tensor of a file; data that lie outside of it are not opened. Throws `invalid_input` beginning with `place` where the contents
/// are not as many as the extents say or the elements are of an unsupported type.
[[nodiscard]] inline typed_tensor read_tensor(pb::TensorProto const& t, std::string_view place) {
    typed_tensor out{
        .shape = {.extents = {t.dims().begin(), t.dims().end()}, .type = dtype_of(t.data_type(), place)}, .element = t.data_type(), .contents = {}};
    auto const n = checked_elements(out.shape.extents, place, 0);
    if (t.has_segment()) throw invalid_input(place, ": is stored in segments, which is not supported");
    if (t.data_location() == pb::TensorProto::EXTERNAL) return out;
    bool const raw = t.has_raw_data() && (!t.raw_data().empty() || n == 0);
    auto const fields = detail::field_size(t);
    if (!raw && fields == 0 && n > 0) return out; // weights left out
    auto const bytes = static_cast<std::int64_t>(detail::stored_bytes(out.element));
    if (raw ? n > max_elements / bytes || static_cast<std::int64_t>(t.raw_data().size()) != n * bytes : fields != n)
        throw invalid_input(place, ": holds ", raw ? static_cast<std::int64_t>(t.raw_data().size()) : fields, raw ? " bytes" : " elements", ", but ",
                            ops::to_string(out.shape), " has ", n, " elements", raw ? text(" of ", bytes, " bytes") : "");
    if (n <= static_cast<std::int64_t>(max_folded))
        out.contents =
            std::make_shared<constant const>(raw ? detail::raw_contents(t, static_cast<std::size_t>(n), place) : detail::field_contents(t, place));
    return out;
}

/// An attribute of a node; nothing where it holds a graph. Throws `invalid_input` beginning with `place` for the kinds that no supported operator
/// has.
[[nodiscard]] inline std::optional<attribute> read_attribute(pb::AttributeProto const& a, std::string_view place) {
    auto const where = [&] { return text(place, ": attribute '", a.name(), "'"); };
    switch (a.type()) {
    case pb::AttributeProto::FLOAT: return attribute{static_cast<double>(a.f())};
    case pb::AttributeProto::INT: return attribute{a.i()};
    case pb::AttributeProto::STRING: return attribute{a.s()};
    case pb::AttributeProto::FLOATS: return attribute{detail::converted<double>(a.floats(), [](float x) { return static_cast<double>(x); })};
    case pb::AttributeProto::INTS: return attribute{std::vector<std::int64_t>(a.ints().begin(), a.ints().end())};
    case pb::AttributeProto::STRINGS: return attribute{std::vector<std::string>(a.strings().begin(), a.strings().end())};
    case pb::AttributeProto::TENSOR: {
        auto const t = read_tensor(a.t(), where());
        if (!t.contents)
            throw invalid_input(where(), " is a tensor of ", ops::to_string(t.shape), " whose elements are not in the file or are more than ",
                                max_folded);
        return attribute{tensor_attribute{t.shape.extents, *t.contents}};
    }
    case pb::AttributeProto::GRAPH:
    case pb::AttributeProto::GRAPHS: return std::nullopt;
    case pb::AttributeProto::UNDEFINED: throw invalid_input(where(), " has no kind");
    default: throw invalid_input(where(), " is of kind ", static_cast<int>(a.type()), " of ONNX, which is not supported");
    }
}

} // namespace parsearch::io::onnx
