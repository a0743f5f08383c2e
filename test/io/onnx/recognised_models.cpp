/// What is recognised in the models of examples/models.

#include <parsearch/io/onnx.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"

using namespace parsearch;

namespace {

/// The operators of a model by kind, with and without recognition.
struct counted {
    std::map<std::string, int> plain, recognised;
    support::totals plain_totals, recognised_totals;
    io::onnx_model model;
};
std::map<std::string, int> kinds(graph::operator_graph const& g) {
    std::map<std::string, int> out;
    for (std::size_t i = 0; i < g.size(); ++i) ++out[g[i].operation.kind];
    return out;
}
counted read(std::string const& name, std::map<std::string, std::int64_t> dims) {
    counted out;
    io::onnx_options options{.dims = std::move(dims), .batch = 2};
    out.model = io::read_onnx("examples/models/" + name + ".onnx", options);
    options.recognise = false;
    auto const plain = io::read_onnx("examples/models/" + name + ".onnx", options);
    out.plain = kinds(plain.graph);
    out.recognised = kinds(out.model.graph);
    out.plain_totals = support::totals_of(plain.graph);
    out.recognised_totals = support::totals_of(out.model.graph);
    CHECK(out.recognised_totals.parameters == out.plain_totals.parameters);
    CHECK(out.recognised_totals.multiply_adds == out.plain_totals.multiply_adds);
    // What patterns are made of is gone.
    for (auto const* const kind : {"softmax", "erf", "tanh", "sigmoid", "reduce_mean", "sqrt", "square", "batched_matmul", "negate"}) {
        CAPTURE(kind);
        CHECK(out.recognised[kind] == 0);
    }
    return out;
}
/// True where the model's notes say that.
bool noted(counted const& c, std::string const& what) {
    return std::find(c.model.notes.begin(), c.model.notes.end(), "recognised " + what) != c.model.notes.end();
}
/// The extent of dim `dim` of every operator of a kind; 0 where they differ.
std::int64_t extent(counted const& c, std::string_view kind, std::string_view dim) {
    std::int64_t out = -1;
    for (std::size_t i = 0; i < c.model.graph.size(); ++i)
        for (auto const& d : c.model.graph[i].operation.dims)
            if (c.model.graph[i].operation.kind == kind && d.name == dim) out = out == -1 || out == d.extent ? d.extent : 0;
    return out;
}

} // namespace

TEST_CASE("BERT-Base: 12 attentions with a mask, 13 GELUs, 26 layer norms") {
    auto c = read("bert_base", {{"sequence", 128}});
    CHECK(c.recognised["attention"] == 12);
    CHECK(c.recognised["gelu"] == 13);
    CHECK(c.recognised["layer_norm"] == 26);
    CHECK(c.recognised["transpose"] == 0);
    CHECK(extent(c, "attention", "heads") == 12);
    CHECK(extent(c, "attention", "s") == 2);
    CHECK(noted(c, "12 x attention (12 heads, masked)"));
    CHECK(noted(c, "26 x layer norm"));
}

TEST_CASE("GPT-2: 12 attentions, 12 GELUs, 25 layer norms") {
    auto c = read("gpt2", {{"sequence", 64}});
    CHECK(c.recognised["attention"] == 12);
    CHECK(c.recognised["gelu"] == 12);
    CHECK(c.recognised["layer_norm"] == 25);
    CHECK(c.recognised["transpose"] == 0);
    CHECK(extent(c, "attention", "lq") == 64);
}

TEST_CASE("ViT-B/16: 12 attentions, 12 GELUs, 25 layer norms") {
    auto c = read("vit_b_16", {});
    CHECK(c.recognised["attention"] == 12);
    CHECK(c.recognised["gelu"] == 12);
    CHECK(c.recognised["layer_norm"] == 25);
    CHECK(c.recognised["transpose"] == 1); // of patches
    CHECK(extent(c, "attention", "lk") == 197);
    CHECK(noted(c, "12 x attention (12 heads)"));
}

TEST_CASE("decoder: 16 attentions of 8 groups of heads, 33 RMS norms, 32 rotary embeddings, 16 SiLUs") {
    auto c = read("decoder_1b", {{"sequence", 64}});
    CHECK(c.recognised["attention"] == 16);
    CHECK(c.recognised["rms_norm"] == 33);
    CHECK(c.recognised["rotary_embedding"] == 32);
    CHECK(c.recognised["silu"] == 16);
    CHECK(c.recognised["transpose"] == 0);
    CHECK(c.recognised["reshape"] == 0);
    CHECK(c.recognised["expand"] == 0);
    CHECK(extent(c, "attention", "heads") == 8);
    CHECK(noted(c, "16 x attention (32 heads, 8 of keys and values, causal)"));
}

TEST_CASE("ResNet-50: 33 batch norms followed by ReLU") {
    auto c = read("resnet50", {});
    CHECK(c.recognised["batch_norm_relu"] == 33);
    CHECK(c.recognised["batch_norm"] == 20); // added to a shortcut first
    CHECK(c.recognised["relu"] == 16);
}

// test/build/check_from_transformers.py writes the file.
TEST_CASE("a mixture of experts as examples/export writes it, of 2 layers and 8 experts: names are the library's") {
    auto const m = io::read_onnx("test/io/onnx/files/mixtral.onnx", {.dims = {{"sequence", 16}}, .batch = 4});
    auto c = kinds(m.graph);
    std::string all;
    for (auto const& [kind, count] : c) all += text(all.empty() ? "" : " ", kind, ':', count);
    CHECK(all == "add:4 attention:2 einsum:6 embedding:1 input:3 linear:11 moe_combine:2 moe_dispatch:2 multiply:2 reshape:2 rms_norm:5 "
                 "rotary_embedding:4 silu:2 softmax:2 top_2_gate:2");
    CHECK(m.parameters == 353600);
    CHECK(support::named(m.graph, "model.layers.1.mlp.gate/TopK").outputs.at(0).axes.at(0).extent == 4); // told by sample
    std::set<std::string> parameters;
    for (std::size_t i = 0; i < m.graph.size(); ++i)
        for (auto const& w : m.graph[i].operation.weights) parameters.insert(w.parameter);
    for (auto const* const name : {"model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.gate.weight", "model.layers.1.mlp.experts.down_proj",
                                   "model.layers.1.mlp.experts.gate_up_proj[gate]", "lm_head.weight"})
        CHECK(parameters.contains(name));
}
