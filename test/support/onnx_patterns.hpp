#pragma once
/// Networks in primitives, built by hand with shapes that follow, and what is recognised in them.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/io/onnx/patterns/patterns.hpp>

#include "support/onnx_network.hpp"

namespace support {

using onnx::value_id;

/// An `onnx_builder` that finds the shapes of results.
struct primitives : onnx_builder {
    [[nodiscard]] shape const& extents(value_id v) const { return net[v].shape.extents; }
    [[nodiscard]] ops::dtype type(value_id v) const { return net[v].shape.type; }

    value_id unary(std::string name, value_id x, attributes given = {}) { return node(std::move(name), {x}, extents(x), std::move(given), type(x)); }
    /// Broadcasts.
    value_id binary(std::string name, value_id a, value_id b) {
        auto const &x = extents(a), &y = extents(b);
        shape out(std::max(x.size(), y.size()), 1);
        for (auto const* const e : {&x, &y})
            for (std::size_t i = 0; i < e->size(); ++i) {
                auto& to = out[out.size() - e->size() + i];
                to = std::max(to, (*e)[i]);
            }
        return node(std::move(name), {a, b}, out, {}, type(a));
    }
    value_id mul(value_id a, value_id b) { return binary("Mul", a, b); }
    value_id mul(value_id a, double b) { return binary("Mul", a, number(b)); }
    value_id div(value_id a, value_id b) { return binary("Div", a, b); }
    value_id div(value_id a, double b) { return binary("Div", a, number(b)); }
    value_id add(value_id a, value_id b) { return binary("Add", a, b); }
    value_id add(value_id a, double b) { return binary("Add", a, number(b)); }
    value_id sub(value_id a, value_id b) { return binary("Sub", a, b); }
    value_id pow(value_id a, double b) { return binary("Pow", a, number(b)); }
    value_id where(value_id condition, value_id a, value_id b) {
        auto const& x = extents(a);
        return node("Where", {condition, a, b}, x.size() < extents(b).size() ? extents(b) : x, {}, type(a));
    }
    value_id cast(value_id x, ops::dtype to) { return node("Cast", {x}, extents(x), {{"to", std::int64_t{to == ops::dtype::f16 ? 10 : 1}}}, to); }
    value_id transpose(value_id x, std::vector<std::int64_t> perm) {
        shape out;
        for (auto const p : perm) out.push_back(extents(x)[static_cast<std::size_t>(p)]);
        return node("Transpose", {x}, out, {{"perm", perm}}, type(x));
    }
    value_id reshape(value_id x, shape to) {
        auto const target = integers(to);
        return node("Reshape", {x, target}, std::move(to), {}, type(x));
    }
    value_id unsqueeze(value_id x, std::int64_t axis) {
        auto out = extents(x);
        out.insert(axis < 0 ? out.end() + (axis + 1) : out.begin() + axis, 1);
        auto const axes = integers({axis});
        return node("Unsqueeze", {x, axes}, out, {}, type(x));
    }
    value_id expand(value_id x, shape to) {
        auto const target = integers(to);
        return node("Expand", {x, target}, std::move(to), {}, type(x));
    }
    /// [begin, end) of `axis`, every `step`-th.
    value_id slice(value_id x, std::int64_t axis, std::int64_t begin, std::int64_t end, std::int64_t step = 1) {
        auto out = extents(x);
        auto& e = out[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(out.size()) : axis)];
        e = (std::min(end, e) - begin + step - 1) / step;
        auto const b = integers({begin}), to = integers({end}), a = integers({axis}), by = integers({step});
        return node("Slice", {x, b, to, a, by}, out, {}, type(x));
    }
    value_id concat(value_id a, value_id b) {
        auto out = extents(a);
        out.back() += extents(b).back();
        return node("Concat", {a, b}, out, {{"axis", std::int64_t{-1}}}, type(a));
    }
    value_id matmul(value_id a, value_id b) {
        auto out = extents(a);
        auto const& y = extents(b);
        for (std::size_t i = 0; i + 2 < y.size(); ++i) out[i] = std::max(out[i], y[i]);
        out.back() = y.back();
        return node("MatMul", {a, b}, out, {}, type(a));
    }
    /// A projection of the last axis.
    value_id linear(value_id x, std::int64_t to) {
        return matmul(x, parameter(parsearch::text('w', net.values.size()), {extents(x).back(), to}, type(x)));
    }
    value_id softmax(value_id x, std::int64_t axis = -1) { return unary("Softmax", x, {{"axis", axis}}); }
    value_id mean(value_id x, std::vector<std::int64_t> axes = {-1}, bool by_input = false) {
        auto out = extents(x);
        for (auto const a : axes) out[static_cast<std::size_t>(a < 0 ? a + static_cast<std::int64_t>(out.size()) : a)] = 1;
        if (!by_input) return node("ReduceMean", {x}, out, {{"axes", axes}}, type(x));
        auto const list = integers(axes);
        return node("ReduceMean", {x, list}, out, {}, type(x));
    }
    value_id matrix(shape extents, std::vector<double> elements) {
        return net.add({.name = parsearch::text("m", net.values.size()),
                        .from = onnx::origin::fixed,
                        .shape = {std::move(extents)},
                        .contents = std::make_shared<onnx::constant const>(onnx::constant{std::move(elements)})});
    }
    /// [.., length, length] with one number on and below the diagonal and another above.
    value_id triangle(shape extents, double below, double above) {
        auto const n = static_cast<std::size_t>(extents.back());
        std::vector<double> elements;
        for (std::int64_t i = 0; i < ops::kit::checked_product("", extents.size() > 3 ? extents[0] : 1, extents.back(), extents.back()); ++i) {
            auto const at = static_cast<std::size_t>(i);
            elements.push_back(at % n <= at / n % n ? below : above);
        }
        return matrix(std::move(extents), std::move(elements));
    }
    /// The same of truth values.
    value_id truth_triangle(shape extents, int below, int above) {
        auto const v = triangle(std::move(extents), below, above);
        net.values[v].shape.type = ops::dtype::i8;
        return v;
    }
};

/// What is recognised in a network with outputs `results`. Checks that nothing else changes: parameters, multiply-adds and the shapes of results;
/// and that a second time nothing is found.
struct recognition {
    onnx::network net;
    std::string notes; ///< joined by "; "
    double flops_before = 0, flops = 0;
    parsearch::graph::operator_graph graph;

    recognition(primitives const& p, std::vector<value_id> results) : net(p.net) {
        net.outputs = std::move(results);
        onnx::remove_dead(net);
        auto const nodes = net.nodes.size();
        auto const plain = onnx::translate(net, onnx::builtin_operators());
        for (auto const& note : onnx::recognise(net)) notes += (notes.empty() ? "" : "; ") + note;
        auto again = net;
        CHECK(onnx::recognise(again).empty());
        CHECK(again.nodes.size() == net.nodes.size());
        CHECK(net.nodes.size() <= nodes);
        auto const made = onnx::translate(net, onnx::builtin_operators());
        (void)parsearch::graph::read_graph(made.graph);
        CHECK(made.notes == plain.notes);
        auto const before = totals_of(plain.graph), after = totals_of(made.graph);
        CHECK(after.parameters == before.parameters);
        CHECK(after.multiply_adds == before.multiply_adds);
        graph = made.graph;
        for (std::size_t i = 0; i < plain.graph.size(); ++i) flops_before += plain.graph[i].operation.flops;
        for (std::size_t i = 0; i < graph.size(); ++i) flops += graph[i].operation.flops;
        for (std::uint32_t i = 0; i < net.nodes.size(); ++i) // every value that is read is made before
            for (auto const v : net.nodes[i].inputs)
                if (v != onnx::no_value && net[v].from == onnx::origin::computed) CHECK(net[v].producer < i);
    }
    recognition(primitives const& p, value_id result) : recognition(p, std::vector{result}) {}

    /// The types of the nodes, sorted: "MatMul parsearch.Gelu".
    [[nodiscard]] std::string types() const {
        std::multiset<std::string> all;
        for (auto const& n : net.nodes) all.insert(parsearch::text(n.domain, n.domain.empty() ? "" : ".", n.type));
        std::string out;
        for (auto const& type : all) out += (out.empty() ? "" : " ") + type;
        return out;
    }
    /// The first node of a type.
    [[nodiscard]] onnx::node const& first(std::string_view type) const {
        auto const at = std::find_if(net.nodes.begin(), net.nodes.end(), [&](auto const& n) { return n.type == type; });
        REQUIRE(at != net.nodes.end());
        return *at;
    }
};

} // namespace support
