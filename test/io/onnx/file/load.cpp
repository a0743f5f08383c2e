#include <parsearch/io/onnx/file/load.hpp>

#include <cstdio>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/onnx_models.hpp"
#include "support/refusal.hpp"

namespace io = parsearch::io::onnx;
using support::refusal;

namespace {

std::string refused(std::string const& bytes) {
    return refusal([&] {
        std::istringstream in(bytes);
        return io::load_model(in, "m.onnx");
    });
}

} // namespace

TEST_CASE("a model is read from a stream and from a file") {
    auto const bytes = support::small_convolution().bytes();
    std::istringstream in(bytes);
    CHECK(io::load_model(in, "m.onnx").SerializeAsString() == bytes);
    auto const file = std::filesystem::temp_directory_path() / "parsearch_load_test.onnx";
    std::ofstream(file, std::ios::binary) << bytes;
    CHECK(io::load_model(file).graph().node_size() == support::small_convolution().model.graph().node_size());
    std::filesystem::remove(file);
}

TEST_CASE("what is no model is refused by name") {
    CHECK(refused("") == "m.onnx: is empty: must be an ONNX model");
    CHECK(refused("{\"not\": \"a model\"}").starts_with("m.onnx: "));
    CHECK(refused(std::string(1000, '\0')).starts_with("m.onnx: is not a complete ONNX model"));
    CHECK(refusal([] { return io::load_model(std::filesystem::path("/nowhere/m.onnx")); }) == "/nowhere/m.onnx: there is no such file");
    auto const folder = std::filesystem::temp_directory_path();
    CHECK(refusal([&] { return io::load_model(folder); }) == folder.string() + ": is a directory: must be an ONNX file");
    io::pb::ModelProto no_graph;
    no_graph.set_ir_version(7);
    CHECK(refused(no_graph.SerializeAsString()) == "m.onnx: has no graph: must be an ONNX model");
}

TEST_CASE("every truncation is refused or still a model") {
    auto const bytes = support::small_attention().bytes();
    std::size_t refusals = 0;
    for (std::size_t n = 0; n < bytes.size(); ++n) refusals += !refused(bytes.substr(0, n)).empty();
    CHECK(refusals >= bytes.size() - 4); // a cut between the fields of the outermost message leaves a message
}

TEST_CASE("versions are checked") {
    auto m = support::small_convolution();
    m.model.set_ir_version(2);
    CHECK(refused(m.bytes()) == "m.onnx: IR version is 2: must be at least 3 (ONNX 1.0)");
    m.model.set_ir_version(7);
    m.model.mutable_opset_import(0)->set_version(8);
    CHECK(refused(m.bytes()) == "m.onnx: is written for operator set 8: must be 9 or later; ONNX's version converter makes it so");
    m.model.mutable_opset_import(0)->set_version(-1);
    CHECK(refused(m.bytes()) == "m.onnx: imports version -1 of operator set '': must be in [1, 1000]");
    m.model.mutable_opset_import(0)->set_version(1 << 30);
    CHECK(refused(m.bytes()).find("must be in [1, 1000]") != std::string::npos);
    m.model.mutable_opset_import(0)->set_version(13);
    m.import("ai.onnx", 14);
    CHECK(refused(m.bytes()) == "m.onnx: imports versions 13 and 14 of operator set '': must be one");
    m.model.clear_opset_import();
    CHECK(refused(m.bytes()) == "m.onnx: imports no operator set: must import one");
}

TEST_CASE("graphs that are nested too deep are refused") {
    io::pb::ModelProto m = support::small_convolution().model;
    auto* g = m.mutable_graph();
    for (int i = 0; i < 60; ++i) {
        auto* const n = g->add_node();
        n->set_op_type("If");
        n->add_attribute()->set_type(io::pb::AttributeProto::GRAPH);
        g = n->mutable_attribute(0)->mutable_g();
    }
    CHECK(refused(m.SerializeAsString()).starts_with("m.onnx: is not a complete ONNX model"));
}
