#pragma once
// RNNTC, the recurrent text classifier of the FlexFlow paper (Jia et al., MLSys 2019).

#include <parsearch/models/parts/unrolled.hpp>
#include <parsearch/models/rnntc.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph rnntc(rnntc_options const& o) {
    detail::unrolled const u{o.layers, o.hidden, o.steps, o.vocabulary, o.batch, o.type, o.unroll_shared};
    detail::check("rnntc", u);
    detail::check_size("rnntc", "classes", o.classes);
    graph::operator_graph g;
    detail::lstm_stack lstm(g, u, "lstm");
    graph::tensor_ref x{};
    for (std::int64_t t = 1; t <= o.steps; ++t) x = lstm.step(detail::embed(g, u, "embedding", t), t);
    detail::add_loss(g, g.add("logits", ops::linear{.out = o.classes}, x));
    return g;
}

} // namespace parsearch::models
