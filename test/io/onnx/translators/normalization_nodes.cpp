#include <parsearch/io/onnx/translators/normalization_nodes.hpp>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

using namespace support;

TEST_CASE("BatchNormalization: running statistics are buffers, not parameters") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6, 8, 8});
    auto const y =
        b.node("BatchNormalization", {x, b.parameter("s", {6}), b.parameter("b", {6}), b.parameter("m", {6}), b.parameter("v", {6})}, {4, 6, 8, 8});
    auto const made = b.translate(y);
    CHECK(listing(made.graph) == "n0:batch_norm");
    CHECK(weights(named(made.graph, "n0")) == "s[6] b[6]");
    CHECK(made.notes.empty());
}

TEST_CASE("layer, group, instance, root-mean-square, local response, norm") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6, 10}), g = b.parameter("g", {10}), c = b.parameter("c", {10});
    auto const i = b.node("InstanceNormalization", {x, b.parameter("si", {6}), b.parameter("bi", {6})}, {4, 6, 10});
    auto const channels =
        b.node("GroupNormalization", {x, b.parameter("sc", {6}), b.parameter("bc", {6})}, {4, 6, 10}, {{"num_groups", std::int64_t{3}}});
    auto const groups =
        b.node("GroupNormalization", {x, b.parameter("sg", {3}), b.parameter("bg", {3})}, {4, 6, 10}, {{"num_groups", std::int64_t{3}}});
    auto const layer = b.node("LayerNormalization", {x, g, c}, {4, 6, 10});
    auto const bare = b.node("LayerNormalization", {x, g}, {4, 6, 10});
    auto const wide =
        b.node("LayerNormalization", {x, b.parameter("gw", {6, 10}), b.parameter("cw", {6, 10})}, {4, 6, 10}, {{"axis", std::int64_t{1}}});
    auto const rms = b.node("RMSNormalization", {x, g}, {4, 6, 10});
    auto const simple = b.node("SimplifiedLayerNormalization", {x, g}, {4, 6, 10});
    auto const local = b.node("LRN", {x}, {4, 6, 10}, {{"size", std::int64_t{5}}});
    auto const unit = b.node("LpNormalization", {x}, {4, 6, 10}, {{"axis", std::int64_t{1}}});
    auto const made = b.translate({i, channels, groups, layer, bare, wide, rms, simple, local, unit});
    CHECK(listing(made.graph) ==
          "n0:instance_norm n1:group_norm n2:group_norm n2.split:reshape n2.scale:multiply n2.bias:add n2.join:reshape n3:layer_norm "
          "n4:layer_norm n4.scale:multiply n5:layer_norm n6:rms_norm n7:rms_norm n8:local_response_norm n9.norm:reduce_l2 n9:divide");
    CHECK(weights(named(made.graph, "n2.scale")) == "sg[3,1,1]");
    CHECK(weights(named(made.graph, "n4.scale")) == "g[10]");
    CHECK(weights(named(made.graph, "n5")) == "gw[6,10] cw[6,10]");
    CHECK(totals_of(made.graph).parameters == 12 + 12 + 6 + 20 + 120);
}

TEST_CASE("SkipLayerNormalization: the sum is an output, too") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6, 10}), skip = b.input("skip", {4, 6, 10}), g = b.parameter("g", {10}), c = b.parameter("c", {10}),
               d = b.parameter("d", {10});
    ops::tensor const t{{4, 6, 10}};
    auto const y = b.nodes("SkipLayerNormalization", {x, skip, g, c, d}, {t, t, t, t}, {}, "com.microsoft");
    auto const z = b.nodes("SkipSimplifiedLayerNormalization", {y[0], y[3], g}, {t}, {}, "com.microsoft");
    auto const made = b.translate(z[0]);
    CHECK(listing(made.graph) == "n0.sum:add n0.sum_bias:add n0:layer_norm n1.sum:add n1:rms_norm");
    CHECK(weights(named(made.graph, "n0")) == "g[10] c[10]");
    CHECK(made.tensors.at("n0:3").producer + 1 == made.tensors.at("n0:0").producer);
}

TEST_CASE("Softmax: over one axis from version 13 on, over all that follow before") {
    for (std::int64_t const version : {12, 13}) {
        onnx_builder b;
        b.version = version;
        auto const x = b.input("x", {4, 6, 10, 10});
        auto const first = b.node("Softmax", {x}, {4, 6, 10, 10}), second = b.node("LogSoftmax", {x}, {4, 6, 10, 10}, {{"axis", std::int64_t{2}}});
        auto const narrow = b.node("Softmax", {b.input("logits", {4, 1000, 1, 1})}, {4, 1000, 1, 1}, {{"axis", std::int64_t{1}}});
        auto const made = b.translate({first, second, narrow});
        CHECK(listing(made.graph) ==
              (version == 13 ? "n0:softmax n1:log_softmax n2:softmax"
                             : "n0.flatten:reshape n0:softmax n0.unflatten:reshape n1.flatten:reshape n1:log_softmax n1.unflatten:reshape "
                               "n2:softmax"));
        if (version == 12) CHECK(named(made.graph, "n1").dims[1].extent == 100);
        if (version == 12) CHECK(named(made.graph, "n0").dims[1].extent == 600);
    }
}
