#pragma once
// Inception-v3 (Szegedy et al., CVPR 2016) without the auxiliary classifier, as torchvision defines it.

#include <parsearch/models/inception_v3.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::models::detail {

/// One convolution of a branch. With stride 1 it is padded so that the size stays, with stride 2 not at all.
struct branch_conv {
    std::int64_t out;
    std::array<std::int64_t, 2> kernel{1, 1};
    std::int64_t stride = 1;
};

/// Builds the blocks of Inception-v3; the letters are those of torchvision's InceptionA to InceptionE.
struct inception_blocks {
    operator_graph& g;

    tensor_ref branch(std::string const& name, tensor_ref x, std::vector<branch_conv> const& convs) const;
    tensor_ref pooled(std::string const& name, tensor_ref x, std::int64_t out) const {
        ops::pool2d const pool{.mode = ops::pool_mode::average, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}};
        return branch(name, g.add(name + ".pool", pool, x), {{out}});
    }
    tensor_ref reduced(std::string const& name, tensor_ref x) const { return g.add(name, ops::pool2d{.kernel = {3, 3}, .stride = {2, 2}}, x); }
    template <class... T> tensor_ref joined(std::string const& name, T const&... parts) const {
        return g.add(name, ops::concat{.axis = 1}, parts...);
    }
    /// 1x3 and 3x1 convolutions of the same tensor, side by side.
    tensor_ref fork(std::string const& name, tensor_ref x) const {
        auto const row = branch(name + ".row", x, {{384, {1, 3}}}); // before the column: arguments have no order
        return joined(name, row, branch(name + ".column", x, {{384, {3, 1}}}));
    }

    tensor_ref a(std::string const& name, tensor_ref x, std::int64_t pool_out) const;
    tensor_ref b(std::string const& name, tensor_ref x) const {
        auto const b1 = branch(name + ".3x3", x, {{384, {3, 3}, 2}});
        auto const b2 = branch(name + ".3x3x2", x, {{64}, {96, {3, 3}}, {96, {3, 3}, 2}});
        return joined(name, b1, b2, reduced(name + ".pool", x));
    }
    tensor_ref c(std::string const& name, tensor_ref x, std::int64_t width) const;
    tensor_ref d(std::string const& name, tensor_ref x) const {
        auto const b1 = branch(name + ".3x3", x, {{192}, {320, {3, 3}, 2}});
        auto const b2 = branch(name + ".7x7", x, {{192}, {192, {1, 7}}, {192, {7, 1}}, {192, {3, 3}, 2}});
        return joined(name, b1, b2, reduced(name + ".pool", x));
    }
    tensor_ref e(std::string const& name, tensor_ref x) const;
};

} // namespace parsearch::models::detail

namespace parsearch::models::detail {

PARSEARCH_INLINE tensor_ref inception_blocks::branch(std::string const& name, tensor_ref x, std::vector<branch_conv> const& convs) const {
    for (std::size_t i = 0; i < convs.size(); ++i) {
        auto const [out, kernel, stride] = convs[i];
        ops::conv2d conv{.out = out, .kernel = kernel, .stride = {stride, stride}};
        if (stride == 1) conv.padding = {kernel[0] / 2, kernel[1] / 2};
        x = normalized_conv(g, text(name, '.', i + 1), x, conv);
    }
    return x;
}

PARSEARCH_INLINE tensor_ref inception_blocks::a(std::string const& name, tensor_ref x, std::int64_t pool_out) const {
    auto const b1 = branch(name + ".1x1", x, {{64}});
    auto const b2 = branch(name + ".5x5", x, {{48}, {64, {5, 5}}});
    auto const b3 = branch(name + ".3x3", x, {{64}, {96, {3, 3}}, {96, {3, 3}}});
    return joined(name, b1, b2, b3, pooled(name + ".pool", x, pool_out));
}

PARSEARCH_INLINE tensor_ref inception_blocks::c(std::string const& name, tensor_ref x, std::int64_t width) const {
    auto const b1 = branch(name + ".1x1", x, {{192}});
    auto const b2 = branch(name + ".7x7", x, {{width}, {width, {1, 7}}, {192, {7, 1}}});
    auto const b3 = branch(name + ".7x7x2", x, {{width}, {width, {7, 1}}, {width, {1, 7}}, {width, {7, 1}}, {192, {1, 7}}});
    return joined(name, b1, b2, b3, pooled(name + ".pool", x, 192));
}

PARSEARCH_INLINE tensor_ref inception_blocks::e(std::string const& name, tensor_ref x) const {
    auto const b1 = branch(name + ".1x1", x, {{320}});
    auto const b2 = fork(name + ".3x3.fork", branch(name + ".3x3", x, {{384}}));
    auto const b3 = fork(name + ".3x3x2.fork", branch(name + ".3x3x2", x, {{448}, {384, {3, 3}}}));
    return joined(name, b1, b2, b3, pooled(name + ".pool", x, 192));
}

} // namespace parsearch::models::detail

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph inception_v3(inception_v3_options const& o) {
    graph::operator_graph g;
    detail::inception_blocks const net{g};
    auto x = detail::images(g, "inception_v3", o, 75);
    x = detail::normalized_conv(g, "stem.1", x, {.out = 32, .kernel = {3, 3}, .stride = {2, 2}});
    x = detail::normalized_conv(g, "stem.2", x, {.out = 32, .kernel = {3, 3}});
    x = net.reduced("stem.pool1", detail::normalized_conv(g, "stem.3", x, {.out = 64, .kernel = {3, 3}, .padding = {1, 1}}));
    x = detail::normalized_conv(g, "stem.4", x, {.out = 80, .kernel = {1, 1}});
    x = net.reduced("stem.pool2", detail::normalized_conv(g, "stem.5", x, {.out = 192, .kernel = {3, 3}}));
    x = net.a("a1", x, 32);
    x = net.a("a2", x, 64);
    x = net.a("a3", x, 64);
    x = net.b("b", x);
    x = net.c("c1", x, 128);
    x = net.c("c2", x, 160);
    x = net.c("c3", x, 160);
    x = net.c("c4", x, 192);
    x = net.d("d", x);
    x = net.e("e1", x);
    x = net.e("e2", x);
    detail::chain head{g, g.add("pool", ops::global_pool{.mode = ops::pool_mode::average}, x)};
    detail::drop(head, "dropout", o.dropout);
    head.then("flatten", ops::flatten{}).then("fc", ops::linear{.out = o.classes});
    detail::add_loss(g, head.end);
    return g;
}

} // namespace parsearch::models
