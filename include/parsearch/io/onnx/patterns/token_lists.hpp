#pragma once
/// Mixtures of experts of which the tokens of all samples are made one list, and told by sample again behind them: told by sample throughout, so that
/// samples can be split.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/network/match.hpp>

namespace parsearch::io::onnx::patterns {

namespace detail {

/// What computes the gates, or the scores, of a list of tokens, from the last node up.
class router_walk {
  public:
    router_walk(claim& c, value_id list) : c_(c), list_(list) {}

    bool up(value_id v) {
        auto const& in = c_.in();
        if (path_.size() == longest) return false;
        if (in.at(v).from != origin::computed || in.extents(v).size() != 2) return false;
        auto const number = in.at(v).producer;
        auto const& n = in[number];
        if (n.inputs.empty() || n.outputs.size() != 1) return false;
        bool const gate = n.domain == recognised_domain && n.type == "TopKGate";
        bool const rows = gate || (n.domain.empty() && (n.type == "Cast" || (n.type == "Softmax" && along_last(n))));
        c_.add(number);
        path_.push_back(number);
        if (rows) return up(n.inputs[0]);
        if (!n.domain.empty() || n.inputs.size() != 2 || n.inputs[0] != list_ || in.at(n.inputs[1]).from != origin::parameter) return false;
        return n.type == "MatMul" || (n.type == "Gemm" && attribute_of(n, "transA", std::int64_t{0}) == 0);
    }
    [[nodiscard]] std::vector<std::uint32_t> const& path() const noexcept { return path_; }

  private:
    static constexpr std::size_t longest = 8;
    claim& c_;
    value_id list_; ///< the tokens
    std::vector<std::uint32_t> path_;

    static bool along_last(node const& n) {
        auto const axis = attribute_of(n, "axis", std::int64_t{-1});
        return axis == -1 || axis == 1;
    }
};

/// Adds the nodes of `path`, first node last, for tokens told by sample, and answers what the last of them makes.
inline value_id rebuilt(rewriting& net, std::vector<node> const& path, value_id tokens) {
    auto x = tokens;
    for (auto n = path.rbegin(); n != path.rend(); ++n) {
        auto made = *n;
        auto const old = made.outputs[0];
        if (made.type == "Gemm") {
            auto const w = made.inputs[1];
            if (attribute_of(made, "transB", std::int64_t{0}) != 0) {
                auto turned = net.at(w);
                std::swap(turned.shape.extents[0], turned.shape.extents[1]);
                made.inputs[1] = net.add(std::move(turned));
            }
            made.type = "MatMul";
            made.attributes.clear();
        }
        if (made.type == "Softmax") made.attributes.insert_or_assign("axis", std::int64_t{-1});
        auto shape = net.at(old).shape;
        shape.extents = {net.extents(tokens)[0], net.extents(tokens)[1], shape.extents[1]};
        made.inputs[0] = x;
        x = net.add({.name = text(net.at(old).name, ".by_sample"), .shape = std::move(shape)});
        made.outputs = {x};
        net.insert(std::move(made), tokens);
    }
    return x;
}
} // namespace detail

/// At a Reshape that tells by sample what experts answer.
inline bool recognise_token_list(rewriting& net, std::uint32_t n) {
    auto const list = input_of(net[n], 0), result = net[n].outputs[0];
    auto const own = net.maker(list, "Experts", recognised_domain);
    auto const found = own ? own : net.maker(list, "MoE", "com.microsoft");
    if (!found || net.reads(list) != 1 || net[*found].outputs.size() != 1) return false;
    auto const& experts = net[*found];
    auto const flat = net.maker(experts.inputs[0], "Reshape");
    if (!flat || input_of(experts, 1) == no_value) return false;
    auto const tokens = net[*flat].inputs[0];
    if (net.at(tokens).from != origin::computed || net.extents(tokens).size() != 3 || net.extents(tokens) != net.extents(result)) return false;
    auto made = experts;
    made.inputs[0] = tokens;
    made.outputs = {result};
    claim c(net);
    c.add(n);
    c.add(*found);
    detail::router_walk walk(c, experts.inputs[0]);
    bool const lifted = c.attempt([&] { return walk.up(experts.inputs[1]) && c.closed(result); });
    std::vector<node> path;
    if (lifted)
        for (auto const i : walk.path()) path.push_back(net[i]);
    if (lifted) made.inputs[1] = detail::rebuilt(net, path, tokens);
    net.replace(c.nodes(), std::move(made), result);
    return true;
}

} // namespace parsearch::io::onnx::patterns
