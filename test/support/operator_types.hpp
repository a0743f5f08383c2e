#pragma once
/// All built-in operator types, for tests that try each.

#include <type_traits>

#include <parsearch/ops/all_operators.hpp>

namespace support {

template <class... Ts> struct types {};

/// Calls `f(std::type_identity<T>)` for each built-in operator type `T`.
template <class F> void for_each_operator_type(F const& f) {
    using namespace parsearch::ops;
    [&]<class... Ts>(types<Ts...>) {
        (f(std::type_identity<Ts>{}), ...);
    }(types<linear, batched_matmul, einsum, conv2d, conv1d, pool2d, pool1d, global_pool, embedding, embedding_bag, lstm_cell, lstm,
            multi_head_attention, attention, rotary_embedding, layer_norm, rms_norm, batch_norm, softmax, cross_entropy, unary, nary, relu, gelu, add,
            multiply, dropout, concat, parsearch::ops::split, slice, reshape, flatten, transpose, gather, reduce, top_k_gate, moe_dispatch,
            moe_combine, conv_transpose2d, conv_transpose1d, gru, rnn, group_norm, instance_norm, local_response_norm, parsearch::ops::select, cast,
            expand, tile, pad, resize, flip, gather_elements, gather_nd, scatter_elements, scatter_nd, top_k, arg_max, cumulative_sum>{});
}

} // namespace support
