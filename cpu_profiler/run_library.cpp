/// Launches that oneDNN runs.

#include <array>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <parsearch/core/error.hpp>

#include "cpu_profiler/kernel.hpp"
#include "profiler/device.hpp"
#include "profiler/launch_cost.hpp"

namespace parsearch::profiler {

namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using dims = memory::dims;

dnnl::stream& the_stream() {
    static dnnl::stream s(cpu_engine());
    return s;
}

/// Extents in the order of their axes, the last axis fastest.
memory::desc plain(dims const& extents) {
    dims strides(extents.size(), 1);
    for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
    return {extents, memory::data_type::f32, strides};
}
memory::desc of_any_layout(dims const& extents) { return {extents, memory::data_type::f32, memory::format_tag::any}; }
/// Of an image, channels last.
memory::desc channels_last(dims const& extents) { return {extents, memory::data_type::f32, memory::format_tag::acdb}; }

array_spec array_of(memory::desc const& d, content holds = content::random) {
    return {.holds = holds, .elements = static_cast<std::int64_t>((d.get_size() + 3) / 4), .layout = d};
}

/// The arrays of a primitive: which of its arguments each is.
using arguments = std::vector<std::pair<int, std::size_t>>;

std::function<void()> bound(dnnl::primitive const& p, std::vector<array_spec> const& specs, arguments const& which, arrays_at at) {
    std::unordered_map<int, memory> all;
    for (auto const& [argument, array] : which) all.emplace(argument, memory(specs[array].layout, cpu_engine(), at[array]));
    return [p, all = std::move(all)] { p.execute(the_stream(), all); };
}

/// A kernel of one primitive.
kernel kernel_of(dnnl::primitive const& p, std::string_view implementation, std::vector<array_spec> specs, arguments which) {
    kernel k{.arrays = specs, .choice = text("onednn ", implementation)};
    k.bind = [p, specs = std::move(specs), which = std::move(which)](arrays_at at) { return bound(p, specs, which, at); };
    return k;
}

/// Runs a primitive once.
std::function<void(arrays_at)> once(dnnl::primitive const& p, std::vector<array_spec> specs, arguments which) {
    return [p, specs = std::move(specs), which = std::move(which)](arrays_at at) { bound(p, specs, which, at)(); };
}

/// What oneDNN complains of becomes a `launch_failure`.
template <class Make> kernel made(launch const& l, Make const& make) {
    try {
        return make();
    } catch (dnnl::error const& e) {
        throw launch_failure(text(to_string(l), ": oneDNN: ", e.what()));
    }
}

dims image(std::int64_t n, std::int64_t channels, std::array<std::int64_t, 2> const& size) { return {n, channels, size[0], size[1]}; }
dims pair_of(std::array<std::int64_t, 2> const& a) { return {a[0], a[1]}; }

} // namespace

dnnl::engine const& cpu_engine() {
    static dnnl::engine const e(dnnl::engine::kind::cpu, 0);
    return e;
}

/// Arrays: a, b, c, the bias if there is one, with GELU its argument.
kernel make_library_kernel(matmul const& m) {
    return made(m, [&] {
        auto const matrix = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
            dims const strides{rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
            return memory::desc({m.batch, rows, columns}, memory::data_type::f32, strides);
        };
        auto const a = matrix(m.m, m.k, m.transpose_a), b = matrix(m.k, m.n, m.transpose_b), c = matrix(m.m, m.n, false);
        auto const bias = plain({1, 1, m.n});
        dnnl::primitive_attr then;
        if (m.then == activation::relu) {
            dnnl::post_ops relu;
            relu.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
            then.set_post_ops(relu);
        }
        auto const d = m.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
        dnnl::matmul::primitive_desc const product(d, then, cpu_engine());
        std::vector<array_spec> specs{array_of(a), array_of(b), array_of(c)};
        if (m.bias) specs.push_back(array_of(bias));
        arguments which{{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DST, 2}};
        if (m.bias) which.emplace_back(DNNL_ARG_BIAS, 3);
        if (m.then != activation::gelu) return kernel_of(dnnl::matmul(product), product.impl_info_str(), std::move(specs), std::move(which));
        // The argument of GELU is kept: the product writes it, a second primitive the result.
        auto const kept = specs.size();
        specs.push_back(array_of(c));
        which[2].second = kept;
        dnnl::eltwise_forward::primitive_desc const gelu({prop_kind::forward_training, algorithm::eltwise_gelu_tanh, c, 0}, cpu_engine());
        kernel k{.arrays = specs, .choice = text("onednn ", product.impl_info_str(), ", gelu ", gelu.impl_info_str())};
        k.bind = [first = dnnl::matmul(product), second = dnnl::eltwise_forward(gelu), specs = std::move(specs), which = std::move(which),
                  kept](arrays_at at) {
            auto multiply = bound(first, specs, which, at), activate = bound(second, specs, {{DNNL_ARG_SRC, kept}, {DNNL_ARG_DST, 2}}, at);
            return [multiply = std::move(multiply), activate = std::move(activate)] {
                multiply();
                activate();
            };
        };
        return k;
    });
}

/// Arrays: x, w, y, in the layouts that oneDNN likes best.
kernel make_library_kernel(convolution const& c) {
    return made(c, [&] {
        auto const x = of_any_layout(image(c.n, c.groups * c.in, c.size)), y = of_any_layout(image(c.n, c.groups * c.out, c.result));
        auto const w =
            of_any_layout(c.groups == 1 ? dims{c.out, c.in, c.kernel[0], c.kernel[1]} : dims{c.groups, c.out, c.in, c.kernel[0], c.kernel[1]});
        dims const stride = pair_of(c.stride), dilation{c.dilation[0] - 1, c.dilation[1] - 1}, front = pair_of(c.padding),
                   end = pair_of(c.padding_end);
        auto const way = algorithm::convolution_auto;
        dnnl::convolution_forward::primitive_desc const forward({prop_kind::forward_training, way, x, w, y, stride, dilation, front, end},
                                                                cpu_engine());
        if (c.pass == convolution_pass::forward)
            return kernel_of(dnnl::convolution_forward(forward), forward.impl_info_str(),
                             {array_of(forward.src_desc()), array_of(forward.weights_desc()), array_of(forward.dst_desc())},
                             {{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DST, 2}});
        if (c.pass == convolution_pass::data_gradient) {
            dnnl::convolution_backward_data::primitive_desc const back({way, x, w, y, stride, dilation, front, end}, cpu_engine(), forward);
            return kernel_of(dnnl::convolution_backward_data(back), back.impl_info_str(),
                             {array_of(back.diff_src_desc()), array_of(back.weights_desc()), array_of(back.diff_dst_desc())},
                             {{DNNL_ARG_DIFF_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DIFF_DST, 2}});
        }
        dnnl::convolution_backward_weights::primitive_desc const back({way, x, w, y, stride, dilation, front, end}, cpu_engine(), forward);
        return kernel_of(dnnl::convolution_backward_weights(back), back.impl_info_str(),
                         {array_of(back.src_desc()), array_of(back.diff_weights_desc()), array_of(back.diff_dst_desc())},
                         {{DNNL_ARG_SRC, 0}, {DNNL_ARG_DIFF_WEIGHTS, 1}, {DNNL_ARG_DIFF_DST, 2}});
    });
}

/// Arrays: x, y; backward x, y, dy, dx; of a maximum, places. Channels last.
kernel make_library_kernel(pooling const& p) {
    return made(p, [&] {
        auto const x = channels_last(image(p.n, p.channels, p.size)), y = channels_last(image(p.n, p.channels, p.result));
        auto const way = p.average ? algorithm::pooling_avg_include_padding : algorithm::pooling_max;
        dims const stride = pair_of(p.stride), window = pair_of(p.window), front = pair_of(p.padding), end = pair_of(p.padding_end);
        dnnl::pooling_forward::primitive_desc const forward({prop_kind::forward_training, way, x, y, stride, window, front, end}, cpu_engine());
        std::vector<array_spec> specs{array_of(x), array_of(y)};
        if (p.backward) specs.insert(specs.end(), {array_of(y), array_of(x)});
        auto const places = specs.size();
        arguments there{{DNNL_ARG_SRC, 0}, {DNNL_ARG_DST, 1}}, back{{DNNL_ARG_DIFF_DST, 2}, {DNNL_ARG_DIFF_SRC, 3}};
        if (!p.average) {
            specs.push_back(array_of(forward.workspace_desc(), content::zero));
            there.emplace_back(DNNL_ARG_WORKSPACE, places);
            back.emplace_back(DNNL_ARG_WORKSPACE, places);
        }
        if (!p.backward) return kernel_of(dnnl::pooling_forward(forward), forward.impl_info_str(), std::move(specs), std::move(there));
        dnnl::pooling_backward::primitive_desc const gradient({way, x, y, stride, window, front, end}, cpu_engine(), forward);
        auto k = kernel_of(dnnl::pooling_backward(gradient), gradient.impl_info_str(), specs, std::move(back));
        k.initialize = once(dnnl::pooling_forward(forward), std::move(specs), std::move(there));
        return k;
    });
}

/// Arrays: x, y; backward y, dy, dx.
kernel make_library_kernel(softmax const& s) {
    return made(s, [&] {
        auto const d = plain({s.rows, s.columns});
        dnnl::softmax_forward::primitive_desc const forward({prop_kind::forward_training, d, 1}, cpu_engine());
        if (!s.backward)
            return kernel_of(dnnl::softmax_forward(forward), forward.impl_info_str(), {array_of(d), array_of(d)},
                             {{DNNL_ARG_SRC, 0}, {DNNL_ARG_DST, 1}});
        dnnl::softmax_backward::primitive_desc const back({d, d, 1}, cpu_engine(), forward);
        return kernel_of(dnnl::softmax_backward(back), back.impl_info_str(), {array_of(d), array_of(d), array_of(d)},
                         {{DNNL_ARG_DST, 0}, {DNNL_ARG_DIFF_DST, 1}, {DNNL_ARG_DIFF_SRC, 2}});
    });
}

namespace {

/// Of a normalization over `x`, with so many means and variances.
template <class Forward, class Backward> kernel normalizing(normalization const& n, memory::desc const& x, std::int64_t statistics) {
    constexpr float epsilon = 1e-5F;
    constexpr bool rows = std::is_same_v<Forward, dnnl::layer_normalization_forward>;
    auto const s = plain({statistics}), channel = plain({n.channels});
    auto const weights = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    auto const forward = [&](dnnl::normalization_flags flags) {
        if constexpr (rows) return typename Forward::primitive_desc({prop_kind::forward_training, x, s, epsilon, flags}, cpu_engine());
        else return typename Forward::primitive_desc({prop_kind::forward_training, x, epsilon, flags}, cpu_engine());
    };
    auto const there = forward(weights);
    if (!n.backward)
        return kernel_of(
            Forward(there), there.impl_info_str(), {array_of(x), array_of(channel), array_of(channel), array_of(x), array_of(s), array_of(s)},
            {{DNNL_ARG_SRC, 0}, {DNNL_ARG_SCALE, 1}, {DNNL_ARG_SHIFT, 2}, {DNNL_ARG_DST, 3}, {DNNL_ARG_MEAN, 4}, {DNNL_ARG_VARIANCE, 5}});
    auto const back = [&] {
        if constexpr (rows) return typename Backward::primitive_desc({prop_kind::backward, x, x, s, epsilon, weights}, cpu_engine(), there);
        else return typename Backward::primitive_desc({prop_kind::backward, x, x, epsilon, weights}, cpu_engine(), there);
    }();
    std::vector<array_spec> const specs{array_of(x), array_of(x), array_of(channel), array_of(s),
                                        array_of(s), array_of(x), array_of(channel), array_of(channel)};
    auto k = kernel_of(Backward(back), back.impl_info_str(), specs,
                       {{DNNL_ARG_SRC, 0},
                        {DNNL_ARG_DIFF_DST, 1},
                        {DNNL_ARG_SCALE, 2},
                        {DNNL_ARG_SHIFT, 2}, // asked for, and no matter to gradients
                        {DNNL_ARG_MEAN, 3},
                        {DNNL_ARG_VARIANCE, 4},
                        {DNNL_ARG_DIFF_SRC, 5},
                        {DNNL_ARG_DIFF_SCALE, 6},
                        {DNNL_ARG_DIFF_SHIFT, 7}});
    // Statistics of x; the result goes where dx will.
    k.initialize = once(Forward(forward(dnnl::normalization_flags::none)), specs,
                        {{DNNL_ARG_SRC, 0}, {DNNL_ARG_DST, 5}, {DNNL_ARG_MEAN, 3}, {DNNL_ARG_VARIANCE, 4}});
    return k;
}
} // namespace

/// Arrays: x, scale, bias, y, mean, variance; backward x, dy, scale, mean, variance, dx, dscale, dbias. Statistics of rows or of channels; images
/// have their channels last.
kernel make_library_kernel(normalization const& n) {
    if (n.kind == normalization_kind::rms) throw launch_failure(text(to_string(n), ": oneDNN 2 has no such normalization"));
    if (n.sum || n.dropout) throw launch_failure(text(to_string(n), ": oneDNN has no sums and no dropout in a normalization"));
    return made(n, [&] {
        if (n.kind == normalization_kind::layer)
            return normalizing<dnnl::layer_normalization_forward, dnnl::layer_normalization_backward>(n, plain({n.n, n.channels}), n.n);
        return normalizing<dnnl::batch_normalization_forward, dnnl::batch_normalization_backward>(
            n, n.inner == 1 ? plain({n.n, n.channels}) : channels_last({n.n, n.channels, n.inner, 1}), n.channels);
    });
}

/// Arrays: x, y, both in the order of x's axes to oneDNN, which so reorders one to the other.
kernel make_library_kernel(permutation const& p) {
    return made(p, [&] {
        auto const x = plain(dims(p.extents.begin(), p.extents.end()));
        dims strides(p.extents.size(), 1);
        std::int64_t stride = 1;
        for (std::size_t i = p.order.size(); i-- > 0;) {
            strides[p.order[i]] = stride;
            stride *= p.extents[p.order[i]];
        }
        memory::desc const y(dims(p.extents.begin(), p.extents.end()), memory::data_type::f32, strides);
        dnnl::reorder::primitive_desc const moved(cpu_engine(), x, cpu_engine(), y);
        return kernel_of(dnnl::reorder(moved), moved.impl_info_str(), {array_of(x), array_of(y)}, {{DNNL_ARG_FROM, 0}, {DNNL_ARG_TO, 1}});
    });
}

} // namespace parsearch::profiler
