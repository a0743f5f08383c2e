#include <parsearch/io/onnx/file/proto.hpp>

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>

#include "support/onnx_models.hpp"
#include "support/refusal.hpp"

namespace io = parsearch::io::onnx;
namespace ops = parsearch::ops;
using io::pb::AttributeProto;
using io::pb::TensorProto;
using support::refusal;

namespace {

template <class T> TensorProto raw(int type, std::vector<T> const& values, std::vector<std::int64_t> const& dims) {
    TensorProto t;
    t.set_data_type(type);
    for (auto const d : dims) t.add_dims(d);
    t.set_raw_data(std::string(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)));
    return t;
}
std::vector<double> numbers(io::typed_tensor const& t) {
    std::vector<double> out;
    for (std::size_t i = 0; i < t.contents->size(); ++i) out.push_back(t.contents->number(i));
    return out;
}

} // namespace

TEST_CASE("element types become the library's, by their width") {
    CHECK(io::dtype_of(TensorProto::FLOAT, "x") == ops::dtype::f32);
    CHECK(io::dtype_of(TensorProto::BFLOAT16, "x") == ops::dtype::bf16);
    CHECK(io::dtype_of(TensorProto::BOOL, "x") == ops::dtype::i8);
    CHECK(io::dtype_of(TensorProto::UINT8, "x") == ops::dtype::i8);
    CHECK(io::dtype_of(TensorProto::INT16, "x") == ops::dtype::i32);
    CHECK(io::dtype_of(TensorProto::UINT32, "x") == ops::dtype::i32);
    CHECK(io::dtype_of(TensorProto::UINT64, "x") == ops::dtype::i64);
    CHECK(refusal([] { return io::dtype_of(TensorProto::STRING, "input 'x'"); }) == "input 'x': elements are strings: must be numbers");
    CHECK(refusal([] { return io::dtype_of(TensorProto::COMPLEX64, "x"); }).find("complex") != std::string::npos);
    CHECK(refusal([] { return io::dtype_of(17, "x"); }) == "x: element type 17 of ONNX is not supported");
    CHECK(refusal([] { return io::dtype_of(0, "x"); }) == "x: no element type is given");
    for (auto const t : {ops::dtype::f64, ops::dtype::f32, ops::dtype::f16, ops::dtype::bf16, ops::dtype::i64, ops::dtype::i32, ops::dtype::i8})
        CHECK(io::dtype_of(io::element_of(t), "x") == t);
    CHECK(io::element_of(ops::dtype::tf32) == TensorProto::FLOAT);
}

TEST_CASE("halves and bfloats have the values of their bits") {
    CHECK(io::half_value(0x3c00) == 1);
    CHECK(io::half_value(0xc500) == -5);
    CHECK(io::half_value(0x0001) == std::ldexp(1.0, -24));
    CHECK(io::half_value(0x03ff) == std::ldexp(1023.0, -24));
    CHECK(io::half_value(0x0400) == std::ldexp(1.0, -14));
    CHECK(io::half_value(0x7bff) == 65504);
    CHECK(io::half_value(0xfc00) == -std::numeric_limits<double>::infinity());
    CHECK(std::isnan(io::half_value(0x7e00)));
    CHECK(io::bfloat_value(0x3f80) == 1);
    CHECK(io::bfloat_value(0xc040) == -3);
}

TEST_CASE("tensors are read from raw bytes and from the field of their type alike") {
    CHECK(numbers(io::read_tensor(raw<std::int64_t>(TensorProto::INT64, {1, -2, 3}, {3}), "t")) == std::vector<double>{1, -2, 3});
    CHECK(numbers(io::read_tensor(raw<std::int32_t>(TensorProto::INT32, {7, -8}, {2}), "t")) == std::vector<double>{7, -8});
    CHECK(numbers(io::read_tensor(raw<std::uint8_t>(TensorProto::UINT8, {0, 255}, {2}), "t")) == std::vector<double>{0, 255});
    CHECK(numbers(io::read_tensor(raw<std::int8_t>(TensorProto::INT8, {-1}, {1}), "t")) == std::vector<double>{-1});
    CHECK(numbers(io::read_tensor(raw<std::uint8_t>(TensorProto::BOOL, {0, 2}, {2}), "t")) == std::vector<double>{0, 1});
    CHECK(numbers(io::read_tensor(raw<std::uint16_t>(TensorProto::FLOAT16, {0x3c00, 0xc500}, {2}), "t")) == std::vector<double>{1, -5});
    CHECK(numbers(io::read_tensor(raw<float>(TensorProto::FLOAT, {0.5F, -2}, {2}), "t")) == std::vector<double>{0.5, -2});
    CHECK(numbers(io::read_tensor(raw<double>(TensorProto::DOUBLE, {0.1}, {}), "t")) == std::vector<double>{0.1});

    TensorProto half;
    half.set_data_type(TensorProto::FLOAT16);
    half.add_dims(1);
    half.add_int32_data(0x3c00);
    CHECK(numbers(io::read_tensor(half, "t")) == std::vector<double>{1});
    TensorProto whole;
    whole.set_data_type(TensorProto::UINT64);
    whole.add_dims(2);
    whole.add_uint64_data(9);
    whole.add_uint64_data(10);
    CHECK(numbers(io::read_tensor(whole, "t")) == std::vector<double>{9, 10});
    whole.set_uint64_data(1, ~std::uint64_t{0});
    CHECK(refusal([&] { return io::read_tensor(whole, "t"); }) == "t: element 18446744073709551615 is more than 2^63 - 1");
}

TEST_CASE("tensors without contents in the file have a shape") {
    TensorProto t;
    t.set_data_type(TensorProto::FLOAT);
    t.add_dims(1000);
    t.add_dims(4000);
    CHECK(ops::to_string(io::read_tensor(t, "t").shape) == "f32[1000,4000]");
    CHECK_FALSE(io::read_tensor(t, "t").contents);
    t.set_data_location(TensorProto::EXTERNAL);
    auto& where = *t.add_external_data();
    where.set_key("location");
    where.set_value("/etc/passwd");
    CHECK_FALSE(io::read_tensor(t, "t").contents);

    auto const many =
        raw<std::uint8_t>(TensorProto::UINT8, std::vector<std::uint8_t>(io::max_folded + 1), {static_cast<std::int64_t>(io::max_folded) + 1});
    CHECK_FALSE(io::read_tensor(many, "t").contents);
    CHECK(io::read_tensor(raw<std::int64_t>(TensorProto::INT64, {}, {0}), "t").contents->size() == 0);
}

TEST_CASE("tensors whose contents and extents disagree are refused") {
    CHECK(refusal([] { return io::read_tensor(raw<std::int64_t>(TensorProto::INT64, {1}, {2}), "initialiser 'w'"); }) ==
          "initialiser 'w': holds 8 bytes, but i64[2] has 2 elements of 8 bytes");
    auto t = support::onnx_model_builder::int_tensor("t", {1, 2, 3});
    t.set_dims(0, 2);
    CHECK(refusal([&] { return io::read_tensor(t, "t"); }) == "t: holds 3 elements, but i64[2] has 2 elements");
    t.set_dims(0, -1);
    CHECK(refusal([&] { return io::read_tensor(t, "t"); }) == "t: the extent of axis 0 is -1: must be in [0, 2^40]");
    t.set_dims(0, std::int64_t{1} << 40);
    t.add_dims(1 << 20);
    CHECK(refusal([&] { return io::read_tensor(t, "t"); }) == "t: has more than 2^56 elements");
    while (t.dims_size() < 40) t.add_dims(1);
    CHECK(refusal([&] { return io::read_tensor(t, "t"); }) == "t: has 40 axes: at most 32 are supported");
    t.mutable_segment()->set_begin(0);
    t.clear_dims();
    CHECK(refusal([&] { return io::read_tensor(t, "t"); }).find("segments") != std::string::npos);
}

TEST_CASE("attributes keep their kinds") {
    auto const n = support::onnx_model_builder::make_node(
        "Op", {}, {},
        {{"i", std::int64_t{3}}, {"f", 0.5}, {"s", std::string("x")}, {"is", std::vector<std::int64_t>{1, 2}}, {"fs", std::vector<double>{0.25}}});
    CHECK(std::get<std::int64_t>(*io::read_attribute(n.attribute(0), "n")) == 3);
    CHECK(std::get<double>(*io::read_attribute(n.attribute(1), "n")) == 0.5);
    CHECK(std::get<std::string>(*io::read_attribute(n.attribute(2), "n")) == "x");
    CHECK(std::get<std::vector<std::int64_t>>(*io::read_attribute(n.attribute(3), "n")) == std::vector<std::int64_t>{1, 2});
    CHECK(std::get<std::vector<double>>(*io::read_attribute(n.attribute(4), "n")) == std::vector<double>{0.25});

    AttributeProto a;
    a.set_name("value");
    CHECK(refusal([&] { return io::read_attribute(a, "node 'n'"); }) == "node 'n': attribute 'value' has no kind");
    a.set_type(AttributeProto::TENSOR);
    *a.mutable_t() = support::onnx_model_builder::int_tensor("t", {4, 5});
    auto const held = std::get<io::tensor_attribute>(*io::read_attribute(a, "n"));
    CHECK(held.extents == std::vector<std::int64_t>{2});
    CHECK(std::get<std::vector<std::int64_t>>(held.contents.elements) == std::vector<std::int64_t>{4, 5});
    a.mutable_t()->clear_int64_data();
    CHECK(refusal([&] { return io::read_attribute(a, "n"); }).find("not in the file") != std::string::npos);
    a.set_type(AttributeProto::GRAPH);
    CHECK_FALSE(io::read_attribute(a, "n"));
    a.set_type(AttributeProto::SPARSE_TENSOR);
    CHECK(refusal([&] { return io::read_attribute(a, "n"); }).find("not supported") != std::string::npos);
}
