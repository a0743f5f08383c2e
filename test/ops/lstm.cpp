#include <parsearch/ops/lstm.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("lstm_cell: shapes, parameters, and the two matrix products") {
    auto const op = infer(ops::lstm_cell{.hidden = 6, .parameter = "cell"}, {f32({4, 5}), f32({4, 6}), f32({4, 6})});
    CHECK(dims(op) == "s4 o6*");
    CHECK(op.work == ops::work_class::recurrent);
    CHECK(op.outputs.size() == 2);
    for (auto const& y : op.outputs) CHECK(extents(y) == shape{4, 6});
    CHECK(ops::parameters_of(op) == 4 * (6 * 5 + 6 * 6 + 2 * 6)); // as torch.nn.LSTMCell(5, 6)
    CHECK(op.multiply_adds == 4 * 4 * 6 * (5 + 6));
    CHECK(op.flops == 2 * op.multiply_adds + 13 * 4 * 6);
    CHECK(op.inputs[0].gradient_flops == 2 * 4 * 4 * 6 * 5);
    CHECK(op.inputs[1].gradient_flops == 2 * 4 * 4 * 6 * 6);
    CHECK(op.weights[0].gradient_flops == op.inputs[0].gradient_flops);
    CHECK(op.weights[1].gradient_flops == op.inputs[1].gradient_flops);
    CHECK(op.saved_bytes == 4 * 4 * 6 * 4); // four gates in f32
    for (auto const& w : op.weights) {
        CHECK(w.parameter == "cell." + w.name);
        CHECK(replicated_by(op, w) == "s");
    }
    // Hidden units split: all of x and h is read, of c only the own part; every shard has all four gates of its units.
    CHECK(replicated_by(op, op.inputs[0]) == "o");
    CHECK(replicated_by(op, op.inputs[1]) == "o");
    CHECK(replicated_by(op, op.inputs[2]).empty());
    CHECK(shard_extents(op, op.weights[0], {1, 3}, 1) == shape{4, 2, 5});
    CHECK(ops::partial_sums(op, op.outputs[0], std::vector<std::int32_t>{2, 3}) == 1);
}

TEST_CASE("lstm: a layer is its cells, and only samples are divisible") {
    auto const layer = infer(ops::lstm{.hidden = 6}, {f32({4, 7, 5})});
    auto const cell = infer(ops::lstm_cell{.hidden = 6}, {f32({4, 5}), f32({4, 6}), f32({4, 6})});
    CHECK(dims(layer) == "s4 l7! o6!");
    CHECK(extents(layer.outputs[0]) == shape{4, 7, 6});
    CHECK(extents(layer.outputs[1]) == shape{4, 6});
    CHECK(extents(layer.outputs[2]) == shape{4, 6});
    CHECK(layer.flops == 7 * cell.flops);
    CHECK(layer.multiply_adds == 7 * cell.multiply_adds);
    CHECK(ops::parameters_of(layer) == ops::parameters_of(cell));
    // Backward of all steps: the same matrix products, those of h now inside the operator.
    auto const backward = [](ops::operation const& op) {
        double n = op.backward_flops;
        for (auto const& o : op.inputs) n += o.gradient_flops;
        for (auto const& o : op.weights) n += o.gradient_flops;
        return n;
    };
    CHECK(backward(layer) == 7 * (backward(cell) - cell.inputs[2].gradient_flops));
    CHECK(layer.saved_bytes == 7 * (4 * 4 * 6 * 4 + 4 * 6 * 4)); // gates and cell states
}

TEST_CASE("lstm: refusals") {
    ops::lstm_cell const cell{.hidden = 6};
    CHECK(refusal(cell, {f32({4, 5}), f32({4, 6})}) == "2 inputs: must have 3");
    CHECK(refusal(cell, {f32({4, 5}), f32({4, 5}), f32({4, 6})}) == "input 1 of shape f32[4,5]: axis 1 must have extent 6, option hidden");
    CHECK(refusal(cell, {f32({4, 5}), f32({4, 6}), f32({2, 6})}) == "input 2 of shape f32[2,6]: axis 0 must have extent 4, the samples of input 0");
    CHECK(refusal(ops::lstm{.hidden = 6}, {f32({4, 5})}) == "input 0 of shape f32[4,5]: must have 3 axes");
    CHECK(refusal(ops::lstm{}, {f32({4, 7, 5})}) == "option hidden is 0: must be between 1 and 2^40");
}

TEST_CASE("layers: initial states are inputs, biases may be left out") {
    auto const op = infer(ops::lstm{.hidden = 16, .bias = false}, {f32({4, 7, 10}), f32({4, 16}), f32({4, 16})});
    CHECK(op.inputs.size() == 3);
    CHECK(op.inputs[1].saved);
    CHECK(op.weights.size() == 2);
    CHECK(op.multiply_adds == 4.0 * 7 * 64 * 26);
    CHECK(refusal(ops::lstm{.hidden = 16}, {f32({4, 7, 10}), f32({4, 16})}) == "2 inputs: must have 1, or 3 with the initial states");
    CHECK(refusal(ops::lstm{.hidden = 16}, {f32({4, 7, 10}), f32({4, 16}), f32({4, 15})}) ==
          "input 2 of shape f32[4,15]: axis 1 must have extent 16, option hidden");
}

TEST_CASE("gru and rnn: three matrices per weight, and one") {
    auto const gru = infer(ops::gru{.hidden = 16}, {f32({4, 7, 10})});
    CHECK(extents(gru.weights[0]) == shape{3, 16, 10});
    CHECK(extents(gru.weights[1]) == shape{3, 16, 16});
    CHECK(ops::parameters_of(gru) == 3 * 16 * (10 + 16 + 2));
    CHECK(gru.multiply_adds == 4.0 * 7 * 48 * 26);
    CHECK(gru.outputs.size() == 2);
    auto const rnn = infer(ops::rnn{.hidden = 16}, {f32({4, 7, 10}), f32({4, 16})});
    CHECK(ops::parameters_of(rnn) == 16 * (10 + 16 + 2));
    CHECK(dims(rnn) == "s4 l7! o16!");
    CHECK(rnn.saved_bytes == 4 * 7 * 16 * 4);
}
