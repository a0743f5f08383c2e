#pragma once
/// Reads ONNX models as operator graphs. Needs libonnx and protobuf.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/onnx/file/load.hpp>
#include <parsearch/io/onnx/lower/lower.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>
#include <parsearch/io/onnx/patterns/patterns.hpp>
#include <parsearch/io/onnx/translators/builtin_translators.hpp>
#include <parsearch/io/onnx/translators/translate_network.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::io {

/// How a model is read.
struct onnx_options {
    /// Extents of the symbolic dims of the data inputs, by symbol; a nameless dim is "<input>[<axis>]".
    std::map<std::string, std::int64_t> dims{};
    /// The extent of axis 0 of the data inputs. Where the file has another one built in, its shapes are rescaled.
    std::optional<std::int64_t> batch{};
    /// The type of all floating-point tensors; nothing: as in the file.
    std::optional<ops::dtype> type{};
    /// Replace attention, layer norm, GELU, batch norm + ReLU and the like, spelled out in primitives, by one operator each.
    bool recognise = true;
    /// Run operators that no translator knows, and ONNX does not define by others, whole on one device, and say so in the notes, instead of refusing
    /// them.
    bool replicate_unknown = false;
    onnx::operators operators = onnx::builtin_operators();
    /// Initialisers for which it holds are not trained. Where it is empty, masks are told from parameters by where they are added.
    std::function<bool(std::string const&)> is_constant{};
    /// The inputs that are data, where the file does not say it: all others are parameters or constants.
    std::vector<std::string> data_inputs{};
};

/// An input or output of a model.
struct onnx_port {
    std::string name;
    ops::tensor shape;
    friend bool operator==(onnx_port const&, onnx_port const&) = default;
};

/// A model as an operator graph.
struct onnx_model {
    std::string name;               ///< of the file
    std::string producer;           ///< what wrote it
    std::int64_t opset = 0;         ///< of ONNX's own operators
    std::vector<onnx_port> inputs;  ///< data, in the file's order
    std::vector<onnx_port> outputs; ///< in the file's order
    std::int64_t parameters = 0;    ///< elements of all trained tensors that operators read
    graph::operator_graph graph;
    std::vector<graph::tensor_ref> results; ///< the tensors of the outputs that operators compute
    std::vector<std::string> notes;         ///< what a reader should know of how the file was taken, a sentence each
};

namespace detail {

[[nodiscard]] inline onnx_model read_onnx_model(onnx::pb::ModelProto const& model, std::string name, onnx_options const& options) {
    auto const known = [&](onnx::node const& n) { return options.operators.find(n) != nullptr; };
    auto lowered = onnx::lower(model, name,
                               {.dims = options.dims,
                                .batch = options.batch,
                                .type = options.type,
                                .data_inputs = options.data_inputs,
                                .is_constant = options.is_constant,
                                .known = known,
                                .replicate_unknown = options.replicate_unknown,
                                .shape_by_translation = onnx::shape_by_translation(options.operators)});
    onnx_model out{.name = std::move(name),
                   .producer = model.producer_name(),
                   .opset = lowered.opset,
                   .inputs = {},
                   .outputs = {},
                   .graph = {},
                   .results = {},
                   .notes = std::move(lowered.notes)};
    for (auto const v : lowered.inputs) out.inputs.push_back({lowered.net[v].name, lowered.net[v].shape});
    for (std::size_t i = 0; i < lowered.output_names.size(); ++i)
        out.outputs.push_back({lowered.output_names[i], lowered.net[lowered.net.outputs[i]].shape});
    try {
        if (options.recognise)
            for (auto const& note : onnx::recognise(lowered.net)) out.notes.push_back(text("recognised ", note));
        onnx::remove_dead(lowered.net);
        auto translated = onnx::translate(lowered.net, options.operators, options.replicate_unknown);
        out.graph = std::move(translated.graph);
        out.results = std::move(translated.outputs);
        for (auto& note : translated.notes) out.notes.push_back(std::move(note));
    } catch (std::exception const& e) {
        throw invalid_input(out.name, ": ", e.what());
    }
    if (out.graph.size() == 0) throw invalid_input(out.name, ": computes nothing: no output depends on a data input");
    std::map<std::string, std::int64_t> trained;
    for (std::size_t op = 0; op < out.graph.size(); ++op)
        for (auto const& w : out.graph[op].operation.weights) {
            auto& elements = trained[w.parameter.empty() ? out.graph[op].name + '/' + w.name : w.parameter];
            elements = std::max(elements, ops::elements_of(w));
        }
    for (auto const& [parameter, elements] : trained) out.parameters += elements;
    return out;
}

} // namespace detail

/// Reads the model in `file`. Data that lie outside the file are not opened: only shapes matter.
///
///     auto const model = io::read_onnx("gpt2.onnx", {.dims = {{"sequence", 1024}}, .batch = 64});
///     auto const problem = make_problem(model.graph, cluster, oracle);
///
/// Throws `invalid_input`, naming the file, the node or value and the rule, for files that are no ONNX models, symbolic dims that are not
/// bound, bindings that no input has, operators that `options.operators` lacks, shapes that depend on data and a batch that cannot be
/// rescaled. Complexity: O(n log n) for n nodes, some 50 microseconds a node.
[[nodiscard]] inline onnx_model read_onnx(std::filesystem::path const& file, onnx_options const& options = {}) {
    return detail::read_onnx_model(onnx::load_model(file), file.string(), options);
}
/// The same from a stream; `name` stands for the file in messages.
[[nodiscard]] inline onnx_model read_onnx(std::istream& in, std::string const& name, onnx_options const& options = {}) {
    return detail::read_onnx_model(onnx::load_model(in, name), name, options);
}

} // namespace parsearch::io
