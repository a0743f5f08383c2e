/// Models of the ONNX project, whose sizes are known.

#include <parsearch/io/onnx.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/dense_graph.hpp>

#include "support/external_data.hpp"
#include "support/onnx_network.hpp"

using namespace parsearch;

namespace {

/// Parameters and multiply-adds worked out layer by layer.
struct sizes {
    double parameters = 0, multiply_adds = 0;

    /// A convolution of `in` to `out` channels with a square kernel, whose result is `side` by `side`.
    void conv(double in, double out, double kernel, double side, bool bias = true, double groups = 1) {
        parameters += in / groups * out * kernel * kernel + (bias ? out : 0);
        multiply_adds += in / groups * out * kernel * kernel * side * side;
    }
    void linear(double in, double out) {
        parameters += in * out + out;
        multiply_adds += in * out;
    }
    void batch_norm(double channels) { parameters += 2 * channels; }
};

sizes alexnet() {
    sizes n;
    n.conv(3, 96, 11, 54); // (224 - 11) / 4 + 1: the file pads nothing here
    n.conv(96, 256, 5, 26, true, 2);
    n.conv(256, 384, 3, 12);
    n.conv(384, 384, 3, 12, true, 2);
    n.conv(384, 256, 3, 12, true, 2);
    n.linear(256 * 6 * 6, 4096);
    n.linear(4096, 4096);
    n.linear(4096, 1000);
    return n;
}

sizes vgg19() {
    sizes n;
    double in = 3, side = 224;
    for (auto const& [layers, out] : std::vector<std::pair<int, double>>{{2, 64}, {2, 128}, {4, 256}, {4, 512}, {4, 512}}) {
        for (int i = 0; i < layers; ++i) n.conv(std::exchange(in, out), out, 3, side);
        side /= 2;
    }
    n.linear(512 * 7 * 7, 4096);
    n.linear(4096, 4096);
    n.linear(4096, 1000);
    return n;
}

/// Szegedy et al., Going deeper with convolutions, CVPR 2015, table 1: per module the outputs of 1x1, 3x3 with its reduction, 5x5 with its
/// reduction, and of the projection behind the pooling. `sides` are those of the stages: the paper rounds up where it pools.
sizes inception_v1(std::array<double, 4> const& sides) {
    sizes n;
    n.conv(3, 64, 7, 112);
    n.conv(64, 64, 1, sides[0]);
    n.conv(64, 192, 3, sides[0]);
    struct module {
        std::size_t stage;
        double one, reduce3, three, reduce5, five, pool;
    };
    double in = 192;
    for (module const& m : {module{1, 64, 96, 128, 16, 32, 32},
                            {1, 128, 128, 192, 32, 96, 64},
                            {2, 192, 96, 208, 16, 48, 64},
                            {2, 160, 112, 224, 24, 64, 64},
                            {2, 128, 128, 256, 24, 64, 64},
                            {2, 112, 144, 288, 32, 64, 64},
                            {2, 256, 160, 320, 32, 128, 128},
                            {3, 256, 160, 320, 32, 128, 128},
                            {3, 384, 192, 384, 48, 128, 128}}) {
        n.conv(in, m.one, 1, sides[m.stage]);
        n.conv(in, m.reduce3, 1, sides[m.stage]);
        n.conv(m.reduce3, m.three, 3, sides[m.stage]);
        n.conv(in, m.reduce5, 1, sides[m.stage]);
        n.conv(m.reduce5, m.five, 5, sides[m.stage]);
        n.conv(in, m.pool, 1, sides[m.stage]);
        in = m.one + m.three + m.five + m.pool;
    }
    n.linear(1024, 1000);
    return n;
}

/// He et al., Deep residual learning, CVPR 2016, table 1. The stride of a stage is that of its first 3x3 convolution (as in torchvision), not of
/// the 1x1 before it as in the paper, and convolutions have no bias.
sizes resnet50() {
    sizes n;
    n.conv(3, 64, 7, 112, false);
    n.batch_norm(64);
    double in = 64, width = 64, side = 56;
    for (int const blocks : {3, 4, 6, 3}) {
        for (int i = 0; i < blocks; ++i) {
            double const before = i == 0 && width > 64 ? 2 * side : side; // extent of what the block reads
            n.conv(in, width, 1, before, false);
            n.conv(width, width, 3, side, false);
            n.conv(width, 4 * width, 1, side, false);
            if (i == 0) n.conv(in, 4 * width, 1, side, false);
            for (double const c : {width, width, 4 * width}) n.batch_norm(c);
            if (i == 0) n.batch_norm(4 * width);
            in = 4 * width;
        }
        width *= 2;
        side /= 2;
    }
    n.linear(2048, 1000);
    return n;
}

void check(std::filesystem::path const& file, sizes const& expected, std::int64_t batch) {
    CAPTURE(file.string());
    for (bool const recognise : {true, false}) {
        CAPTURE(recognise);
        auto const model = io::read_onnx(file, {.batch = batch, .recognise = recognise});
        auto const read = graph::read_graph(model.graph);
        auto const found = support::totals_of(model.graph);
        CHECK(found.parameters == expected.parameters);
        CHECK(static_cast<double>(model.parameters) == expected.parameters);
        CHECK(found.multiply_adds == expected.multiply_adds * static_cast<double>(batch));
        CHECK(model.results.size() == 1);
        for (auto const& note : model.notes) CHECK_MESSAGE(note.find("used by no operator") == std::string::npos, note);
    }
}

} // namespace

TEST_CASE("convolutional networks worked out layer by layer have the parameters and multiply-adds of the literature") {
    CHECK(alexnet().parameters == 60'965'224);
    CHECK(vgg19().parameters == 143'667'240);
    CHECK(inception_v1({56, 28, 14, 7}).parameters == 6'998'552);
    CHECK(resnet50().parameters == 25'557'032);
    CHECK(alexnet().multiply_adds == 654'560'384);
    CHECK(vgg19().multiply_adds == 19'632'062'464);
    CHECK(inception_v1({56, 28, 14, 7}).multiply_adds == doctest::Approx(1.58e9).epsilon(0.01)); // of the paper
    CHECK(resnet50().multiply_adds == 4'089'184'256);
}

TEST_CASE("data: the convolutional networks of the ONNX project have the parameters and multiply-adds of the literature") {
    std::vector<std::pair<std::string, sizes>> const known{{"light_bvlc_alexnet", alexnet()},
                                                           {"light_vgg19", vgg19()},
                                                           {"light_inception_v1", inception_v1({55, 27, 13, 6})}, // the file rounds down
                                                           {"light_resnet50", resnet50()}};
    for (auto const& [name, expected] : known) {
        auto const file = support::external_data("onnx/" + name + ".onnx");
        if (!file) return;
        for (std::int64_t const batch : {1, 32}) check(*file, expected, batch);
    }
}
