#pragma once
/// The numbers by which ONNX names element types (`TensorProto.DataType`), without protobuf.

#include <cstdint>
#include <optional>

#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::io::onnx {

using ops::kit::is_floating;

/// The library's type of the elements: booleans and bytes are i8, narrow and unsigned integers the next wider. Nothing for strings,
/// complex numbers and types of less than a byte, which the library does not have.
[[nodiscard]] constexpr std::optional<ops::dtype> dtype_numbered(std::int64_t number) noexcept {
    switch (number) {
    case 1: return ops::dtype::f32;
    case 2:
    case 3:
    case 9: return ops::dtype::i8; // uint8, int8, bool
    case 4:
    case 5:
    case 6:
    case 12: return ops::dtype::i32; // uint16, int16, int32, uint32
    case 7:
    case 13: return ops::dtype::i64; // int64, uint64
    case 10: return ops::dtype::f16;
    case 11: return ops::dtype::f64;
    case 16: return ops::dtype::bf16;
    default: return std::nullopt;
    }
}

} // namespace parsearch::io::onnx
