#pragma once
/// Translators of attention and rotary embedding where the file has them as operators.

#include <array>
#include <cstdint>
#include <vector>

#include <parsearch/io/onnx/translators/shape_nodes.hpp>
#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/indexing.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/rotary.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// Refuses inputs `first`, ..., `last`: the keys and values of earlier steps, which training has not.
inline void expect_no_cache(translation const& t, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i <= last; ++i)
        if (t.has_input(i)) throw invalid_input("input ", i, " ('", t.value(i).name, "'): keys and values of earlier steps are not supported");
}

/// Adds a mask, if input `i` is one, under the axes [samples, heads, lq, lk].
inline void add_mask(translation& t, std::vector<argument>& operands, std::size_t i) {
    if (!t.has_input(i)) return;
    auto const& e = t.extents(i);
    if (e.size() == 1) t.note("lengths of sequences are not taken into account: all are counted whole");
    else if (e.size() == 2) operands.push_back(t.reshaped(t.input(i), {e[0], 1, 1, e[1]}));
    else if (e.size() == 3) operands.push_back(t.reshaped(t.input(i), {e[0], 1, e[1], e[2]}));
    else operands.push_back(t.input(i));
}

[[nodiscard]] inline ops::attention_layout layout_of(argument const& a) {
    return a.shape.extents.size() == 4 ? ops::attention_layout::by_head : ops::attention_layout::packed;
}

/// Queries, keys, values, and masks behind them.
inline emitted emit_attention(translation& t, std::vector<argument> const& operands, std::int64_t heads, std::int64_t kv_heads, bool causal) {
    ops::attention op{.heads = heads, .kv_heads = kv_heads, .causal = causal};
    for (std::size_t i = 0; i < 3; ++i) op.layouts[i] = layout_of(operands[i]);
    op.layouts[3] = op.layouts[0];
    return t.emit(op, operands);
}

/// Operator set 23: q, k, v and a mask; four axes have the heads of their own, three share them out.
inline void translate_attention(translation& t) {
    expect_no_cache(t, 4, 5);
    std::vector<argument> operands{t.input(0), t.input(1), t.input(2)};
    bool const parted = operands[0].shape.extents.size() == 4;
    auto const heads = parted ? operands[0].shape.extents[1] : t.integer("q_num_heads", 0);
    auto const kv_heads = operands[1].shape.extents.size() == 4 ? operands[1].shape.extents[1] : t.integer("kv_num_heads", 0);
    if (t.has_input(3)) operands.push_back(t.input(3));
    t.output(0, emit_attention(t, operands, heads, kv_heads, t.integer("is_causal", 0) != 0));
}

/// The part of a joined bias, [parts * size], that is for part `i`: a weight of its own where it is a parameter.
inline argument part_of_bias(translation& t, std::size_t input, std::int64_t begin, std::int64_t size, std::string_view name) {
    auto a = t.input(input);
    if (!t.is_parameter(a)) return t.as("part").emit(ops::slice{.axis = 0, .begin = begin, .end = begin + size}, a);
    a.part = name;
    a.shape.extents = {size};
    return a;
}

inline void translate_multi_head_attention(translation& t) {
    expect_no_cache(t, 6, 7);
    std::vector<argument> operands{t.input(0), t.input(1), t.input(2)};
    if (t.has_input(3)) {
        std::int64_t begin = 0;
        constexpr std::array<std::string_view, 3> names{"q", "k", "v"};
        for (std::size_t i = 0; i < 3; ++i) {
            if (operands[i].shape.extents.size() != 3)
                throw invalid_input("input ", i, " of shape ", ops::to_string(operands[i].shape), ": must have three axes to have a bias");
            auto const size = operands[i].shape.extents[2];
            operands[i] = t.as("bias").emit(ops::add{}, operands[i], part_of_bias(t, 3, begin, size, names[i]));
            begin += size;
        }
    }
    add_mask(t, operands, 4);
    if (t.has_input(5)) operands.push_back(t.input(5));
    t.output(0, emit_attention(t, operands, t.integer("num_heads", 0), 0, t.integer("unidirectional", 0) != 0));
}

/// x, one weight for the projections of queries, keys and values, their bias, a mask.
inline void translate_fused_attention(translation& t) {
    expect_no_cache(t, 4, 4);
    if (t.rank(1) != 2) throw invalid_input("weight of shape ", ops::to_string(t.shape(1)), ": must have two axes");
    auto const all = t.extents(1)[1];
    auto const sizes = t.attribute("qkv_hidden_sizes", integer_list(3, all / 3));
    std::vector<argument> weights{t.input(1)};
    if (t.has_input(2)) weights.push_back(t.input(2));
    if (!t.is_parameter(1)) throw invalid_input("weight '", t.value(1).name, "' is no parameter: must be an initializer");
    auto const joined = t.as("projection").emit(ops::linear{.out = all, .bias = t.has_input(2)}, {t.input(0)}, weights);
    auto const parts = t.as("split").emit(ops::split{.axis = -1, .sizes = sizes}, joined);
    if (sizes.size() != 3) throw invalid_input("attribute qkv_hidden_sizes has ", sizes.size(), " numbers: must have three");
    std::vector<argument> operands{parts[0], parts[1], parts[2]};
    add_mask(t, operands, 3);
    if (t.has_input(5)) operands.push_back(t.input(5));
    t.output(0, emit_attention(t, operands, t.integer("num_heads", 0), 0, t.integer("unidirectional", 0) != 0));
}

/// Inputs: x, the tables, and the positions where rows of the tables are to be looked up.
inline void translate_rotary(translation& t, std::size_t tables, std::size_t positions) {
    auto const& x = t.extents(0);
    bool const parted = x.size() == 4;
    if (auto const part = t.integer("rotary_embedding_dim", 0); part != 0 && !(parted && part == x[3]))
        throw invalid_input("attribute rotary_embedding_dim is ", part, ": only rotation of whole heads is supported");
    std::vector<argument> operands{t.input(0)};
    for (std::size_t i = tables; i < tables + 2; ++i) {
        argument table = t.input(i);
        if (t.has_input(positions) && t.rank(positions) == 2) table = t.as("rows").emit(ops::gather{}, table, t.input(positions));
        auto const& e = table.shape.extents;
        if (e.size() == 2) table = t.reshaped(table, {1, e[0], 1, e[1]});
        else if (e.size() == 3) table = t.reshaped(table, {e[0], e[1], 1, e[2]});
        operands.push_back(table);
    }
    t.output(0, t.emit(ops::rotary_embedding{.heads = parted ? x[1] : t.integer("num_heads", 0),
                                             .layout = parted ? ops::attention_layout::by_head : ops::attention_layout::packed,
                                             .tables = ops::attention_layout::by_position},
                       operands));
}
} // namespace detail

/// Attention and RotaryEmbedding of ONNX and of com.microsoft, MultiHeadAttention.
inline void add_attention(operators& known) {
    known.add("", "Attention", detail::translate_attention);
    known.add("com.microsoft", "MultiHeadAttention", detail::translate_multi_head_attention);
    known.add("com.microsoft", "Attention", detail::translate_fused_attention);
    known.add("", "RotaryEmbedding", [](translation& t) { detail::translate_rotary(t, 1, 3); });
    known.add("com.microsoft", "RotaryEmbedding", [](translation& t) { detail::translate_rotary(t, 2, 1); });
}

} // namespace parsearch::io::onnx
