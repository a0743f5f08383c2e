#include <parsearch/io/names/zoo.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/hana/for_each.hpp>

#include <parsearch/models/summary.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using support::refusal;

namespace {
std::int64_t parameters(std::string_view given) { return models::summarize(io::make_model(given)).parameters; }
} // namespace

TEST_CASE("a model is made by name, with options") {
    CHECK(parameters("gpt") == 124'439'808);
    CHECK(parameters("lenet") == 61'706);
    CHECK(parameters("mlp,features=10,hidden=20x30,classes=5") == 10 * 20 + 20 + 20 * 30 + 30 + 30 * 5 + 5);
    auto const g = io::make_model("gpt,layers=2,hidden=64,heads=4,sequence=32,vocabulary=100,batch=8,type=bf16,dropout=0");
    auto const same =
        models::gpt({.layers = 2, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 100, .batch = 8, .type = ops::dtype::bf16, .dropout = 0});
    CHECK(g.size() == same.size());
    for (std::size_t op = 0; op < std::min(g.size(), same.size()); ++op) CHECK(g[op].operation == same[op].operation);
    CHECK(g.shape({0, 0}).extents == std::vector<std::int64_t>{8, 32});
    CHECK(g[g.size() - 1].operation.inputs[0].type == ops::dtype::bf16);
}

TEST_CASE("presets are models with options, which may be overridden") {
    CHECK(parameters("resnet50") == 25'557'032);
    CHECK(parameters("resnet152") == 60'192'808);
    CHECK(parameters("resnext50") == 25'028'904);
    CHECK(parameters("wide_resnet50") == 68'883'240);
    CHECK(parameters("vgg19") == 143'667'240);
    CHECK(parameters("gpt2_xl") == 1'557'611'200);
    CHECK(parameters("vit_l_16") == 304'326'632);
    CHECK(parameters("vit_h_14") == 632'045'800);
    CHECK(parameters("llama2_7b") == 6'738'415'616);
    CHECK(parameters("llama3_8b") == 8'030'261'248);
    CHECK(parameters("mixtral_8x7b") == 46'702'792'704);
    CHECK(parameters("mlp_unity") == 16 * (8192LL * 8192 + 8192));
    CHECK(parameters("bert_large") == parameters("bert"));
    CHECK(parameters("gpt2_medium,layers=12,hidden=768,heads=12") == parameters("gpt"));
}

TEST_CASE("every name makes a model and says so in one line") {
    auto const check = [](std::string_view name, std::string_view help) {
        CAPTURE(name);
        CHECK(io::make_model(name).size() > 5);
        CHECK_FALSE(help.empty());
        CHECK(help.size() < 100);
    };
    boost::hana::for_each(io::zoo, [&](auto const& entry) { check(entry.name, entry.help); });
    for (auto const& p : io::zoo_presets) check(p.name, p.help);
}

TEST_CASE("an unknown model, option or value is refused") {
    auto const said = [](std::string_view given) { return refusal([&] { return io::make_model(given); }); };
    CHECK(said("gtp").starts_with("model 'gtp' is not in the zoo: must be one of alexnet, bert, "));
    CHECK(said("gpt,depth=4").starts_with("model gpt: option 'depth' is not known: must be one of batch, type, layers, "));
    CHECK(said("gpt,layers=many") == "model gpt: option 'layers' is 'many': must be an integer from -9223372036854775808 to 9223372036854775807");
    CHECK(said("gpt,layers=0") == "gpt: layers is 0: must be at least 1");
    CHECK(said("resnet50,type=fp16").find("must be one of f64, f32") != std::string::npos);
    CHECK(said("gpt,layers").find("is not in the zoo") != std::string::npos);
}
