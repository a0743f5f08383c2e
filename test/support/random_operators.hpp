#pragma once
/// Random small applications of every built-in operator. A type of the registry without a generator here does not compile.

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/random.hpp>
#include <parsearch/ops/all_operators.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::test {

/// An operator and the inputs it is applied to.
template <class Op> struct application {
    Op op;
    std::vector<ops::tensor> inputs;
    [[nodiscard]] ops::operation infer() const { return op.infer(inputs); }
};

/// Draws options and shapes.
template <class R> class drawer {
  public:
    explicit drawer(R& rng) : rng_(rng) {}

    /// An integer in [first, last].
    std::int64_t between(std::int64_t first, std::int64_t last) {
        return first + static_cast<std::int64_t>(uniform_index(rng_, static_cast<std::uint64_t>(last - first + 1)));
    }
    /// An extent with few divisors or many.
    std::int64_t extent() {
        constexpr std::int64_t some[] = {1, 2, 3, 4, 4, 6};
        return some[between(0, 5)];
    }
    bool coin() { return bernoulli(rng_, 0.5); }
    std::vector<std::int64_t> extents(std::int64_t rank) {
        std::vector<std::int64_t> out;
        while (rank-- > 0) out.push_back(extent());
        return out;
    }
    ops::tensor floats(std::vector<std::int64_t> extents) { return {std::move(extents), ops::dtype::f32}; }
    ops::tensor floats(std::int64_t least_rank, std::int64_t most_rank) { return floats(extents(between(least_rank, most_rank))); }
    ops::tensor indices(std::vector<std::int64_t> extents) { return {std::move(extents), coin() ? ops::dtype::i64 : ops::dtype::i32}; }
    /// An axis of a tensor of `rank` axes, from either end.
    std::int64_t axis(std::size_t rank) {
        auto const n = static_cast<std::int64_t>(rank);
        return between(-n, n - 1);
    }
    std::size_t place(std::size_t n) { return static_cast<std::size_t>(between(0, static_cast<std::int64_t>(n) - 1)); }
    /// A divisor of `n`.
    std::int64_t divisor(std::int64_t n) {
        std::vector<std::int64_t> all;
        for (std::int64_t d = 1; d <= n; ++d)
            if (n % d == 0) all.push_back(d);
        return all[place(all.size())];
    }
    template <class T> void shuffle(std::vector<T>& list) {
        for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[place(i)]);
    }

  private:
    R& rng_;
};

/// `random_application<Op>::draw(d)`: specialised for every operator type.
template <class Op> struct random_application;

template <> struct random_application<ops::linear> {
    template <class R> static application<ops::linear> draw(drawer<R>& d) {
        return {{.out = d.extent(), .bias = d.coin(), .parameter = "p"}, {d.floats(2, 4)}};
    }
};
template <> struct random_application<ops::batched_matmul> {
    template <class R> static application<ops::batched_matmul> draw(drawer<R>& d) {
        ops::batched_matmul const op{.transpose_a = d.coin(), .transpose_b = d.coin()};
        auto a = d.extents(d.between(0, 2)), b = a;
        auto const m = d.extent(), n = d.extent(), k = d.extent();
        for (auto const e : {op.transpose_a ? k : m, op.transpose_a ? m : k}) a.push_back(e);
        for (auto const e : {op.transpose_b ? n : k, op.transpose_b ? k : n}) b.push_back(e);
        return {op, {d.floats(a), d.floats(b)}};
    }
};
template <> struct random_application<ops::einsum> {
    template <class R> static application<ops::einsum> draw(drawer<R>& d) {
        // Operands over random subsets of five letters, an output over a random subset of what they have.
        constexpr std::string_view letters = "abcde";
        auto const extents = d.extents(5);
        application<ops::einsum> out{{.equation = "", .parameter = "p"}, {}};
        std::string had;
        auto const operands = d.between(1, 3);
        bool const weighs = operands > 1 && d.coin();
        for (std::int64_t i = 0; i < operands; ++i) {
            std::vector<std::size_t> chosen;
            for (std::size_t l = 0; l < letters.size(); ++l)
                if (d.between(0, 2) == 0) chosen.push_back(l);
            if (chosen.empty()) chosen.push_back(d.place(letters.size()));
            d.shuffle(chosen);
            out.op.equation += i ? "," : "";
            std::vector<std::int64_t> taken;
            for (auto const l : chosen) {
                out.op.equation += letters[l];
                taken.push_back(extents[l]);
                if (had.find(letters[l]) == std::string::npos) had += letters[l];
            }
            if (weighs && i + 1 == operands) out.op.weight = taken;
            else out.inputs.push_back(d.floats(taken));
        }
        out.op.equation += "->";
        for (char const c : had)
            if (d.coin()) out.op.equation += c;
        return out;
    }
};

/// A window that fits `extent`, with other padding behind or the same. Pooling allows padding up to half the kernel, and no dilation.
template <class R> ops::kit::window random_window(drawer<R>& d, std::int64_t extent, bool pooling) {
    ops::kit::window w{.kernel = d.between(1, std::min<std::int64_t>(extent, 4)), .stride = d.between(1, 3)};
    w.padding = d.between(0, pooling ? w.kernel / 2 : 2);
    if (d.coin()) w.padding_end = d.between(0, pooling ? w.kernel / 2 : 2);
    if (!pooling && w.kernel > 1) w.dilation = d.between(1, (extent + w.padding + w.behind() - 1) / (w.kernel - 1));
    return w;
}
template <> struct random_application<ops::conv2d> {
    template <class R> static application<ops::conv2d> draw(drawer<R>& d) {
        auto const groups = d.between(1, 3);
        application<ops::conv2d> out{{.out = groups * d.between(1, 3), .groups = groups, .bias = d.coin(), .parameter = "p"}, {}};
        std::vector<std::int64_t> x{d.between(1, 2), groups * d.between(1, 2)};
        for (std::size_t i = 0; i < 2; ++i) {
            x.push_back(d.between(1, 9));
            auto const w = random_window(d, x.back(), false);
            out.op.kernel[i] = w.kernel;
            out.op.stride[i] = w.stride;
            out.op.padding[i] = w.padding;
            out.op.padding_end[i] = w.padding_end;
            out.op.dilation[i] = w.dilation;
        }
        out.inputs = {d.floats(x)};
        return out;
    }
};
template <> struct random_application<ops::conv1d> {
    template <class R> static application<ops::conv1d> draw(drawer<R>& d) {
        auto const groups = d.between(1, 3), length = d.between(1, 16);
        auto const w = random_window(d, length, false);
        ops::conv1d const op{.out = groups * d.extent(),
                             .kernel = w.kernel,
                             .stride = w.stride,
                             .padding = w.padding,
                             .dilation = w.dilation,
                             .padding_end = w.padding_end,
                             .groups = groups,
                             .bias = d.coin(),
                             .parameter = "p"};
        return {op, {d.floats({d.extent(), groups * d.extent(), length})}};
    }
};
template <> struct random_application<ops::pool2d> {
    template <class R> static application<ops::pool2d> draw(drawer<R>& d) {
        application<ops::pool2d> out{{.mode = static_cast<ops::pool_mode>(d.place(3)), .ceil_mode = d.coin()}, {}};
        std::vector<std::int64_t> x{d.between(1, 2), d.extent()};
        for (std::size_t i = 0; i < 2; ++i) {
            x.push_back(d.between(1, 9));
            auto const w = random_window(d, x.back(), true);
            out.op.kernel[i] = w.kernel;
            out.op.stride[i] = w.stride;
            out.op.padding[i] = w.padding;
            out.op.padding_end[i] = w.padding_end;
        }
        out.inputs = {d.floats(x)};
        return out;
    }
};
template <> struct random_application<ops::pool1d> {
    template <class R> static application<ops::pool1d> draw(drawer<R>& d) {
        auto const length = d.between(1, 16);
        auto const w = random_window(d, length, true);
        return {{.mode = static_cast<ops::pool_mode>(d.place(3)),
                 .kernel = w.kernel,
                 .stride = w.stride,
                 .padding = w.padding,
                 .padding_end = w.padding_end,
                 .ceil_mode = d.coin()},
                {d.floats({d.extent(), d.extent(), length})}};
    }
};
template <> struct random_application<ops::global_pool> {
    template <class R> static application<ops::global_pool> draw(drawer<R>& d) {
        return {{.mode = static_cast<ops::pool_mode>(d.place(3))}, {d.floats(3, 4)}};
    }
};
template <> struct random_application<ops::embedding> {
    template <class R> static application<ops::embedding> draw(drawer<R>& d) {
        return {{.entries = d.extent(), .features = d.extent(), .parameter = "p"}, {d.indices(d.extents(d.between(1, 3)))}};
    }
};
template <> struct random_application<ops::embedding_bag> {
    template <class R> static application<ops::embedding_bag> draw(drawer<R>& d) {
        return {{.entries = d.extent(), .features = d.extent(), .parameter = "p"}, {d.indices(d.extents(2))}};
    }
};
template <> struct random_application<ops::lstm_cell> {
    template <class R> static application<ops::lstm_cell> draw(drawer<R>& d) {
        auto const samples = d.extent(), hidden = d.extent();
        return {{.hidden = hidden, .parameter = "p"}, {d.floats({samples, d.extent()}), d.floats({samples, hidden}), d.floats({samples, hidden})}};
    }
};
/// A layer over a sequence, with initial states or without.
template <class Op, class R> application<Op> recurrent(drawer<R>& d, std::size_t states) {
    auto const x = d.floats(3, 3);
    application<Op> out{{.hidden = d.extent(), .parameter = "p", .bias = d.coin()}, {x}};
    if (d.coin()) out.inputs.resize(1 + states, d.floats({x.extents[0], out.op.hidden}));
    return out;
}
template <> struct random_application<ops::lstm> {
    template <class R> static application<ops::lstm> draw(drawer<R>& d) { return recurrent<ops::lstm>(d, 2); }
};
template <> struct random_application<ops::multi_head_attention> {
    template <class R> static application<ops::multi_head_attention> draw(drawer<R>& d) {
        ops::multi_head_attention op{.heads = d.extent(), .bias = d.coin(), .parameter = "p", .flash = d.coin()};
        op.kv_heads = d.coin() ? d.divisor(op.heads) : 0;
        op.head_size = d.coin() ? d.between(1, 3) : 0;
        op.out = d.coin() ? d.extent() : 0;
        op.causal = d.coin();
        auto const samples = d.between(1, 4), lq = d.extent(), lk = op.causal ? lq : d.extent();
        auto const e = op.head_size ? d.extent() : op.heads * d.between(1, 3);
        return {op, {d.floats({samples, lq, e}), d.floats({samples, lk, d.extent()}), d.floats({samples, lk, d.extent()})}};
    }
};
/// The extents of an operand of attention in a layout.
inline std::vector<std::int64_t> laid_out(ops::attention_layout layout, std::int64_t samples, std::int64_t length, std::int64_t heads,
                                          std::int64_t size) {
    switch (layout) {
    case ops::attention_layout::packed: return {samples, length, heads * size};
    case ops::attention_layout::by_position: return {samples, length, heads, size};
    case ops::attention_layout::by_head: return {samples, heads, length, size};
    case ops::attention_layout::transposed: return {samples, heads, size, length};
    case ops::attention_layout::length_first: break;
    }
    return {length, samples, heads * size};
}
/// A part of `full` that broadcasts to it: some leading axes left out, some of extent 1.
template <class R> std::vector<std::int64_t> broadcast_part(drawer<R>& d, std::vector<std::int64_t> full, std::int64_t least_rank) {
    full.erase(full.begin(), full.begin() + d.between(0, static_cast<std::int64_t>(full.size()) - least_rank));
    for (auto& e : full)
        if (d.coin()) e = 1;
    return full;
}
template <> struct random_application<ops::attention> {
    template <class R> static application<ops::attention> draw(drawer<R>& d) {
        ops::attention op{.heads = d.extent(), .causal = d.coin(), .flash = d.coin()};
        op.kv_heads = d.coin() ? d.divisor(op.heads) : 0;
        if (d.coin())
            for (auto& layout : op.layouts) layout = static_cast<ops::attention_layout>(d.place(ops::attention_layouts));
        auto const groups = op.kv_heads ? op.kv_heads : op.heads;
        auto const samples = d.extent(), lq = d.extent(), lk = op.causal ? lq : d.extent(), size = d.between(1, 3);
        application<ops::attention> out{op,
                                        {d.floats(laid_out(op.layouts[0], samples, lq, op.heads, size)),
                                         d.floats(laid_out(op.layouts[1], samples, lk, groups, size)),
                                         d.floats(laid_out(op.layouts[2], samples, lk, groups, d.between(1, 3)))}};
        for (auto masks = d.between(0, 2); masks > 0; --masks) {
            auto extents =
                d.between(0, 3) ? broadcast_part(d, {samples, op.heads, lq, lk}, 0) : std::vector<std::int64_t>{samples * op.heads, lq, lk};
            out.inputs.push_back(d.coin() ? d.floats(std::move(extents)) : d.indices(std::move(extents)));
        }
        return out;
    }
};
template <> struct random_application<ops::rotary_embedding> {
    template <class R> static application<ops::rotary_embedding> draw(drawer<R>& d) {
        ops::rotary_embedding const op{.heads = d.extent(),
                                       .layout = static_cast<ops::attention_layout>(d.place(ops::attention_layouts)),
                                       .tables = d.coin() ? ops::attention_layout::by_head : ops::attention_layout::by_position};
        auto const samples = d.extent(), length = d.extent(), size = 2 * d.between(1, 3);
        application<ops::rotary_embedding> out{op, {d.floats(laid_out(op.layout, samples, length, op.heads, size))}};
        for (int i = 0; i < 2; ++i)
            out.inputs.push_back(d.floats(broadcast_part(d, laid_out(op.tables, samples, length, op.heads, d.coin() ? size : size / 2), 1)));
        return out;
    }
};
template <> struct random_application<ops::layer_norm> {
    template <class R> static application<ops::layer_norm> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        return {{.axes = d.between(1, static_cast<std::int64_t>(x.extents.size()) - 1), .affine = d.coin(), .parameter = "p", .bias = d.coin()}, {x}};
    }
};
template <> struct random_application<ops::rms_norm> {
    template <class R> static application<ops::rms_norm> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        return {{.axes = d.between(1, static_cast<std::int64_t>(x.extents.size()) - 1), .affine = d.coin(), .parameter = "p"}, {x}};
    }
};
template <> struct random_application<ops::batch_norm> {
    template <class R> static application<ops::batch_norm> draw(drawer<R>& d) { return {{.parameter = "p", .relu = d.coin()}, {d.floats(2, 4)}}; }
};
template <> struct random_application<ops::softmax> {
    template <class R> static application<ops::softmax> draw(drawer<R>& d) {
        auto x = d.floats(1, 4);
        return {{.axis = d.axis(x.extents.size())}, {x}};
    }
};
template <> struct random_application<ops::cross_entropy> {
    template <class R> static application<ops::cross_entropy> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        return {{}, {x, d.indices({x.extents.begin(), x.extents.end() - 1})}};
    }
};
template <> struct random_application<ops::unary> {
    template <class R> static application<ops::unary> draw(drawer<R>& d) {
        return {{static_cast<ops::function>(d.place(ops::function_table.size()))}, {d.floats(1, 4)}};
    }
};
template <ops::function F> struct random_application<ops::fixed_unary<F>> {
    template <class R> static application<ops::fixed_unary<F>> draw(drawer<R>& d) { return {{}, {d.floats(1, 4)}}; }
};
/// Two to four tensors that broadcast to one.
template <class R> std::vector<ops::tensor> broadcastable(drawer<R>& d) {
    auto const joined = d.extents(d.between(1, 4));
    std::vector<ops::tensor> out;
    for (auto n = d.between(2, 4); n > 0; --n) {
        auto part = joined;
        for (auto& e : part)
            if (d.between(0, 3) == 0) e = 1;
        part.erase(part.begin(), part.begin() + (d.coin() ? 0 : d.between(0, static_cast<std::int64_t>(part.size()))));
        out.push_back(d.floats(part));
    }
    return out;
}
template <> struct random_application<ops::nary> {
    template <class R> static application<ops::nary> draw(drawer<R>& d) {
        return {{static_cast<ops::combine>(d.place(ops::combine_table.size()))}, broadcastable(d)};
    }
};
template <ops::combine C> struct random_application<ops::fixed_nary<C>> {
    template <class R> static application<ops::fixed_nary<C>> draw(drawer<R>& d) { return {{}, broadcastable(d)}; }
};
template <> struct random_application<ops::dropout> {
    template <class R> static application<ops::dropout> draw(drawer<R>& d) {
        return {{.rate = static_cast<double>(d.between(0, 9)) / 10}, {d.floats(1, 4)}};
    }
};
template <> struct random_application<ops::concat> {
    template <class R> static application<ops::concat> draw(drawer<R>& d) {
        auto const x = d.floats(1, 4);
        application<ops::concat> out{{.axis = d.axis(x.extents.size())}, {}};
        for (auto n = d.between(1, 4); n > 0; --n) {
            out.inputs.push_back(x);
            out.inputs.back().extents[ops::kit::axis_number("axis", out.op.axis, x.extents.size())] = d.extent();
        }
        return out;
    }
};
template <> struct random_application<ops::split> {
    template <class R> static application<ops::split> draw(drawer<R>& d) {
        auto x = d.floats(1, 4);
        application<ops::split> out{{.axis = d.axis(x.extents.size()), .sizes = d.extents(d.between(1, 4))}, {}};
        x.extents[ops::kit::axis_number("axis", out.op.axis, x.extents.size())] =
            std::accumulate(out.op.sizes.begin(), out.op.sizes.end(), std::int64_t{0});
        out.inputs = {x};
        return out;
    }
};
template <> struct random_application<ops::slice> {
    template <class R> static application<ops::slice> draw(drawer<R>& d) {
        auto x = d.floats(1, 4);
        ops::slice op{.axis = d.axis(x.extents.size())};
        auto& extent = x.extents[ops::kit::axis_number("axis", op.axis, x.extents.size())];
        extent = d.between(1, 12);
        op.begin = d.between(0, extent - 1);
        op.end = d.between(op.begin + 1, extent);
        if (d.coin()) op.begin -= extent;
        if (d.coin()) op.step = d.between(1, 3);
        return {op, {x}};
    }
};
/// A factorization of `n` into a few extents.
template <class R> std::vector<std::int64_t> factors(drawer<R>& d, std::int64_t n) {
    std::vector<std::int64_t> out;
    while (n > 1 || d.between(0, 3) == 0) {
        out.push_back(d.divisor(n));
        n /= out.back();
        if (out.size() == 4) out.back() *= std::exchange(n, 1);
        if (out.size() == 4) break;
    }
    d.shuffle(out);
    return out;
}
template <> struct random_application<ops::reshape> {
    template <class R> static application<ops::reshape> draw(drawer<R>& d) {
        auto const n = d.extent() * d.extent() * d.extent();
        application<ops::reshape> out{{factors(d, n)}, {d.floats(factors(d, n))}};
        if (!out.op.shape.empty() && d.coin()) out.op.shape[d.place(out.op.shape.size())] = -1;
        return out;
    }
};
template <> struct random_application<ops::flatten> {
    template <class R> static application<ops::flatten> draw(drawer<R>& d) {
        auto x = d.floats(1, 4);
        return {{.from_axis = d.axis(x.extents.size())}, {x}};
    }
};
template <> struct random_application<ops::transpose> {
    template <class R> static application<ops::transpose> draw(drawer<R>& d) {
        auto x = d.floats(1, 4);
        application<ops::transpose> out{{std::vector<std::int64_t>(x.extents.size())}, {x}};
        std::iota(out.op.permutation.begin(), out.op.permutation.end(), 0);
        d.shuffle(out.op.permutation);
        return out;
    }
};
template <> struct random_application<ops::gather> {
    template <class R> static application<ops::gather> draw(drawer<R>& d) {
        auto x = d.floats(1, 4);
        return {{.axis = d.axis(x.extents.size())}, {x, d.indices(d.extents(d.between(0, 2)))}};
    }
};
template <> struct random_application<ops::reduce> {
    template <class R> static application<ops::reduce> draw(drawer<R>& d) {
        auto x = d.floats(1, 4);
        ops::reduce op{.mode = static_cast<ops::reduction_mode>(d.place(ops::reduction_table.size())), .keep = d.coin()};
        auto const first = d.between(0, static_cast<std::int64_t>(x.extents.size()) - 1);
        for (auto a = first; a < static_cast<std::int64_t>(x.extents.size()); ++a)
            if (a == first || d.coin()) op.axes.push_back(d.coin() ? a : a - static_cast<std::int64_t>(x.extents.size()));
        return {op, {x}};
    }
};

template <> struct random_application<ops::top_k_gate> {
    template <class R> static application<ops::top_k_gate> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        auto const k = d.between(1, x.extents.back());
        return {{.k = k}, {std::move(x)}};
    }
};
template <> struct random_application<ops::moe_dispatch> {
    template <class R> static application<ops::moe_dispatch> draw(drawer<R>& d) {
        auto x = d.floats(3, 3), gates = d.floats({x.extents[0], x.extents[1], d.extent()});
        ops::moe_dispatch const op{.experts_per_token = d.between(1, gates.extents[2]), .capacity_factor = d.coin() ? 1 : 0.7};
        return {op, {std::move(x), std::move(gates)}};
    }
};
template <> struct random_application<ops::moe_combine> {
    template <class R> static application<ops::moe_combine> draw(drawer<R>& d) {
        auto x = d.floats(4, 4), gates = d.floats({x.extents[0], d.extent(), x.extents[1]});
        return {{}, {std::move(x), std::move(gates)}};
    }
};

template <> struct random_application<ops::gru> {
    template <class R> static application<ops::gru> draw(drawer<R>& d) { return recurrent<ops::gru>(d, 1); }
};
template <> struct random_application<ops::rnn> {
    template <class R> static application<ops::rnn> draw(drawer<R>& d) { return recurrent<ops::rnn>(d, 1); }
};
template <> struct random_application<ops::conv_transpose2d> {
    template <class R> static application<ops::conv_transpose2d> draw(drawer<R>& d) {
        auto const groups = d.between(1, 3);
        application<ops::conv_transpose2d> out{{.out = groups * d.between(1, 3), .groups = groups, .bias = d.coin(), .parameter = "p"}, {}};
        std::vector<std::int64_t> x{d.between(1, 2), groups * d.between(1, 2)};
        for (std::size_t i = 0; i < 2; ++i) {
            x.push_back(d.between(2, 6));
            out.op.kernel[i] = d.between(1, 4);
            out.op.stride[i] = d.between(1, 3);
            out.op.dilation[i] = d.between(1, 2);
            out.op.padding[i] = d.between(0, (out.op.kernel[i] - 1) / 2);
            out.op.output_padding[i] = d.between(0, out.op.stride[i] - 1);
        }
        out.inputs = {d.floats(x)};
        return out;
    }
};
template <> struct random_application<ops::conv_transpose1d> {
    template <class R> static application<ops::conv_transpose1d> draw(drawer<R>& d) {
        auto const groups = d.between(1, 3), kernel = d.between(1, 5);
        ops::conv_transpose1d const op{.out = groups * d.extent(),
                                       .kernel = kernel,
                                       .stride = d.between(1, 4),
                                       .padding = d.between(0, kernel / 2),
                                       .padding_end = d.coin() ? 0 : -1,
                                       .groups = groups,
                                       .bias = d.coin(),
                                       .parameter = "p"};
        return {op, {d.floats({d.extent(), groups * d.extent(), d.between(2, 12)})}};
    }
};
template <> struct random_application<ops::group_norm> {
    template <class R> static application<ops::group_norm> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        return {{.groups = d.divisor(x.extents[1]), .affine = d.coin(), .parameter = "p"}, {x}};
    }
};
template <> struct random_application<ops::instance_norm> {
    template <class R> static application<ops::instance_norm> draw(drawer<R>& d) { return {{.parameter = "p"}, {d.floats(3, 4)}}; }
};
template <> struct random_application<ops::local_response_norm> {
    template <class R> static application<ops::local_response_norm> draw(drawer<R>& d) { return {{.size = d.between(1, 6)}, {d.floats(2, 4)}}; }
};
template <> struct random_application<ops::select> {
    template <class R> static application<ops::select> draw(drawer<R>& d) {
        auto in = broadcastable(d);
        in.resize(3, in.front());
        in[0].type = ops::dtype::i8;
        return {{}, in};
    }
};
template <> struct random_application<ops::cast> {
    template <class R> static application<ops::cast> draw(drawer<R>& d) {
        return {{d.coin() ? ops::dtype::bf16 : ops::dtype::i64}, {d.coin() ? d.floats(1, 4) : d.indices(d.extents(d.between(1, 4)))}};
    }
};
template <> struct random_application<ops::expand> {
    template <class R> static application<ops::expand> draw(drawer<R>& d) {
        auto const both = broadcastable(d);
        return {{both[1].extents}, {both[0]}};
    }
};
template <> struct random_application<ops::tile> {
    template <class R> static application<ops::tile> draw(drawer<R>& d) {
        auto x = d.floats(1, 4);
        application<ops::tile> out{{}, {x}};
        for (std::size_t i = 0; i < x.extents.size(); ++i) out.op.repeats.push_back(d.coin() ? 1 : d.between(1, 4));
        return out;
    }
};
template <> struct random_application<ops::pad> {
    template <class R> static application<ops::pad> draw(drawer<R>& d) {
        auto x = d.floats(1, 4);
        application<ops::pad> out{{}, {x}};
        for (std::size_t i = 0; i < x.extents.size(); ++i) {
            out.op.before.push_back(d.between(0, 3));
            out.op.after.push_back(d.between(0, 3));
        }
        return out;
    }
};
template <> struct random_application<ops::resize> {
    template <class R> static application<ops::resize> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        application<ops::resize> out{{x.extents, static_cast<ops::interpolation>(d.place(3))}, {x}};
        for (std::size_t i = 2; i < x.extents.size(); ++i) out.op.shape[i] = d.coin() ? 2 * x.extents[i] : d.extent();
        return out;
    }
};
template <> struct random_application<ops::flip> {
    template <class R> static application<ops::flip> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        return {{.axis = d.axis(x.extents.size())}, {x}};
    }
};
template <> struct random_application<ops::gather_elements> {
    template <class R> static application<ops::gather_elements> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        application<ops::gather_elements> out{{.axis = d.axis(x.extents.size())}, {x}};
        x.extents[ops::kit::axis_number("axis", out.op.axis, x.extents.size())] = d.extent();
        out.inputs.push_back(d.indices(x.extents));
        return out;
    }
};
template <> struct random_application<ops::gather_nd> {
    template <class R> static application<ops::gather_nd> draw(drawer<R>& d) {
        auto const x = d.floats(2, 4);
        auto const rank = static_cast<std::int64_t>(x.extents.size()), batch = d.between(0, rank - 1);
        std::vector<std::int64_t> indices(x.extents.begin(), x.extents.begin() + batch);
        if (d.coin()) indices.push_back(d.extent());
        indices.push_back(d.between(1, rank - batch));
        return {{.batch_axes = batch}, {x, d.indices(indices)}};
    }
};
template <> struct random_application<ops::scatter_elements> {
    template <class R> static application<ops::scatter_elements> draw(drawer<R>& d) {
        auto const x = d.floats(2, 4);
        application<ops::scatter_elements> out{{.axis = d.axis(x.extents.size())}, {x}};
        auto places = x.extents;
        for (auto& e : places) e = d.between(1, e);
        out.inputs.push_back(d.indices(places));
        out.inputs.push_back(d.floats(places));
        return out;
    }
};
template <> struct random_application<ops::scatter_nd> {
    template <class R> static application<ops::scatter_nd> draw(drawer<R>& d) {
        auto const x = d.floats(2, 4);
        auto const named = d.between(1, static_cast<std::int64_t>(x.extents.size()) - 1);
        auto places = d.extents(d.between(0, 2)), updates = places;
        places.push_back(named);
        updates.insert(updates.end(), x.extents.begin() + named, x.extents.end());
        return {{}, {x, d.indices(places), d.floats(updates)}};
    }
};
template <> struct random_application<ops::top_k> {
    template <class R> static application<ops::top_k> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        auto const axis = d.axis(x.extents.size());
        return {{.k = d.between(1, x.extents[ops::kit::axis_number("axis", axis, x.extents.size())]), .axis = axis}, {x}};
    }
};
template <> struct random_application<ops::arg_max> {
    template <class R> static application<ops::arg_max> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        return {{.axis = d.axis(x.extents.size()), .keep = d.coin()}, {x}};
    }
};
template <> struct random_application<ops::cumulative_sum> {
    template <class R> static application<ops::cumulative_sum> draw(drawer<R>& d) {
        auto x = d.floats(2, 4);
        return {{.axis = d.axis(x.extents.size())}, {x}};
    }
};

/// A random degree for each dim: a divisor of its extent, or where `uneven` any number of parts, 1 where it is fixed; at most `most` shards.
template <class R> std::vector<std::int32_t> random_degrees(drawer<R>& d, ops::operation const& op, std::int64_t most, bool uneven = false) {
    std::vector<std::int32_t> degrees;
    std::int64_t shards = 1;
    for (auto const& dim : op.dims) {
        std::int64_t degree = dim.kind == ops::dim_kind::fixed ? 1 : uneven ? d.between(1, dim.extent) : d.divisor(dim.extent);
        if (shards * degree > most || !ops::can_be_in(dim, degree)) degree = 1;
        shards *= degree;
        degrees.push_back(static_cast<std::int32_t>(degree));
    }
    return degrees;
}

} // namespace parsearch::test
