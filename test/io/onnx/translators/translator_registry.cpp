#include <parsearch/io/onnx/translators/translator_registry.hpp>

#include <doctest/doctest.h>

#include <parsearch/ops/linear.hpp>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;

TEST_CASE("operators: adding, replacing, finding, copying") {
    onnx::operators known;
    int called = 0;
    known.add("", "A", [&](onnx::translation&) { called = 1; }).add("mine", {"B", "C"}, [&](onnx::translation&) { called = 2; });
    CHECK(known.size() == 3);
    auto const copy = known;
    known.add("ai.onnx", "A", [&](onnx::translation&) { called = 3; });
    CHECK(known.size() == 3);
    CHECK(known.find("", "A") == known.find("ai.onnx", "A"));
    CHECK(known.find("mine", "A") == nullptr);
    CHECK(known.find({.name = "n", .domain = "mine", .type = "C", .inputs = {}, .outputs = {}, .attributes = {}}) != nullptr);
    onnx::network const net;
    onnx::node const n;
    onnx::detail::construction made{.net = &net};
    onnx::translation t(made, n);
    (*known.find("", "A"))(t);
    CHECK(called == 3);
    (*copy.find("", "A"))(t);
    CHECK(called == 1);
    CHECK(refusal([&] { known.add("mine", "", [](onnx::translation&) {}); }) ==
          "operators::add: a translator of domain 'mine' has no type: must name one");
    CHECK(refusal([&] { known.add("mine", "D", {}); }) == "operators::add: the translator of 'mine' 'D' is empty: must be callable");
}

TEST_CASE("operators: a translator of one's own; without it, the message says how to register one") {
    onnx_builder b;
    auto const y = b.node("FusedThing", {b.input("x", {4, 6})}, {4, 8}, {{"units", std::int64_t{8}}}, ops::dtype::f32, "com.mine");
    b.net.outputs = {y};
    auto known = onnx::builtin_operators();
    CHECK(refusal([&] { return onnx::translate(b.net, known); }) ==
          "node 'n0' (com.mine.FusedThing): operator 'FusedThing' of domain 'com.mine', version 17, is unknown. Register it with "
          "operators.add(\"com.mine\", \"FusedThing\", [](io::onnx::translation& t) { t.emit(ops::..., t.input(0)); }), "
          "or set replicate_unknown to run such operators whole on one device");
    known.add("com.mine", "FusedThing", [](onnx::translation& t) { t.emit(ops::linear{.out = t.attribute("units", std::int64_t{0})}, t.input(0)); });
    auto const made = onnx::translate(b.net, known);
    CHECK(listing(made.graph) == "n0:linear");
    CHECK(totals_of(made.graph).parameters == 56);
}
