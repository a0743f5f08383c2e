#pragma once
/// How a runtime makes kernels of a model's operators.

#include <array>
#include <chrono>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/fusion.hpp>
#include <parsearch/io/described/described.hpp>

namespace parsearch::io {

/// The kernels of a runtime: as of an eager one that replays graphs, by default.
struct kernel_options {
    graph::fusion fusion = graph::fusion::none; ///< see `graph::with_fused_kernels`
    std::chrono::nanoseconds host_time{0};      ///< see `cost::roofline_options`, as of `f8_products`
    bool f8_products = false;
    bool ring_attention = false; ///< see `graph::with_ring_attention`
    friend bool operator==(kernel_options const&, kernel_options const&) = default;

    [[nodiscard]] cost::roofline_options roofline() const { return {.host_time = host_time, .f8_products = f8_products}; }
};

template <> inline constexpr auto enumerators<graph::fusion> = graph::fusions;

template <>
inline constexpr auto described<kernel_options> = boost::hana::make_tuple(
    field("fusion", &kernel_options::fusion,
          "operators that share a kernel, whose tensors stay out of memory: none, a dropout and the sum behind it, or what compilers fuse: "
          "elementwise operators and normalizations"),
    field("f8_products", &kernel_options::f8_products,
          "products of linear layers in 16 bits run in f8 where that is faster, scaled and cast in front of them; tensors stay as they are"),
    field("host_time", &kernel_options::host_time,
          "the least that a kernel takes, since the host takes as long to launch it: 5us to 10us where PyTorch runs operator by operator, 0s where "
          "graphs are replayed"),
    field("ring_attention", &kernel_options::ring_attention,
          "where positions of sequences are split, keys and values are passed on in a ring while attention computes; else they are gathered before"));

} // namespace parsearch::io
