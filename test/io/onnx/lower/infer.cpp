#include <parsearch/io/onnx/lower/infer.hpp>

#include <chrono>
#include <doctest/doctest.h>

#include "support/refusal.hpp"

namespace io = parsearch::io::onnx;
namespace ops = parsearch::ops;
using io::pb::TensorProto;
using list = std::vector<std::int64_t>;

namespace {

struct one_node {
    io::network net{};
    std::vector<io::element_type> elements{};
    io::node n{.name = "n", .domain = {}, .type = {}, .version = 13, .inputs = {}, .outputs = {0}, .attributes = {}};

    explicit one_node(std::string type, std::int64_t version = 13) {
        n.type = std::move(type);
        n.version = version;
    }
    one_node& input(list extents, io::element_type element = TensorProto::FLOAT) {
        elements.push_back(element);
        n.inputs.push_back(
            net.add({.name = "x", .from = io::origin::input, .shape = {.extents = std::move(extents), .type = io::dtype_of(element, "x")}}));
        return *this;
    }
    one_node& ints(list values) {
        elements.push_back(TensorProto::INT64);
        list extents{static_cast<std::int64_t>(values.size())};
        n.inputs.push_back(net.add({.name = "c",
                                    .from = io::origin::fixed,
                                    .shape = {.extents = std::move(extents), .type = ops::dtype::i64},
                                    .parameter = {},
                                    .contents = std::make_shared<io::constant const>(io::constant{std::move(values)})}));
        return *this;
    }
    one_node& with(std::string name, io::attribute a) {
        n.attributes.emplace(std::move(name), std::move(a));
        return *this;
    }
    one_node& outputs(std::size_t count) {
        n.outputs.assign(count, 0);
        return *this;
    }
    [[nodiscard]] auto shapes() const { return io::infer(net, elements, n); }
    /// "f32[1,2]" for each output, separated by blanks; "?" for what is not known.
    [[nodiscard]] std::string shown() const {
        std::string out;
        for (auto const& s : shapes()) out += (out.empty() ? "" : " ") + (s ? ops::to_string(s->shape) : std::string("?"));
        return out;
    }
    [[nodiscard]] std::string refused() const {
        return support::refusal([&] { return shapes(); });
    }
};

} // namespace

TEST_CASE("shapes of common operators") {
    CHECK(one_node("Conv").input({1, 3, 224, 224}).input({64, 3, 7, 7}).with("strides", list{2, 2}).with("pads", list{3, 3, 3, 3}).shown() ==
          "f32[1,64,112,112]");
    CHECK(one_node("MaxPool")
              .input({1, 8, 15, 15})
              .with("kernel_shape", list{3, 3})
              .with("strides", list{2, 2})
              .with("ceil_mode", std::int64_t{1})
              .shown() == "f32[1,8,7,7]");
    CHECK(one_node("Gemm").input({2, 3}).input({4, 3}).with("transB", std::int64_t{1}).shown() == "f32[2,4]");
    CHECK(one_node("MatMul").input({2, 1, 3, 4}, TensorProto::FLOAT16).input({5, 4, 6}, TensorProto::FLOAT16).shown() == "f16[2,5,3,6]");
    CHECK(one_node("Reshape").input({2, 6}).ints({0, 3, -1}).shown() == "f32[2,3,2]");
    CHECK(one_node("Split").input({2, 6}).with("axis", std::int64_t{1}).outputs(3).shown() == "f32[2,2] f32[2,2] f32[2,2]");
    CHECK(one_node("Slice").input({4, 6}).ints({1}).ints({3}).ints({1}).shown() == "f32[4,2]");
    CHECK(one_node("Greater").input({4, 1}).input({6}).shown() == "i8[4,6]");
    CHECK(one_node("ReduceMean").input({2, 3, 4}).with("axes", list{-1}).shown() == "f32[2,3,1]");
    CHECK(one_node("LSTM").input({7, 2, 4}).input({1, 20, 4}).input({1, 20, 5}).with("hidden_size", std::int64_t{5}).outputs(3).shown() ==
          "f32[7,1,2,5] f32[1,2,5] f32[1,2,5]");
    CHECK(one_node("TopK").input({2, 9}).ints({3}).outputs(2).shown() == "f32[2,3] i64[2,3]");
    auto topk = one_node("TopK").input({2, 9}).ints({3}).outputs(2);
    topk.n.outputs[0] = io::no_value;
    CHECK(topk.shown() == "? i64[2,3]");
}

TEST_CASE("what is not known is left open") {
    CHECK(one_node("Reshape").input({2, 6}).input({2}, TensorProto::INT64).shown() == "?");
    CHECK(one_node("NonZero").input({2, 6}).shown() == "?");
    CHECK(one_node("NoSuchOperator").input({2}).shown() == "?");
    auto custom = one_node("Relu").input({2});
    custom.n.domain = "com.mine";
    CHECK(custom.shown() == "?");
}

TEST_CASE("inputs that do not fit are refused with the node and their shapes") {
    auto const why = one_node("MatMul").input({2, 3}).input({4, 5}).refused();
    CHECK(why.starts_with("node 'n' (MatMul) of f32[2,3], f32[4,5]: "));
    CHECK(one_node("Reshape").input({2, 6}).ints({5}).refused() == "node 'n' (Reshape) of f32[2,6], i64[1]: the elements do not fit f32[5]");
    CHECK(one_node("Concat").input({2, 6}).input({3, 5}).with("axis", std::int64_t{0}).refused().starts_with("node 'n' (Concat)"));
}

TEST_CASE("what would stop the ONNX library's arithmetic is refused before") {
    auto const conv = [](std::string name, list values) {
        return one_node("Conv").input({1, 3, 8, 8}).input({4, 3, 3, 3}).with(std::move(name), std::move(values)).refused();
    };
    CHECK(conv("strides", {0, 1}) == "node 'n' (Conv): attribute 'strides' holds 0: must be in [1, 2147483648]");
    CHECK(conv("strides", {1}) == "node 'n' (Conv): attribute 'strides' has 1 entries: must have 2");
    CHECK(conv("pads", {1, 1, 1, 1, 1}) == "node 'n' (Conv): attribute 'pads' has 5 entries: must have 4");
    CHECK(conv("dilations", {1, std::int64_t{1} << 62}).find("must be in [1,") != std::string::npos);
    CHECK(one_node("Conv").input({8}).input({4, 3, 3, 3}).refused() == "node 'n' (Conv): input 0 has 1 axes: must have 3 or more");
    CHECK(one_node("ConvTranspose").input({1, 3, 8, 8}).input({3, 4, 3}).refused() ==
          "node 'n' (ConvTranspose): input 1 has 3 axes: must have 4 as input 0");
    CHECK(one_node("Softmax").input({2}).with("axis", std::int64_t{1} << 40).refused().find("must be in [-32, 32]") != std::string::npos);
    CHECK(one_node("MaxPool", 11).input({1, 1, 2, 2}).with("kernel_shape", list{}).refused() ==
          "node 'n' (MaxPool): attribute 'kernel_shape' has 0 entries: must have 2");
    CHECK(one_node("LayerNormalization", 17).input({2, 3}).input({3}).with("axis", std::int64_t{-3}).refused() ==
          "node 'n' (LayerNormalization): axis -3 is outside of [-2, 2)");
    CHECK(one_node("GatherND").input({2, 3}).input({2, 1}, TensorProto::INT64).with("batch_dims", std::int64_t{-1}).refused() ==
          "node 'n' (GatherND): attribute 'batch_dims' is -1: must be in [0, 2)");
    CHECK(one_node("GatherND").input({2, 3}).input({2, 3}, TensorProto::INT64).refused() ==
          "node 'n' (GatherND): input 1 holds indices of 3 axes, input 0 has 2");
    CHECK(one_node("GatherND").input({2, 3, 4}).input({5, 2}, TensorProto::INT64).shown() == "f32[5,4]");
    CHECK(one_node("DepthToSpace").input({1, 4, 2, 2}).with("blocksize", std::int64_t{0}).refused().find("must be in [1,") != std::string::npos);
}

TEST_CASE("operators of sets that the ONNX library does not know are written as it knows them") {
    std::int64_t const version = std::max<std::int64_t>(18, io::newest_opset("") + 1);
    CHECK(one_node("ReduceMean", version).input({2, 3, 4}).ints({-1}).shown() == "f32[2,3,1]");
    CHECK(one_node("ReduceMax", version).input({2, 3, 4}).ints({1}).with("keepdims", std::int64_t{0}).shown() == "f32[2,4]");
    CHECK(one_node("ReduceMean", version).input({2, 3}).input({1}, TensorProto::INT64).refused().find("axes are not known") != std::string::npos);
    CHECK(one_node("Split", version).input({2, 7}).with("axis", std::int64_t{1}).with("num_outputs", std::int64_t{3}).outputs(3).shown() ==
          "f32[2,3] f32[2,3] f32[2,1]");
    auto pad = one_node("Pad", version).input({2, 7}).ints({1, 2});
    pad.n.inputs.push_back(io::no_value);
    pad.ints({-1});
    CHECK(pad.shown() == "f32[2,10]");
    CHECK(one_node("Relu", version).input({2, 7}).shown() == "f32[2,7]");
}

TEST_CASE("five thousand nodes take about a second") {
    auto const begin = std::chrono::steady_clock::now();
    auto const conv = one_node("Conv").input({1, 3, 224, 224}).input({64, 3, 7, 7});
    for (int i = 0; i < 5000; ++i) CHECK(conv.shapes()[0].has_value());
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - begin;
    MESSAGE("5,000 nodes: ", took.count(), " s");
    CHECK(took.count() < 10);
}
