#include "graphs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <parsearch/core/error.hpp>

#include "describe.hpp"

namespace parsearch::profiler {

namespace {

using extents = std::vector<std::int64_t>;

/// One axis of windows over an array.
struct window_axis {
    std::int64_t size, window, stride, dilation, front, end, result;
};

/// Cuts `a` until its padding is not negative and cuDNN's formula gives its result: 1 + (size + front + end - reach) / stride, rounded down.
window_axis normalized(window_axis a, std::string_view what) {
    if (a.front < 0) {
        a.size += a.front;
        a.front = 0;
    }
    if (a.end < 0) {
        a.size += a.end;
        a.end = 0;
    }
    std::int64_t const reach = a.dilation * (a.window - 1) + 1;
    std::int64_t const needed = (a.result - 1) * a.stride + reach; // from the first padding to the end of the last window
    if (a.size < 1 || a.result < 1) throw launch_failure(text(what, ": nothing is left of an axis of ", a.size, " in and ", a.result, " out"));
    if (needed > a.size + a.front + a.end)
        throw launch_failure(text(what, ": ", a.result, " windows need ", needed, " positions, and there are ", a.size + a.front + a.end));
    if (needed <= a.size + a.front + a.end - a.stride) { // one window more would fit
        a.end = needed - a.size - a.front;
        if (a.end < 0) {
            a.size += a.end;
            a.end = 0;
        }
        if (a.size < 1) throw launch_failure(text(what, ": windows lie in the padding alone"));
    }
    return a;
}

} // namespace

std::vector<std::int64_t> strides_of(std::span<std::int64_t const> e, layout l) {
    constexpr std::array<std::size_t, 4> nchw{0, 1, 2, 3}, nhwc{0, 2, 3, 1};
    return strides_of(e, l == layout::nchw ? nchw : nhwc);
}

convolution normalized(convolution const& c) {
    convolution r = c;
    for (std::size_t i = 0; i < 2; ++i) {
        window_axis const a =
            normalized({c.size[i], c.kernel[i], c.stride[i], c.dilation[i], c.padding[i], c.padding_end[i], c.result[i]}, describe(c));
        r.size[i] = a.size;
        r.padding[i] = a.front;
        r.padding_end[i] = a.end;
    }
    return r;
}

pooling normalized(pooling const& p) {
    pooling r = p;
    for (std::size_t i = 0; i < 2; ++i) {
        window_axis const a = normalized({p.size[i], p.window[i], p.stride[i], 1, p.padding[i], p.padding_end[i], p.result[i]}, describe(p));
        r.size[i] = a.size;
        r.padding[i] = a.front;
        r.padding_end[i] = a.end;
    }
    return r;
}

built_graph convolution_graph(convolution const& c, layout l) {
    std::string const what = describe(c);
    built_graph g{cudnn_graph(what)};
    cudnnDataType_t const type = cudnn_type(c.type, what);
    auto const array = [&](extents const& e) { return g.tensors.emplace_back(g.graph.tensor(type, e, strides_of(e, l))); };
    std::int64_t const x = array({c.n, c.groups * c.in, c.size[0], c.size[1]});
    std::int64_t const w = array({c.groups * c.out, c.in, c.kernel[0], c.kernel[1]});
    std::int64_t const y = array({c.n, c.groups * c.out, c.result[0], c.result[1]});
    auto const both = [](std::array<std::int64_t, 2> const& a) { return extents(a.begin(), a.end()); };
    g.graph.convolution(c.pass, {both(c.padding), both(c.padding_end), both(c.stride), both(c.dilation)},
                        c.type == dtype::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, x, w, y);
    return g;
}

built_graph normalization_graph(normalization const& n) {
    std::string const what = describe(n);
    built_graph g{cudnn_graph(what)};
    cudnnDataType_t const type = cudnn_type(n.type, what);
    bool const batch = n.kind == normalization_kind::batch, rms = n.kind == normalization_kind::rms;
    cudnnBackendNormMode_t const mode = batch ? CUDNN_BATCH_NORM : rms ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM;
    extents const x_extents = batch ? extents{n.n, n.channels, n.inner, 1} : extents{n.n, n.channels, 1, 1};
    extents const scale_extents{1, n.channels, 1, 1};
    extents const statistic_extents = batch ? scale_extents : extents{n.n, 1, 1, 1};
    auto const data = [&] { return g.tensors.emplace_back(g.graph.tensor(type, x_extents, strides_of(x_extents, layout::nhwc))); };
    auto const narrow = [&](extents const& e) { return g.tensors.emplace_back(g.graph.tensor(CUDNN_DATA_FLOAT, e, strides_of(e, layout::nhwc))); };
    if (!n.backward) {
        std::int64_t const x = data(), scale = narrow(scale_extents), bias = rms ? 0 : narrow(scale_extents), y = data();
        std::int64_t const mean = rms ? 0 : narrow(statistic_extents), deviation = narrow(statistic_extents);
        std::int64_t const epsilon = g.graph.scalar(1e-5F, 4);
        cudnn_descriptor& op =
            g.graph.operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x},
                                                                                {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale},
                                                                                {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, bias},
                                                                                {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y},
                                                                                {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, mean},
                                                                                {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, deviation},
                                                                                {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, epsilon}});
        if (batch)
            for (cudnnBackendAttributeName_t const name :
                 {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
                  CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC})
                g.graph.connect(op, name, narrow(scale_extents));
        if (batch) g.graph.connect(op, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, g.graph.scalar(0.1F, 4));
        cudnnBackendNormFwdPhase_t const phase = CUDNN_NORM_FWD_TRAINING;
        op.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode);
        op.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase);
        g.graph.finish(op);
        return g;
    }
    std::int64_t const x = data(), dy = data(), scale = narrow(scale_extents);
    std::int64_t const mean = rms ? 0 : narrow(statistic_extents), deviation = narrow(statistic_extents);
    std::int64_t const dx = data(), dscale = narrow(scale_extents), dbias = rms ? 0 : narrow(scale_extents);
    cudnn_descriptor& op =
        g.graph.operation(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, x},
                                                                             {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, dy},
                                                                             {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, scale},
                                                                             {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, mean},
                                                                             {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, deviation},
                                                                             {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, dx},
                                                                             {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, dscale},
                                                                             {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, dbias}});
    op.set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode);
    g.graph.finish(op);
    return g;
}

namespace {

/// The tensors of an attention's scores, [batch, heads, queries, keys], none of them in memory.
struct scores {
    cudnn_graph& g;
    extents all, rows;
    explicit scores(cudnn_graph& graph, attention const& a)
        : g(graph), all{a.batch, a.heads, a.queries, a.keys}, rows{a.batch, a.heads, a.queries, 1} {}
    std::int64_t make(cudnnDataType_t type = CUDNN_DATA_FLOAT) const { return g.value(type, all, strides_of(all)); }
    std::int64_t row() const { return g.value(CUDNN_DATA_FLOAT, rows, strides_of(rows)); }
    std::int64_t apply(cudnnPointwiseMode_t mode, std::int64_t x, std::int64_t b = 0) const {
        std::int64_t const y = make();
        g.pointwise(mode, CUDNN_DATA_FLOAT, x, b, y);
        return y;
    }
    /// -infinity where the key comes after the query.
    std::int64_t causal(std::int64_t x) const {
        std::int64_t const row = make(CUDNN_DATA_INT32), column = make(CUDNN_DATA_INT32), seen = make(CUDNN_DATA_BOOLEAN), y = make();
        g.pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, x, 0, row, 0, 2);
        g.pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, x, 0, column, 0, 3);
        g.pointwise(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, row, column, seen);
        // cuDNN before 9.10 wants the lowest number in place of -infinity.
        float const never = cudnnGetVersion() < 91000 ? std::numeric_limits<float>::lowest() : -std::numeric_limits<float>::infinity();
        g.pointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, x, g.scalar(never, 4), y, seen);
        return y;
    }
};

/// Strides of a matrix read across: the last two axes change places.
extents swapped(extents e) {
    std::swap(e[2], e[3]);
    return e;
}

} // namespace

built_graph attention_graph(attention const& a) {
    std::string const what = describe(a);
    built_graph built{cudnn_graph(what)};
    cudnn_graph& g = built.graph;
    cudnnDataType_t const type = cudnn_type(a.type, what);
    extents const q_extents{a.batch, a.heads, a.queries, a.size}, k_extents{a.batch, a.kv_heads, a.keys, a.size};
    extents const v_extents{a.batch, a.kv_heads, a.keys, a.value_size}, o_extents{a.batch, a.heads, a.queries, a.value_size};
    auto const array = [&](extents const& e) { return built.tensors.emplace_back(g.tensor(type, e, strides_of(e))); };
    auto const across = [&](extents const& e) { return built.tensors.emplace_back(g.tensor(type, swapped(e), swapped(strides_of(e)))); };
    scores const s(g, a);
    std::int64_t const scale = g.scalar(static_cast<float>(1 / std::sqrt(static_cast<double>(a.size))), 4);

    std::int64_t const q = array(q_extents), k = across(k_extents);
    if (!a.backward) {
        std::int64_t const v = array(v_extents), o = array(o_extents);
        std::int64_t const statistics = built.tensors.emplace_back(g.tensor(CUDNN_DATA_FLOAT, s.rows, strides_of(s.rows)));
        std::int64_t x = s.make();
        g.matmul(q, k, x);
        x = s.apply(CUDNN_POINTWISE_MUL, x, scale);
        if (a.causal) x = s.causal(x);
        std::int64_t const most = s.row(), sum = s.row(), log = s.row();
        g.reduce(CUDNN_REDUCE_TENSOR_MAX, x, most);
        std::int64_t const e = s.apply(CUDNN_POINTWISE_EXP, s.apply(CUDNN_POINTWISE_SUB, x, most));
        g.reduce(CUDNN_REDUCE_TENSOR_ADD, e, sum);
        g.pointwise(CUDNN_POINTWISE_LOG, CUDNN_DATA_FLOAT, sum, 0, log);
        g.pointwise(CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, most, log, statistics);
        std::int64_t const p = s.make(type);
        g.pointwise(CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT, e, sum, p);
        g.matmul(p, v, o);
        return built;
    }
    std::int64_t const v = across(v_extents), o = array(o_extents), d_o = array(o_extents);
    std::int64_t const statistics = built.tensors.emplace_back(g.tensor(CUDNN_DATA_FLOAT, s.rows, strides_of(s.rows)));
    std::int64_t const dq = array(q_extents), dk = array(k_extents), dv = array(v_extents);
    std::int64_t const sums = built.tensors.emplace_back(g.tensor(CUDNN_DATA_FLOAT, s.rows, strides_of(s.rows)));
    std::int64_t const dq_wide = built.tensors.emplace_back(g.tensor(CUDNN_DATA_FLOAT, q_extents, strides_of(q_extents)));

    // The sums of do * o over a row, which the gradient of the softmax takes away.
    std::int64_t const product = g.value(CUDNN_DATA_FLOAT, o_extents, strides_of(o_extents)), total = s.row();
    g.pointwise(CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, d_o, o, product);
    g.reduce(CUDNN_REDUCE_TENSOR_ADD, product, total);
    g.pointwise(CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, total, g.scalar(1.F, 4), sums);

    // The probabilities again, then dv = pT do.
    std::int64_t x = s.make();
    g.matmul(q, k, x);
    x = s.apply(CUDNN_POINTWISE_MUL, x, scale);
    x = s.apply(CUDNN_POINTWISE_SUB, x, statistics);
    if (a.causal) x = s.causal(x);
    std::int64_t const p = s.apply(CUDNN_POINTWISE_EXP, x);
    auto const turned = [&](std::int64_t from) {
        std::int64_t const y = g.value(type, swapped(s.all), swapped(strides_of(s.all)));
        g.reshape(from, y);
        return y;
    };
    // Heads that share keys and values add up their gradients.
    auto const product_over_heads = [&](std::int64_t left, std::int64_t right, std::int64_t to, std::int64_t width) {
        if (a.heads == a.kv_heads) return g.matmul(left, right, to);
        extents const each{a.batch, a.heads, a.keys, width};
        std::int64_t const y = g.value(type, each, strides_of(each));
        g.matmul(left, right, y);
        g.reduce(CUDNN_REDUCE_TENSOR_ADD, y, to);
    };
    product_over_heads(turned(p), d_o, dv, a.value_size);

    // ds = p (do vT - sums) scale, then dk = dsT q and dq = ds k.
    x = s.make();
    g.matmul(d_o, v, x);
    x = s.apply(CUDNN_POINTWISE_SUB, x, sums);
    x = s.apply(CUDNN_POINTWISE_MUL, x, p);
    std::int64_t const ds = s.apply(CUDNN_POINTWISE_MUL, x, scale);
    product_over_heads(turned(ds), q, dk, a.size);
    std::int64_t const k_rows = g.value(type, k_extents, strides_of(k_extents));
    g.reshape(k, k_rows);
    g.matmul(ds, k_rows, dq_wide);
    g.pointwise(CUDNN_POINTWISE_IDENTITY, CUDNN_DATA_FLOAT, dq_wide, 0, dq);
    return built;
}

} // namespace parsearch::profiler
