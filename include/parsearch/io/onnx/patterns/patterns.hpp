#pragma once
/// Recognises patterns that matter to parallelization as one operator each.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/io/onnx/network/match.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>
#include <parsearch/io/onnx/patterns/activations.hpp>
#include <parsearch/io/onnx/patterns/attention_pattern.hpp>
#include <parsearch/io/onnx/patterns/batch_norm_relu.hpp>
#include <parsearch/io/onnx/patterns/gate_pattern.hpp>
#include <parsearch/io/onnx/patterns/normalizations.hpp>
#include <parsearch/io/onnx/patterns/rotary_pattern.hpp>
#include <parsearch/io/onnx/patterns/token_lists.hpp>
#include <parsearch/io/onnx/patterns/views_of_all.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// What a node that stands for a pattern is called in a note; empty for other nodes.
[[nodiscard]] inline std::string pattern_name(node const& n) {
    if (n.domain != recognised_domain) return {};
    if (n.type == "Attention") {
        auto const heads = attribute_of(n, "heads", std::int64_t{0}), kv = attribute_of(n, "kv_heads", std::int64_t{0});
        bool const causal = attribute_of(n, "causal", std::int64_t{0}) != 0;
        return text("attention (", heads, heads == 1 ? " head" : " heads", kv == heads ? "" : text(", ", kv, " of keys and values"),
                    causal ? ", causal" : "", n.inputs.size() > 3 ? ", masked" : "", ')');
    }
    constexpr std::pair<std::string_view, std::string_view> names[] = {{"BatchNormalizationRelu", "batch norm + ReLU"},
                                                                       {"Gelu", "GELU"},
                                                                       {"HardSwish", "hard swish"},
                                                                       {"LayerNormalization", "layer norm"},
                                                                       {"Mish", "Mish"},
                                                                       {"RMSNormalization", "RMS norm"},
                                                                       {"RotaryEmbedding", "rotary embedding"},
                                                                       {"Silu", "SiLU"},
                                                                       {"TopKGate", "gate of experts"}};
    for (auto const& [type, name] : names)
        if (n.type == type) return std::string(name);
    return {};
}

[[nodiscard]] inline std::map<std::string, std::int64_t> count_patterns(network const& net) {
    std::map<std::string, std::int64_t> counts;
    for (auto const& n : net.nodes)
        if (auto name = pattern_name(n); !name.empty()) ++counts[std::move(name)];
    return counts;
}

/// Tries the patterns that may end at node `n`; those before it have been tried.
inline void recognise_at(rewriting& net, std::uint32_t n) {
    using namespace patterns;
    auto const& at = net[n];
    if (!at.domain.empty() || at.outputs.empty() || at.outputs[0] == no_value || at.inputs.empty()) return;
    for (auto const v : at.inputs)
        if (v == no_value && at.type != "Clip") return;
    std::string const type = at.type;
    if (type == "Mul" || type == "Div") {
        if (recognise_activation(net, n) || recognise_norm(net, n)) return;
        if (type == "Mul") extend_norm(net, n, 1);
    } else if (type == "Add") {
        if (extend_norm(net, n, 2) || recognise_folded_norm(net, n)) return;
        recognise_rotary(net, n);
    } else if (type == "Concat" || type == "Reshape") {
        if (!recognise_halved_rotary(net, n) && type == "Reshape") recognise_token_list(net, n);
    } else if (type == "Cast") absorb_casts(net, n);
    else if (type == "Relu") recognise_batch_norm_relu(net, n);
    else if (type == "MatMul" || type == "Einsum") recognise_attention(net, n);
    else if (type == "Attention") absorb_head_moves(net, n);
    else if (type == "ScatterElements") recognise_gate(net, n);
}
} // namespace detail

/// Replaces, in place, what is spelled out in primitives by single nodes of domain "parsearch", named after the most characteristic node that
/// each replaces, and answers what was replaced how often ("12 x attention (12 heads, causal)").
/// - GELU, SiLU, Mish, hard swish; layer norm and RMS norm, with weight and bias; batch norm followed by ReLU.
/// - Rotary position embedding; the gate of a mixture of experts, and tokens told by sample around one.
/// - Attention, with grouped heads, masks, scaling, and the reshapes and transposes that bring heads apart and together.
///
/// Nodes that nobody reads are removed, and those that answer what they are given (slices of all). A pattern stays as it is where a value inside is
/// read elsewhere or is an output of the graph. Parameters and multiply-adds do not change; a second call changes nothing. Complexity: O(n log n) for
/// n nodes and their inputs; a pattern is tried in constant time, beside reading the contents of fixed masks.
inline std::vector<std::string> recognise(network& net) {
    remove_dead(net); // what nobody wants reads what patterns are made of
    patterns::remove_views_of_all(net);
    auto const before = detail::count_patterns(net);
    rewriting rewritten(net);
    auto const nodes = static_cast<std::uint32_t>(net.nodes.size());
    for (std::uint32_t n = 0; n < nodes; ++n) detail::recognise_at(rewritten, n);
    rewritten.finish();
    std::vector<std::string> notes;
    for (auto const& [name, count] : detail::count_patterns(net)) {
        auto const at = before.find(name);
        if (auto const fresh = count - (at == before.end() ? 0 : at->second); fresh > 0) notes.push_back(text(fresh, " x ", name));
    }
    return notes;
}

} // namespace parsearch::io::onnx
