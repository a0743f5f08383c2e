#pragma once
/// Which thread of our own kernels touches which element: plain functions of both host and device, so that tests can run every kernel's
/// indices without a GPU.

#include <array>
#include <cstdint>

#ifdef __CUDACC__
#define PARSEARCH_HD __host__ __device__
#else
#define PARSEARCH_HD
#endif

namespace parsearch::profiler {

inline constexpr int block_threads = 256;

/// Blocks of `block_threads` for `items`, each thread striding over the grid: at most eight blocks for each multiprocessor.
[[nodiscard]] constexpr int blocks_for(std::int64_t items, int multiprocessors) noexcept {
    std::int64_t const needed = (items + block_threads - 1) / block_threads;
    std::int64_t const most = std::int64_t{8} * multiprocessors;
    return static_cast<int>(needed < 1 ? 1 : needed < most ? needed : most);
}

/// The `i`-th number of a counter-based generator: SplitMix64's output function over seed + i * golden gamma
/// (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
PARSEARCH_HD constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t i) noexcept {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/// An odd multiple of 2^-bits in (-1, 1), bits <= 24: never zero, and exact in a type of so many significant bits. All bits vary: what the
/// multipliers are fed decides the power, and so the clock.
PARSEARCH_HD constexpr float random_value(std::uint64_t seed, std::uint64_t i, int bits) noexcept {
    auto const k = static_cast<std::int64_t>(mix(seed, i) >> static_cast<unsigned>(64 - bits)); // in [0, 2^bits)
    std::int64_t const one = std::int64_t{1} << static_cast<unsigned>(bits);
    return static_cast<float>(2 * k + 1 - one) / static_cast<float>(one);
}
/// ... in (1/2, 2).
PARSEARCH_HD constexpr float random_positive(std::uint64_t seed, std::uint64_t i, int bits) noexcept {
    return 1.25F + 0.75F * random_value(seed, i, bits);
}
/// An integer in [0, bound).
PARSEARCH_HD constexpr std::int64_t random_index(std::uint64_t seed, std::uint64_t i, std::int64_t bound) noexcept {
    return static_cast<std::int64_t>(mix(seed, i) % static_cast<std::uint64_t>(bound));
}

/// Dropout keeps 230 elements of 256, and multiplies them so that the mean stays. Eight elements, the first a multiple of eight, share a number, as
/// generators of frameworks make several at once.
PARSEARCH_HD constexpr std::uint64_t dropout_number(std::int64_t i) noexcept { return mix(0, static_cast<std::uint64_t>(i) / 8); }
/// `number` is that of element `i`.
PARSEARCH_HD constexpr bool kept_by_dropout(std::uint64_t number, std::int64_t i) noexcept {
    return (number >> (static_cast<std::uint64_t>(i) % 8 * 8) & 255) >= 26;
}
inline constexpr double dropout_scale = 256.0 / 230;

/// Element `i` of an iteration over an array of `elements` that is read again from its beginning.
PARSEARCH_HD constexpr std::int64_t wrapped(std::int64_t i, std::int64_t elements) noexcept { return i < elements ? i : i % elements; }

/// Whether the `group` elements from `at` on, a multiple of `group`, lie together in an array of `elements`, all of them in use: then one access
/// takes them all, and is aligned.
PARSEARCH_HD constexpr bool together(std::int64_t at, int group, std::int64_t elements, std::int64_t longest) noexcept {
    return at + group <= elements || (elements % group == 0 && at + group <= longest);
}

/// Part number `part` of `parts` of [0, n): parts differ by one element at most.
struct slice {
    std::int64_t begin, end;
};
PARSEARCH_HD constexpr slice slice_of(std::int64_t n, std::int64_t parts, std::int64_t part) noexcept {
    std::int64_t const each = n / parts, more = n % parts;
    std::int64_t const begin = part * each + (part < more ? part : more);
    return {begin, begin + each + (part < more ? 1 : 0)};
}

/// The number of the piece that holds item `i`, where piece p begins at `begin[p]`, begin[0] = 0, and i is below the end of the last of `pieces`
/// >= 1. Pieces without items hold none.
PARSEARCH_HD constexpr int piece_of(std::int64_t const* begin, int pieces, std::int64_t i) noexcept {
    int low = 0, high = pieces; // begin[low] <= i, and all from `high` on begin behind i
    while (high - low > 1) {
        int const middle = low + (high - low) / 2;
        (begin[middle] <= i ? low : high) = middle;
    }
    return low;
}

/// How x[outer, summed, inner] is summed: in two steps where `splits` > 1, over sums of parts.
struct reduction_shape {
    std::int64_t outer = 1, summed = 1, inner = 1;
    std::int64_t splits = 1;
    int row_threads = 1; ///< threads that sum one row together, a power of two (inner == 1)
};
/// As many parts as fill the device four times over, each of 64 elements at least.
[[nodiscard]] constexpr reduction_shape shape_of_reduction(std::int64_t outer, std::int64_t summed, std::int64_t inner,
                                                           int multiprocessors) noexcept {
    reduction_shape r{.outer = outer, .summed = summed, .inner = inner};
    while (inner == 1 && r.row_threads < block_threads && 4 * r.row_threads < summed) r.row_threads *= 2;
    std::int64_t const threads = outer * (inner == 1 ? r.row_threads : inner);
    std::int64_t const wanted = std::int64_t{4} * 2048 * multiprocessors / (threads > 0 ? threads : 1);
    std::int64_t const most = summed / (std::int64_t{64} * r.row_threads);
    r.splits = wanted < most ? wanted : most;
    if (r.splits < 1) r.splits = 1;
    if (r.splits > 1024) r.splits = 1024;
    return r;
}
/// Where element (o, s, i) of x is.
PARSEARCH_HD constexpr std::int64_t reduction_source(reduction_shape const& r, std::int64_t o, std::int64_t s, std::int64_t i) noexcept {
    return (o * r.summed + s) * r.inner + i;
}

/// Windows along one axis (plain numbers: `std::array` is none of a device's).
struct pool_axis {
    std::int64_t size, window, stride, front, results;
};
/// The positions in [0, size) that window number `result` covers.
PARSEARCH_HD constexpr slice window_at(pool_axis const& a, std::int64_t result) noexcept {
    std::int64_t const begin = result * a.stride - a.front, end = begin + a.window;
    return {begin > 0 ? begin : 0, end < a.size ? end : a.size};
}
/// The windows that cover a position.
PARSEARCH_HD constexpr slice windows_over(pool_axis const& a, std::int64_t position) noexcept {
    std::int64_t const before = position + a.front - a.window; // the last begin, from the padding on, of a window that ends before the position
    std::int64_t const begin = before < 0 ? 0 : before / a.stride + 1, end = (position + a.front) / a.stride + 1;
    return {begin, end < a.results ? end : a.results};
}
/// Element `i` of [n, channels, height, width] in the order of memory.
struct pixel {
    std::int64_t n, channel, y, x;
};
PARSEARCH_HD constexpr pixel pixel_at(std::int64_t i, std::int64_t channels, std::int64_t height, std::int64_t width, bool channels_last) noexcept {
    if (channels_last) return {i / channels / width / height, i % channels, i / channels / width % height, i / channels % width};
    return {i / width / height / channels, i / width / height % channels, i / width % height, i % width};
}
PARSEARCH_HD constexpr std::int64_t place_of(pixel const& p, std::int64_t channels, std::int64_t height, std::int64_t width,
                                             bool channels_last) noexcept {
    return channels_last ? ((p.n * height + p.y) * width + p.x) * channels + p.channel : ((p.n * channels + p.channel) * height + p.y) * width + p.x;
}

/// Windows over both axes of every map.
struct pool_shape {
    bool average;
    std::int64_t channels;
    pool_axis rows, columns;
};
/// Element `item` of dx, in the order of memory: what the windows that cover it pay. The gradient of a largest element goes to the first that equals
/// it, row by row, as in PyTorch. `x`, `y` and `dy` read the elements at a place.
template <class X, class Y, class Dy>
PARSEARCH_HD constexpr float pool_gradient(pool_shape const& p, bool channels_last, std::int64_t item, X x, Y y, Dy dy) {
    pixel const own = pixel_at(item, p.channels, p.rows.size, p.columns.size, channels_last);
    slice const over_rows = windows_over(p.rows, own.y), over_columns = windows_over(p.columns, own.x);
    float const value = x(item);
    float sum = 0;
    pixel window = own;
    for (window.y = over_rows.begin; window.y < over_rows.end; ++window.y)
        for (window.x = over_columns.begin; window.x < over_columns.end; ++window.x) {
            std::int64_t const from = place_of(window, p.channels, p.rows.results, p.columns.results, channels_last);
            bool pays = p.average || y(from) == value;
            if (!p.average && pays) {
                slice const rows = window_at(p.rows, window.y), columns = window_at(p.columns, window.x);
                pixel before = own;
                for (before.y = rows.begin; pays && before.y <= own.y; ++before.y)
                    for (before.x = columns.begin; pays && before.x < (before.y < own.y ? columns.end : own.x); ++before.x)
                        pays = x(place_of(before, p.channels, p.rows.size, p.columns.size, channels_last)) != value;
            }
            if (pays) sum += dy(from);
        }
    return p.average ? sum / static_cast<float>(p.rows.window * p.columns.window) : sum;
}

inline constexpr int max_axes = 10;
inline constexpr int tile = 32;     ///< edge of a transposed tile
inline constexpr int tile_rows = 8; ///< rows of threads of a block that moves one

/// A permutation with the axes that stay together made one and axes of one element left out. Axes are those of the output, in its order.
struct permutation_plan {
    int rank = 0;
    std::int64_t extent[max_axes] = {}; ///< of the output
    std::int64_t source[max_axes] = {}; ///< stride in the input
    std::int64_t target[max_axes] = {}; ///< stride in the output
    int turned = -1;                    ///< the axis that is the fastest of the input, where that is not the last; else -1
    [[nodiscard]] constexpr std::int64_t elements() const noexcept {
        std::int64_t n = 1;
        for (int i = 0; i < rank; ++i) n *= extent[i];
        return n;
    }
    /// Tiles of the turned axis and the last one, times all others.
    [[nodiscard]] constexpr std::int64_t tiles() const noexcept {
        std::int64_t n = 1;
        for (int i = 0; i < rank; ++i) n *= i == turned || i == rank - 1 ? (extent[i] + tile - 1) / tile : extent[i];
        return n;
    }
};
/// Where output element `i` comes from; `Index` must hold the number of elements.
template <class Index> PARSEARCH_HD constexpr Index permutation_source(permutation_plan const& p, Index i) noexcept {
    Index from = 0;
    for (int a = p.rank - 1; a >= 0; --a) {
        auto const e = static_cast<Index>(p.extent[a]);
        from += (i % e) * static_cast<Index>(p.source[a]);
        i /= e;
    }
    return from;
}
/// A tile: where its corner is in input and output, and how far it reaches along the turned axis and the last one.
struct tile_place {
    std::int64_t source, target;
    int turned, last;
};
PARSEARCH_HD constexpr tile_place place_of_tile(permutation_plan const& p, std::int64_t t) noexcept {
    tile_place r{0, 0, 0, 0};
    for (int a = p.rank - 1; a >= 0; --a) {
        bool const tiled = a == p.turned || a == p.rank - 1;
        std::int64_t const n = tiled ? (p.extent[a] + tile - 1) / tile : p.extent[a];
        std::int64_t const at = (t % n) * (tiled ? tile : 1);
        t /= n;
        r.source += at * p.source[a];
        r.target += at * p.target[a];
        if (tiled) {
            std::int64_t const left = p.extent[a] - at;
            (a == p.turned ? r.turned : r.last) = static_cast<int>(left < tile ? left : tile);
        }
    }
    return r;
}

} // namespace parsearch::profiler
