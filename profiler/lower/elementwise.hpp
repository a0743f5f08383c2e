#pragma once
/// Operators that compute each element of their result from the elements at its place: streams of what they read and write.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "shard.hpp"

namespace parsearch::profiler::detail {

/// `bytes` beside arrays of `elements`: as elements of the type that makes them as many, else as bytes.
[[nodiscard]] inline stream saved_stream(std::int64_t bytes, std::int64_t elements) {
    using ops::dtype;
    for (auto const type : {dtype::i8, dtype::f16, dtype::f32, dtype::i64})
        if (bytes == elements * ops::size_of(type)) return {elements, type};
    return {bytes, dtype::i8};
}

/// True for combinations whose gradient is only passed on: nothing is read but the gradient of the result.
[[nodiscard]] inline bool passes_gradient_on(std::string_view kind) {
    constexpr std::array<std::string_view, 5> kinds{"add", "subtract", "mean", "modulo", "expand"};
    return std::ranges::find(kinds, kind) != kinds.end();
}

/// Forward reads inputs and weights and writes outputs and what is kept. Backward reads the gradients of outputs and what was kept, and writes
/// the wanted gradients; that of an operand which is repeated is written at full size first, where it has to be computed, and then summed.
[[nodiscard]] inline launches lower_elementwise(shard const& s) {
    auto const& op = s.op();
    auto const& y = op.outputs[0];
    auto const size = s.elements(y);
    launches out;
    std::vector<stream> reads, writes;
    // A halo beyond the result's elements is an array of its own.
    auto const read = [&](ops::operand const& o) {
        for (auto n = s.moved(o); n > 0; n -= size) reads.push_back({std::min(n, size), o.type});
    };
    if (!s.backward()) {
        for (auto const& o : op.inputs) read(o);
        for (auto const& o : op.weights) read(o);
        for (auto const& o : op.outputs) writes.push_back({s.elements(o), o.type});
        if (auto const kept = s.saved_bytes(); kept > 0) writes.push_back(saved_stream(kept, size));
        append_streaming(out, std::move(reads), std::move(writes), s.work().flops);
        return out;
    }
    std::vector<ops::operand const*> wanted;
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
        if (s.wants(i)) wanted.push_back(&op.inputs[i]);
    for (auto const& w : op.weights) wanted.push_back(&w);
    bool const passed = passes_gradient_on(op.kind);
    for (auto const& o : op.outputs) {
        read(o);
        if (o.saved) read(o);
    }
    for (auto const& o : op.inputs)
        if (o.saved) read(o);
    if (!passed)
        for (auto const& w : op.weights) read(w);
    if (auto const kept = s.saved_bytes(); kept > 0) reads.push_back(saved_stream(kept, size));
    for (auto const* const o : wanted)
        if (s.elements(*o) >= size || !passed) writes.push_back({size, o->type});
    if (!writes.empty()) append_streaming(out, std::move(reads), std::move(writes), s.work().flops);
    for (auto const* const o : wanted)
        if (s.elements(*o) < size) append_reduction(out, s, y, *o, o->type);
        else append_copy(out, s.elements(*o) - size, s.elements(*o) - size, o->type);
    return out;
}

} // namespace parsearch::profiler::detail
