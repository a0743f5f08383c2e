#pragma once
/// The models by name: `make_model("gpt,layers=24,hidden=2048,type=bf16")`.

#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/described/described.hpp>
#include <parsearch/io/described/described_models.hpp>

namespace parsearch::io {

/// A model: its name, the function that makes it, and a line about it.
template <class Options> struct zoo_entry {
    using options = Options;
    std::string_view name;
    graph::operator_graph (*make)(Options const&);
    std::string_view help;
};
template <class Options>
[[nodiscard]] constexpr zoo_entry<Options> zoo_model(std::string_view name, graph::operator_graph (*make)(Options const&), std::string_view help) {
    return {name, make, help};
}

/// The models: a Hana tuple of entries.
inline constexpr auto zoo = boost::hana::make_tuple(
    zoo_model("alexnet", &models::alexnet, "AlexNet, 61 M parameters"),
    zoo_model("bert", &models::bert, "BERT, a transformer encoder; BERT-Large, 335 M parameters, by default"),
    zoo_model("candle_uno", &models::candle_uno, "CANDLE Uno, predicts the response of tumours to drugs, 1.19 B parameters"),
    zoo_model("dlrm", &models::dlrm, "DLRM, a recommendation model of embedding tables and perceptrons, 41 B parameters"),
    zoo_model("gpt", &models::gpt, "GPT-2 and larger, a transformer decoder; the small one, 124 M parameters, by default"),
    zoo_model("inception_v3", &models::inception_v3, "Inception-v3, 24 M parameters"), zoo_model("lenet", &models::lenet, "LeNet-5, 62 K parameters"),
    zoo_model("llama", &models::llama, "Llama, a decoder with grouped heads and gated perceptrons; 3.2 1B, 1.24 B parameters, by default"),
    zoo_model("mlp", &models::mlp, "a multi-layer perceptron"),
    zoo_model("moe", &models::moe, "a decoder with mixtures of experts; Mixtral 8x7B, 46.7 B parameters, by default"),
    zoo_model("ncf", &models::ncf, "neural collaborative filtering, 31.8 M parameters"),
    zoo_model("nmt", &models::nmt, "LSTM encoder and decoder with attention, unrolled"),
    zoo_model("resnet", &models::resnet, "ResNet-50, 101, 152, wide ones and ResNeXt"),
    zoo_model("rnnlm", &models::rnnlm, "LSTM language model, unrolled"), zoo_model("rnntc", &models::rnntc, "LSTM text classifier, unrolled"),
    zoo_model("t5", &models::t5, "T5, a transformer encoder and decoder; T5-Base, 223 M parameters, by default"),
    zoo_model("vgg", &models::vgg, "VGG-11, 13, 16 and 19"),
    zoo_model("vit", &models::vit, "vision transformer; ViT-B/16, 86.6 M parameters, by default"),
    zoo_model("xdl", &models::xdl, "XDL, embedding tables and a small perceptron, 256 M parameters"));

/// A name for options of a model.
struct zoo_preset {
    std::string_view name, model, settings, help;
};
inline constexpr std::array zoo_presets{
    zoo_preset{"resnet50", "resnet", "depth=50", "25.6 M parameters"},
    zoo_preset{"resnet101", "resnet", "depth=101", "44.5 M parameters"},
    zoo_preset{"resnet152", "resnet", "depth=152", "60.2 M parameters"},
    zoo_preset{"resnext50", "resnet", "depth=50,groups=32,group_width=4", "ResNeXt-50 32x4d, 25.0 M parameters"},
    zoo_preset{"wide_resnet50", "resnet", "depth=50,group_width=128", "Wide ResNet-50-2, 68.9 M parameters"},
    zoo_preset{"vgg16", "vgg", "depth=16", "138 M parameters"},
    zoo_preset{"vgg19", "vgg", "depth=19", "144 M parameters"},
    zoo_preset{"bert_base", "bert", "layers=12,hidden=768,heads=12", "110 M parameters"},
    zoo_preset{"bert_large", "bert", "layers=24,hidden=1024,heads=16", "335 M parameters"},
    zoo_preset{"gpt2", "gpt", "layers=12,hidden=768,heads=12", "124 M parameters"},
    zoo_preset{"gpt2_medium", "gpt", "layers=24,hidden=1024,heads=16", "355 M parameters"},
    zoo_preset{"gpt2_large", "gpt", "layers=36,hidden=1280,heads=20", "774 M parameters"},
    zoo_preset{"gpt2_xl", "gpt", "layers=48,hidden=1600,heads=25", "1.56 B parameters"},
    zoo_preset{"vit_b_16", "vit", "patch=16,layers=12,hidden=768,heads=12", "86.6 M parameters"},
    zoo_preset{"vit_l_16", "vit", "patch=16,layers=24,hidden=1024,heads=16", "304 M parameters"},
    zoo_preset{"vit_h_14", "vit", "patch=14,layers=32,hidden=1280,heads=16", "632 M parameters"},
    zoo_preset{"t5_base", "t5", "layers=12,hidden=768,heads=12,head_size=64,feed_forward=3072", "223 M parameters"},
    zoo_preset{"llama2_7b", "llama", "layers=32,hidden=4096,heads=32,kv_heads=32,feed_forward=11008,vocabulary=32000,tied=false",
               "6.74 B parameters"},
    zoo_preset{"llama3_8b", "llama", "layers=32,hidden=4096,heads=32,kv_heads=8,feed_forward=14336,vocabulary=128256,tied=false",
               "8.03 B parameters"},
    zoo_preset{"llama3_1b", "llama", "layers=16,hidden=2048,heads=32,kv_heads=8,feed_forward=8192,vocabulary=128256,tied=true",
               "Llama 3.2, 1.24 B parameters"},
    zoo_preset{"mixtral_8x7b", "moe", "experts=8,experts_per_token=2", "46.7 B parameters, of which a token uses 12.9 B"},
    zoo_preset{"switch_base", "moe",
               "layers=12,hidden=768,heads=12,kv_heads=12,feed_forward=3072,experts=128,experts_per_token=1,every=2,gated=false,sequence=512,"
               "vocabulary=32128,tied=true",
               "a decoder of the sizes of Switch-Base, 128 experts in every other block"},
    zoo_preset{"dlrm_mlperf", "dlrm", "dense=13,bottom=512x256x128,tables=10000000*26,features=128,bag=1,interaction=dot,top=1024x1024x512x256",
               "the layers of MLPerf's DLRM, 26 tables"},
    zoo_preset{"mlp_unity", "mlp", "features=8192,hidden=8192*15,classes=8192", "16 layers of 8192, 1.07 B parameters"},
};

/// The names of all models and presets, comma separated.
[[nodiscard]] std::string zoo_names();

/// Calls `f(entry, options)` for the model or preset of that name; the options are the model's defaults and what the preset sets.
/// Throws `invalid_input` listing the names where there is none.
template <class F> void visit_model(std::string_view name, F&& f) {
    std::string_view model = name, settings;
    for (auto const& p : zoo_presets)
        if (p.name == name) {
            model = p.model;
            settings = p.settings;
        }
    bool found = false;
    boost::hana::for_each(zoo, [&](auto const& entry) {
        if (entry.name != model) return;
        found = true;
        typename std::remove_cvref_t<decltype(entry)>::options options{};
        if (!settings.empty()) set_options(options, parse_settings(text(name, ',', settings)).settings, text("preset ", name));
        f(entry, options);
    });
    if (!found) throw invalid_input("model '", name, "' is not in the zoo: must be one of ", zoo_names());
}

/// The model of "NAME,key=value,...". Throws `invalid_input` naming the model, the option, its value and what is allowed.
[[nodiscard]] graph::operator_graph make_model(std::string_view given);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/names/zoo.ipp>
#endif
