#pragma once
// The model that the user names.

#include <cstddef>
#include <string>
#include <vector>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/described/described.hpp>

namespace tools {

namespace ps = parsearch;

struct loaded_model {
    ps::graph::operator_graph graph;
    std::string hash{}; // of the file; empty for a model of the zoo
    std::vector<std::string> notes{};
};

// "zoo:NAME[,key=value...]", "FILE.json" (a parsearch.graph) or "FILE.onnx[,key=value...]", for that many devices. Throws invalid_input.
[[nodiscard]] loaded_model load_model(std::string const& given, std::size_t devices);

// The ONNX part of it, in a file of its own: it needs protobuf. A batch and a sequence length that the file leaves open and nobody gives are
// chosen, and said. Throws invalid_input where the program was built without.
[[nodiscard]] loaded_model load_onnx(std::string const& path, std::vector<ps::io::setting> const& settings, std::size_t devices);

} // namespace tools
