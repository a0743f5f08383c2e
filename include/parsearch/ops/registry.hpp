#pragma once
/// The registry of operator types: a Boost.Hana tuple that code iterates over at compile time and that users extend.

#include <boost/hana/append.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>

#include <parsearch/ops/all_operators.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// The built-in operator types, as `hana::type`s.
inline constexpr auto registry =
    boost::hana::tuple_t<linear, batched_matmul, einsum, conv2d, conv1d, pool2d, pool1d, global_pool, embedding, embedding_bag, lstm_cell, lstm,
                         multi_head_attention, attention, rotary_embedding, layer_norm, rms_norm, batch_norm, softmax, cross_entropy, unary, nary,
                         relu, gelu, add, multiply, dropout, concat, split, slice, reshape, flatten, transpose, gather, reduce, top_k_gate,
                         moe_dispatch, moe_combine, conv_transpose2d, conv_transpose1d, gru, rnn, group_norm, instance_norm, local_response_norm,
                         select, cast, expand, tile, pad, resize, flip, gather_elements, gather_nd, scatter_elements, scatter_nd, top_k, arg_max,
                         cumulative_sum>;

/// Calls `f(hana::type<T>)` for each operator type of `types`, in order. The type is `typename decltype(t)::type` where `f` takes `auto t`.
template <class Registry, class F> constexpr void for_each_operator(Registry const& types, F&& f) { boost::hana::for_each(types, f); }

/// True where `types` has an operator of that kind.
template <class Registry> [[nodiscard]] constexpr bool has_kind(Registry const& types, std::string_view kind) {
    bool found = false;
    for_each_operator(types, [&](auto t) { found = found || decltype(t)::type::kind == kind; });
    return found;
}

/// `types` and `T` behind them: `auto mine = ops::append<my_op>(ops::registry)`.
template <ShapedOperator T, class Registry> [[nodiscard]] constexpr auto append(Registry const& types) {
    return boost::hana::append(types, boost::hana::type_c<T>);
}

/// True where no two types of `types` have the same kind.
template <class Registry> [[nodiscard]] constexpr bool kinds_are_distinct(Registry const& types) {
    bool distinct = true;
    for_each_operator(types, [&](auto t) {
        int same = 0;
        for_each_operator(types, [&](auto other) { same += decltype(t)::type::kind == decltype(other)::type::kind; });
        distinct = distinct && same == 1;
    });
    return distinct;
}

/// Calls `f(hana::type<T>)` for the first operator type of that kind. Throws `invalid_input` listing the known kinds where there is none.
template <class Registry, class F> void visit_kind(Registry const& types, std::string_view kind, F&& f) {
    bool found = false;
    for_each_operator(types, [&](auto t) {
        if (found || decltype(t)::type::kind != kind) return;
        found = true;
        f(t);
    });
    if (found) return;
    std::string known;
    for_each_operator(types, [&](auto t) { known += text(known.empty() ? "" : ", ", decltype(t)::type::kind); });
    throw invalid_input("operator kind '", kind, "' is not registered: must be one of ", known);
}

} // namespace parsearch::ops
