#pragma once
/// A launch made ready for a core: the arrays that it takes, and how it runs on them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "profiler/launch.hpp"

namespace parsearch::profiler {

/// What an array holds before the first run.
enum class content : std::uint8_t {
    random,   ///< non-zero, in (-1, 1); integers: odd, in [-63, 63]
    positive, ///< in (1/2, 2)
    indices,  ///< i32 in [0, bound)
    zero
};

/// An array that a launch reads or writes.
struct array_spec {
    content holds = content::random;
    dtype type = dtype::f32;
    std::int64_t elements = 0;   ///< those that lie in it, with what a layout fills up
    std::int64_t bound = 0;      ///< of indices
    dnnl::memory::desc layout{}; ///< as oneDNN has it; without dims where the elements lie in the order of their axes
    [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(elements * ops::size_of(type)); }
};

/// Addresses of the arrays of a kernel, in their order.
using arrays_at = std::span<std::byte* const>;

/// Arrays are in the order in which cuDNN's runners have them: inputs, then results.
struct kernel {
    std::vector<array_spec> arrays{};
    std::function<std::function<void()>(arrays_at)> bind{}; ///< what runs it on these arrays, which live longer
    std::function<void(arrays_at)> initialize{};            ///< writes what it finds of another pass; may be empty
    std::string choice{};                                   ///< what runs it, for people: "onednn brgemm:avx2", "own reduction"
};

/// The kernel of a launch. Throws `launch_failure` where a core has none: of types other than f32 (streams: and integers), recurrent layers, RMS
/// normalization, normalizations with sums, fused attention.
[[nodiscard]] kernel make_kernel(launch const& l);

// By oneDNN.
[[nodiscard]] kernel make_library_kernel(matmul const& m);
[[nodiscard]] kernel make_library_kernel(convolution const& c);
[[nodiscard]] kernel make_library_kernel(pooling const& p);
[[nodiscard]] kernel make_library_kernel(softmax const& s);
[[nodiscard]] kernel make_library_kernel(normalization const& n);
[[nodiscard]] kernel make_library_kernel(permutation const& p);

// By loops of our own.
[[nodiscard]] kernel make_loop_kernel(streaming const& s);
[[nodiscard]] kernel make_loop_kernel(reduction const& r);
[[nodiscard]] kernel make_loop_kernel(lookup const& l);
[[nodiscard]] kernel make_loop_kernel(optimizer_update const& u);

/// The engine of all kernels.
[[nodiscard]] dnnl::engine const& cpu_engine();

} // namespace parsearch::profiler
