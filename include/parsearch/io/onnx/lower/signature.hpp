#pragma once
/// Whether a node is written as its operator is defined: how many inputs and outputs, attributes of which kinds.

#include <cstddef>
#include <string>

#include <parsearch/io/onnx/file/proto.hpp>
#include <parsearch/io/onnx/lower/infer.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx {

/// Checks `n`, which `p` says in the file, against the definition that the ONNX library has of its operator, where it has one; for
/// operator sets beyond those that it knows, only what later versions keep. Throws `invalid_input` naming the node and the rule.
inline void check_signature(node const& n, pb::NodeProto const& p) {
    auto const* const schema = schema_of(n);
    if (schema == nullptr) return;
    bool const exact = n.version <= newest_opset(n.domain);
    auto const given = static_cast<int>(n.inputs.size());
    if (given < schema->min_input() || (exact && given > schema->max_input()))
        throw invalid_input(shown(n), " has ", given, " inputs: must have ", schema->min_input(), " or more",
                            schema->max_input() < 1000 ? text(", at most ", schema->max_input()) : "");
    for (std::size_t i = 0; i < n.inputs.size() && i < schema->inputs().size(); ++i)
        if (n.inputs[i] == no_value && schema->inputs()[i].GetOption() == pb::OpSchema::Single)
            throw invalid_input(shown(n), ": input ", i, " ('", schema->inputs()[i].GetName(), "') is left out: must be given");
    if (exact && p.output_size() > schema->max_output())
        throw invalid_input(shown(n), " has ", p.output_size(), " outputs: must have at most ", schema->max_output());
    if (!exact) return;
    for (auto const& a : p.attribute()) {
        auto const defined = schema->attributes().find(a.name());
        if (defined != schema->attributes().end() && defined->second.type != a.type())
            throw invalid_input(shown(n), ": attribute '", a.name(), "' is of another kind than the operator's definition says");
    }
    for (auto const& [name, defined] : schema->attributes()) {
        bool given_it = !defined.required;
        for (auto const& a : p.attribute()) given_it = given_it || a.name() == name;
        if (!given_it) throw invalid_input(shown(n), " has no attribute '", name, "': must have it");
    }
}

} // namespace parsearch::io::onnx
