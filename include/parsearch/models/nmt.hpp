#pragma once
/// NMT, the recurrent translation model of the FlexFlow paper (Jia et al., MLSys 2019).

#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/models/parts/unrolled.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models {

struct nmt_options {
    std::int64_t layers = 2;         ///< of the encoder, and of the decoder
    std::int64_t hidden = 1024;      ///< of the embeddings too
    std::int64_t steps = 40;         ///< of the encoder, and of the decoder
    std::int64_t vocabulary = 32000; ///< source and target: the 32 K word pieces for WMT of Wu et al., arXiv 1609.08144
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
    bool unroll_shared = true; ///< the steps share their weights; false: each step has its own
};

/// Encoder and decoder LSTMs; the decoder starts in the encoder's last states. In each of its steps the decoder's hidden state
/// attends to all encoder states ("general" score) and predicts a word from the attentional state tanh(W [context; hidden])
/// (Luong et al., EMNLP 2015). Throws `invalid_input` naming the option.
[[nodiscard]] inline graph::operator_graph nmt(nmt_options const& o = {}) {
    detail::unrolled const u{o.layers, o.hidden, o.steps, o.vocabulary, o.batch, o.type, o.unroll_shared};
    detail::check("nmt", u);
    graph::operator_graph g;
    // A state as a sequence of length 1, and back.
    ops::reshape const as_sequence{.shape = {o.batch, 1, o.hidden}};
    detail::lstm_stack encoder(g, u, "encoder");
    std::vector<graph::tensor_ref> encoded;
    for (std::int64_t t = 1; t <= o.steps; ++t) {
        auto const h = encoder.step(detail::embed(g, u, "source", t), t);
        encoded.push_back(g.add(detail::at_step("encoded", t), as_sequence, h));
    }
    auto const memory = g.add("memory", ops::concat{.axis = 1}, std::span<graph::tensor_ref const>(encoded));
    detail::lstm_stack decoder("decoder", encoder);
    for (std::int64_t t = 1; t <= o.steps; ++t) {
        auto const at = [&](char const* part) { return detail::at_step(part, t); };
        auto const h = decoder.step(detail::embed(g, u, "target", t), t);
        auto const query = detail::chain{g, h}
                               .then(at("query"), ops::linear{.out = o.hidden, .bias = false, .parameter = u.weights("query")})
                               .then(at("query.row"), as_sequence)
                               .end;
        auto const context = g.add(at("attention"), ops::attention{.heads = 1}, query, memory, memory);
        auto const row = g.add(at("context"), ops::flatten{}, context);
        auto const state = detail::chain{g, g.add(at("joined"), ops::concat{.axis = 1}, row, h)}
                               .then(at("attentional"), ops::linear{.out = o.hidden, .bias = false, .parameter = u.weights("attentional")})
                               .then(at("attentional.tanh"), ops::unary{ops::function::tanh})
                               .end;
        detail::predict(g, u, state, t);
    }
    return g;
}

} // namespace parsearch::models
