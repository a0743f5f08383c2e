#include <parsearch/io/onnx/network/match.hpp>

#include <doctest/doctest.h>

#include "support/onnx_patterns.hpp"

using namespace support;
using namespace parsearch::io::onnx;

TEST_CASE("number: half a percent off is still the number, nothing known may be any") {
    CHECK(number{0.5}.may_be(0.5));
    CHECK(number{0.5012}.may_be(0.5));
    CHECK_FALSE(number{0.51}.may_be(0.5));
    CHECK_FALSE(number{-0.5}.may_be(0.5));
    CHECK(number{}.may_be(3));
    CHECK(number{0.0}.may_be(0));
    CHECK_FALSE(number{1e-9}.may_be(0));
}

TEST_CASE("rewriting: makers, readers, numbers") {
    primitives p;
    auto const x = p.input("x", {2, 3}), y = p.unary("Relu", x), z = p.add(y, 2.0), unknown = p.fixed("u", {1, 1}), list = p.numbers({1, 2});
    p.net.outputs = {z};
    rewriting const net(p.net);
    CHECK(net.maker(y, "Relu") == 0);
    CHECK_FALSE(net.maker(y, "Relu", "parsearch"));
    CHECK_FALSE(net.maker(y, "Add"));
    CHECK_FALSE(net.maker(x, "Relu"));
    CHECK_FALSE(net.maker(no_value, "Relu"));
    CHECK(net.sole_reader(y) == 1);
    CHECK_FALSE(net.sole_reader(z)); // the graph's
    CHECK(net.reads(z) == 1);
    CHECK(net.number_at(input_of(net[1], 1))->known == 2);
    CHECK(net.number_at(unknown).has_value());
    CHECK_FALSE(net.number_at(unknown)->known);
    CHECK_FALSE(net.number_at(list));
    CHECK_FALSE(net.number_at(x));
    CHECK(input_of(net[1], 7) == no_value);
}

TEST_CASE("claim: what fails is given up") {
    primitives p;
    auto const x = p.input("x", {2}), y = p.unary("Exp", x), z = p.add(p.number(1), y);
    p.net.outputs = {z};
    rewriting const net(p.net);
    claim c(net);
    CHECK(c.with_number(z, "Add", 1) == y);
    CHECK(c.nodes() == std::vector<std::uint32_t>{1});
    claim other(net);
    CHECK_FALSE(other.with_number(z, "Add", 2));
    CHECK_FALSE(other.operand_of(z, "Exp"));
    CHECK(other.nodes().empty());
    CHECK_FALSE(other.attempt([&] { return other.take(y, "Exp") && other.take(z, "Mul"); }));
    CHECK(other.nodes().empty());
    CHECK(c.closed(z));
    CHECK(c.operand_of(y, "Exp") == x);
    CHECK(c.closed(z));
    CHECK_FALSE(net.closed(std::vector<std::uint32_t>{0}, z));
}

TEST_CASE("rewriting: replaced and added nodes end up in order") {
    primitives p;
    auto const x = p.input("x", {2, 3}), a = p.unary("Relu", x), b = p.unary("Exp", a), c = p.unary("Neg", b), d = p.unary("Abs", c);
    p.net.outputs = {d};
    rewriting net(p.net);
    auto const first = net.add({.name = "first", .shape = p.net[x].shape}), second = net.add({.name = "second", .shape = p.net[x].shape});
    net.insert(recognised("First", "one", {x}, first), x);
    net.insert(recognised("Second", "two", {a}, second), a);
    net.replace(std::vector<std::uint32_t>{1, 2}, recognised("Both", "three", {first, second}, c));
    CHECK(net.maker(c, "Both", recognised_domain) == 2);
    CHECK(net.reads(a) == 1); // by Second; Exp is gone
    CHECK(net.sole_reader(a));
    CHECK(net.reads(b) == 0);
    net.change(c, {3, 2}, a, [](node& n) { n.attributes.emplace("turned", std::int64_t{1}); });
    CHECK(net.reads(a) == 2);
    CHECK(net.reads(first) == 0);
    net.finish();
    std::string types;
    for (auto const& n : p.net.nodes) types += n.type + ' ';
    CHECK(types == "First Relu Second Both Abs ");
    CHECK(p.net.producer_of(c)->name == "three");
    CHECK(p.net.producer_of(c)->inputs == std::vector{a, second});
    CHECK(p.net.producer_of(b) == nullptr);
    CHECK(p.net[c].shape.extents == shape{3, 2});
}
