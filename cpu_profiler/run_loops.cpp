/// Launches that loops of our own run, and which launches are run by what.

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include <parsearch/core/error.hpp>

#include "cpu_profiler/kernel.hpp"
#include "cpu_profiler/loops.hpp"
#include "profiler/device.hpp"
#include "profiler/launch_cost.hpp"

namespace parsearch::profiler {

namespace {

float* floats(std::byte* at) { return reinterpret_cast<float*>(at); }

bool is_streamed(dtype t) { return t == dtype::f32 || t == dtype::i8 || t == dtype::i32 || t == dtype::i64; }

/// Multiply-adds for each element beside the sums of what is read.
std::int64_t fmas_of(streaming const& s) {
    auto const sums = static_cast<std::int64_t>(s.reads.empty() ? 0 : s.reads.size() - 1);
    return (std::max<std::int64_t>(0, s.flops - sums) + 1) / 2;
}

/// Moments of the rule that an update's arithmetic per byte tells: 2 flops for 12 bytes, 4 for 20, 14 for 28.
std::int64_t moments_of(updated_weights const& u) { return u.flops * 6 <= u.bytes ? 0 : u.flops * 5 <= u.bytes ? 1 : 2; }
} // namespace

/// Arrays: the reads, the writes.
kernel make_loop_kernel(streaming const& s) {
    kernel k{.choice = "own streaming"};
    std::int64_t longest = 0;
    for (auto const* const all : {&s.reads, &s.writes})
        for (auto const& a : *all) {
            if (!is_streamed(a.type)) throw launch_failure(text(to_string(s), ": streams are of f32, i8, i32 or i64 on a CPU"));
            longest = std::max(longest, a.elements);
            k.arrays.push_back({.type = a.type, .elements = a.elements});
        }
    k.bind = [s, longest, fmas = fmas_of(s)](arrays_at at) {
        std::vector<stream_array> reads, writes;
        for (auto const& a : s.reads) reads.push_back({at[reads.size()], a.elements, a.type});
        for (auto const& a : s.writes) writes.push_back({at[reads.size() + writes.size()], a.elements, a.type});
        return [reads = std::move(reads), writes = std::move(writes), longest, fmas] { run_streaming(reads, writes, longest, fmas); };
    };
    return k;
}

/// Arrays: x, y.
kernel make_loop_kernel(reduction const& r) {
    kernel k{.choice = "own reduction"};
    k.arrays = {{.elements = r.outer * r.summed * r.inner}, {.elements = r.outer * r.inner}};
    k.bind = [r](arrays_at at) { return [r, x = floats(at[0]), y = floats(at[1])] { run_reduction(r, x, y); }; };
    return k;
}

/// Arrays: table or its gradient, indices, y or its gradient.
kernel make_loop_kernel(lookup const& l) {
    if (l.bag < 1 || l.lookups % l.bag != 0) throw launch_failure(text(to_string(l), ": bags do not divide the lookups"));
    if (l.rows > std::int64_t{1} << 31) throw launch_failure(text(to_string(l), ": indices have 32 bits"));
    kernel k{.choice = "own lookup"};
    k.arrays = {{.elements = l.rows * l.width},
                {.holds = content::indices, .type = dtype::i32, .elements = l.lookups, .bound = l.rows},
                {.elements = l.lookups / l.bag * l.width}};
    k.bind = [l](arrays_at at) {
        auto const* const indices = reinterpret_cast<std::int32_t const*>(at[1]);
        return [l, indices, table = floats(at[0]), y = floats(at[2])] { run_lookup(l, table, indices, y); };
    };
    return k;
}

/// Arrays of each set: weights, gradients and the moments of the rule.
kernel make_loop_kernel(optimizer_update const& u) {
    constexpr std::array<std::string_view, 3> rules{"SGD", "momentum", "Adam"};
    kernel k;
    for (auto const& set : u.sets) {
        auto const moments = moments_of(set);
        auto const elements = std::max<std::int64_t>(1, set.bytes / (12 + 8 * moments));
        for (std::int64_t i = 0; i < 2 + moments; ++i)
            k.arrays.push_back({.holds = i == 3 ? content::positive : content::random, .elements = elements});
        k.choice = text("own ", rules[static_cast<std::size_t>(moments)]);
    }
    if (u.sets.size() > 1) k.choice += text(" of ", u.sets.size(), " sets of weights");
    k.bind = [u, specs = k.arrays](arrays_at at) {
        std::vector<weights_at> all;
        std::size_t next = 0;
        for (auto const& set : u.sets) {
            auto const moments = moments_of(set);
            weights_at w{.weight = floats(at[next]), .gradient = floats(at[next + 1]), .elements = specs[next].elements};
            if (moments > 0) w.first = floats(at[next + 2]);
            if (moments > 1) w.second = floats(at[next + 3]);
            next += static_cast<std::size_t>(2 + moments);
            all.push_back(w);
        }
        return [all = std::move(all)] {
            for (auto const& w : all) run_update(w);
        };
    };
    return k;
}

kernel make_kernel(launch const& l) {
    return std::visit(
        [&](auto const& x) -> kernel {
            using T = std::remove_cvref_t<decltype(x)>;
            if constexpr (requires { x.type; })
                if (x.type != dtype::f32) throw launch_failure(text(to_string(l), ": is run in f32 alone on a CPU"));
            if constexpr (std::is_same_v<T, recurrent> || std::is_same_v<T, attention>)
                throw launch_failure(text(to_string(l), ": is not run on a CPU"));
            else if constexpr (requires { make_library_kernel(x); }) return make_library_kernel(x);
            else return make_loop_kernel(x);
        },
        l);
}

} // namespace parsearch::profiler
