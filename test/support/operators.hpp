#pragma once
/// What the tests of operators share: short ways to infer, to measure a shard, to see a refusal.

#include <initializer_list>
#include <string>
#include <vector>

#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::test {

using shape = std::vector<std::int64_t>;

[[nodiscard]] inline ops::tensor f32(shape extents) { return {std::move(extents), ops::dtype::f32}; }
[[nodiscard]] inline ops::tensor i64(shape extents) { return {std::move(extents), ops::dtype::i64}; }

/// `op.infer(inputs)`, checked as the graph would.
template <class Op> [[nodiscard]] ops::operation infer(Op const& op, std::initializer_list<ops::tensor> inputs) {
    std::vector<ops::tensor> const list(inputs);
    auto out = op.infer(list);
    ops::validate(out, "tested");
    return out;
}

/// The message with which `op` refuses `inputs`; empty where it accepts them.
template <class Op> [[nodiscard]] std::string refusal(Op const& op, std::initializer_list<ops::tensor> inputs) {
    try {
        (void)infer(op, inputs);
    } catch (invalid_input const& e) {
        return e.what();
    }
    return {};
}

[[nodiscard]] inline shape extents(ops::operand const& o) { return ops::tensor_of(o).extents; }

/// "s8 o4* k2+": dims with their extents; * parameter, + reduction, ! fixed, ~ attribute, sample plain.
[[nodiscard]] inline std::string dims(ops::operation const& op) {
    constexpr std::string_view marks = " ~*+!";
    std::string out;
    for (auto const& d : op.dims) {
        out += text(out.empty() ? "" : " ", d.name, d.extent);
        if (auto const mark = marks[static_cast<std::size_t>(d.kind)]; mark != ' ') out += mark;
    }
    return out;
}

/// Extents of operand `o` in shard number `shard`.
[[nodiscard]] inline shape shard_extents(ops::operation const& op, ops::operand const& o, std::vector<std::int32_t> const& degrees,
                                         std::int64_t shard) {
    auto const b = ops::shard_box(op, degrees, shard);
    shape out;
    for (auto const& a : o.axes) out.push_back(ops::axis_interval(a, b).size());
    return out;
}

/// The interval of axis `axis` of operand `o` in shard number `shard`.
[[nodiscard]] inline ops::interval shard_interval(ops::operation const& op, ops::operand const& o, std::size_t axis,
                                                  std::vector<std::int32_t> const& degrees, std::int64_t shard) {
    return ops::axis_interval(o.axes[axis], ops::shard_box(op, degrees, shard));
}

/// Names of the dims whose split replicates the operand.
[[nodiscard]] inline std::string replicated_by(ops::operation const& op, ops::operand const& o) {
    std::string out;
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind != ops::dim_kind::fixed && !ops::is_indexed_by(o, k)) out += text(out.empty() ? "" : " ", op.dims[k].name);
    return out;
}

} // namespace parsearch::test
