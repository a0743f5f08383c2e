#pragma once
/// Gates of mixtures of experts, spelled out: the k largest of each token's probabilities, put in the places of their experts.

#include <cstdint>
#include <optional>
#include <utility>

#include <parsearch/io/onnx/network/match.hpp>

namespace parsearch::io::onnx::patterns {

namespace detail {

/// What `v` is before casts and products with a number.
[[nodiscard]] inline value_id unscaled(claim& c, value_id v) {
    v = c.before_casts(v);
    c.either_order(v, "Mul", [&](value_id a, value_id b) {
        if (!c.in().number_at(b)) return false;
        v = c.before_casts(a);
        return true;
    });
    return v;
}

/// The values over their sum, or the values, where `v` is that of the k largest `values`.
[[nodiscard]] inline bool is_share(claim& c, value_id v, value_id values) {
    if (v == values) return true;
    return c.attempt([&] {
        auto const* const div = c.take(v, "Div");
        if (!div || div->inputs.size() != 2 || c.before_casts(div->inputs[0]) != values) return false;
        auto sum = div->inputs[1];
        c.either_order(sum, "Add", [&](value_id a, value_id b) { // not to divide by 0
            if (!c.in().number_at(b)) return false;
            sum = a;
            return true;
        });
        auto const x = c.operand_of(c.before_casts(sum), "ReduceSum");
        return x && c.before_casts(*x) == values;
    });
}
} // namespace detail

/// At a ScatterElements along the last axis into zeros.
inline bool recognise_gate(rewriting& net, std::uint32_t n) {
    auto const& scatter = net[n];
    auto const result = scatter.outputs[0];
    auto const rank = static_cast<std::int64_t>(net.extents(result).size());
    auto const last = [&](std::int64_t axis) { return axis == -1 || axis == rank - 1; };
    if (scatter.inputs.size() != 3 || rank < 2 || !last(attribute_of(scatter, "axis", std::int64_t{0}))) return false;
    if (attribute_of(scatter, "reduction", std::string("none")) != "none") return false;
    auto const zeros = scatter.inputs[0];
    if (net.at(zeros).from != origin::fixed) return false;
    if (auto const& contents = net.at(zeros).contents)
        for (std::size_t i = 0; i < contents->size(); ++i)
            if (contents->number(i) != 0) return false;
    claim c(net);
    c.add(n);
    auto const indices = scatter.inputs[1];
    if (net.at(indices).from != origin::computed) return false;
    auto const number = net.at(indices).producer;
    auto const& top = net[number];
    if (!top.domain.empty() || top.type != "TopK" || top.outputs.size() != 2 || top.outputs[1] != indices || top.outputs[0] == no_value) return false;
    if (!last(attribute_of(top, "axis", std::int64_t{-1})) || attribute_of(top, "largest", std::int64_t{1}) == 0) return false;
    c.add(number);
    if (!detail::is_share(c, detail::unscaled(c, scatter.inputs[2]), top.outputs[0])) return false;
    auto const x = top.inputs[0];
    if (net.extents(x) != net.extents(result) || !c.closed(result)) return false;
    auto made = recognised("TopKGate", top.name, {x}, result);
    made.attributes.emplace("k", net.extents(indices).back());
    net.replace(c.nodes(), std::move(made));
    return true;
}

} // namespace parsearch::io::onnx::patterns
