#pragma once
/// Networks of `io::onnx` built by hand, and short ways to look at what they are translated to.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>
#include <parsearch/io/onnx/translators/builtin_translators.hpp>
#include <parsearch/io/onnx/translators/translate_network.hpp>
#include <parsearch/ops/operation.hpp>

namespace support {

namespace onnx = parsearch::io::onnx;
namespace ops = parsearch::ops;
using shape = std::vector<std::int64_t>;
using attributes = std::map<std::string, onnx::attribute, std::less<>>;

/// Builds a network node by node, with the shapes that the test says.
struct onnx_builder {
    onnx::network net{};
    std::int64_t version = 17; ///< of the operator set

    onnx::value_id input(std::string name, shape extents, ops::dtype type = ops::dtype::f32) {
        return net.add({.name = std::move(name), .from = onnx::origin::input, .shape = {std::move(extents), type}});
    }
    onnx::value_id parameter(std::string name, shape extents, ops::dtype type = ops::dtype::f32) {
        return net.add({.name = name, .from = onnx::origin::parameter, .shape = {std::move(extents), type}, .parameter = name});
    }
    /// Another view of parameter `of`.
    onnx::value_id view(std::string of, shape extents) {
        return net.add({.name = of + ".view", .from = onnx::origin::parameter, .shape = {std::move(extents)}, .parameter = std::move(of)});
    }
    /// A fixed tensor whose elements are not known.
    onnx::value_id fixed(std::string name, shape extents, ops::dtype type = ops::dtype::f32) {
        return net.add({.name = std::move(name), .from = onnx::origin::fixed, .shape = {std::move(extents), type}});
    }
    onnx::value_id integers(std::vector<std::int64_t> list) {
        auto const count = static_cast<std::int64_t>(list.size());
        return known({count}, ops::dtype::i64, {std::move(list)});
    }
    onnx::value_id integer(std::int64_t number) { return known({}, ops::dtype::i64, {std::vector<std::int64_t>{number}}); }
    onnx::value_id number(double n) { return known({}, ops::dtype::f32, {std::vector<double>{n}}); }
    onnx::value_id numbers(std::vector<double> list) {
        auto const count = static_cast<std::int64_t>(list.size());
        return known({count}, ops::dtype::f32, {std::move(list)});
    }

    /// A node and its outputs.
    std::vector<onnx::value_id> nodes(std::string type, std::vector<onnx::value_id> inputs, std::vector<ops::tensor> outputs, attributes given = {},
                                      std::string domain = "") {
        auto const number = static_cast<std::uint32_t>(net.nodes.size());
        onnx::node n{.name = parsearch::text("n", number),
                     .domain = std::move(domain),
                     .type = std::move(type),
                     .version = version,
                     .inputs = std::move(inputs),
                     .outputs = {},
                     .attributes = std::move(given)};
        for (std::size_t i = 0; i < outputs.size(); ++i)
            n.outputs.push_back(net.add({.name = parsearch::text(n.name, ":", i), .shape = outputs[i], .producer = number}));
        net.nodes.push_back(std::move(n));
        return net.nodes.back().outputs;
    }
    onnx::value_id node(std::string type, std::vector<onnx::value_id> inputs, shape output, attributes given = {},
                        ops::dtype out_type = ops::dtype::f32, std::string domain = "") {
        return nodes(std::move(type), std::move(inputs), {{std::move(output), out_type}}, std::move(given), std::move(domain))[0];
    }

    /// The network with `outputs` as those of the graph, translated and read as the simulator reads it.
    onnx::translated translate(std::vector<onnx::value_id> outputs, bool replicate_unknown = false) {
        net.outputs = std::move(outputs);
        auto made = onnx::translate(net, onnx::builtin_operators(), replicate_unknown);
        if (made.graph.size()) (void)parsearch::graph::read_graph(made.graph);
        return made;
    }
    /// The same of a network of one result.
    onnx::translated translate(onnx::value_id output) { return translate(std::vector{output}); }

  private:
    onnx::value_id known(shape extents, ops::dtype type, onnx::constant elements) {
        return net.add({.name = parsearch::text("c", net.values.size()),
                        .from = onnx::origin::fixed,
                        .shape = {std::move(extents), type},
                        .contents = std::make_shared<onnx::constant const>(std::move(elements))});
    }
};

/// The operators of `g` that are no inputs: "n0:conv2d n1:relu".
[[nodiscard]] inline std::string listing(parsearch::graph::operator_graph const& g) {
    std::string out;
    for (std::size_t i = 0; i < g.size(); ++i)
        if (g[i].operation.work != ops::work_class::source) out += parsearch::text(out.empty() ? "" : " ", g[i].name, ':', g[i].operation.kind);
    return out;
}

/// The operator of that name.
[[nodiscard]] inline ops::operation const& named(parsearch::graph::operator_graph const& g, std::string_view name) {
    for (std::size_t i = 0; i < g.size(); ++i)
        if (g[i].name == name) return g[i].operation;
    throw parsearch::invalid_input("no operator '", name, "' among ", listing(g));
}

/// "w[4,3] b[4]": the weights of an operator by parameter.
[[nodiscard]] inline std::string weights(ops::operation const& op) {
    std::string out;
    for (auto const& w : op.weights) {
        auto const t = ops::to_string(ops::tensor_of(w));
        out += parsearch::text(out.empty() ? "" : " ", w.parameter, t.substr(t.find('[')));
    }
    return out;
}

/// Parameters and multiply-adds of a graph: shared parameters count once.
struct totals {
    double parameters = 0, multiply_adds = 0;
};
[[nodiscard]] inline totals totals_of(parsearch::graph::operator_graph const& g) {
    totals out;
    std::map<std::string, std::int64_t> seen;
    for (std::size_t i = 0; i < g.size(); ++i) {
        out.multiply_adds += g[i].operation.multiply_adds;
        for (auto const& w : g[i].operation.weights)
            if (w.parameter.empty() || seen.emplace(w.parameter, 0).second) out.parameters += static_cast<double>(ops::elements_of(w));
    }
    return out;
}

} // namespace support
