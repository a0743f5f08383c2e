#pragma once
/// Translators of recurrent layers.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <parsearch/io/onnx/translators/shape_nodes.hpp>
#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/lstm.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// A layer of `Op` in one or both directions. ONNX gives weights of all directions and gates in one tensor: W[directions, gates * hidden, e],
/// R[directions, gates * hidden, hidden], B[directions, 2 * gates * hidden]; the parts carry the tensor's name and their own. The library's
/// layers have samples in front, so there are transposes before and behind (unless attribute layout is 1).
template <class Op> void translate_recurrent(translation& t, std::int64_t gates, std::size_t states) {
    auto const hidden = ops::kit::checked("hidden_size", t.integer("hidden_size", 0));
    auto const direction = t.word("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
        throw invalid_input("attribute direction is '", direction, "': must be forward, reverse or bidirectional");
    std::size_t const directions = direction == "bidirectional" ? 2 : 1;
    auto const count = static_cast<std::int64_t>(directions);
    bool const samples_first = t.integer("layout", 0) != 0;
    if (t.rank(0) != 3) throw invalid_input("input 0 of shape ", ops::to_string(t.shape(0)), ": must have three axes");
    auto const samples = t.extents(0)[samples_first ? 0 : 1], length = t.extents(0)[samples_first ? 1 : 0], features = t.extents(0)[2];
    auto const rows = ops::kit::checked_product("gates * hidden_size", gates, hidden);
    auto const expect = [&](std::size_t i, integer_list const& shape) {
        if (t.extents(i) != shape)
            throw invalid_input("input ", i, " has shape ", ops::to_string(t.shape(i)), ": must have ",
                                ops::to_string({.extents = shape, .type = t.shape(i).type}));
    };
    expect(1, {count, rows, features});
    expect(2, {count, rows, hidden});
    if (t.has_input(3)) expect(3, {count, 2 * rows});
    for (std::size_t i = 1; i < 4; ++i)
        if (t.has_input(i) && !t.is_parameter(i)) throw invalid_input("weight '", t.value(i).name, "' is no parameter: must be an initializer");
    if (t.has_input(5 + states)) throw invalid_input("has peepholes: these are not supported");
    if (t.has_input(4) && !t.is_fixed(4)) t.note("lengths of sequences are not taken into account: all are counted as ", length);

    if (!t.is_read(0) && !t.is_read(1) && !t.is_read(2)) return;
    argument const x = samples_first ? t.input(0) : argument(t.as("samples_first").emit(ops::transpose{{1, 0, 2}}, t.input(0)));
    std::array<std::vector<argument>, 3> results; // y, h_n, c_n of each direction
    for (std::size_t d = 0; d < directions; ++d) {
        auto const suffix = directions == 1 ? std::string() : text('.', d);
        auto const part = [&](std::size_t i, std::string_view name, integer_list shape) {
            auto a = t.input(i);
            a.part = text(name, suffix);
            a.shape.extents = std::move(shape);
            return a;
        };
        std::vector<argument> in{x}, weights{part(1, "input_weight", {gates, hidden, features}), part(2, "hidden_weight", {gates, hidden, hidden})};
        if (t.has_input(3))
            for (auto const name : {"input_bias", "hidden_bias"}) weights.push_back(part(3, name, {gates, hidden}));
        // A state that is given and not fixed: constants are zeros in practice, and cost nothing.
        bool given = false;
        for (std::size_t i = 0; i < states; ++i) given = given || (t.has_input(5 + i) && !t.is_fixed(5 + i));
        for (std::size_t i = 0; i < states && given; ++i) {
            auto state = t.input(5 + i);
            if (directions > 1)
                state = t.as("state").emit(
                    ops::slice{.axis = samples_first ? 1 : 0, .begin = static_cast<std::int64_t>(d), .end = static_cast<std::int64_t>(d) + 1}, state);
            in.push_back(t.reshaped(state, {samples, hidden}));
        }
        Op const op{.hidden = hidden, .parameter = {}, .bias = t.has_input(3)};
        auto const layer = d ? t.as("backward").emit(op, in, weights) : t.emit(op, in, weights);
        for (std::uint32_t i = 0; i <= states; ++i) results[i].push_back(layer[i]);
    }
    for (std::size_t i = 0; i <= states; ++i) {
        if (!t.is_read(i)) continue;
        auto const at = static_cast<std::int64_t>(i == 0 ? (samples_first ? 2 : 1) : (samples_first ? 1 : 0)); // the axis of the directions
        std::vector<argument> parts;
        for (argument part : results[i]) {
            if (i == 0 && !samples_first) part = t.as("length_first").emit(ops::transpose{{1, 0, 2}}, part);
            auto shape = part.shape.extents;
            shape.insert(shape.begin() + at, 1);
            parts.push_back(t.as("direction").emit(ops::reshape{shape}, part));
        }
        t.output(i, parts.size() == 1 ? parts[0] : argument(t.as("directions").emit(ops::concat{.axis = at}, parts)));
    }
}
} // namespace detail

/// LSTM, GRU, RNN.
inline void add_recurrent(operators& known) {
    known.add("", "LSTM", [](translation& t) { detail::translate_recurrent<ops::lstm>(t, 4, 2); });
    known.add("", "GRU", [](translation& t) { detail::translate_recurrent<ops::gru>(t, 3, 1); });
    known.add("", "RNN", [](translation& t) { detail::translate_recurrent<ops::rnn>(t, 1, 1); });
}

} // namespace parsearch::io::onnx
